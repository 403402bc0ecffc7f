/* WEBER_TRACE=file.json: a timeline in the Trace Event Format of Chrome, for Perfetto and
 * chrome://tracing. */
#ifndef WB_BASE_EVENTS_H
#define WB_BASE_EVENTS_H

#include <stdbool.h>

#include "base/clock.h"

extern int wb_events_state; /* __atomic; of a wb_switch */
bool wb_events_look_up(void);

/* The environment is read once. Any thread may record events. */
static inline bool wb_are_events_told(void) {
    const int state = __atomic_load_n(&wb_events_state, __ATOMIC_RELAXED);
    return state == 0 ? wb_events_look_up() : state > 1;
}

/* The time when something begins, for wb_event; costs one branch if no events are recorded. */
static inline double wb_event_begin(void) { return wb_are_events_told() ? wb_clock() : 0; }

/* An event: its category and name, and its arguments; NULL or 0 leaves an argument out. */
typedef struct wb_event_info {
    const char *kind, *what, *layer, *direction;
    /* number of the run of its plan, from 1 on; in the first one kernels are compiled and chosen */
    double run;
    double operations, read_bytes, written_bytes;
} wb_event_info;

/* Records an event that began and ended at these times of wb_clock. Does nothing if began is 0. */
void wb_event_told(const wb_event_info *info, double began, double ended);

/* The same, now. */
void wb_event(const char *kind, const char *what, double began, const char *layer,
              const char *direction);

#endif
