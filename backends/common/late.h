/* Errors that come late: a queue keeps the first one until a sync asks for it. */
#ifndef WB_COMMON_LATE_H
#define WB_COMMON_LATE_H

#include <weber/plugin.h>

/* The status words of a command that checks indices. */
enum { WB_STATUS_WORDS = 4, WB_STATUS_BYTES = WB_STATUS_WORDS * sizeof(int64_t) };

typedef struct wb_late_error {
    wb_status status; /* WB_OK: none */
    char text[256];
} wb_late_error;

void wb_late_error_keep(wb_late_error *error, wb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Keeps the error of the command `what` if its words report a bad index. */
void wb_late_error_note(wb_late_error *error, const char *what,
                        const int64_t words[WB_STATUS_WORDS]);

#endif
