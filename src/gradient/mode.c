/* Flags of the current thread that layers and losses ask about while a loss is built. A setter
 * returns the old value, so that the caller can restore it. */
#include "gradient/mode.h"

#include "array/thread.h"

bool wb_is_training(void) {
    const wb_thread *thread = wb_thread_get();
    return thread && thread->training;
}

bool wb_is_sizing(void) {
    const wb_thread *thread = wb_thread_get();
    return thread && thread->is_sizing;
}

bool wb_set_training(bool training) {
    wb_thread *thread = wb_thread_get();
    if (!thread) return false;
    const bool before = thread->training;
    thread->training = training;
    return before;
}
