/* dispatch.h - which tier's kernels this process runs.
 *
 * A tier (base/cpu.h) is a set of instructions. Vector kernels are *.isa.c files, compiled once per
 * tier with that tier's flags and with TIER defined as its name. Each such file defines one table
 * of function pointers; core/tiers.def lists the tables, and dispatch.c is the only place that
 * picks one of them.
 *
 * For every table T of tiers.def there are two functions:
 *   const T *T_get(void)        the kernels of the tier in force, sni_cpu_isa(); never NULL
 *   const T *T_of(sni_isa isa)  the kernels of a given tier; NULL if this machine cannot run them
 * Both may be called from any thread. Tables are constant and live as long as the process. */
#ifndef SNI_CPU_CORE_DISPATCH_H
#define SNI_CPU_CORE_DISPATCH_H

#include "base/cpu.h"

#define SNI_TIER_TABLE(type, best) \
    typedef struct type type;      \
    const type *type##_get(void);  \
    const type *type##_of(sni_isa isa);
#include "cpu/core/tiers.def"
#undef SNI_TIER_TABLE

/* In an *.isa.c file: the name of this tier's object, and the head of its definition. */
#define SNI_TIERED_(name, tier) name##_##tier
#define SNI_TIERED_NAME(name, tier) SNI_TIERED_(name, tier)
#define SNI_TIERED(name) SNI_TIERED_NAME(name, TIER)
#define SNI_DEFINE_TABLE(type)          \
    extern const type SNI_TIERED(type); \
    const type SNI_TIERED(type)

#endif
