/* Memory of the machine and of this process. */
#ifndef WB_PLATFORM_MEMORY_H
#define WB_PLATFORM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int64_t wb_platform_memory_bytes(void); /* of the machine */
size_t wb_platform_page_bytes(void);    /* 4 KiB on most machines, 16 KiB on Apple's */

/* Of this process, for tests and benchmarks. */
int64_t wb_platform_peak_bytes(void); /* peak resident memory */
int64_t wb_platform_own_bytes(void);  /* resident memory without pages of files */
int64_t wb_platform_heap_bytes(void); /* handed out by malloc; 0 under a sanitizer */

/* Asks for large pages under a fresh block: the first touch of small ones is slow. Does nothing to
 * small blocks, nor where the system decides by itself. */
void wb_platform_use_large_pages(void *block, size_t size_bytes);

/* True unless the process may map less than `bytes` more (ulimit -v). For use before libraries that
 * end the process when memory runs out. */
bool wb_platform_has_address_space(uint64_t bytes);

#endif
