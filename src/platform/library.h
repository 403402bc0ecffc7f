/* Shared libraries: where the loaders of the systems differ. */
#ifndef WB_PLATFORM_LIBRARY_H
#define WB_PLATFORM_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The end of a plugin's file name: ".so", on macOS as well, since CMake names a MODULE so there and
 * dlopen takes any name. */
extern const char wb_platform_plugin_suffix[];

/* False with the reason if the file is shorter than its header says: the loader would end the
 * process. All other faults the loader reports itself. */
bool wb_platform_library_is_whole(FILE *file, char *why, size_t why_bytes);

/* dlerror's message without the file's name in front; NULL stays NULL. */
const char *wb_platform_loader_words(const char *message, const char *file);

/* True if dlerror's message says that there is no such file. */
bool wb_platform_loader_says_absent(const char *message);

/* True if the process has loaded a library whose file name begins so. */
bool wb_platform_is_loaded(const char *begin);

/* The absolute path of the shared library that the address is in. False where the address is the
 * program's own, or the path depends on the current folder. */
bool wb_platform_library_of(const void *address, char *path, size_t size_bytes);

/* Where the library was called, as addresses in one file: the innermost one outside of the library
 * and its plugins; in a program that is linked with the static library, all addresses in the
 * program, innermost first. Returns how many, 0 if unknown. */
int wb_platform_callers(void **addresses, int most);
/* The path as one word of a shell, in single quotes. False: there is no room. */
bool wb_platform_quote(const char *path, char *word, size_t size_bytes);
/* The command that prints the functions and lines of such addresses. */
bool wb_platform_line_command(void *const *addresses, int count, char *text, size_t size_bytes);

#endif
