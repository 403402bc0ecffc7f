/* One element as text. */
#ifndef WB_SHOW_NUMBER_H
#define WB_SHOW_NUMBER_H

#include <weber/dtype.h>

enum { WB_NUMBER_BYTES = 32 };

/* Element i of data as Julia shows it inside an array: the fewest digits that give the number back,
 * at most six: "0.433884", "1.0", "1.0e-8", "NaN", "-Inf"; integers in full, true and false as 1
 * and 0. */
void wb_show_number(char text[WB_NUMBER_BYTES], const void *data, wb_dtype dtype, int64_t i);

#endif
