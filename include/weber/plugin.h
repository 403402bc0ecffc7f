/* weber/plugin.h: everything that a backend sees of Weber, with weber/calls.h.
 *
 * A backend is a folder: one shared object libweber_NAME.so with one exported symbol, weber_plugin,
 * which takes the table of its host and gives its own. It names devices, gives memory, turns
 * programs and calls into kernels, copies, and runs lists of commands on queues.
 * docs/how-to/add-a-backend.md shows how to write one; the built-in ones go through the same table.
 *
 * - Memory is always (handle, offset). Only the backend knows what a handle is, unless its memory
 *   is the host's.
 * - A program is a fused elementwise or row kernel as data; a call is a heavy operation (a matrix
 *   product, a convolution). A backend over a C-like language needs neither interpreter nor
 *   library: the host renders both as text (wb_source).
 * - Any thread may call any function at any time; a backend locks what it must. Lists and structs
 *   that a call is given live only for its duration, unless it says otherwise.
 * - A function that fails records the error through wb_host.fail and returns NULL or the status.
 *
 * The ABI is not frozen before 1.0: WB_PLUGIN_ABI changes with it. Tables begin with the ABI number
 * and their size in bytes; the host refuses another number, and a table that is shorter than its
 * own. */
#ifndef WEBER_PLUGIN_H
#define WEBER_PLUGIN_H

#include "calls.h"
#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WB_PLUGIN_ABI = 19 };

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
        return WB_R_F32; /* halves, too */
    }
}

enum { WB_MOST_PHASES = 4 }; /* of a program */

/* What an instruction does. The elementwise ones are the primitives of ops.def, in its order. */
typedef enum wb_code {
#define WB_UNARY(name, ...)  WB_CODE_##name,
#define WB_BINARY(name, ...) WB_CODE_##name,
#include "ops.def"
    WB_CODE_select,   /* in[0] ? in[1] : in[2] */
    WB_CODE_cast,     /* in[0], of type `from`, as `type`; rounded to the halves of dtype `index` */
    WB_CODE_load,     /* access `index` */
    WB_CODE_store,    /* in[0] to access `index` */
    WB_CODE_constant, /* `constant` */
    WB_CODE_late,     /* late value number `index` (a double) */
    /* the number that access `index` (without an argument) gives: offset + sum of i * stride */
    WB_CODE_iota,
    /* Philox; element numbers by access `index`; key and counter are late words constant,
     * constant + 1 */
    WB_CODE_uniform,
    WB_CODE_normal,
    WB_CODE_sum, /* of in[0] along the reduced dimensions: a row value */
    WB_CODE_max_reduce,
    WB_CODE_spread, /* the row value in[0] at every element */
    /* in[0] summed up along the dimensions where access `index` stands still, and stored there when
     * the program ends (wb_device_info.side_sum_row) */
    WB_CODE_side_sum,
    WB_CODE_COUNT
} wb_code;

enum { WB_NO_VALUE = 0xffff };

/* One instruction; its value is known by its number (single assignment). */
typedef struct wb_instruction {
    uint8_t code; /* wb_code */
    uint8_t type; /* wb_register of the operands, for compare, cast (result), store (value) too */
    /* cast: the operand's register; elementwise operations: the result's (bool for comparisons) */
    uint8_t from;
    uint8_t phase; /* the first phase in which the value can be computed */
    bool row;      /* a row value: one per combination of the dimensions that are not reduced */
    /* of an optimiser's step: denormal numbers (below 1.2e-38 in f32) may count as zero */
    bool is_step;
    uint16_t in[3]; /* numbers of earlier instructions; WB_NO_VALUE: none */
    uint16_t index; /* access, late value or dimension; cast: WB_F16, WB_BF16, or 0 */
    double constant;
} wb_instruction;

/* The register of an instruction's value. */
static inline wb_register wb_result_register(const wb_instruction *i) {
    return (wb_register)(i->code < WB_CODE_select ? i->from : i->type);
}

