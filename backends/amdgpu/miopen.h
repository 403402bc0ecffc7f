/* Convolutions by MIOpen 3: its library (miopen.c), and what backends/cuda/conv asks of it
 * (miopen_plan.c). */
#ifndef WB_MIOPEN_H
#define WB_MIOPEN_H

#include "../cuda/conv/conv.h"
#include "miopen_api.h"

typedef struct wb_miopen_functions {
#define X(result, name, parameters) result(*name) parameters;
    MI_FUNCTION_LIST(X)
#undef X
} wb_miopen_functions;
extern wb_miopen_functions mi;

/* Opens the library; once, from any thread. The reason says why not, or which version there is. */
bool wb_miopen_load(char *reason, size_t reason_bytes);

/* True where this version keeps to MI_DETERMINISTIC in calls of that kind. It is loaded. */
bool wb_miopen_repeats(wb_call_kind kind);

/* wb_gpu_outcome o = MI_TRY(Create, &handle) */
wb_gpu_outcome wb_miopen_outcome(const char *call, mi_code code);
#define MI_TRY(function, ...) wb_miopen_outcome("miopen" #function, mi.function(__VA_ARGS__))

#endif
