/* WEBER_TRACE=file.json: what happened when, in the Trace Event Format of Chrome, for Perfetto and
 * chrome://tracing. */
#ifndef WB_BASE_EVENTS_H
#define WB_BASE_EVENTS_H

#include <stdbool.h>

#include "base/clock.h"

extern int wb_events_state; /* __atomic; of a wb_switch */
bool wb_events_look_up(void);

/* The environment is asked once. Any thread may tell events. */
static inline bool wb_are_events_told(void) {
    const int state = __atomic_load_n(&wb_events_state, __ATOMIC_RELAXED);
    return state == 0 ? wb_events_look_up() : state > 1;
}

/* When something begins, for wb_event; costs one branch where no events are told. */
static inline double wb_event_begin(void) { return wb_are_events_told() ? wb_clock() : 0; }

/* What ended now: `kind` is its category, what names it, and layer and direction are its arguments
 * unless they are NULL. Does nothing where began is 0. */
void wb_event(const char *kind, const char *what, double began, const char *layer,
              const char *direction);

#endif
