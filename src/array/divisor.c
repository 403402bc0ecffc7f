/* While a loss is built, the thread points to a wb_divisor, where the loss notes what it divides
 * by. If several losses note something, their divisors are not used, unless the program says which
 * one counts (wb_divisor_tell). */
#include "array/divisor.h"

#include "array/thread.h"

wb_divisor *wb_divisor_to(wb_divisor *divisor) {
    wb_thread *thread = wb_thread_get();
    if (!thread) return NULL;
    wb_divisor *before = thread->divisor;
    thread->divisor = divisor;
    return before;
}

/* Replaces an older divisor by x. */
static void put(wb_array **at, wb_array *x) {
    wb_unref(*at);
    *at = x ? wb_ref(x) : NULL;
}

/* Inside the body of a scan arrays have no values: such a loss counts as one of several. */
void wb_divisor_note(wb_array *x) {
    const wb_thread *thread = wb_thread_get();
    if (!thread || !thread->divisor || !x) return;
    wb_divisor *d = thread->divisor;
    d->notes++;
    put(&d->noted, thread->depth > 0 ? NULL : x);
}

void wb_divisor_tell(wb_array *x) {
    const wb_thread *thread = wb_thread_get();
    if (thread && thread->divisor) put(&thread->divisor->told, x);
}

wb_array *wb_divisor_take(wb_divisor *d) {
    wb_array *taken = d->told ? d->told : d->notes == 1 ? d->noted : NULL;
    if (taken) (void)wb_ref(taken);
    put(&d->told, NULL), put(&d->noted, NULL);
    d->notes = 0;
    return taken;
}
