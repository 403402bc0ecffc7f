/* Files on the disk, and memory that processes share under a name. */
#ifndef WB_PLATFORM_FILES_H
#define WB_PLATFORM_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* Hands what was written to the drive, and has it leave the drive's own memory. False with errno
 * set. */
bool wb_platform_sync_file(int file);

/* Shared memory "/NAME": a file descriptor that can be mapped and locked (F_SETLK); -1 with errno
 * set. flags: those of open(2). Files that it makes are the user's alone. */
int wb_platform_open_shared(const char *name, int flags);

/* Gives it `bytes` bytes at least, which are there when this returns: touching them cannot fail. 0
 * or an errno. */
int wb_platform_grow_shared(int file, size_t bytes);

void wb_platform_unlink_shared(const char *name);

/* Where shared memory lies, for messages. */
extern const char wb_platform_shared_place[];

#endif
