/* Kernel texts of C++-like languages, compiled by the host's g++ with a header that stands in for
 * the language's own. */
#ifndef WB_TESTS_HOST_CPP_H
#define WB_TESTS_HOST_CPP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool host_cpp_is_there(void);
const char *host_cpp_compiler(void); /* its command: "g++" */

/* The bytes of a shared object, to be freed. options: "-std=gnu++14 -I folder". NULL: the log says
 * why. */
void *host_cpp_build(const char *text, const char *options, size_t *size_bytes, char *log,
                     size_t log_bytes);

/* What any compiler makes of a file k.cpp with this text: the bytes of the file that -o names, none
 * where it writes none; to be freed. */
void *host_cpp_through(const char *compiler, const char *text, const char *options,
                       size_t *size_bytes, char *log, size_t log_bytes);

/* Of bytes, after those that gave `hash` (0: none). */
uint64_t host_cpp_hash(const void *bytes, size_t count, uint64_t hash);

/* Opens such bytes, each time as an object of its own; for dlsym and dlclose. NULL: the reason is
 * dlerror's. */
void *host_cpp_open(const void *bytes, size_t size_bytes);

/* A whole file, to be freed, with a 0 after its bytes; NULL: not there. */
void *host_cpp_read(const char *path, size_t *size_bytes);

#endif
