/* The context's random sequence, as an object that can be saved. */
#include "array/thread.h"
#include "base/saved.h"

struct wb_random {
    wb_object object;
};

typedef struct sequence {
    uint64_t seed, counter;
    bool seeded; /* true; older versions expect it in files */
} sequence;

static void get_sequence(const void *object, void *numbers) {
    (void)object;
    const wb_thread *thread = wb_thread_get();
    *(sequence *)numbers = (sequence){.seeded = true};
    if (thread) *(sequence *)numbers = (sequence){thread->seed, thread->counter, true};
}

static void set_sequence(void *object, const void *numbers) {
    (void)object;
    const sequence *s = numbers;
    wb_thread *thread = wb_thread_get();
    if (!thread) return;
    thread->seed = s->seed, thread->counter = s->counter;
}

static const wb_saved_number numbers_of_sequence[] = {
    WB_SAVED_FIELD(sequence, seed, WB_SAVED_INTEGER),
    WB_SAVED_FIELD(sequence, counter, WB_SAVED_INTEGER),
    WB_SAVED_FIELD(sequence, seeded, WB_SAVED_BOOL),
};
static const wb_saved saved_sequence = {numbers_of_sequence, 3,    sizeof(sequence),
                                        get_sequence,        NULL, set_sequence};

/* It stands for the sequence of the thread that asks, and has no owner. */
static void stay(void *object) { (void)object; }

static const wb_class random_class = {
    .name = "random sequence", .free = stay, .saved = &saved_sequence};

wb_random *wb_random_state(void) {
    static wb_random random = {{.klass = &random_class}};
    wb_note_class(&random_class);
    return &random;
}
