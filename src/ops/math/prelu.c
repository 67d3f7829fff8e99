/* PRelu: y = x where x is not below 0, slope * x elsewhere. */
#include "ops/core/elementwise.h"

#define BODY "ops/math/prelu.inc.c"
#include "ops/core/each_number.inc.h"
#undef BODY

/* Before version 7 a slope of rank 1 had one element, or one for each channel (axis 1). */
static sn_status prelu_upgrade(sni_upgrade *u) {
    if (u->from >= 7) return SN_OK;
    const sni_value *slope =
        sni_graph_value(u->graph, u->node->n_in > 1 ? u->node->in[1] : SNI_NO_ID);
    if (slope && slope->constant && slope->constant->tensor.count == 1) return SN_OK;
    sni_attr broadcast = sni_attr_of_int("broadcast", 1), axis = sni_attr_of_int("axis", 1);
    SN_TRY(sni_node_set_attr(u->graph, u->node, &broadcast, u->err));
    SN_TRY(sni_node_set_attr(u->graph, u->node, &axis, u->err));
    return sni_upgrade_legacy_broadcast(u);
}

#define NAME PRelu
#define VERSIONS 1, 6, 7, 9, 16
#define TYPES SNI_T_FLOATS | SNI_T(SN_INT32) | SNI_T(SN_INT64) | SNI_T(SN_UINT32) | SNI_T(SN_UINT64)
#define FNS SNI_EACH_NUMBER(prelu)
#define UPGRADE prelu_upgrade
#include "ops/core/binary_op.inc.c"
