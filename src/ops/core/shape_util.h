/* shape_util.h - helpers of inference, above all for small integer tensors that hold shapes, axes,
 * indices or sizes. Functions that return sn_status fail as sni_op.infer does. */
#ifndef SNI_OPS_CORE_SHAPE_UTIL_H
#define SNI_OPS_CORE_SHAPE_UTIL_H

#include "ops/core/op.h"

enum { SNI_LIST_MAX = 64 }; /* longest list of dimensions that operators pass on */

/* What inference knows about the elements of an integer input of rank 0 or 1. */
typedef struct sni_list {
    bool known;              /* the input is given and its number of elements is known */
    int64_t count;           /* elements */
    const sni_tensor *exact; /* contents; NULL: not known */
    const sni_dim *dims;     /* elements as dimensions; NULL: not known */
} sni_list;

/* Fills *out for input i. Fails if the rank is above 1 or a constant cannot be loaded. */
sn_status sni_infer_list(sni_infer *c, int i, sni_list *out);

/* *out = element j. False if it is not known or not a plain integer. */
bool sni_list_int(const sni_list *list, int64_t j, int64_t *out);

/* Element j for a list that is passed on: a plain integer, or a symbol (a fresh one if nothing is
 * known). */
sni_dim sni_list_item(sni_infer *c, const sni_list *list, int64_t j);

/* Element j as a dimension of a shape: a fresh symbol where it is negative. */
sni_dim sni_list_dim(sni_infer *c, const sni_list *list, int64_t j);

/* Whether element j, which is no known integer, comes from sizes that the model declares: a plan
 * knows it then, and checks what inference takes for granted about it. Never so within a plan. */
bool sni_list_is_size(const sni_infer *c, const sni_list *list, int64_t j);

/* True if something is known about the elements themselves. */
static inline bool sni_list_has_elements(const sni_list *list) {
    return list->known && (list->exact || list->dims);
}

/* *set = the axes of a list, which may be negative, as bits. *known becomes false if an element is
 * not known yet. Fails if an axis is out of range or occurs twice. */
sn_status sni_infer_axis_set(sni_infer *c, const sni_list *axes, int rank, uint32_t *set,
                             bool *known);

/* The known elements of input 0 become those of output 0, which is the same list. */
sn_status sni_infer_pass_dims(sni_infer *c);

/* *out = the known one of two dimensions that must be equal. Fails if both are known and differ;
 * the message names `what` and the axis. */
sn_status sni_infer_join_dim(sni_infer *c, const char *what, int axis, sni_dim a, sni_dim b,
                             sni_dim *out);

/* The product of dims[from, to): a fresh symbol where it is not known. */
sni_dim sni_dims_product(sni_infer *c, const sni_dim *dims, int from, int to);

/* Copies the dimensions of input i, whose rank must be known. */
void sni_infer_get_dims(const sni_infer *c, int i, sni_dim dims[SN_MAX_RANK]);

/* *out = what two types have in common: kind, element type, and the shape as far as it is the same.
 * Dimensions that differ become fresh symbols; a value and an optional value give an optional.
 * Fails if the kinds or element types differ. Memory is the context's arena. */
sn_status sni_infer_union(sni_infer *c, const sni_type *a, const sni_type *b, sni_type *out);

/* Output 0 is the concatenation of the inputs first, first + step, ... along an axis. */
sn_status sni_infer_concat(sni_infer *c, int64_t axis, int first, int step);

/* Output `out` has input i's shape; nothing if that is not known. */
sn_status sni_infer_shape_of(sni_infer *c, int out, int i);

#endif
