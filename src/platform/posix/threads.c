/* Starts the library's own threads with all signals blocked, so that signals go to threads of the
 * program. */
#include "platform/threads.h"

#include <signal.h>

bool wb_platform_start_thread(pthread_t *thread, void *(*run)(void *), void *context) {
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool is_started = pthread_create(thread, NULL, run, context) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_started;
}
