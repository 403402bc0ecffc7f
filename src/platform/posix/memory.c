/* The size of a page, which POSIX tells by sysconf(3). */
#include "platform/memory.h"

#include <unistd.h>

size_t wb_platform_page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }
