/* machine.c - the machine: what can be asked of it, and how its threads are made. */
#include "sinter.h"

#include "base/cpu.h"
#include "base/threadpool.h"
#include "cpu/core/machine.h"

sn_status sn_machine_measure(int threads, sn_machine *out, sn_error *err) {
    if (!out || threads < 0)
        return sni_fail(err, SN_INVALID_ARGUMENT, "out is NULL, or threads is %d (0 or more)",
                        threads);
    int available = sni_threads_available();
    int used = threads == 0 || threads > available ? available : threads;
    sni_machine_peak peak;
    SN_TRY(sni_machine_measure(used, &peak, err));
    *out = (sn_machine){.isa = sni_isa_name(sni_cpu_isa()),
                        .cpus = available,
                        .threads = used,
                        .flops_per_second = peak.flops,
                        .bytes_per_second = peak.bytes};
    return SN_OK;
}

sn_status sn_use_thread_functions(const sn_thread_functions *functions, sn_error *err) {
    if (functions && (!functions->create || !functions->join))
        return sni_fail(err, SN_INVALID_ARGUMENT, "the function that %s threads is NULL",
                        functions->create ? "joins" : "creates");
    if (!sni_threads_by(functions))
        return sni_fail(err, SN_UNSUPPORTED, "a worker's work cannot change how workers are made");
    return SN_OK;
}
