/* Calls as text; plugin.h describes wb_host.render_call. Each kind of call has a file, call_KIND.c,
 * which chooses the variant and fills in the block of words, and texts, call_*.txt. A text for
 * machines with many narrow cores shares memory among a group; a text for serial dialects (one wide
 * core runs a group) uses vectors, in the group's first item. */
#ifndef WB_PROGRAM_CALL_H
#define WB_PROGRAM_CALL_H

#include <weber/plugin.h>

/* NULL with the error recorded: out of memory, or f64 if the dialect lacks it. NULL without an
 * error: the epilogue must be run as a separate program. */
wb_source *wb_render_call(const wb_call *call, const wb_program *epilogue, int split,
                          const wb_dialect *dialect);

/* See wb_host.has_text in plugin.h. */
bool wb_call_has_text(const wb_call *call, const wb_dialect *dialect);

#endif
