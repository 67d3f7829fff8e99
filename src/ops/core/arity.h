/* arity.h - a rule for the number of inputs that few operators need. */
#ifndef SNI_OPS_CORE_ARITY_H
#define SNI_OPS_CORE_ARITY_H

/* A value of sni_op.min_inputs: the variadic last input may lack, and so may the optional ones
 * before it. (With SNI_MIN_NONE those are listed, if by an empty name.) */
#define SNI_MIN_FORMALS (-2)

#endif
