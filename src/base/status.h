/* status.h - how internal functions fail.
 *
 * A failing function fills the caller's slot once with sni_fail(); outer layers add where it
 * happened with sni_fail_context() and never overwrite. All of them accept a NULL slot. */
#ifndef SNI_BASE_STATUS_H
#define SNI_BASE_STATUS_H

#include "sinter.h"

#define SNI_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Fills `err` (unless NULL) and returns `status`. */
sn_status sni_fail(sn_error *err, sn_status status, const char *format, ...) SNI_PRINTF(3, 4);

/* SN_NO_MEMORY with a standard text. */
sn_status sni_fail_memory(sn_error *err);

/* Puts "context: " before the message that is in `err` and returns `status`, which must be the
 * status of the failure under way. */
sn_status sni_fail_context(sn_error *err, sn_status status, const char *format, ...)
    SNI_PRINTF(3, 4);

/* Returns from the calling function when `expr` fails. Only in functions that own nothing. */
#define SN_TRY(expr)                                        \
    do {                                                    \
        sn_status sn_try_status_ = (expr);                  \
        if (sn_try_status_ != SN_OK) return sn_try_status_; \
    } while (0)

#endif
