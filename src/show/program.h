/* Pictures are drawn by other programs. */
#ifndef WB_SHOW_PROGRAM_H
#define WB_SHOW_PROGRAM_H

#include "base/text.h"

/* A picture that a program, from this Debian package, draws from a text. */
typedef struct wb_picture {
    const char *function; /* for messages: "plot" */
    const char *path;     /* of the picture */
    const char *program, *package;
} wb_picture;

bool wb_ends_in(const char *path, const char *ending);

/* Writes the text by write(text, user) into a temporary file, and runs the program without a shell,
 * with the arguments; "" among them is replaced by the text's path. The program's output is the
 * picture: Weber writes the file itself, since not all programs report a full disk. */
wb_status wb_draw_picture(const wb_picture *picture, int count, const char *const *arguments,
                          void (*write)(wb_text *text, void *user), void *user);
/* Writes the bytes to the picture's path atomically: on failure the old file stays. */
wb_status wb_write_picture(const wb_picture *picture, const wb_text *bytes);

#endif
