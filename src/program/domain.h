/* Simplifying a domain: fewer dimensions, the same elements in the same order. */
#ifndef WB_PROGRAM_DOMAIN_H
#define WB_PROGRAM_DOMAIN_H

#include <weber/plugin.h>

/* Removes dimension d, which has size 1 or was joined to another, from the domain and all
 * accesses. */
void wb_drop_dim(wb_program *program, int d);

/* Joins dimensions d and d + 1 into one, if every access walks them as one, and both or neither are
 * reduced. */
bool wb_join_dim(wb_program *program, int d);

#endif
