/* weber/plugin.h: the interface between Weber and its backends, together with weber/calls.h.
 *
 * A backend is a shared object libweber_NAME.so with one exported symbol, weber_plugin: a function
 * that gets the host's table (wb_host) and returns the backend's (wb_backend). A backend names
 * devices, allocates memory, turns programs and calls into kernels, copies, and runs lists of
 * commands on queues. docs/how-to/add-a-backend.md shows how to write one; the built-in ones go
 * through the same table.
 *
 * - Memory is always (handle, offset). Only the backend knows what a handle is, unless its memory
 *   is the host's.
 * - A program describes, as data, a fused kernel of elementwise operations and reductions; a call
 *   is a heavy operation (a matrix product, a convolution). A backend with a C-like language needs
 *   neither an interpreter nor a library: the host renders both as text (wb_source).
 * - Any thread may call any function at any time; a backend locks what it must. Lists and structs
 *   that a function is given are valid only during its call, unless its comment says otherwise.
 * - A function that fails records the error through wb_host.fail and returns NULL or the status.
 *
 * The ABI is not frozen before 1.0: WB_PLUGIN_ABI changes with it. Tables begin with the ABI number
 * and their size in bytes; the host refuses a table with another number, or one that is shorter
 * than the host's struct. */
#ifndef WEBER_PLUGIN_H
#define WEBER_PLUGIN_H

#include "calls.h"
#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WB_PLUGIN_ABI = 20 };

/* ---- programs ---- */

/* Types of a program's registers; storage may be narrower. */
typedef enum wb_register {
    WB_R_F32,
    WB_R_F64,
    WB_R_I32,
    WB_R_I64,
    WB_R_BOOL,
    WB_R_COUNT
} wb_register;

/* The register of numbers that are stored as dtype. */
static inline wb_register wb_register_of(wb_dtype dtype) {
    switch (dtype) {
    case WB_F64:
        return WB_R_F64;
    case WB_I32:
    case WB_U8:
        return WB_R_I32;
    case WB_I64:
        return WB_R_I64;
    case WB_BOOL:
        return WB_R_BOOL;
    default:
        return WB_R_F32; /* f16 and bf16, too */
    }
}

enum { WB_MOST_PHASES = 4 }; /* in a program */

/* What an instruction does. The elementwise ones are the primitives of ops.def, in its order. */
typedef enum wb_code {
#define WB_UNARY(name, ...)  WB_CODE_##name,
#define WB_BINARY(name, ...) WB_CODE_##name,
#include "ops.def"
    WB_CODE_select,   /* in[0] ? in[1] : in[2] */
    WB_CODE_cast,     /* in[0], of type `from`, as `type`; `index` may say f16 or bf16: rounded */
    WB_CODE_load,     /* the element that access `index` reads */
    WB_CODE_store,    /* in[0] to access `index` */
    WB_CODE_constant, /* the instruction's `constant` */
    WB_CODE_late,     /* late value number `index` (a double) */
    /* the number offset + sum of i_d * strides[d], from access `index`, which reads no argument */
    WB_CODE_iota,
    /* Philox, with the element number as for iota; key and counter are the late words number
     * `constant` and `constant` + 1 */
    WB_CODE_uniform,
    WB_CODE_normal,
    WB_CODE_sum, /* of in[0] along the reduced dimensions: a row value */
    WB_CODE_max_reduce,
    WB_CODE_spread, /* the row value in[0] at every element */
    /* in[0] summed along the dimensions where access `index` has stride 0, stored there when the
     * program ends (wb_device_info.side_sum_row) */
    WB_CODE_side_sum,
    WB_CODE_COUNT
} wb_code;

enum { WB_NO_VALUE = 0xffff };

/* One instruction; others refer to its value by the instruction's number (single assignment). */
typedef struct wb_instruction {
    uint8_t code; /* wb_code */
    uint8_t type; /* wb_register of the operands; for cast of the result, for store of the value */
    /* cast: the operand's register; elementwise operations: the result's (bool for comparisons) */
    uint8_t from;
    uint8_t phase; /* the first phase in which the value can be computed */
    bool row;      /* a row value: one for each combination of indices that are not reduced */
    /* part of an optimiser's step: denormal numbers (below 1.2e-38 in f32) may become zero */
    bool is_step;
    uint16_t in[3]; /* numbers of earlier instructions; WB_NO_VALUE: none */
    uint16_t index; /* access, late value or dimension; cast: WB_F16, WB_BF16, or 0 */
    double constant;
} wb_instruction;

