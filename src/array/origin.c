/* A node has 16 bits for the place where it was made, so places are numbered. All threads share one
 * table of their names, which only grows. Number 0 means: outside of any layer. */
#include "array/origin.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/switch.h"
#include "platform/locks.h"
#include "platform/process.h"

enum { MOST = 4096 };

/* Entries stay as they are once they have a number. */
static struct origin {
    char *layer;       /* NULL: "" */
    uint16_t backward; /* number of the same layer's gradient; 0: not made yet */
    bool is_backward;
} origins[MOST];
static int count = 1; /* number 0: outside of any layer, forward */

static _Thread_local uint16_t back __attribute__((tls_model("initial-exec")));

int wb_origin_state;

bool wb_look_up_origins(void) {
    const char *trace = wb_platform_trusted_variable("WEBER_TRACE");
    const bool wanted = (trace && *trace) || wb_has_word(getenv("WEBER_DEBUG"), "nan");
    __atomic_store_n(&wb_origin_state, wanted ? WB_SWITCH_ON : WB_SWITCH_OFF, __ATOMIC_RELAXED);
    return wanted;
}

/* Takes a number; 0 when there are too many, or out of memory. */
static uint16_t add(const char *layer, bool is_backward) {
    char *text = *layer ? wb_copy_text(layer) : NULL;
    if (count == MOST || (*layer && !text)) {
        wb_release(text);
        return 0;
    }
    origins[count] = (struct origin){.layer = text, .is_backward = is_backward};
    return (uint16_t)count++;
}

static uint16_t number_of(const char *layer) {
    for (int i = 0; i < count; i++)
        if (!origins[i].is_backward && strcmp(wb_origin_layer((uint16_t)i), layer) == 0)
            return (uint16_t)i;
    return add(layer, false);
}

int32_t wb_origin_number(const char *text) {
    const uint64_t errors = wb_error_count();
    wb_lock_take(WB_LOCK_ORIGINS);
    const uint16_t number = number_of(text);
    wb_lock_give(WB_LOCK_ORIGINS);
    return number || wb_error_count() == errors ? number : -1;
}

uint16_t wb_origin_now(void) {
    wb_place *place = wb_place_innermost();
    if (back || !place) return back;
    if (place->origin) return place->origin;
    char text[WB_MESSAGE_BYTES / 2];
    const size_t length = wb_places_text(text, sizeof text);
    if (length >= 2 && strcmp(text + length - 2, ": ") == 0) text[length - 2] = 0;
    wb_lock_take(WB_LOCK_ORIGINS);
    place->origin = number_of(text);
    wb_lock_give(WB_LOCK_ORIGINS);
    return place->origin;
}

uint16_t wb_origin_back(uint16_t origin) {
    const uint16_t before = back;
    wb_lock_take(WB_LOCK_ORIGINS);
    struct origin *o = &origins[origin];
    if (o->is_backward)
        back = origin; /* a gradient of gradients */
    else
        back = o->backward ? o->backward : (o->backward = add(wb_origin_layer(origin), true));
    wb_lock_give(WB_LOCK_ORIGINS);
    return before;
}

void wb_origin_forth(uint16_t before) { back = before; }

const char *wb_origin_layer(uint16_t origin) {
    return origins[origin].layer ? origins[origin].layer : "";
}

bool wb_origin_is_backward(uint16_t origin) { return origins[origin].is_backward; }
