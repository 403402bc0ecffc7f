/* Fewer dimensions for the same walk. */
#ifndef WB_PROGRAM_DOMAIN_H
#define WB_PROGRAM_DOMAIN_H

#include <weber/plugin.h>

/* Takes dimension d out of the domain and of every access: one of size 1, or one that is joined to
 * another. */
void wb_drop_dim(wb_program *program, int d);

/* Makes one dimension d of the dimensions d and d + 1, if every access walks them as one and both
 * are reduced, or neither. */
bool wb_join_dim(wb_program *program, int d);

#endif
