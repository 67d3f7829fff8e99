/* cpu.h - what this machine and this process may use. */
#ifndef SNI_BASE_CPU_H
#define SNI_BASE_CPU_H

#include <stdbool.h>
#include <stddef.h>

/* Instruction sets that kernels are built for; each contains those before it. */
typedef enum sni_isa {
    SNI_ISA_BASELINE,   /* what the compiler was told every machine has */
    SNI_ISA_AVX2,       /* AVX2, FMA and F16C */
    SNI_ISA_AVX512,     /* AVX-512 F, BW, CD, DQ and VL */
    SNI_ISA_AVX512VNNI, /* and VNNI */
    SNI_ISA_AMX         /* and AMX: tiles with products of bytes */
} sni_isa;

#define SNI_ISA_COUNT 5

/* All functions are thread-safe, and what they say stays so for the life of the process. */

/* The best one that processor and operating system have. Where that is SNI_ISA_AMX, the process has
 * asked the operating system for the use of tiles, and got it. */
sni_isa sni_cpu_best(void);

/* The one to use: sni_cpu_best(), or a lower one if the environment variable SINTER_ISA names it
 * ("baseline", "avx2", "avx512", "avx512vnni", "amx") when this is first called. */
sni_isa sni_cpu_isa(void);

/* Instructions that no tier implies. */
typedef enum sni_cpu_feature {
    SNI_CPU_VBMI2,       /* AVX-512 VBMI and VBMI2 */
    SNI_CPU_AVX512_BF16, /* products of bfloat16 by vectors */
    SNI_CPU_AMX_BF16,    /* and by tiles */
    SNI_CPU_FEATURES
} sni_cpu_feature;

/* Whether kernels may use them: the processor has them, and the tier in force is the best of those
 * that go with them. A lower tier has the instructions of its name alone, so that tests reach what
 * runs in their place. */
bool sni_cpu_has(sni_cpu_feature feature);

/* Channels that lie side by side in a blocked tensor for the instruction set in force. */
int sni_cpu_block(void);

/* Bytes of one core's first-level data cache or second-level cache; a common size if not known. */
size_t sni_cpu_cache(int level);

/* "avx2" and the like, as SINTER_ISA takes them. */
const char *sni_isa_name(sni_isa isa);

#endif
