/* guard.h - calls of a client's functions that may throw. */
#ifndef ORT_GUARD_H
#define ORT_GUARD_H

#include <stdbool.h>

/* Calls fn(arg). False if it ended with a C++ exception, which is gone then. An exception passes
 * through on other machines than x86-64 and aarch64, and where the runtime of C++ is linked into
 * the client and cannot be reached. Cancelled threads are not held up. */
bool ort_guarded(void (*fn)(void *arg), void *arg);

#endif
