/* macOS: memory as sysctl(3), getrusage(2), Mach's task_info and malloc's mstats count it. */
#include "platform/memory.h"

#include <mach/mach.h>
#include <malloc/malloc.h>
#include <sys/resource.h>
#include <sys/sysctl.h>

int64_t wb_platform_memory_bytes(void) {
    int64_t bytes = 0;
    size_t size = sizeof bytes;
    return sysctlbyname("hw.memsize", &bytes, &size, NULL, 0) == 0 ? bytes : 0;
}

/* In bytes here, in KiB on Linux: getrusage(2) of each. */
int64_t wb_platform_peak_bytes(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss : 0;
}

int64_t wb_platform_own_bytes(void) {
    task_vm_info_data_t info;
    mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
    const kern_return_t result =
        task_info(mach_task_self(), TASK_VM_INFO, (task_info_t)&info, &count);
    return result == KERN_SUCCESS ? (int64_t)info.phys_footprint : 0;
}

int64_t wb_platform_heap_bytes(void) {
    struct mstats stats = mstats();
    return (int64_t)stats.bytes_used;
}

/* The system decides. */
void wb_platform_use_large_pages(void *block, size_t size_bytes) { (void)block, (void)size_bytes; }

/* It has the limit by name (RLIMIT_AS), but does not hold processes to it. */
bool wb_platform_has_address_space(uint64_t bytes) { return (void)bytes, true; }
