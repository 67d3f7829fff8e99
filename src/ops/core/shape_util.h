/* shape_util.h - inference over small integer tensors that hold shapes, axes, indices or sizes. */
#ifndef SNI_OPS_CORE_SHAPE_UTIL_H
#define SNI_OPS_CORE_SHAPE_UTIL_H

#include "ops/core/op.h"

enum { SNI_LIST_MAX = 64 }; /* longest list of dimensions that operators pass on */

/* What inference knows of the elements of an integer input of rank 0 or 1. */
typedef struct sni_list {
    bool known;              /* that the input is given, and the number of its elements */
    int64_t count;           /* elements */
    const sni_tensor *exact; /* contents; NULL: not known */
    const sni_dim *dims;     /* elements as dimensions; NULL: not known */
} sni_list;

sn_status sni_infer_list(sni_infer *c, int i, sni_list *out);

/* Element j where it is a known integer. */
bool sni_list_int(const sni_list *list, int64_t j, int64_t *out);

/* Element j of a list that is passed on: a plain integer or a symbol. */
sni_dim sni_list_item(sni_infer *c, const sni_list *list, int64_t j);

/* Element j as a dimension of a shape: a fresh symbol where it is negative. */
sni_dim sni_list_dim(sni_infer *c, const sni_list *list, int64_t j);

/* Whether element j, which is no known integer, comes from sizes that the model declares: a plan
 * knows it then, and checks what inference takes for granted about it. Never so within a plan. */
bool sni_list_is_size(const sni_infer *c, const sni_list *list, int64_t j);

/* True if something is known of the elements. */
static inline bool sni_list_has_elements(const sni_list *list) {
    return list->known && (list->exact || list->dims);
}

/* Axes of a list that may be negative, as a set of bits. False in *known if an element is not
 * known yet. SN_INVALID_MODEL if one is out of range or stands twice. */
sn_status sni_infer_axis_set(sni_infer *c, const sni_list *axes, int rank, uint32_t *set,
                             bool *known);

/* The known elements of input 0 become those of output 0, which is the same list. */
sn_status sni_infer_pass_dims(sni_infer *c);

/* Joins two dimensions that must be equal: the known one wins. Fails if both are known and
 * differ. */
sn_status sni_infer_join_dim(sni_infer *c, const char *what, int axis, sni_dim a, sni_dim b,
                             sni_dim *out);

/* Product of dims[from, to). */
sni_dim sni_dims_product(sni_infer *c, const sni_dim *dims, int from, int to);

/* Copies the dimensions of input i; rank of them. */
void sni_infer_get_dims(const sni_infer *c, int i, sni_dim dims[SN_MAX_RANK]);

/* What holds for both of two types: kind, element type, and the shape as far as it is the same;
 * dimensions that differ become fresh symbols; a value and an optional one give an optional.
 * SN_INVALID_MODEL if the kinds or element types differ. Parts are in the context's arena. */
sn_status sni_infer_union(sni_infer *c, const sni_type *a, const sni_type *b, sni_type *out);

/* Output 0 is the inputs `first`, `first + step`, ... one after the other along an axis. */
sn_status sni_infer_concat(sni_infer *c, int64_t axis, int first, int step);

/* Output `out` has input i's shape; nothing if that is not known. */
sn_status sni_infer_shape_of(sni_infer *c, int out, int i);

#endif
