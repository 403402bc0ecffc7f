/* Files that are replaced whole: at any moment the name is the old file or the new one. */
#ifndef WB_BASE_REPLACE_H
#define WB_BASE_REPLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct wb_replacement {
    FILE *stream;             /* what is written here becomes the file */
    char path[PATH_MAX];      /* links followed */
    char fresh[PATH_MAX + 8]; /* PATH.XXXXXX; a process that is killed may leave it behind */
} wb_replacement;

/* A new file beside the one at path, with its permissions. False: errno says why; ENOTSUP: at path
 * is a pipe, a device, or something else that a file must not take the place of; ELOOP: a link of
 * another user's, in a folder that all may write to, leads there. */
bool wb_replace_begin(wb_replacement *replacement, const char *path);
/* strerror, with these two said. */
const char *wb_replace_words(int why);
/* Gives it the name, on the disk too; or removes it, if is_good is false or something fails. False:
 * errno says why. */
bool wb_replace_end(wb_replacement *replacement, bool is_good);

/* Nobody writes to the half-written file (PATH.XXXXXX) any more: its process has ended. */
bool wb_replace_is_abandoned(int folder, const char *name);

#endif
