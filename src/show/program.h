/* Pictures are drawn by other programs. */
#ifndef WB_SHOW_PROGRAM_H
#define WB_SHOW_PROGRAM_H

#include "base/text.h"

/* A picture that `program` of the Debian package draws of a text. */
typedef struct wb_picture {
    const char *function; /* for messages: "plot" */
    const char *path;     /* of the picture */
    const char *program, *package;
} wb_picture;

bool wb_ends_in(const char *path, const char *ending);

/* Writes the text by write(text, user) into a temporary file, and runs the program with the
 * arguments, of which "" stands for the text's path, without a shell. What it prints is the
 * picture: Weber writes the file itself, as programs do not all tell of a full disk. */
wb_status wb_draw_picture(const wb_picture *picture, int count, const char *const *arguments,
                          void (*write)(wb_text *text, void *user), void *user);
/* The file at the picture's path becomes the bytes, whole, or stays what it was. */
wb_status wb_write_picture(const wb_picture *picture, const wb_text *bytes);

#endif
