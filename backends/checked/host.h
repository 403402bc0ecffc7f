/* What the checked backend, being built in, uses of its host. */
#ifndef WB_CHECKED_HOST_H
#define WB_CHECKED_HOST_H

#include <weber/plugin.h>

extern const wb_host wb_builtin_host;

#define wb_host_alloc(size_bytes) wb_builtin_host.alloc(size_bytes)
#define wb_host_release(block)    wb_builtin_host.release(block)
#define wb_host_fail(...)         wb_builtin_host.fail(__VA_ARGS__)

/* The backend that does the work. */
#define wb_host_cpu() wb_builtin_host.builtin("CPU")

#endif
