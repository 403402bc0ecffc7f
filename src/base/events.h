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

/* What an event is about: its category and name, and its arguments, which NULL and 0 leave out. */
typedef struct wb_event_info {
    const char *kind, *what, *layer, *direction;
    double run; /* of its plan, from 1 on: in the first kernels are compiled and chosen */
    double operations, read_bytes, written_bytes;
} wb_event_info;

/* What ended now, or at a time of wb_clock. Does nothing where began is 0. */
void wb_event_told(const wb_event_info *info, double began, double ended);

/* The same, now. */
void wb_event(const char *kind, const char *what, double began, const char *layer,
              const char *direction);

#endif
