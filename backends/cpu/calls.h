/* Calls: each row of ops.def has its entry here, which runs a command. */
#ifndef WB_CPU_CALLS_H
#define WB_CPU_CALLS_H

#include <weber/plugin.h>

#include "window.h"

typedef struct wb_cpu_call {
    const wb_call *call;
    const char *what; /* the command's */
    char *const *a;   /* addresses of what it works on, as ops.def has them */
    char *scratch;    /* wb_cpu_call_scratch bytes */
    char *kept;       /* what wb_cpu_call_keep made, or NULL */
    wb_tile_fn *done; /* called after each tile, if the call has tiles; NULL: no epilogue */
    void *context;
} wb_cpu_call;

typedef wb_status wb_cpu_call_fn(const wb_cpu_call *c);
#define WB_CALL(name, ...) extern wb_cpu_call_fn wb_cpu_call_##name;
#include <weber/ops.def>

int64_t wb_cpu_call_scratch(const wb_call *call);
/* Bytes of what a call with fixed operands (wb_call) keeps; 0: nothing. */
int64_t wb_cpu_call_kept(const wb_call *call);
void wb_cpu_call_keep(const wb_call *call, char *const *a, void *kept);

#endif
