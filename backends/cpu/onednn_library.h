/* The C interface of oneDNN 2, as far as onednn.c uses it, declared here so that no header is
 * needed. */
#ifndef WB_CPU_ONEDNN_LIBRARY_H
#define WB_CPU_ONEDNN_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    VERSION = 2,
    MOST_DIMS = 12,
    SUCCESS = 0,
    F32 = 3,
    ANY = 1, /* layouts: what the primitive likes best, and dense with the last dimension fastest */
    DENSE_4 = 5,
    DENSE_5 = 7,
    ON_CPU = 1,
    IN_ORDER = 1,
    FORWARD_TRAINING = 64,
    DIRECT = 1,
    SCRATCH_OF_USER = 1,
    QUERY_SCRATCH = 136,
    ARG_FROM = 1,
    ARG_TO = 17,
    ARG_SCRATCH = 80,
    RUNTIME_OPENMP = 2 /* and 1: sequential */
};

typedef int64_t dims[MOST_DIMS];
typedef void *handle; /* of an engine, a stream, a primitive, its descriptor, a memory object */

/* Written and read by oneDNN only, never copied here; larger than in the header. */
typedef union description {
    int64_t alignment;
    char bytes[1024]; /* of a memory: 696 there */
} description;
typedef union operation {
    int64_t alignment;
    char bytes[8192]; /* of a convolution: 5976 there */
} operation;

typedef struct version {
    int major, minor, patch;
    const char *hash;
    unsigned cpu_runtime, gpu_runtime;
} version;

typedef struct argument {
    int arg;
    handle memory;
} argument;

/* X(result, name, arguments) */
#define INTERFACE(X)                                                                               \
    X(const version *, version, (void))                                                            \
    X(int, engine_create, (handle *, int, size_t))                                                 \
    X(int, stream_create, (handle *, handle, unsigned))                                            \
    X(int, stream_destroy, (handle))                                                               \
    X(int, stream_wait, (handle))                                                                  \
    X(int, memory_desc_init_by_tag, (description *, int, const dims, int, int))                    \
    X(size_t, memory_desc_get_size, (const description *))                                         \
    X(int, memory_desc_equal, (const description *, const description *))                          \
    X(int, memory_create, (handle *, const description *, handle, void *))                         \
    X(int, memory_set_data_handle, (handle, void *))                                               \
    X(int, memory_destroy, (handle))                                                               \
    X(int, primitive_attr_create, (handle *))                                                      \
    X(int, primitive_attr_destroy, (handle))                                                       \
    X(int, primitive_attr_set_scratchpad_mode, (handle, int))                                      \
    X(int, dilated_convolution_forward_desc_init,                                                  \
      (operation *, int, int, const description *, const description *, const description *,       \
       const description *, const dims, const dims, const dims, const dims))                       \
    X(int, dilated_convolution_backward_data_desc_init,                                            \
      (operation *, int, const description *, const description *, const description *,            \
       const dims, const dims, const dims, const dims))                                            \
    X(int, dilated_convolution_backward_weights_desc_init,                                         \
      (operation *, int, const description *, const description *, const description *,            \
       const description *, const dims, const dims, const dims, const dims))                       \
    X(int, primitive_desc_create, (handle *, const operation *, handle, handle, handle))           \
    X(int, reorder_primitive_desc_create,                                                          \
      (handle *, const description *, handle, const description *, handle, handle))                \
    X(const description *, primitive_desc_query_md, (handle, int, int))                            \
    X(int, primitive_desc_destroy, (handle))                                                       \
    X(int, primitive_create, (handle *, handle))                                                   \
    X(int, primitive_execute, (handle, handle, int, const argument *))                             \
    X(int, primitive_destroy, (handle))

typedef struct wb_dnnl {
#define X(result, name, arguments) result(*name) arguments;
    INTERFACE(X)
#undef X
    int (*omp_get_max_threads)(void); /* NULL: a sequential build */
    void (*omp_set_num_threads)(int);
    handle engine, attributes; /* attributes: scratch memory is the caller's */
    bool is_open;
} wb_dnnl;

/* Filled at the first call of wb_dnnl_open, if wanted; true if it may be used. */
extern wb_dnnl wb_dnnl_api;
bool wb_dnnl_open(void);

/* Sets the calling thread's number of OpenMP threads to 1; returns what it was. */
int wb_dnnl_take_one_thread(void);
void wb_dnnl_give_threads(int before);

#endif
