/* arity.h - a rule for the number of inputs that only a few operators need. */
#ifndef SNI_OPS_CORE_ARITY_H
#define SNI_OPS_CORE_ARITY_H

/* A value of sni_op.min_inputs: the variadic last input may be missing, and so may the optional
 * ones before it. (With SNI_MIN_NONE the optional ones must be listed, at least with an empty
 * name.) */
#define SNI_MIN_FORMALS (-2)

#endif
