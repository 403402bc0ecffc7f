/* The CPU backend: kernels are programs or calls, commands run one after the other on the pool. */
#include "cpu.h"

#include <stdio.h>
#include <string.h>

#include "adam.h"
#include "calls.h"
#include "host.h"
#include "isa.h"
#include "platform/memory.h"
#include "pool.h"

typedef struct kernel {
    bool is_call;
    wb_call call;
    wb_cpu_program *program; /* the program, or the call's epilogue */
    int split;
    int64_t kept, call_scratch; /* bytes; of scratch memory, what comes before the program's */
} kernel;

enum { ALIGNMENT = 64, MOST_ARGUMENTS = 1024 };

/* ---- memory ---- */

static void *cpu_alloc(void *device, size_t size_bytes) {
    (void)device;
    void *block = wb_builtin_host.alloc_aligned(size_bytes);
    wb_platform_use_large_pages(block, size_bytes);
    return block;
}

static void cpu_free(void *device, void *handle, size_t size_bytes) {
    (void)device, (void)size_bytes;
    wb_builtin_host.release_aligned(handle);
}

/* ---- kernels ---- */

static void release(void *any) {
    kernel *k = any;
    if (!k) return;
    wb_cpu_program_free(k->program);
    wb_host_release(k);
}

static void *kernel_of_program(void *device, const wb_program *program) {
    (void)device;
    kernel *k = wb_host_alloc(sizeof *k);
    if (!k) return NULL;
    k->program = wb_cpu_program_new(program);
    if (k->program) return k;
    release(k);
    return NULL;
}

/* Tiles of the result become boxes of the program's domain: the rows have to be one dimension, the
 * columns at most two. */
static bool can_fuse(const wb_call *call, const wb_program *epilogue, int split) {
    return wb_call_row_of(call->kind).uses & WB_CALL_TILES && !epilogue->reduced &&
           epilogue->phases == 1 && split <= 1 && epilogue->ndim - split <= 2;
}

