#include "platform/process.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

const char *wb_platform_trusted_variable(const char *name) { return secure_getenv(name); }

char **wb_platform_environment(void) { return environ; }

bool wb_platform_program(char *path, size_t size_bytes) {
    const ssize_t length = readlink("/proc/self/exe", path, size_bytes);
    if (length < 0 || (size_t)length >= size_bytes) return false;
    path[length] = 0;
    return true;
}

void wb_platform_end_with_parent(void) { (void)prctl(PR_SET_PDEATHSIG, SIGTERM); }

int wb_platform_await_signal(const sigset_t *set, bool *is_from_terminal) {
    siginfo_t about;
    const int number = sigwaitinfo(set, &about);
    *is_from_terminal = number >= 0 && about.si_code == SI_KERNEL;
    return number;
}