/* The register of an instruction's value. */
static inline wb_register wb_result_register(const wb_instruction *i) {
    return (wb_register)(i->code < WB_CODE_select ? i->from : i->type);
}

/* Where a program finds an array's elements: element (i0, i1, ...) of the domain is at offset + sum
 * of i_d * strides[d], in elements. */
typedef struct wb_access {
    uint8_t dtype;     /* wb_dtype in memory */
    uint16_t argument; /* which of the command's arguments */
    int64_t offset;
    int64_t strides[8];
} wb_access;

enum {
    WB_CALLABLE_INPUTS = 12,
    WB_CALLABLE_RESULTS = 4,
    WB_CALLABLE_NUMBERS = 8,
    WB_MOST_CALLABLES = 4
};

typedef enum wb_operand_kind {
    WB_OPERAND_NONE,   /* the program does not have this operand */
    WB_OPERAND_ARRAY,  /* access `index`: an input is read there, a result stored */
    WB_OPERAND_NUMBER, /* the constant or late number of instruction `index` */
    WB_OPERAND_VALUE,  /* the value of instruction `index`, which is not stored */
} wb_operand_kind;

/* An input or result of a callable. */
typedef struct wb_operand {
    uint16_t kind, index;
} wb_operand;

/* A callable: the name of an operation that is computed by several of a program's instructions. A
 * backend that takes the operation (wb_backend.takes) can compute it as one thing instead of by
 * these instructions, with the same result. Names are those of callables and elementwise operations
 * in ops.def, and of optimisers' rules. */
typedef struct wb_callable {
    char name[24]; /* "gelu", "Adam", "add" */
    double numbers[WB_CALLABLE_NUMBERS];
    wb_operand in[WB_CALLABLE_INPUTS], out[WB_CALLABLE_RESULTS]; /* in the operation's order */
} wb_callable;

/* A fused kernel: a loop over a domain, some of whose dimensions are reduced, once for each phase.
 * Values that depend on a reduction belong to a later phase; row values (with size 1 along reduced
 * dimensions) are computed between phases. An update is an elementwise program that writes new
 * parameters or states, and computes nothing that its plan needs. */
typedef struct wb_program {
    int32_t ndim;
    uint32_t reduced; /* bit d: dimension d is reduced; 0: an elementwise map */
    int64_t sizes[8];
    int32_t phases;
    bool is_update;
    bool is_named; /* elementwise, in one phase, and nothing but its callables */
    bool is_fed;   /* the same, but it may compute the callables' inputs, too */
    int32_t ninstructions, naccesses, narguments;
    wb_instruction *instructions;
    wb_access *accesses;
    int32_t ncallables;
    wb_callable callables[WB_MOST_CALLABLES]; /* in order; others are left out */
} wb_program;

/* ---- calls ---- */

/* The calls of ops.def, in its order; ops.def also describes their arguments. maxpool has two
 * results, y and the index (i32: position in x's plane) that pool_scatter and pool_gather read;
 * attention has y and, for each query, the logarithm of its sum (weber/calls.h). */
typedef enum wb_call_kind {
#define WB_CALL(name, ...) WB_CALL_##name,
#include "ops.def"
    WB_CALL_COUNT
} wb_call_kind;

/* Properties of a call. */
enum {
    WB_CALL_PRODUCTS = 1, /* adds up products: may read f16 and bf16, or round f32 */
    WB_CALL_TILES = 2,    /* computed in tiles, so that an epilogue may follow */
    WB_CALL_COPIES = 4,   /* only copies: any type is possible */
    WB_CALL_BASE = 8,     /* adds to its result, which holds the first input */
    WB_CALL_TWO_RESULTS = 16,
    WB_CALL_THREE_RESULTS = 32,
};

typedef enum wb_call_shape {
#define WB_SHAPE(name) WB_SHAPE_##name,
    WB_CALL_SHAPES(WB_SHAPE)
#undef WB_SHAPE
} wb_call_shape;

typedef struct wb_call_row {
    wb_call_shape shape;
    int x, y, uses; /* see ops.def */
} wb_call_row;

/* The row of a call in ops.def. */
static inline wb_call_row wb_call_row_of(wb_call_kind kind) {
    static const wb_call_row rows[] = {
#define WB_CALL(name, shape, x, y, uses, text, doc) {WB_SHAPE_##shape, x, y, uses},
#include "ops.def"
    };
    return rows[kind];
}

enum { WB_CALL_ARGUMENTS = 12 }; /* at most */

