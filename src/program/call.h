/* Calls as text: what plugin.h says of wb_host.render_call. Each kind of call has its file,
 * call_KIND.c, which chooses the variant and gives the block its words, and its texts, call_*.txt.
 * A text for machines with many narrow cores shares memory among a group; one for dialects that are
 * serial (one wide core runs a group) works with vectors, in the group's first item. */
#ifndef WB_PROGRAM_CALL_H
#define WB_PROGRAM_CALL_H

#include <weber/plugin.h>

/* NULL with the error recorded: out of memory, or f64 where the dialect has none. NULL without an
 * error: there is an epilogue, which has to be a program of its own. */
wb_source *wb_render_call(const wb_call *call, const wb_program *epilogue, int split,
                          const wb_dialect *dialect);

/* What plugin.h says of wb_host.has_text. */
bool wb_call_has_text(const wb_call *call, const wb_dialect *dialect);

#endif
