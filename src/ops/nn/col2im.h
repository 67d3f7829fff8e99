/* col2im.h - the reverse of gathering windows: elements of windows are added back into the image
 * they came from. Col2Im and ConvTranspose. */
#ifndef SNI_OPS_NN_COL2IM_H
#define SNI_OPS_NN_COL2IM_H

#include "ops/nn/sliding.h"

/* image (w->in...) += columns (taps, w->out...): element (tap, position) is added at the place of
 * that tap of the window at that position, unless that is padding. Integers wrap; bools are
 * combined by "or". */
typedef void (*sni_scatter_fn)(const sni_window *w, const void *columns, void *image);

/* By element type; narrow floats have no entry. */
extern const sni_scatter_fn sni_scatter_windows[SNI_DTYPE_COUNT];

#endif
