/* Compiled kernels on disk; plugin.h describes wb_host.cache_read and cache_write.
 *
 * The folder is WEBER_CACHE, else XDG_CACHE_HOME/weber, else HOME/.cache/weber, with a folder in it
 * for each backend. There is no cache if WEBER_CACHE is empty, if the folder cannot be made, or if
 * others own it or may write to it, since code from there is run. Each entry is a file, written
 * atomically and checked when read. Nothing is ever removed. */
#ifndef WB_PROGRAM_CACHE_H
#define WB_PROGRAM_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* False: there is no such entry. Release *data with wb_release. */
bool wb_cache_read(const char *backend, const char *name, void **data, size_t *size_bytes);
/* False if there is no cache: nothing would be read or written. */
bool wb_cache_wanted(void);
/* Failures are silent. */
void wb_cache_write(const char *backend, const char *name, const void *data, size_t size_bytes);

#endif
