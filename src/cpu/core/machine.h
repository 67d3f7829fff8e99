/* machine.h - the peak rates of this machine, measured. */
#ifndef SNI_CPU_CORE_MACHINE_H
#define SNI_CPU_CORE_MACHINE_H

#include "base/status.h"

typedef struct sni_machine_peak {
    double flops; /* float32 operations per second; a multiply-add counts as two */
    double bytes; /* bytes per second read from main memory */
} sni_machine_peak;

/* Measures with so many threads (0: all available) for about 0.2 s. Fails with SN_NO_MEMORY. */
sn_status sni_machine_measure(int threads, sni_machine_peak *out, sn_error *err);

#endif
