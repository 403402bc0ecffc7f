/* The fake driver's parts for each other. */
#ifndef WB_TESTS_CUDA_FAKE_DRIVER_H
#define WB_TESTS_CUDA_FAKE_DRIVER_H

#include <backends/cuda/driver.h>

#include "backends/cuda/fake.h"

/* Codes that the plugin has no use for. */
enum {
    FAKE_INVALID_VALUE = 1,
    FAKE_NOT_INITIALIZED = 3,
    FAKE_INVALID_IMAGE = 200,
    FAKE_INVALID_CONTEXT = 201,
    FAKE_NO_BINARY = 209,
    FAKE_INVALID_HANDLE = 400,
    FAKE_NOT_FOUND = 500,
    FAKE_ILLEGAL_ADDRESS = 700,
    FAKE_LAUNCH_FAILED = 719,
    FAKE_CAPTURE_UNSUPPORTED = 900,
    FAKE_CAPTURE_INVALIDATED = 901,
    FAKE_CAPTURE_UNMATCHED = 903,
    FAKE_CAPTURE_UNJOINED = 904,
    FAKE_CAPTURE_ISOLATION = 905,
    FAKE_CAPTURED_EVENT = 907,
};

enum { FAKE_MOST_DEVICES = 8 };

/* ---- calls (fake_calls.c) ---- */

/* Each function of the driver and the compiler. */
typedef enum fake_function {
#define X(name, cuda, hip, parameters) FAKE_##name,
    GPU_DRIVER_LIST(X)
#undef X
#define X(result, name, cuda, hip, parameters) FAKE_COMPILER_##name,
        GPU_COMPILER_LIST(X)
#undef X
#ifdef FAKE_HIP
#define X(result, name, parameters) FAKE_OWN_##name,
            GPU_HIP_LIST(X)
#undef X
#else
#define X(name, parameters) FAKE_OWN_##name,
            GPU_CUDA_LIST(X) GPU_NVRTC_LIST(X)
#undef X
#endif
                FAKE_FUNCTION_COUNT
} fake_function;

/* fake_MemAlloc is cuMemAlloc_v2, or hipMalloc: the functions have their vendor's names for the
 * linker. */
#define FAKE_EXPORT __attribute__((visibility("default")))
#ifdef FAKE_HIP
#define FAKE_NAME(cuda, hip)        #hip
#define X(result, name, parameters) FAKE_EXPORT result fake_##name parameters __asm__("hip" #name);
GPU_HIP_LIST(X)
#undef X
#else
#define FAKE_NAME(cuda, hip) #cuda
#define X(name, parameters)  FAKE_EXPORT gpu_code fake_##name parameters __asm__("cu" #name);
GPU_CUDA_LIST(X)
#undef X
#define X(name, parameters) FAKE_EXPORT gpu_code fake_##name parameters __asm__("nvrtc" #name);
GPU_NVRTC_LIST(X)
#undef X
#endif
#define X(name, cuda, hip, parameters)                                                             \
    FAKE_EXPORT gpu_code fake_##name parameters __asm__(FAKE_NAME(cuda, hip));
GPU_DRIVER_LIST(X)
#undef X
#define X(result, name, cuda, hip, parameters)                                                     \
    FAKE_EXPORT result fake_COMPILER_##name parameters __asm__(FAKE_NAME(cuda, hip));
GPU_COMPILER_LIST(X)
#undef X

extern fake_counts fake_count; /* guarded by the lock, as all else here */

/* Takes the lock, counts the call; the code that it has to fail with. */
gpu_code fake_enter(fake_function function);
void fake_enter_unnamed(void); /* of no function of the driver */
void fake_leave(const int *entered);
/* With the lock held, which others may have meanwhile. */
void fake_pause(void);

/* Begins a function: until it returns it has the lock. */
#define FAKE_LOCKED(function)                                                                      \
    const gpu_code refused = fake_enter(function);                                                 \
    __attribute__((cleanup(fake_leave), unused)) const int entered_ = 1

/* The same for one that does nothing where it has to fail. */
#define FAKE_ENTER(function)                                                                       \
    FAKE_LOCKED(function);                                                                         \
    if (refused) return refused

void fake_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A number from the environment. */
long fake_number(const char *variable, long otherwise);

bool fake_is_idle(void); /* FAKE_CUDA_IDLE */

/* ---- objects ---- */

typedef struct fake_context fake_context;
typedef struct fake_mark fake_mark;
typedef struct fake_op fake_op;
typedef struct fake_capture fake_capture;

typedef enum fake_kind {
    FAKE_RELEASED,
    FAKE_STREAM,
    FAKE_EVENT,
    FAKE_MODULE,
    FAKE_FUNCTION,
    FAKE_GRAPH,
    FAKE_EXECUTABLE,
    FAKE_PROGRAM,
    FAKE_CAPTURE
} fake_kind;

/* What a handle points to. It is never given back to malloc, so that a handle that is used too long
 * is told from others. */
typedef struct fake_object {
    fake_kind kind;
    fake_context *context;
    struct fake_object *older; /* of all there ever were */
} fake_object;

/* NULL: out of memory. */
void *fake_object_new(fake_kind kind, size_t size_bytes);
/* The object that a handle stands for, if it is of that kind; else NULL. */
void *fake_object_of(fake_kind kind, const void *handle);

struct gpu_stream_object {
    fake_object object;
    int number;
    fake_op *first, *last; /* what is to be run */
    int length;
    fake_capture *capture;
    bool is_unjoined; /* it has work in another stream's capture which that has not waited for */
    bool is_blocking; /* waits for the legacy stream, and that for it */
    bool is_gone;     /* destroyed, with work left */
    bool is_busy;     /* a thread runs its first piece of work */
};
typedef struct gpu_stream_object fake_stream;