typedef struct wb_call {
    wb_call_kind kind;
    wb_dtype dtype;
    /* operands of f32 products may be rounded to TF32 or similar (wb_matmul_precision) */
    bool is_fast;
    /* operands of a matrix product may be rounded to bf16, too */
    bool may_round_to_bf16;
    /* The matrix of a product, or the weights of a convolution, do not change between calls of
     * wb_backend.prepare. Set only for backends that have prepare. */
    bool is_fixed;
    /* With an epilogue: result_argument is the epilogue's argument that is the call's result; if
     * is_result_private, nothing else reads it, so it need not be written. */
    bool is_result_private;
    uint16_t result_argument;
    /* Which arguments have an address that is a multiple of 64 bytes in every run. is_aligned: all
     * of the call's own arguments; aligned_arguments: bit i, up to 63, for argument i of the
     * epilogue. */
    bool is_aligned;
    uint64_t aligned_arguments;
#define WB_SHAPE(name) wb_##name##_call name;
    WB_CALL_SHAPES(WB_SHAPE) /* only the member for the shape of `kind` is set */
#undef WB_SHAPE
} wb_call;

/* ---- commands ---- */

typedef struct wb_memory {
    void *handle;
    int64_t offset_bytes;
} wb_memory;

/* An argument: entry `memory` of the list of memory passed to run, plus an offset. */
typedef struct wb_argument {
    uint32_t memory;
    int64_t offset_bytes;
} wb_argument;

enum { WB_SCRATCH_ALIGNMENT = 256 }; /* of the offset of scratch memory */

typedef struct wb_command {
    void *kernel;
    int32_t narguments;
    const wb_argument *arguments; /* the call's or program's, the epilogue's, scratch memory */
    const char *what;             /* its operations, for messages; valid for ever */
    /* an update that may run at the same time as the updates directly before it */
    bool is_concurrent;
} wb_command;

/* ---- text ----
 *
 * Programs and calls as text in a C-like language. The text is the same for all dialects: a prelude
 * hides the differences by defining the names that docs/how-to/add-a-backend.md lists. The text is
 * specialised for numbers of dimensions, types, contiguity and the width of indices, and for how
 * much of a row an item holds in its registers, but not for sizes: these, strides, offsets and late
 * values are passed in one block of 64-bit words, by value or as constant memory.
 *
 * A kernel's parameters are, in this order: the command's buffers (scratch memory last), the status
 * words if uses_status, the block. Groups have wb_source.group items, in one dimension.
 *
 * Several updates with the same text may be jobs of one launch: see wb_source.most_jobs. */

typedef struct wb_dialect {
    const char *name;    /* "OpenCL C", for messages */
    const char *prelude; /* comes before every text */
    int32_t group;       /* items in a group: a power of two from 16 to 256 (serial: from 1) */
    /* Items of a group run one after another on a core with vector units; no shared memory is used.
     * Only for OpenCL C and languages with its vector types and functions (float8, vload8,
     * convert_float8, fma, ...), which the texts of products and convolutions use. */
    bool is_serial;
    bool has_f64;
    /* how many neighbouring items can exchange values by WB_SHUFFLE_XOR: a power of two, at most
     * group; 0: none */
    int32_t warp;
    /* bytes that the parameters of a launch of several jobs (WB_JOBS) may have; 0: updates are
     * launched like other programs */
    int32_t job_bytes;
    /* items that a group has for long rows, so that its registers hold a row: a power of two from
     * group to 1024; 0: always group */
    int32_t most_group;
} wb_dialect;

typedef struct wb_launch {
    char entry[32];
    int64_t groups;
} wb_launch;

typedef struct wb_source {
    char *text;   /* without the prelude; equal texts can share a compiled program */
    uint64_t key; /* hash of prelude and text: names the binary in caches */
    int32_t launch_count;
    wb_launch launches[4]; /* in this order, each with the same parameters */
    int32_t buffer_count;  /* arguments of the command, scratch included */
    /* 0: parameters as above. Else the only parameter is a list of 64-bit words: the number of
     * jobs, 1 to most_jobs, and for each job its first group, its buffers and its block. A launch
     * has the groups of all its jobs, one job after another; launches[0].groups is the number for
     * this source. */
    int32_t most_jobs;
    int32_t word_count; /* of the block */
    int64_t *words;     /* the block before a run fills in the words below */
    /* words[first_offset + i]: byte offset of argument i in buffer i, set by each run */
    int32_t first_offset;
    /* words[first_late + i]: late value number late[i], or what the prelude's WB_LATE needs to read
     * it; set by each run */
    int32_t first_late;
    int32_t late_count;
    uint16_t *late;
    size_t scratch_bytes;
    int32_t group; /* items of each group: the dialect's group or most_group */
    /* the kernel has four i64 status words, zero at first: on a bad index it sets [0] to 1, [1] to
     * the index, [2] to its position, [3] to the size */
    bool uses_status;
} wb_source;

