/* Gather and scatter_add: x (inner, size, outer), y (inner, count, outer). */
#ifndef WB_CPU_INDEX_H
#define WB_CPU_INDEX_H

#include <weber/plugin.h>

int64_t wb_cpu_index_at(const wb_index_call *call, const void *index, int64_t place);

/* The first place whose index is not a position of the dimension, or -1. */
int64_t wb_cpu_find_bad_index(const wb_index_call *call, const void *index);

/* y(:, p, o) = x(:, index[p], o). Any type. */
void wb_cpu_gather(const wb_index_call *call, wb_dtype dtype, const char *x, const void *index,
                   char *y);

/* x(:, index[p], o) += y(:, p, o), p in order. f32, f64 and the integers. */
void wb_cpu_scatter_add(const wb_index_call *call, wb_dtype dtype, const void *index, const char *y,
                        char *x);

#endif
