/* machine.c - what can be asked of the machine. */
#include "sinter.h"

#include "base/cpu.h"
#include "base/threadpool.h"
#include "cpu/machine.h"

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