static void *lower(void *device, const wb_call *call, const wb_program *epilogue, int split) {
    (void)device;
    if (epilogue && !can_fuse(call, epilogue, split)) return NULL;
    kernel *k = wb_host_alloc(sizeof *k);
    if (!k) return NULL;
    k->is_call = true, k->call = *call, k->split = split;
    k->call_scratch = (wb_cpu_call_scratch(call) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    k->kept = wb_cpu_call_kept(call);
    if (!epilogue) return k;
    k->program = wb_cpu_program_new(epilogue);
    if (k->program) return k;
    release(k);
    return NULL;
}

static bool takes(void *device, const char *name, const wb_call *call) {
    (void)device;
    if (!call) return wb_cpu_is_adam(name);
    if (call->kind == WB_CALL_matmul) return call->dtype == WB_BF16 && wb_cpu_multiplies_bf16();
    return (call->kind == WB_CALL_attention || call->kind == WB_CALL_attention_backward) &&
           (call->dtype == WB_F32 || call->dtype == WB_F64);
}

/* As a size of memory; if no memory is that large, SIZE_MAX, which no allocator grants. */
static size_t size_of(int64_t bytes) {
    return bytes < 0 || bytes > PTRDIFF_MAX - ALIGNMENT ? SIZE_MAX : (size_t)bytes;
}

static size_t scratch_bytes(const void *any) {
    const kernel *k = any;
    const int64_t behind = k->program ? wb_cpu_program_scratch(k->program) : 0;
    return size_of(k->call_scratch + behind + ALIGNMENT);
}

static size_t kept_bytes(const void *any) { return size_of(((const kernel *)any)->kept); }

/* ---- epilogues ---- */

typedef struct behind {
    const kernel *kernel;
    char *const *arguments;
    const uint64_t *late;
    char *scratch;
    int64_t columns; /* of one product of a batch */
} behind;

/* Columns first .. first + count - 1, numbered through the last two dimensions, as boxes. */
static void run_columns(const behind *b, wb_box *box, int64_t first, int64_t count, int worker) {
    const wb_cpu_program *p = b->kernel->program;
    const int split = b->kernel->split, column_dims = wb_cpu_program_ndim(p) - split;
    if (column_dims < 2) {
        if (column_dims == 1) box->from[split] = first, box->count[split] = count;
        wb_cpu_program_run_box(p, b->arguments, b->late, b->scratch, worker, box);
        return;
    }
    const int64_t size = wb_cpu_program_size(p, split);
    while (count > 0) {
        const int64_t at = first % size, run = size - at < count ? size - at : count;
        box->from[split] = at, box->count[split] = run;
        box->from[split + 1] = first / size, box->count[split + 1] = 1;
        wb_cpu_program_run_box(p, b->arguments, b->late, b->scratch, worker, box);
        first += run, count -= run;
    }
}

static void tile_done(void *context, int64_t product, int64_t row, int64_t rows, int64_t column,
                      int64_t columns, int worker) {
    const behind *b = context;
    wb_box box = {{0}, {0}};
    if (rows == 0 || columns == 0) return;
    if (b->kernel->split) box.from[0] = row, box.count[0] = rows;
    run_columns(b, &box, product * b->columns + column, columns, worker);
}

/* ---- running ---- */

static wb_status run_call(const kernel *k, const char *what, char *const *a, int narguments,
                          const uint64_t *late) {
    enum { OPERANDS = 3 }; /* of calls whose results come in tiles */
    static wb_cpu_call_fn *const entries[] = {
#define WB_CALL(name, ...) wb_cpu_call_##name,
#include <weber/ops.def>
    };
    char *scratch = a[narguments - 1];
    behind b = {.kernel = k,
                .arguments = a + OPERANDS,
                .late = late,
                .scratch = scratch + k->call_scratch,
                .columns = k->call.matmul.n};
    const wb_cpu_call c = {.call = &k->call,
                           .what = what,
                           .a = a,
                           .scratch = scratch,
                           .kept = k->kept ? a[narguments - 2] : NULL,
                           .done = k->program ? tile_done : NULL,
                           .context = &b};
    return entries[k->call.kind](&c);
}

static char *address_of(const wb_argument *a, const wb_memory *memory) {
    const wb_memory *m = &memory[a->memory];
    return m->handle ? (char *)m->handle + m->offset_bytes + a->offset_bytes : NULL;
}

static wb_status prepare(void *device, void *queue, const wb_command *commands, int count,
                         const wb_memory *memory) {
    (void)device, (void)queue;
    for (int c = 0; c < count; c++) {
        const wb_command *command = &commands[c];
        const kernel *k = command->kernel;
        char *const operands[] = {address_of(&command->arguments[0], memory),
                                  address_of(&command->arguments[1], memory)};
        wb_cpu_call_keep(&k->call, operands,
                         address_of(&command->arguments[command->narguments - 2], memory));
    }
    return WB_OK;
}

static wb_status run(void *device, void *queue, const wb_command *commands, int count,
                     const wb_memory *memory, const uint64_t *late) {
    (void)device, (void)queue;
    char *arguments[MOST_ARGUMENTS];
    for (int c = 0; c < count; c++) {
        const wb_command *command = &commands[c];
        const kernel *k = command->kernel;
        for (int i = 0; i < command->narguments; i++)
            arguments[i] = address_of(&command->arguments[i], memory);
        if (!k->is_call) {
            wb_cpu_program_run(k->program, arguments, late, arguments[command->narguments - 1]);
            continue;
        }
        const wb_status status = run_call(k, command->what, arguments, command->narguments, late);
        if (status != WB_OK) return status;
    }
    return WB_OK;
}

/* Work is done when run and copy return, so there is nothing to wait for. */
static wb_status sync_queue(void *device, void *queue) {
    (void)device, (void)queue;
    return WB_OK;
}

static wb_status copy(void *device, void *queue, wb_copy_kind kind, wb_memory to, wb_memory from,
                      size_t size_bytes) {
    (void)device, (void)queue, (void)kind;
    memmove((char *)to.handle + to.offset_bytes, (const char *)from.handle + from.offset_bytes,
            size_bytes);
    return WB_OK;
}

/* ---- the device ---- */

static bool load(char *reason, size_t reason_bytes) {
    (void)reason, (void)reason_bytes;
    return true;
}

static int count_devices(char *reason, size_t reason_bytes) {
    (void)reason, (void)reason_bytes;
    return 1;
}

static wb_status info(int index, wb_device_info *info) {
    (void)index;
    *info = (wb_device_info){.memory_bytes = wb_platform_memory_bytes(),
                             .compute_units = wb_cpu_threads(),
                             .has_f64 = true,
                             .reads_parts = true,
                             .side_sum_row = WB_WHOLE_ROW,
                             .is_host_memory = true};
    wb_cpu_model(info->name, sizeof info->name);
    (void)snprintf(info->driver, sizeof info->driver, "%s", wb_cpu_isa_name(wb_cpu_isa()));
    return WB_OK;
}

static char the_device;

static void *open_device(int index) {
    (void)index;
    return &the_device;
}

static void close_device(void *device) { (void)device; }

extern const wb_backend wb_cpu_backend;
const wb_backend wb_cpu_backend = {.abi = WB_PLUGIN_ABI,
                                   .size_bytes = sizeof(wb_backend),
                                   .name = "CPU",
                                   .load = load,
                                   .count = count_devices,
                                   .info = info,
                                   .open = open_device,
                                   .close = close_device,
                                   .alloc = cpu_alloc,
                                   .free = cpu_free,
                                   .kernel = kernel_of_program,
                                   .lower = lower,
                                   .takes = takes,
                                   .scratch_bytes = scratch_bytes,
                                   .release = release,
                                   .copy = copy,
                                   .run = run,
                                   .sync = sync_queue,
                                   .kept_bytes = kept_bytes,
                                   .prepare = prepare};
