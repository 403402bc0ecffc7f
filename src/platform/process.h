/* This process and those that it starts. */
#ifndef WB_PLATFORM_PROCESS_H
#define WB_PLATFORM_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* getenv; NULL where the program runs with more rights than its user has (set-user-ID). */
const char *wb_platform_trusted_variable(const char *name);

char **wb_platform_environment(void);

/* Where this program's file is. False: unknown. */
bool wb_platform_program(char *path, size_t size_bytes);

/* The calling process is sent SIGTERM when its parent ends, where the system can do that. */
void wb_platform_end_with_parent(void);

/* Waits for a signal of the set, which is blocked. *is_from_terminal: the keyboard's, which the
 * other processes of the terminal's group get as well. -1: interrupted. */
int wb_platform_await_signal(const sigset_t *set, bool *is_from_terminal);

#endif
