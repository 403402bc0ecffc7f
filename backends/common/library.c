/* Opens a vendor's library by dlopen: the file that an environment variable names, else the first
 * of a list of names that opens. Then finds all the functions that are needed, or says which one is
 * missing. A call that may end the process is tried in a forked child first. */
#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/library.h"
#include "platform/process.h"

void *wb_library_open(const wb_library *library, char *reason, size_t reason_bytes) {
    const char *chosen = wb_platform_trusted_variable(library->variable);
    if (chosen && chosen[0]) {
        void *handle = dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
        if (!handle)
            (void)snprintf(reason, reason_bytes, "%s=%s cannot be opened: %s", library->variable,
                           chosen, dlerror());
        return handle;
    }
    (void)snprintf(reason, reason_bytes, "%s", library->missing);
    for (const char *const *name = library->names; *name; name++) {
        void *handle = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
        if (handle) return handle;
        const char *message = dlerror();
        /* anything but "no such file" is worth telling */
        if (message && !wb_platform_loader_says_absent(message))
            (void)snprintf(reason, reason_bytes, "%s", message);
    }
    return NULL;
}

bool wb_library_find(void *handle, const wb_symbol *symbols, size_t count, void *table,
                     const char **missing) {
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(handle, symbols[i].name);
        if (!function) {
            *missing = symbols[i].name;
            return false;
        }
        memcpy((char *)table + symbols[i].offset, &function, sizeof function);
    }
    return true;
}

bool wb_library_open_once(wb_opened *opened, bool (*open)(char *reason, size_t reason_bytes),
                          char *reason, size_t reason_bytes) {
    pthread_mutex_lock(&opened->lock);
    if (!opened->is_open) opened->is_open = open(reason, reason_bytes);
    const bool is_open = opened->is_open;
    pthread_mutex_unlock(&opened->lock);
    return is_open;
}

/* ---- libraries that do not go together ---- */

enum { MOST_SECONDS = 30 };

static void try_alone(void (*call)(void *), void *context) {
    static const int signals[] = {SIGABRT, SIGSEGV, SIGALRM};
    const struct rlimit no_core = {0, 0};
    const int nowhere = open("/dev/null", O_WRONLY);
    sigset_t all;
    (void)setrlimit(RLIMIT_CORE, &no_core);
    for (int i = 0; i < 3; i++) (void)signal(signals[i], SIG_DFL);
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_UNBLOCK, &all, NULL);
    (void)alarm(MOST_SECONDS); /* another thread's lock may be held for ever here */
    if (nowhere >= 0) (void)dup2(nowhere, STDERR_FILENO);
    call(context);
    _exit(0);
}

bool wb_library_survives(void (*call)(void *context), void *context) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) try_alone(call, context);
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return false;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
