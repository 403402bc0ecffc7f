/* Room for libraries that end the process where memory runs out. */
#ifndef WB_COMMON_SPACE_H
#define WB_COMMON_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* True unless the process may map less than `bytes` more (ulimit -v). */
static inline bool wb_has_address_space(uint64_t bytes) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long long pages = 0;
    const bool is_known = file && fscanf(file, "%llu", &pages) == 1;
    if (file) (void)fclose(file);
    const uint64_t used = is_known ? pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
    return is_known && used < limit.rlim_cur && limit.rlim_cur - used >= bytes;
}

#endif
