/* Programs as text; plugin.h describes wb_host.render. */
#ifndef WB_PROGRAM_RENDER_H
#define WB_PROGRAM_RENDER_H

#include <weber/plugin.h>

/* Fails, naming the dialect, unless its group size is valid (see wb_dialect). */
wb_status wb_check_dialect(const wb_dialect *dialect);

/* Records the error of an operation in f64 if the dialect lacks f64. */
wb_status wb_fail_f64(const char *operation, const wb_dialect *dialect);

/* NULL with the error recorded: an invalid dialect, out of memory, or f64 if the dialect lacks
 * it. */
wb_source *wb_render(const wb_program *program, const wb_dialect *dialect);

/* Releases a source of wb_render or wb_render_call. NULL is fine. */
void wb_source_release(wb_source *source);

#endif
