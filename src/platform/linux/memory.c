/* Linux: memory as sysconf(3), getrusage(2), /proc/self/statm and glibc's mallinfo2 count it. Large
 * blocks ask for pages of 2 MiB. */
#include "platform/memory.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

int64_t wb_platform_memory_bytes(void) {
    return (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
}

int64_t wb_platform_peak_bytes(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}

/* Pages, the field-th number there: 0 all that is mapped, 1 those in memory, 2 of these those of
 * files. -1: unknown. */
static int64_t statm(int field) {
    FILE *file = fopen("/proc/self/statm", "re");
    long long pages = -1;
    while (file && field >= 0 && fscanf(file, "%lld", &pages) == 1) field--;
    if (file) (void)fclose(file);
    return field < 0 ? pages : -1;
}

int64_t wb_platform_own_bytes(void) {
    return (statm(1) - statm(2)) * (int64_t)wb_platform_page_bytes();
}

int64_t wb_platform_heap_bytes(void) {
#if __GLIBC_PREREQ(2, 33)
    const struct mallinfo2 info = mallinfo2();
    return (int64_t)(info.uordblks + info.hblkhd);
#else /* it counts in int, modulo 2^32 */
    const struct mallinfo info = mallinfo();
    return (int64_t)(unsigned)info.uordblks + (unsigned)info.hblkhd;
#endif
}

void wb_platform_use_large_pages(void *block, size_t size_bytes) {
    if (!block || size_bytes < 2 * (size_t)HUGE_PAGE) return;
    const uintptr_t first = ((uintptr_t)block + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    const uintptr_t last = ((uintptr_t)block + size_bytes) & ~(uintptr_t)(HUGE_PAGE - 1);
    char *start = (char *)block + (first - (uintptr_t)block);
    (void)madvise(start, last - first, MADV_HUGEPAGE);
}

bool wb_platform_has_address_space(uint64_t bytes) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
    const int64_t pages = statm(0);
    const uint64_t used = pages < 0 ? 0 : (uint64_t)pages * wb_platform_page_bytes();
    return pages >= 0 && used < limit.rlim_cur && limit.rlim_cur - used >= bytes;
}