/* How a program walks one array: element (i0, i1, ...) of the domain lies at offset + sum of i *
 * stride, in elements. */
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
    WB_OPERAND_NONE,   /* there is none in this program */
    WB_OPERAND_ARRAY,  /* access `index`: a result is stored there, and an operand read */
    WB_OPERAND_NUMBER, /* a constant or late number, as instruction `index` gives it */
    WB_OPERAND_VALUE,  /* the value of instruction `index`, which stays within the program */
} wb_operand_kind;

/* An array, number or value that a callable reads or gives. */
typedef struct wb_operand {
    uint16_t kind, index;
} wb_operand;

/* A callable: the name of an operation that some of a program's instructions make up together. A
 * backend that takes the operation (wb_backend.takes) finds it here, and may do it as one thing;
 * the instructions say the same. The names are of ops.def's callables and elementwise operations,
 * and of optimisers' rules. */
typedef struct wb_callable {
    char name[24]; /* "gelu", "Adam", "add" */
    double numbers[WB_CALLABLE_NUMBERS];
    wb_operand in[WB_CALLABLE_INPUTS], out[WB_CALLABLE_RESULTS]; /* as the operation has them */
} wb_callable;

/* A fused kernel: a domain of dimensions, some of them reduced, walked once per phase. Values that
 * depend on a reduction belong to a later phase; row values (reduced sizes 1) are computed between
 * phases. An update is a map that settles parameters or states and computes nothing that its plan
 * needs. */
typedef struct wb_program {
    int32_t ndim;
    uint32_t reduced; /* bit d: dimension d is reduced; 0: an elementwise map */
    int64_t sizes[8];
    int32_t phases;
    bool is_update;
    bool is_named; /* a map in one phase that does nothing but its callables */
    bool is_fed;   /* the same, but it may also compute the callables' inputs */
    int32_t ninstructions, naccesses, narguments;
    wb_instruction *instructions;
    wb_access *accesses;
    int32_t ncallables;
    wb_callable callables[WB_MOST_CALLABLES]; /* in order; further ones are not listed */
} wb_program;

/* ---- calls ---- */

/* The calls of ops.def, in its order, which also says what they work on. maxpool gives y and the
 * index (i32: place in x's plane) that pool_scatter and pool_gather read; attention gives y and,
 * for each query, the logarithm of its sum. */
typedef enum wb_call_kind {
#define WB_CALL(name, ...) WB_CALL_##name,
#include "ops.def"
    WB_CALL_COUNT
} wb_call_kind;

/* Properties of a call. */
enum {
    WB_CALL_PRODUCTS = 1, /* adds up products: may take halves, or less than f32 */
    WB_CALL_TILES = 2,    /* its result comes in tiles, which an epilogue may follow */
    WB_CALL_COPIES = 4,   /* computes nothing: any type will do */
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
    /* f32 products may be made of operands rounded to TF32 or the like (wb_matmul_precision) */
    bool is_fast;
    /* and of a matrix product, to bf16 */
    bool may_round_to_bf16;
    /* The matrix of a product, or the weights of a convolution, stay the same from one prepare to
     * the next. Set only for backends that have prepare. */
    bool is_fixed;
    /* With an epilogue: which of its arguments is the call's result, and whether nothing else reads
     * that, so that it need not be written. */
    bool is_result_private;
    uint16_t result_argument;
    /* Arguments whose address is a multiple of 64 bytes in every run; the others may have any.
     * is_aligned: all of the call's own are; aligned_arguments: bit i, up to 63, stands for
     * argument i of the epilogue. */
    bool is_aligned;
    uint64_t aligned_arguments;
#define WB_SHAPE(name) wb_##name##_call name;
    WB_CALL_SHAPES(WB_SHAPE) /* of these, the member for the kind is set */
#undef WB_SHAPE
} wb_call;

/* ---- commands ---- */

typedef struct wb_memory {
    void *handle;
    int64_t offset_bytes;
} wb_memory;

