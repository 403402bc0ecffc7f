/* Linux: this process (environment, file, signals, the end of its parent) and others, which proc(5)
 * describes. */
#include "platform/process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

bool wb_platform_end_with_parent(pid_t parent) {
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    return getppid() == parent;
}

int wb_platform_await_signal(const sigset_t *set, bool *is_from_terminal) {
    siginfo_t about;
    const int number = sigwaitinfo(set, &about);
    *is_from_terminal = number >= 0 && about.si_code == SI_KERNEL;
    return number;
}

/* ---- other processes: proc(5) ---- */

bool wb_platform_knows_processes(void) { return access("/proc/self/stat", R_OK) == 0; }

static FILE *open_of(pid_t process, const char *name) {
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
    return fopen(path, "re");
}

bool wb_platform_look_at_process(pid_t process, wb_process *about) {
    char text[1024], state = 'X';
    int parent = 0;
    unsigned long long born = 0;
    FILE *file = open_of(process, "stat");
    if (!file) return false;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    (void)fclose(file);
    const char *name = strchr(text, '('), *behind = strrchr(text, ')');
    static const char fields[] =
        ") %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu";
    if (!name || !behind || sscanf(behind, fields, &state, &parent, &born) != 3) return false;
    *about = (wb_process){.parent = parent, .born = born, .is_stopped = state == 'T'};
    (void)snprintf(about->name, sizeof about->name, "%.*s", (int)(behind - name - 1), name + 1);
    return state != 'Z' && state != 'X';
}

int wb_platform_children(pid_t parent, pid_t *list, int most) {
    int count = 0;
    DIR *folder = opendir("/proc");
    for (const struct dirent *e; folder && count < most && (e = readdir(folder));) {
        wb_process about;
        const pid_t process = (pid_t)strtol(e->d_name, NULL, 10); /* 0: no process */
        if (process > 0 && wb_platform_look_at_process(process, &about) && about.parent == parent)
            list[count++] = process;
    }
    if (folder) (void)closedir(folder);
    return count;
}

bool wb_platform_variable_of(pid_t process, const char *name, char *value, size_t size_bytes) {
    const size_t length = strlen(name);
    char *line = NULL;
    size_t room = 0;
    bool is_found = false;
    FILE *file = open_of(process, "environ");
    while (file && !is_found && getdelim(&line, &room, 0, file) > 0) {
        is_found = strncmp(line, name, length) == 0 && line[length] == '=';
        if (is_found) (void)snprintf(value, size_bytes, "%s", line + length + 1);
    }
    free(line);
    if (file) (void)fclose(file);
    return is_found;
}
