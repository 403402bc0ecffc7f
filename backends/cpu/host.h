/* What the CPU backend, being built in, uses of its host. */
#ifndef WB_CPU_HOST_H
#define WB_CPU_HOST_H

#include <weber/plugin.h>

/* Zeroed memory; NULL with WB_ERROR_MEMORY recorded. */
#define wb_host_alloc(size_bytes) wb_builtin_host.alloc(size_bytes)
#define wb_host_release(block)    wb_builtin_host.release(block)
#define wb_host_fail(...)         wb_builtin_host.fail(__VA_ARGS__)

extern const wb_host wb_builtin_host;

#endif
