/* The command line tool: `weber COMMAND`, a file for each. It uses public headers only. */
#ifndef WB_TOOL_TOOL_H
#define WB_TOOL_TOOL_H

#include <stdbool.h>
#include <stdio.h>

/* Each gets the arguments after its name and returns the exit status: 0, 1 after an error, 2 for
 * arguments that it does not understand. */
int tool_devices(int count, char **arguments);
int tool_backend(int count, char **arguments);
int tool_show(int count, char **arguments);
int tool_convert(int count, char **arguments);
int tool_evaluate(int count, char **arguments);
int tool_generate(int count, char **arguments);
int tool_run(int count, char **arguments);
int tool_ranks(int count, char **arguments);
int tool_profile(int count, char **arguments);

/* Whether the model computes y from the file's x, or from x1, x2, ...; prints the difference, or
 * why not. */
struct wb_layer;
bool tool_check(const char *path, struct wb_layer *model);

/* A command's own help, on stdout where it was asked for (--help), else on stderr; the exit
 * status. */
int tool_help(const char *help, bool is_asked);
/* The same below a line that says what is wrong; 2. */
int tool_wrong(const char *help, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For a command that takes `wanted` words beside its options ("one FILE"): the number of words
 * given. */
int tool_wrong_count(const char *help, const char *command, const char *wanted, int count);
/* Prints the general help, for a command that has no help of its own: on stdout if --help is its
 * one argument; else with the error that `command` does not take the last argument. */
int tool_usage(const char *command, int count, char **arguments);

/* Prints the pending error as `command`'s, with the words of the library for a program in C
 * (words[i][0]) replaced by those for the tool (words[i][1]), and clears it. */
void tool_say_error(const char *command, const char *const words[][2], size_t count);

/* What the default device reaches, measured: products of f32 matrices, 1e9 operations a second, and
 * arrays read and written, 1e9 bytes a second. {0}, with the error reported, where that failed. */
typedef struct tool_peak {
    double gflops, gbs;
} tool_peak;
tool_peak tool_measure_peak(void);

/* Prints text from a file on a terminal; characters that would control it appear as \x1b. */
void put_plain(const char *text);
void put_plain_to(FILE *file, const char *text, size_t length); /* at most this many bytes */

/* The choice and the preference are asked once, so that their warnings come once. */
void devices_as_text(void);
void devices_as_json(void);

/* Removes shared memory of runs that were killed (leftovers.c): of those that nobody holds. */
void tool_clear_leftovers(void);
/* Holds until the process ends, or closes a descriptor of the file. */
bool tool_hold(int file);

#endif
