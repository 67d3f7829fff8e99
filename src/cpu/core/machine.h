/* machine.h - what this machine can do at best, measured. */
#ifndef SNI_CPU_CORE_MACHINE_H
#define SNI_CPU_CORE_MACHINE_H

#include "base/status.h"

typedef struct sni_machine_peak {
    double flops; /* float32 operations a second, a multiply-add being two */
    double bytes; /* a second, read from main memory */
} sni_machine_peak;

/* Measures with so many threads, for about a fifth of a second. */
sn_status sni_machine_measure(int threads, sni_machine_peak *out, sn_error *err);

#endif
