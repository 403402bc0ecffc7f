/* macOS: F_FULLFSYNC reaches the disk, and memory that processes share is a file in the user's
 * temporary folder. */
#include "platform/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

const char wb_platform_shared_place[] = "the user's temporary folder";

/* fsync only hands the data to the drive, which may keep it for a while (fsync(2)); other file
 * systems have only fsync. */
bool wb_platform_sync_file(int file) { return fcntl(file, F_FULLFSYNC) == 0 || fsync(file) == 0; }

/* A file: shared memory (shm_open) takes no locks here, and its names have 30 letters at most. The
 * folder is the user's alone. */
static bool path_of(const char *name, char path[PATH_MAX]) {
    char folder[PATH_MAX];
    const size_t length = confstr(_CS_DARWIN_USER_TEMP_DIR, folder, sizeof folder);
    if (length == 0 || length > sizeof folder) return errno = ENOENT, false;
    if (snprintf(path, PATH_MAX, "%s%s", folder, name + 1) < PATH_MAX) return true;
    return errno = ENAMETOOLONG, false;
}

int wb_platform_open_shared(const char *name, int flags) {
    char path[PATH_MAX];
    return path_of(name, path) ? open(path, flags | O_NOFOLLOW, 0600) : -1;
}

/* First the blocks, then the length: a full disk is an error here, not a signal later. */
int wb_platform_grow_shared(int file, size_t bytes) {
    struct stat about;
    if (fstat(file, &about) != 0) return errno;
    if ((size_t)about.st_size >= bytes) return 0;
    fstore_t blocks = {.fst_flags = F_ALLOCATEALL,
                       .fst_posmode = F_PEOFPOSMODE,
                       .fst_length = (off_t)bytes - about.st_size};
    if (fcntl(file, F_PREALLOCATE, &blocks) != 0 && errno != ENOTSUP) return errno;
    return ftruncate(file, (off_t)bytes) == 0 ? 0 : errno;
}

void wb_platform_unlink_shared(const char *name) {
    char path[PATH_MAX];
    if (path_of(name, path)) (void)unlink(path);
}
