/* This process and those that it starts. */
#ifndef WB_PLATFORM_PROCESS_H
#define WB_PLATFORM_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* getenv; NULL where the program runs with more rights than its user has (set-user-ID). Every
 * variable that names a file, a folder or a library, or goes to a compiler, is asked for by it. */
const char *wb_platform_trusted_variable(const char *name);

char **wb_platform_environment(void);

/* Where this program's file is. False: unknown. */
bool wb_platform_program(char *path, size_t size_bytes);

/* The calling process, which parent has made, is sent SIGTERM when that ends, where the system can
 * do so. False: it has ended already. */
bool wb_platform_end_with_parent(pid_t parent);

/* Waits for a signal of the set, which is blocked. *is_from_terminal: the keyboard's, which the
 * other processes of the terminal's group get as well. -1: interrupted. */
int wb_platform_await_signal(const sigset_t *set, bool *is_from_terminal);

/* ---- other processes ---- */

typedef struct wb_process {
    pid_t parent;
    uint64_t born;   /* with its number, this process and no later one */
    bool is_stopped; /* by a signal */
    char name[16];   /* of its program, perhaps cut */
} wb_process;

/* The system tells of others; where it does not, what follows finds none. */
bool wb_platform_knows_processes(void);
/* False: it has ended. */
bool wb_platform_look_at_process(pid_t process, wb_process *about);
/* At most `most` of the parent's children, and how many they are. */
int wb_platform_children(pid_t parent, pid_t *list, int most);
/* What the variable was when the program was started. False: it was not set, or may not be read. */
bool wb_platform_variable_of(pid_t process, const char *name, char *value, size_t size_bytes);

#endif
