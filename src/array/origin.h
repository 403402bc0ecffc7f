/* Where arrays are made: in which layer, and whether for a gradient. Noted only with
 * WEBER_DEBUG=nan or WEBER_TRACE. */
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

/* The number of the current origin; 0: outside of any layer, or there are too many origins. */
uint16_t wb_origin_now(void);
/* From now on, arrays that this thread makes belong to the gradient of arrays of this origin.
 * Returns the argument for wb_origin_forth, which ends that. */
uint16_t wb_origin_back(uint16_t origin);
void wb_origin_forth(uint16_t before);

/* A number for any text, which wb_origin_layer returns for it; 0 where there are too many, -1 when
 * out of memory. */
int32_t wb_origin_number(const char *text);

/* "Dense(2 => 3), layer 1 of Chain", or "". */
const char *wb_origin_layer(uint16_t origin);
bool wb_origin_is_backward(uint16_t origin);

#endif
