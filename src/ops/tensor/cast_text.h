/* cast_text.h - Cast between strings and numbers. */
#ifndef SNI_OPS_TENSOR_CAST_TEXT_H
#define SNI_OPS_TENSOR_CAST_TEXT_H

#include "ops/core/convert.h"
#include "ops/core/op.h"

/* Every element of x (numbers or bools) as text in y: plain decimal notation with as few digits as
 * tell the value apart, scientific from 1e16 up and below 1e-4; "NaN", "INF" and "-INF". */
sn_status sni_numbers_to_text(sni_kernel *k, const sni_tensor *x, sni_tensor *y);

/* Every string of x as a number in y: plain or scientific notation, INF and NaN in any case.
 * Integers drop a fraction. SN_BAD_DATA if a string is no number. */
sn_status sni_text_to_numbers(sni_kernel *k, const sni_tensor *x, sni_tensor *y,
                              const sni_convert_mode *mode);

#endif
