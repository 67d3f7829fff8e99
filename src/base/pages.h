/* pages.h - memory straight from the system, on large pages where it has them: for what is large
 * and stays, and goes back to the system when it is freed. */
#ifndef SNI_BASE_PAGES_H
#define SNI_BASE_PAGES_H

#include <stddef.h>

enum { SNI_LARGE_PAGE = 2 << 20 };

/* Zero-filled memory that begins at a multiple of SNI_LARGE_PAGE; pages come into being when they
 * are first used. NULL: there is none. */
void *sni_pages_map(size_t bytes);
/* `bytes` as mapped. */
void sni_pages_unmap(void *p, size_t bytes);

/* Makes the pages of a part of it at once instead of fault by fault, on all threads that the caller
 * may use (sni_threads_limit): most of the time is the system's, which clears them. The last one is
 * made of small pages if less than three quarters of a large one are wanted: the rest of it takes
 * no memory, and a host that has taken free memory back has less to find. The system may join them
 * later. */
void sni_pages_use(void *p, size_t bytes);

/* Has the system map pages of a file that has been mapped at once instead of fault by fault. */
void sni_pages_fetch(const void *p, size_t bytes);

/* Asks for large pages as far as whole ones fit into the memory; pages that are there stay as they
 * are. */
void sni_pages_enlarge(void *p, size_t bytes);

#endif
