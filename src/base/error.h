/* Recording an error: private side of weber/error.h. */
#ifndef WB_BASE_ERROR_H
#define WB_BASE_ERROR_H

#include <weber/error.h>

enum { WB_MESSAGE_BYTES = 1024 }; /* a longer message is cut */

/* wb_fail, and a NULL of any type: return wb_fail_null(...). */
#define wb_fail_null(...) ((void)wb_fail(__VA_ARGS__), NULL)

/* For "NULL in, NULL out": records `function: what is NULL` if no error is pending. Returns
 * NULL. */
void *wb_fail_argument_null(const char *function, const char *what);

/* True for the start_ of a desc that a macro has made; else with the error recorded. */
bool wb_check_start(const char *function, wb_start start);

/* True if a list of this many entries can be read; else with the error recorded. */
bool wb_check_list(const char *function, int64_t count, const void *list);

/* How many errors this thread has recorded. If the count grew in a call, the pending error is from
 * that call, not an older one. */
uint64_t wb_error_count(void);

/* Puts words in front of the pending error, if it was recorded after the count was `since`; returns
 * its status. An older one belongs to another call. */
wb_status wb_error_prefix(uint64_t since, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts words at the end of the pending error, once: what could not be done because of the error. */
void wb_error_add(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The pending error's message or "", for another message. It does not count as read by the user. */
const char *wb_error_text(void);

/* For a call that does nothing because an older error is pending: logs this once for each error,
 * and returns the error's status. */
wb_status wb_not_run(const char *function);
#define wb_not_run_null(function) ((void)wb_not_run(function), NULL)

/* A place that messages name: "Dense(784 => 128), layer 2 of Chain: ...". Push before applying a
 * layer, pop after. */
typedef struct wb_place {
    struct wb_place *outer;
    void (*describe)(const struct wb_place *place, char *text, size_t size_bytes);
    const void *object;
    int64_t index;
    uint16_t origin; /* its number in array/origin.c; 0: not asked for yet */
} wb_place;
void wb_place_push(wb_place *place);
void wb_place_pop(wb_place *place);
/* NULL: there is none. */
wb_place *wb_place_innermost(void);
/* Until wb_places_return gets the result of this, messages name no places: a plan may compute other
 * layers than the one that needs the numbers, and its commands have names of their own. */
wb_place *wb_places_leave(void);
void wb_places_return(wb_place *place);
/* Writes the places, outermost last: "Dense(2 => 3), layer 1 of Chain: ". Returns the length. */
size_t wb_places_text(char *text, size_t size_bytes);

/* An older error, put aside while a call finds out whether it fails itself. It comes back in place
 * of the call's own error. */
typedef struct wb_error_aside {
    wb_status status;
    bool was_read, was_told;
    char message[WB_MESSAGE_BYTES];
} wb_error_aside;
void wb_error_put_aside(wb_error_aside *aside);
void wb_error_bring_back(const wb_error_aside *aside);

/* Writes one line to the log hook, whatever the level: for output that a variable like WEBER_DEBUG
 * asked for. */
void wb_log_always(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One line to the log hook. */
void wb_log_line(wb_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
