/* Programs as text: what plugin.h says of wb_host.render. */
#ifndef WB_PROGRAM_RENDER_H
#define WB_PROGRAM_RENDER_H

#include <weber/plugin.h>

/* Fails, naming the dialect, unless its group is what wb_dialect says. */
wb_status wb_check_dialect(const wb_dialect *dialect);

/* The error of an operation in f64 where the dialect has none. */
wb_status wb_fail_f64(const char *operation, const wb_dialect *dialect);

/* NULL with the error recorded: a dialect that cannot be, out of memory, or f64 where the dialect
 * has none. */
wb_source *wb_render(const wb_program *program, const wb_dialect *dialect);

/* Of wb_render and wb_render_call. NULL is fine. */
void wb_source_release(wb_source *source);

#endif
