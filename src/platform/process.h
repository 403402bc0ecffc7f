/* This process and those that it starts. */
#ifndef WB_PLATFORM_PROCESS_H
#define WB_PLATFORM_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* getenv; NULL if the program runs with more rights than its user has (set-user-ID). To be used for
 * every variable that names a file, a folder or a library, or goes to a compiler. */
const char *wb_platform_trusted_variable(const char *name);

char **wb_platform_environment(void);

/* The path of this program's file. False: unknown. */
bool wb_platform_program(char *path, size_t size_bytes);

/* Asks the system, if it can, to send SIGTERM to the calling process when its parent ends. False:
 * the parent has ended already. */
bool wb_platform_end_with_parent(pid_t parent);

/* Waits for a signal of the set, which must be blocked. *is_from_terminal: it came from the
 * keyboard, so the other processes of the terminal's group got it, too. -1: interrupted. */
int wb_platform_await_signal(const sigset_t *set, bool *is_from_terminal);

/* ---- other processes ---- */

typedef struct wb_process {
    pid_t parent;
    uint64_t born;   /* start time: with the process number, identifies the process */
    bool is_stopped; /* stopped by a signal */
    char name[16];   /* name of its program, perhaps cut */
} wb_process;

/* Whether the system tells about other processes; if not, the functions below find none. */
bool wb_platform_knows_processes(void);
/* False: it has ended. */
bool wb_platform_look_at_process(pid_t process, wb_process *about);
/* Lists at most `most` children of the parent. Returns how many it listed. */
int wb_platform_children(pid_t parent, pid_t *list, int most);
/* The value of an environment variable when the process was started. False: not set, or not
 * readable. */
bool wb_platform_variable_of(pid_t process, const char *name, char *value, size_t size_bytes);

#endif
