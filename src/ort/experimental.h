/* experimental.h - what functions that are found by name share with the rest. */
#ifndef SNI_ORT_EXPERIMENTAL_H
#define SNI_ORT_EXPERIMENTAL_H

#include "ort/ort.h"

/* The session options of compilation options (compile.c); borrowed. */
OrtSessionOptions *ort_compile_session_options(OrtModelCompilationOptions *options);

#endif
