/* Files that are replaced atomically: at any moment the name is the old file or the whole new
 * one. */
#ifndef WB_BASE_REPLACE_H
#define WB_BASE_REPLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct wb_replacement {
    FILE *stream;             /* what is written here becomes the file */
    char path[PATH_MAX];      /* of the file, with symbolic links resolved */
    char fresh[PATH_MAX + 8]; /* PATH.XXXXXX; a process that is killed may leave this file */
} wb_replacement;

/* Opens a new file beside the one at path, with the same permissions. False: errno says why;
 * ENOTSUP: path is a pipe, a device, or something else that must not be replaced; ELOOP: path is a
 * symbolic link of another user's in a folder that all may write to. */
bool wb_replace_begin(wb_replacement *replacement, const char *path);
/* strerror, with texts of our own for these two. */
const char *wb_replace_words(int why);
/* Renames the new file to path and syncs it to the disk; or removes it, if is_good is false or
 * something fails. False: errno says why. */
bool wb_replace_end(wb_replacement *replacement, bool is_good);

/* True if the process that wrote the half-written file (PATH.XXXXXX) has ended. */
bool wb_replace_is_abandoned(int folder, const char *name);

#endif
