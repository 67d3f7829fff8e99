/* binary_op.inc.c - template: an operator of two tensors, broadcast and computed element by
 * element, from NAME         its name VERSIONS     its opset versions TYPES        the types of its
 * inputs FNS          entries of its table of sni_binary_fn and, where defined, TO_BOOL      the
 * output is bool instead of the inputs' type ATTRIBUTES   its sni_param entries, for the parameter
 * struct PARAMS UPGRADE      its upgrade function INFER        its inference, instead of
 * sni_infer_broadcast Instances: arithmetic.c, compare.c, logic.c and others. All but PARAMS are
 * undefined again. */
static sn_status SNI_PASTE(NAME, ref)(sni_kernel *k) {
    static const sni_binary_fn fns[SNI_DTYPE_COUNT] = {FNS};
    return sni_map_binary(k, fns);
}

const sni_op SNI_PASTE(sni_op, NAME) = {
    .name = SNI_TEXT(NAME),
    .versions = SNI_VERSIONS(VERSIONS),
    .inputs = SNI_FORMALS({"A", "T"}, {"B", "T"}),
#ifdef TO_BOOL
    .outputs = SNI_FORMALS({"C", "bool"}),
#else
    .outputs = SNI_FORMALS({"C", "T"}),
#endif
    .inplace = 3,
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
    .infer = sni_infer_broadcast,
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
