/* macOS: this process (environment, file, signals). About other processes nothing is known yet. */
#include "platform/process.h"

#include <crt_externs.h>
#include <mach-o/dyld.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

const char *wb_platform_trusted_variable(const char *name) {
    return issetugid() ? NULL : getenv(name);
}

/* `environ` is for programs only (environ(7)). */
char **wb_platform_environment(void) { return *_NSGetEnviron(); }

bool wb_platform_program(char *path, size_t size_bytes) {
    uint32_t size = (uint32_t)size_bytes;
    return _NSGetExecutablePath(path, &size) == 0;
}

/* macOS has no such signal: ranks whose starter was killed go on until one of them ends. */
bool wb_platform_end_with_parent(pid_t parent) { return getppid() == parent; }

/* The system does not tell who sent a signal that was waited for: a signal counts as the keyboard's
 * if the process is in the foreground. */
int wb_platform_await_signal(const sigset_t *set, bool *is_from_terminal) {
    int number = -1;
    *is_from_terminal = false;
    if (sigwait(set, &number) != 0) return -1;
    *is_from_terminal =
        (number == SIGINT || number == SIGQUIT) && tcgetpgrp(STDIN_FILENO) == getpgrp();
    return number;
}

/* Unknown so far: ranks under MPI wait for those that are gone until their timeout. */
bool wb_platform_knows_processes(void) { return false; }

bool wb_platform_look_at_process(pid_t process, wb_process *about) {
    (void)process, (void)about;
    return false;
}

int wb_platform_children(pid_t parent, pid_t *list, int most) {
    (void)parent, (void)list, (void)most;
    return 0;
}

bool wb_platform_variable_of(pid_t process, const char *name, char *value, size_t size_bytes) {
    (void)process, (void)name, (void)value, (void)size_bytes;
    return false;
}
