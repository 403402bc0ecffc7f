/* Linux: fsync(2) reaches the disk, and memory that processes share is a POSIX object
 * (shm_open(3)), which is in /dev/shm. */
#include "platform/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

const char wb_platform_shared_place[] = "/dev/shm";

bool wb_platform_sync_file(int file) { return fsync(file) == 0; }

int wb_platform_open_shared(const char *name, int flags) { return shm_open(name, flags, 0600); }

/* With ftruncate alone a full memory would be a SIGBUS later. */
int wb_platform_grow_shared(int file, size_t bytes) {
    int error;
    do error = posix_fallocate(file, 0, (off_t)bytes);
    while (error == EINTR);
    return error;
}

void wb_platform_unlink_shared(const char *name) { (void)shm_unlink(name); }