/* An argument: entry number `memory` of the table given to run, plus an offset. */
typedef struct wb_argument {
    uint32_t memory;
    int64_t offset_bytes;
} wb_argument;

enum { WB_SCRATCH_ALIGNMENT = 256 }; /* of the offset of scratch memory */

typedef struct wb_command {
    void *kernel;
    int32_t narguments;
    const wb_argument *arguments; /* of the call or program, of the epilogue, then scratch memory */
    const char *what;             /* the operations it serves, for messages; lives for ever */
    /* an update that may run at the same time as the updates directly before it */
    bool is_concurrent;
} wb_command;

/* ---- text ----
 *
 * Programs and calls as text in a C-like language. One text serves all dialects: what differs
 * stands in the prelude, which defines the names that docs/how-to/add-a-backend.md lists. The text
 * is specialised on ranks, types, contiguity and the width of indices, not on sizes: these,
 * strides, offsets and late values come in one block of 64-bit words, by value or as constant
 * memory.
 *
 * A kernel's parameters are, in this order: the command's buffers (scratch memory is the last), the
 * status words where uses_status says so, the block. Groups have `group` items, and there is one
 * dimension.
 *
 * Updates of equal text may be the jobs of one launch: see wb_source.most_jobs. */

typedef struct wb_dialect {
    const char *name;    /* "OpenCL C", for messages */
    const char *prelude; /* comes before every text */
    int32_t group;       /* items in a group: a power of two from 16 to 256 (serial: from 1) */
    /* Items of a group run one after another on a wide core; no shared memory is used. For OpenCL
     * C, and what has its vector types and functions (float8, vload8, convert_float8, fma, ...):
     * the texts of products and convolutions use them. */
    bool is_serial;
    bool has_f64;
    /* so many neighbouring items exchange values by WB_SHUFFLE_XOR: a power of two, at most
     * group; 0: none do */
    int32_t warp;
    /* parameters of a launch of several jobs, which WB_JOBS declares, have room for so much; 0:
     * updates are like other programs */
    int32_t job_bytes;
} wb_dialect;

typedef struct wb_launch {
    char entry[32];
    int64_t groups;
} wb_launch;

typedef struct wb_source {
    char *text;   /* after the prelude; equal texts are one program */
    uint64_t key; /* hash of prelude and text: names the binary in caches */
    int32_t launch_count;
    wb_launch launches[4]; /* in this order, each with the same parameters */
    int32_t buffer_count;  /* arguments of the command, scratch included */
    /* 0: parameters as above. Else the only one is a list of 64-bit words: the number of jobs, 1 to
     * most_jobs, and for each job its first group, its buffers and its block. A launch has the
     * groups of all its jobs, one job's after another's; launches[0].groups are this one's. */
    int32_t most_jobs;
    int32_t word_count; /* of the block */
    int64_t *words;     /* the block as each run begins */
    /* words[first_offset + i]: bytes from buffer i to argument i, set by each run */
    int32_t first_offset;
    /* words[first_late + i]: late value number late[i], or whatever the prelude's WB_LATE reads
     * it from; set by each run */
    int32_t first_late;
    int32_t late_count;
    uint16_t *late;
    size_t scratch_bytes;
    /* four i64 words, zero before: [0] set to 1 on a bad index, [1] the index, [2] its place,
     * [3] the size */
    bool uses_status;
} wb_source;

/* ---- the tables ---- */

typedef struct wb_backend wb_backend;

