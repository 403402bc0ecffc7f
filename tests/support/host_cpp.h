/* Kernel texts of C++-like languages, compiled by the host's g++ with a header that stands in for
 * the language's own. */
#ifndef WB_TESTS_HOST_CPP_H
#define WB_TESTS_HOST_CPP_H

#include <stdbool.h>
#include <stddef.h>

bool host_cpp_is_there(void);

/* The bytes of a shared object, to be freed. options: "-std=gnu++14 -I folder". NULL: the log says
 * why. */
void *host_cpp_build(const char *text, const char *options, size_t *size_bytes, char *log,
                     size_t log_bytes);

/* Opens such bytes, each time as an object of its own; for dlsym and dlclose. NULL: the reason is
 * dlerror's. */
void *host_cpp_open(const void *bytes, size_t size_bytes);

/* A whole file, to be freed, with a 0 behind its bytes; NULL: not there. */
void *host_cpp_read(const char *path, size_t *size_bytes);

#endif
