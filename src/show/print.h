/* Arrays as text, for callers that print more. */
#ifndef WB_SHOW_PRINT_H
#define WB_SHOW_PRINT_H

#include "array/array.h"
#include "base/text.h"

/* wb_show_array into a text. */
wb_status wb_array_text(wb_text *out, wb_array *x);

#endif