/* A place in a stream that events and waits refer to. */
struct fake_mark {
    int references;
    bool is_done;
    fake_stream *stream;
    fake_capture *capture; /* it is none of a running stream */
    double time;
};

struct gpu_event_object {
    fake_object object;
    fake_mark *mark; /* NULL: never recorded */
    bool has_time;
};

struct gpu_module_object {
    fake_object object;
    void *library;
};

struct gpu_function_object {
    fake_object object;
    struct gpu_module_object *module;
    const struct cuda_cpp_entry *entry;
};

typedef struct fake_nodes {
    int references;
    fake_op *first, *last;
    int length;
} fake_nodes;

struct gpu_graph_object {
    fake_object object;
    fake_nodes *nodes; /* also an executable's */
};
struct gpu_graph_exec_object {
    fake_object object;
    fake_nodes *nodes;
};

struct fake_capture {
    fake_object object;
    fake_stream *origin;
    fake_nodes *nodes;
    bool is_invalid;
    int unjoined; /* streams that have work in it which the origin has not waited for */
    int mode;
    int thread; /* who began it */
};

/* One per device. */
struct fake_context {
    int ordinal, references;
    gpu_code fault; /* of a kernel: all that follows fails so */
    bool reaches[FAKE_MOST_DEVICES];
    fake_stream legacy;
};

/* ---- devices (fake_device.c) ---- */

int fake_device_count(void);
fake_context *fake_context_of(int ordinal);
/* The thread's; NULL: the code says why. */
fake_context *fake_current(gpu_code *code);
/* "sm_90", "gfx90a"; threads of a warp. */
const char *fake_architecture(void);
int fake_warp(void);

/* Begins a function of a context, `context`. */
#define FAKE_ENTER_CONTEXT(function)                                                               \
    FAKE_ENTER(function);                                                                          \
    gpu_code wrong_;                                                                               \
    fake_context *const context = fake_current(&wrong_);                                           \
    if (!context) return wrong_

/* ---- memory (fake_memory.c) ---- */

/* The device that has all these bytes; -1: none has. */
int fake_memory_device(gpu_pointer pointer, size_t bytes);
/* True for any address of theirs, whether something is there or not. */
bool fake_memory_is_devices(const void *memory);
bool fake_is_pinned(const void *memory, size_t bytes);
/* While open, this thread may use the memory of devices. */
void fake_memory_open(void);
void fake_memory_close(void);

/* ---- work (fake_stream.c) ---- */

typedef enum fake_op_kind {
    FAKE_OP_COPY,
    FAKE_OP_FILL,
    FAKE_OP_LAUNCH,
    FAKE_OP_RECORD,
    FAKE_OP_WAIT,
    FAKE_OP_GRAPH,
    FAKE_OP_HOST
} fake_op_kind;

typedef struct fake_launch {
    struct gpu_function_object *function;
    unsigned grid[3], block[3];
    void **parameters; /* pointers into `bytes` */
    char *bytes;
} fake_launch;

struct fake_op {
    fake_op_kind kind;
    fake_op *next;
    const char *what;
    void *to; /* copy, fill */
    const void *from;
    void *staged; /* copy: from, to be freed */
    unsigned char value;
    size_t bytes;
    fake_launch *launch;
    fake_mark *mark; /* record, wait */
    fake_nodes *nodes;
    fake_host_step *step; /* host */
    fake_host_release *release;
    void *argument;
};

/* The stream that a handle of this context stands for (NULL: its legacy stream); NULL: it is not
 * one. */
fake_stream *fake_stream_of(fake_context *context, gpu_stream handle);
/* A copy of the op at the end of the stream, or of the graph that it captures. What it points to is
 * the stream's from now on. */
gpu_code fake_enqueue(fake_stream *stream, fake_op op);
/* Runs what the stream has to do; gives the context's fault. */
gpu_code fake_drain(fake_stream *stream);
void fake_drain_context(const fake_context *context); /* NULL: all of them */
/* True if something that is to be run uses it. */
bool fake_is_in_use(const void *memory, size_t bytes);
bool fake_is_module_in_use(const struct gpu_module_object *module);
/* No stream takes part in it any more. */
void fake_leave_capture(const fake_capture *capture);

/* ---- launches (fake_module.c) ---- */

enum { FAKE_ARCHITECTURE_BYTES = 64 };

/* What the compiler makes and modules are loaded from: this, followed by a shared object. */
typedef struct fake_image {
    char magic[8];
    char architecture[FAKE_ARCHITECTURE_BYTES];
    uint64_t bytes, hash; /* of the object */
} fake_image;

#define FAKE_MAGIC "FAKEGPU"
/* In front of a text that the driver itself has to compile. */
#define FAKE_PORTABLE "//PTX of the fake compiler\n"

uint64_t fake_hash(const void *bytes, size_t count);
/* A shared object from kernels' text, from the disk if it is there; to be freed. NULL: the log says
 * why. */
void *fake_compile(const char *text, size_t *bytes, char *log, size_t log_bytes);

/* A fault is the context's from then on. */
void fake_run_launch(fake_context *context, const fake_launch *launch);
void fake_launch_release(fake_launch *launch);

/* ---- graphs (fake_graph.c) ---- */

gpu_code fake_capture_op(fake_stream *stream, fake_op *op);
/* A call that must not be made while this thread captures, or anybody globally. */
gpu_code fake_check_unsafe(void);
/* For calls that wait for a whole device, which a driver may do to a capture of any thread. */
void fake_check_capture(const char *function);
gpu_code fake_capture_invalidate(fake_capture *capture, gpu_code code);
void fake_nodes_release(fake_nodes *nodes);
void fake_op_release(fake_op *op);

#endif
