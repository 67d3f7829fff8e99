/* unary_op.inc.c - template: an operator of one tensor, computed element by element, from
 *   NAME         its name
 *   VERSIONS     its opset versions
 *   TYPES        the types of its input
 *   FNS          entries of its table of sni_unary_fn
 * and, where defined,
 *   TO_BOOL      the output is bool instead of the input's type
 *   ATTRIBUTES   its sni_param entries, for the parameter struct PARAMS
 *   UPGRADE      its upgrade function
 *   INFER        its inference, instead of sni_infer_same
 * Instances: unary_math.c, activations.c and others. All but PARAMS are undefined again. */
static sn_status SNI_PASTE(NAME, ref)(sni_kernel *k) {
    static const sni_unary_fn fns[SNI_DTYPE_COUNT] = {FNS};
    return sni_map_unary(k, fns);
}

const sni_op SNI_PASTE(sni_op, NAME) = {
    .name = SNI_TEXT(NAME),
    .versions = SNI_VERSIONS(VERSIONS),
    .inputs = SNI_FORMALS({"X", "T"}),
#ifdef TO_BOOL
    .outputs = SNI_FORMALS({"Y", "bool"}),
#else
    .outputs = SNI_FORMALS({"Y", "T"}),
    .inplace = 1,
#endif
    .types = SNI_TYPE_VARS({"T", TYPES}),
#ifdef ATTRIBUTES
    .params = SNI_PARAMS(ATTRIBUTES),
    .params_size = sizeof(PARAMS),
#endif
#ifdef UPGRADE
    .upgrade = UPGRADE,
#endif
#ifdef INFER
    .infer = INFER,
#else
    .infer = sni_infer_same,
#endif
    .ref = SNI_PASTE(NAME, ref),
};
#undef NAME
#undef VERSIONS
#undef TYPES
#undef FNS
#undef TO_BOOL
#undef ATTRIBUTES
#undef UPGRADE
#undef INFER
