/* Files on the disk, and memory that processes share under a name. */
#ifndef WB_PLATFORM_FILES_H
#define WB_PLATFORM_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* Flushes a file to the drive, including the drive's own cache. False with errno set. */
bool wb_platform_sync_file(int file);

/* Opens shared memory "/NAME": a file descriptor that can be mapped and locked (F_SETLK); -1 with
 * errno set. flags as for open(2). A new file is accessible to the user only. */
int wb_platform_open_shared(const char *name, int flags);

/* Makes it at least `bytes` bytes long and allocates them, so that touching them cannot fail later.
 * Returns 0 or an errno. */
int wb_platform_grow_shared(int file, size_t bytes);

void wb_platform_unlink_shared(const char *name);

/* Where shared memory is, for messages. */
extern const char wb_platform_shared_place[];

#endif
