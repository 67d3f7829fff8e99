/* group.h - the program that a Group of elementwise operators (ops/sinter/group.h) is compiled to:
 * a list of steps. Each step processes a row of a tile; a tile's rows stay in the first-level
 * cache. */
#ifndef SNI_CPU_ELEMENTWISE_GROUP_H
#define SNI_CPU_ELEMENTWISE_GROUP_H

#include "cpu/core/cpu_ep.h"
#include "cpu/elementwise/map.h"
#include "cpu/reduce/reduce.h"
#include "ops/sinter/group.h"

enum { SNI_GROUP_STEPS = 3 * SNI_GROUP_MEMBERS, SNI_GROUP_SLOTS = 256 };

typedef enum sni_group_kind { SNI_GROUP_MAP, SNI_GROUP_BINARY, SNI_GROUP_CHOOSE } sni_group_kind;

/* Operands and results are slots, numbered: first the inputs, then constants and results in the
 * order they are made. A slot holds one float (stride 0) or a row of floats (stride 1); bools are 1
 * and 0. */
typedef struct sni_group_step {
    sni_group_kind kind;
    union {
        void (*map)(float p0, float p1, const float *x, float *y, int64_t n);
        void (*binary)(const void *a, const void *b, void *y, int64_t n, int64_t sa, int64_t sb,
                       const void *params);
    } fn;
    float p0, p1;
    int16_t in[3]; /* CHOOSE: condition, then the two */
    int16_t to;
} sni_group_step;

typedef struct sni_group_program {
    int n_in, n_out, n_slots, n_steps;
    int n_buffers; /* rows of a tile that results need at once */
    sni_group_step steps[SNI_GROUP_STEPS];
    sn_dtype in_type[SNI_GROUP_INPUTS], out_type[SNI_GROUP_OUTPUTS];
    int16_t out[SNI_GROUP_OUTPUTS];  /* slots */
    bool late[SNI_GROUP_OUTPUTS];    /* made in a buffer and stored when the tile is finished */
    int16_t buffer[SNI_GROUP_SLOTS]; /* of a result; -1: none */
    bool is_const[SNI_GROUP_SLOTS];
    float constant[SNI_GROUP_SLOTS];
    int const_rank; /* the highest rank of a constant */
    /* A reduction of rows at the end; reducer NULL: none. */
    const sni_reducer *reducer;
    bool selects;              /* it selects an element (maximum, minimum) instead of adding */
    int16_t reduced;           /* slot */
    int reduction;             /* output */
    int64_t axes[SN_MAX_RANK]; /* as given */
    int n_axes;
} sni_group_program;

/* Compiles the body of a Group whose inputs have the types of `c`. False if it has something that
 * there is no step for, or is too large; *p is then undefined. */
bool sni_group_compile(const sni_choice *c, sni_group_program *p);

#endif