/* What a backend may ask of its host. */
typedef struct wb_host {
    uint32_t abi, size_bytes;
    void *(*alloc)(size_t size_bytes); /* zeroed; NULL with the error recorded */
    void (*release)(void *block);
    void *(*alloc_aligned)(size_t size_bytes); /* for arrays: to 64 bytes, not zeroed */
    void (*release_aligned)(void *block);
    /* records an error; returns status */
    wb_status (*fail)(wb_status status, const char *format, ...);
    void (*log)(wb_log_level level, const char *format, ...);
    /* Text for a program, or for a call followed by an epilogue (as in lower). NULL with the
     * error recorded; a call that has no text in this combination: NULL without an error. */
    wb_source *(*render)(const wb_program *program, const wb_dialect *dialect);
    wb_source *(*render_call)(const wb_call *call, const wb_program *epilogue, int split,
                              const wb_dialect *dialect);
    /* Whether render_call has a text for this call, without an epilogue: the answer that takes
     * gives for offered calls, if the text serves them. */
    bool (*has_text)(const wb_call *call, const wb_dialect *dialect);
    void (*release_source)(wb_source *source);
    /* The disk cache for compiled kernels: entries by backend and name (key, architecture, compiler
     * version), read and written whole, atomically. read: false where there is none (or on damage);
     * *data is to be given to release. write: failures are silent. */
    bool (*cache_read)(const char *backend, const char *name, void **data, size_t *size_bytes);
    void (*cache_write)(const char *backend, const char *name, const void *data, size_t size_bytes);
    /* False where there is to be no cache (WEBER_CACHE is empty): binaries need not be fetched. */
    bool (*cache_wanted)(void);
    /* A backend that is built in ("CPU"), for one that stands on another; NULL: unknown. */
    const wb_backend *(*builtin)(const char *name);
} wb_host;

typedef struct wb_device_info {
    char name[128];       /* "NVIDIA GeForce GTX 1650" */
    char driver[128];     /* driver or platform with its version; "" */
    char address[32];     /* of the device on its machine, the same for every process; "" */
    char uuid[40];        /* no other device anywhere has it; "" */
    int64_t memory_bytes; /* 0: unknown */
    int32_t compute_units;
    bool is_gpu; /* an accelerator: taken by the automatic choice */
    bool has_f64;
    /* products and convolutions of f16 and bf16 as they are, added up in f32; else in f32 */
    bool takes_halves;
    /* attention of q, k and v that are parts of wider arrays; else they are copied first */
    bool reads_parts;
    /* is given small updates together, at the end of a plan and not after products */
    bool joins_updates;
    /* Programs that reduce some dimensions may have side sums: of full values along all dimensions,
     * and, where dimension 0 alone is reduced and has at most so many elements, along all others.
     * 0: none. */
    int64_t side_sum_row;
    bool is_host_memory; /* handles are addresses, which the host may use while the queue is idle */
} wb_device_info;

typedef enum wb_copy_kind {
    WB_COPY_UPLOAD,   /* from.handle is an address */
    WB_COPY_DOWNLOAD, /* to.handle is an address */
    WB_COPY_LOCAL,    /* both on the device */
} wb_copy_kind;

struct wb_backend {
    uint32_t abi, size_bytes;
    const char *name; /* "OpenCL" */

    /* ---- questions ---- */

    /* Opens the vendor's libraries, once. False: the reason says what is missing and which package
     * brings it. */
    bool (*load)(char *reason, size_t reason_bytes);
    /* Number of devices that can be used; 0: the reason says why (no driver, hidden by a variable,
     * ...). May be asked again. */
    int (*count)(char *reason, size_t reason_bytes);
    wb_status (*info)(int index, wb_device_info *info);
    /* Optional (NULL): whether a part such as "cuDNN" works; the reason where not, or where there
     * is no such part. */
    bool (*part)(const char *part, char *reason, size_t reason_bytes);

    /* ---- one device: what open returns is the first argument of what follows ---- */

    void *(*open)(int index);
    void (*close)(void *device);
    void *(*alloc)(void *device, size_t size_bytes); /* NULL: out of memory */
    /* May come while queued commands still use the memory: it lives until they are done. */
    void (*free)(void *device, void *handle, size_t size_bytes);
    /* Optional: host memory from which copies are fast. */
    void *(*alloc_pinned)(void *device, size_t size_bytes);
    void (*free_pinned)(void *device, void *memory, size_t size_bytes);

    /* ---- kernels ---- */