/* ---- the tables ---- */

typedef struct wb_backend wb_backend;

/* The functions of the host that a backend may call. */
typedef struct wb_host {
    uint32_t abi, size_bytes;
    void *(*alloc)(size_t size_bytes); /* zeroed memory; NULL with the error recorded */
    void (*release)(void *block);
    void *(*alloc_aligned)(size_t size_bytes); /* for arrays: aligned to 64 bytes, not zeroed */
    void (*release_aligned)(void *block);
    /* records an error; returns status */
    wb_status (*fail)(wb_status status, const char *format, ...);
    void (*log)(wb_log_level level, const char *format, ...);
    /* Text for a program, or for a call followed by an epilogue (as in lower). NULL with the
     * error recorded; a call that has no text in this combination: NULL without an error. */
    wb_source *(*render)(const wb_program *program, const wb_dialect *dialect);
    wb_source *(*render_call)(const wb_call *call, const wb_program *epilogue, int split,
                              const wb_dialect *dialect);
    /* Whether render_call has a text for this call, without an epilogue: what `takes` should return
     * for an offered call that the backend computes by this text. */
    bool (*has_text)(const wb_call *call, const wb_dialect *dialect);
    void (*release_source)(wb_source *source);
    /* The disk cache for compiled kernels: entries by backend and name (key, architecture, compiler
     * version), read and written whole, atomically. cache_read: false if there is no entry, or it
     * is damaged; *data must be passed to release. cache_write: failures are silent. */
    bool (*cache_read)(const char *backend, const char *name, void **data, size_t *size_bytes);
    void (*cache_write)(const char *backend, const char *name, const void *data, size_t size_bytes);
    /* False if the cache is disabled (WEBER_CACHE is empty): then binaries need not be fetched from
     * the driver. */
    bool (*cache_wanted)(void);
    /* A built-in backend ("CPU"), for a backend that is based on it; NULL: unknown. */
    const wb_backend *(*builtin)(const char *name);
} wb_host;

typedef struct wb_device_info {
    char name[128];       /* "NVIDIA GeForce GTX 1650" */
    char driver[128];     /* driver or platform with its version; "" */
    char address[32];     /* of the device on its machine, the same for every process; or "" */
    char uuid[40];        /* unique among all devices anywhere; or "" */
    int64_t memory_bytes; /* 0: unknown */
    int32_t compute_units;
    bool is_gpu; /* an accelerator: taken by the automatic choice */
    bool has_f64;
    /* products and convolutions can read f16 and bf16 and add in f32; else they get f32 */
    bool takes_halves;
    /* attention can read q, k and v that are slices of wider arrays; else they are copied first */
    bool reads_parts;
    /* small updates are to be run together at the end of a plan, not right after products */
    bool joins_updates;
    /* Programs that reduce some dimensions may have side sums: of full values along all dimensions,
     * and, if only dimension 0 is reduced and has at most this many elements, along all other
     * dimensions. 0: no side sums. */
    int64_t side_sum_row;
    bool is_host_memory; /* handles are addresses, which the host may use while the queue is idle */
} wb_device_info;

typedef enum wb_copy_kind {
    WB_COPY_UPLOAD,   /* from.handle is an address */
    WB_COPY_DOWNLOAD, /* to.handle is an address */
    WB_COPY_LOCAL,    /* both are on the device */
} wb_copy_kind;

struct wb_backend {
    uint32_t abi, size_bytes;
    const char *name; /* "OpenCL" */

    /* ---- questions ---- */

    /* Opens the vendor's libraries, once. False: the reason says what is missing and which package
     * brings it. */
    bool (*load)(char *reason, size_t reason_bytes);
    /* Number of devices that can be used; 0: the reason says why (no driver, hidden by a variable,
     * ...). May be called again. */
    int (*count)(char *reason, size_t reason_bytes);
    wb_status (*info)(int index, wb_device_info *info);
    /* Optional (NULL): whether a part such as "cuDNN" works; if not, or if there is no such part,
     * with the reason. */
    bool (*part)(const char *part, char *reason, size_t reason_bytes);

    /* ---- one device: the functions below get open's result as their first argument ---- */

