/* A device reports an error after the call that caused it has returned. The queue keeps the first
 * one as text until a sync asks. A kernel that meets a bad index leaves it in four words of memory,
 * from which the message is made here. */
#include "late.h"

#include <stdarg.h>
#include <stdio.h>

void wb_late_error_keep(wb_late_error *error, wb_status status, const char *format, ...) {
    if (error->status != WB_OK) return;
    va_list arguments;
    va_start(arguments, format);
    error->status = status;
    (void)vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
}

void wb_late_error_note(wb_late_error *error, const char *what,
                        const int64_t words[WB_STATUS_WORDS]) {
    if (words[0])
        wb_late_error_keep(error, WB_ERROR_ARGUMENT,
                           "%s: index %lld at place %lld is not in 0 .. %lld", what,
                           (long long)words[1], (long long)words[2], (long long)words[3] - 1);
}