    /* A kernel for the program; NULL with an error recorded, or without one where a program has
     * more arguments than a kernel may have: then the library plans without fusion. The program may
     * be released afterwards. */
    void *(*kernel)(void *device, const wb_program *program);
    /* A kernel for the call, with an elementwise program over the result's elements fused to its
     * end, or without (NULL). NULL without an error: not supported in this combination; without an
     * epilogue every call of the table above is supported, of those that are offered
     * (WB_OFFERED_CALL) what it takes. The program's arguments follow the
     * call's; it may read the call's result, and write over it. split: the number of leading
     * dimensions of its domain that make up the call's rows (m; the positions of a plane). */
    void *(*lower)(void *device, const wb_call *call, const wb_program *epilogue, int split);
    /* Optional (NULL: never): whether the backend has the operation `name` as one thing. Asked
     * before anything is fused; the same answer each time. call: of an offered call, which then
     * comes through lower, and otherwise as programs and other calls. Where the device takes halves
     * it is asked in those, too, and given f32 where it does not take them; another is asked for
     * matrix products of f16 and bf16 (added up in f32). NULL: a callable or an elementwise
     * operation, which programs then list (wb_callable). */
    bool (*takes)(void *device, const char *name, const wb_call *call);
    size_t (*scratch_bytes)(const void *kernel);
    void (*release)(void *kernel); /* may come while queued commands still use it */

    /* ---- queues: commands and copies in order ----
     *
     * NULL stands for the device's own queue. Work may be done at once or later; the host's side of
     * a copy stays as it is until a sync. */

    /* Optional, all or none; without them there is the device's own queue. */
    void *(*queue_new)(void *device);
    void (*queue_free)(void *device, void *queue);
    void *(*record)(void *device, void *queue); /* an event: what is queued so far is done */
    /* what is queued afterwards comes after the event */
    wb_status (*wait)(void *device, void *queue, void *event);
    void (*release_event)(void *device, void *event);

    wb_status (*copy)(void *device, void *queue, wb_copy_kind kind, wb_memory to, wb_memory from,
                      size_t size_bytes);
    /* Optional: from another device of this backend. */
    wb_status (*copy_peer)(void *device, void *queue, wb_memory to, void *from_device,
                           wb_memory from, size_t size_bytes);
    /* WB_ERROR_MEMORY means that nothing was queued; after another error the memory that was to be
     * written is lost. */
    wb_status (*run)(void *device, void *queue, const wb_command *commands, int count,
                     const wb_memory *memory, const uint64_t *late);
    /* Waits until the queue is done and gives the first error of the queued work: a bad index is an
     * argument error, named by its command (of several commands, any), and the queue goes on; after
     * WB_ERROR_DEVICE the device is given up. */
    wb_status (*sync)(void *device, void *queue);

    /* Optional, with queues: whether the event has happened. Never waits. */
    wb_status (*is_done)(void *device, void *event, bool *is_done);
    /* Optional, for libraries of the vendor that queue work of their own (NCCL): the queue as the
     * driver knows it, with the device made the calling thread's. Of such a backend a memory's
     * handle is the driver's address. NULL with an error recorded. */
    void *(*native_queue)(void *device, void *queue);

    /* Optional, both or none: what commands make of fixed operands (is_fixed), those that are the
     * same in all steps of a scan, or from run to run of a plan. A command whose kernel answers
     * more than 0 has one more argument in front of its scratch memory: so many bytes, aligned to
     * 64, that nobody else writes. prepare, with such commands alone, fills them: before the first
     * run, and when the operand has changed. */
    size_t (*kept_bytes)(const void *kernel);
    wb_status (*prepare)(void *device, void *queue, const wb_command *commands, int count,
                         const wb_memory *memory);
};

/* The one exported symbol. NULL: the host does not suit. */
typedef const wb_backend *wb_plugin_fn(const wb_host *host);
#define WB_PLUGIN_SYMBOL "weber_plugin"

#ifdef __cplusplus
}
#endif
#endif