    void *(*open)(int index);
    void (*close)(void *device);
    void *(*alloc)(void *device, size_t size_bytes); /* NULL: out of memory */
    /* May be called while queued commands still use the memory, which must then stay valid until
     * they are done. */
    void (*free)(void *device, void *handle, size_t size_bytes);
    /* Optional: host memory from which copies are fast. */
    void *(*alloc_pinned)(void *device, size_t size_bytes);
    void (*free_pinned)(void *device, void *memory, size_t size_bytes);

    /* ---- kernels ---- */

    /* A kernel for the program. NULL with an error recorded; or NULL without an error if the
     * program has more arguments than a kernel can have: then the library plans without fusion. The
     * program may be released afterwards. */
    void *(*kernel)(void *device, const wb_program *program);
    /* A kernel for the call, followed by an epilogue, an elementwise program over the result's
     * elements (NULL: none). Returns NULL without an error if it does not support this combination.
     * Without an epilogue it must support every call of the table above; of offered calls
     * (WB_OFFERED_CALL) only those that it takes. The epilogue's arguments follow the call's; it
     * may read the call's result, and overwrite it. split: the number of leading dimensions of the
     * epilogue's domain that make up the call's rows (m; the positions of a plane). */
    void *(*lower)(void *device, const wb_call *call, const wb_program *epilogue, int split);
    /* Optional (NULL: never): whether the backend can compute the operation `name` as one thing.
     * Called before fusion; the answer must always be the same. call is NULL for a callable or an
     * elementwise operation, which programs list (wb_callable) if it is taken. Otherwise it is an
     * offered call, which is passed to lower if it is taken, and else expanded into programs and
     * other calls. With takes_halves, takes is called for attention in f16 and bf16, too, which
     * gets f32 if the answer is false; without takes_halves, for matrix products of f16 and bf16
     * (added in f32). */
    bool (*takes)(void *device, const char *name, const wb_call *call);
    size_t (*scratch_bytes)(const void *kernel);
    void (*release)(void *kernel); /* may be called while queued commands still use it */

    /* ---- queues: commands and copies in order ----
     *
     * NULL means the device's default queue. Work may be done at once or later; host memory in a
     * copy is not changed or freed before a sync. */

    /* Optional, all or none; without them there is only the default queue. */
    void *(*queue_new)(void *device);
    void (*queue_free)(void *device, void *queue);
    void *(*record)(void *device, void *queue); /* an event: the work queued so far is done */
    /* work that is queued afterwards waits for the event */
    wb_status (*wait)(void *device, void *queue, void *event);
    void (*release_event)(void *device, void *event);

    wb_status (*copy)(void *device, void *queue, wb_copy_kind kind, wb_memory to, wb_memory from,
                      size_t size_bytes);
    /* Optional: from another device of this backend. */
    wb_status (*copy_peer)(void *device, void *queue, wb_memory to, void *from_device,
                           wb_memory from, size_t size_bytes);
    /* WB_ERROR_MEMORY means that nothing was queued; after any other error the contents of the
     * memory to be written are lost. */
    wb_status (*run)(void *device, void *queue, const wb_command *commands, int count,
                     const wb_memory *memory, const uint64_t *late);
    /* Waits until the queue is done and returns the first error of the queued work. A bad index is
     * an argument error, which names its command (if there are several, any of them), and the queue
     * can be used further; after WB_ERROR_DEVICE the device is no longer used. */
    wb_status (*sync)(void *device, void *queue);

    /* Optional, with queues: whether the event has happened. Never waits. */
    wb_status (*is_done)(void *device, void *event, bool *is_done);
    /* Optional, for libraries of the vendor that queue work of their own (NCCL): the driver's own
     * handle of the queue; the device becomes the calling thread's current one. In such a backend a
     * memory's handle must be the driver's address. NULL with an error recorded. */
    void *(*native_queue)(void *device, void *queue);

    /* Optional, both or none: for data that commands derive from fixed operands (is_fixed), which
     * are the same in all steps of a scan or in all runs of a plan. If kept_bytes of a command's
     * kernel is above 0, the command has one more argument before its scratch memory: so many
     * bytes, aligned to 64, which nothing else writes. prepare gets only such commands, and fills
     * these bytes: before the first run, and after the operand has changed. */
    size_t (*kept_bytes)(const void *kernel);
    wb_status (*prepare)(void *device, void *queue, const wb_command *commands, int count,
                         const wb_memory *memory);
};

/* The type of the exported symbol. It returns NULL if it cannot work with this host. */
typedef const wb_backend *wb_plugin_fn(const wb_host *host);
#define WB_PLUGIN_SYMBOL "weber_plugin"

#ifdef __cplusplus
}
#endif
#endif
