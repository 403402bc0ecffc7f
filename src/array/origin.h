/* Where arrays are made: the layer that was applied, and whether for a gradient. Noted only where
 * somebody asks by WEBER_DEBUG=nan or WEBER_TRACE. */
#ifndef WB_ARRAY_ORIGIN_H
#define WB_ARRAY_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

/* The environment is asked once. */
bool wb_look_up_origins(void);
extern int wb_origin_state; /* __atomic; of a wb_switch */

static inline bool wb_notes_origins(void) {
    const int state = __atomic_load_n(&wb_origin_state, __ATOMIC_RELAXED);
    return state == 0 ? wb_look_up_origins() : state > 1;
}

/* The number of here and now; 0, outside of any layer, also where there are too many. */
uint16_t wb_origin_now(void);
/* What this thread makes from now on is for the gradient of what was made there; gives what
 * wb_origin_forth puts back. */
uint16_t wb_origin_back(uint16_t origin);
void wb_origin_forth(uint16_t before);

/* The number of a text of one's own, which wb_origin_layer gives back; 0 where there are too many,
 * -1 when out of memory. */
int32_t wb_origin_number(const char *text);

/* "Dense(2 => 3), layer 1 of Chain", or "". */
const char *wb_origin_layer(uint16_t origin);
bool wb_origin_is_backward(uint16_t origin);

#endif
