/* Kernels: what is left of a rendered source, its program, one cl_kernel per launch; and running
 * lists of them. */
#include <string.h>

#include "../common/source.h"
#include "program.h"

enum { MOST_LAUNCHES = 4 };

typedef struct kernel {
    wb_cl_device *device;
    wb_source source; /* without its text; its block of words is filled again for each run */
    wb_text *text;
    cl_kernel launches[MOST_LAUNCHES];
} kernel;

/* ---- making ---- */

void wb_cl_release(void *any) {
    kernel *k = any;
    if (!k) return;
    for (int i = 0; i < MOST_LAUNCHES; i++)
        if (k->launches[i]) (void)cl.ReleaseKernel(k->launches[i]);
    if (k->text) wb_texts_put(&k->device->texts, k->text);
    wb_source_drop(wb_cl_host, &k->source);
    wb_cl_host->release(k);
}

static wb_cl_program *program_of(const kernel *k) { return k->text->binary; }

static bool make_launches(kernel *k, const wb_source *source) {
    k->text = wb_texts_get(&k->device->texts, source);
    for (int i = 0; k->text && i < source->launch_count; i++) {
        const char *entry = source->launches[i].entry;
        cl_int code = CL_SUCCESS;
        k->launches[i] = cl.CreateKernel(program_of(k)->program, entry, &code);
        if (!k->launches[i]) return wb_cl_fail(entry, "clCreateKernel", code) == WB_OK;
    }
    return k->text;
}

/* True if a kernel may have this many parameters: buffers are passed as addresses. */
static bool fits(const wb_cl_device *device, const wb_source *source) {
    const int64_t words = source->buffer_count + source->uses_status + source->word_count;
    return device->most_parameter_bytes == 0 ||
           (uint64_t)words * sizeof(int64_t) <= device->most_parameter_bytes;
}

static void *new_kernel(wb_cl_device *device, const wb_source *source) {
    kernel *k = wb_cl_host->alloc(sizeof *k);
    if (!k) return NULL;
    k->device = device;
    if (wb_source_keep(wb_cl_host, source, &k->source) &&
        (source->launch_count == 0 || make_launches(k, source)))
        return k;
    wb_cl_release(k);
    return NULL;
}

/* Takes the source over. NULL without an error if it has too many parameters: then the host cuts
 * the program into smaller ones. */
static void *kernel_of(wb_cl_device *device, wb_source *source) {
    if (!source) return NULL;
    void *k = fits(device, source) ? new_kernel(device, source) : NULL;
    wb_cl_host->release_source(source);
    return k;
}

void *wb_cl_kernel(void *any, const wb_program *program) {
    wb_cl_device *device = any;
    return kernel_of(device, wb_cl_host->render(program, &device->dialect));
}

void *wb_cl_lower(void *any, const wb_call *call, const wb_program *epilogue, int split) {
    wb_cl_device *device = any;
    return kernel_of(device, wb_cl_host->render_call(call, epilogue, split, &device->dialect));
}

bool wb_cl_takes(void *any, const char *name, const wb_call *call) {
    const wb_cl_device *device = any;
    (void)name;
    return call && call->kind != WB_CALL_matmul && /* halves are widened for it */
           wb_cl_host->has_text(call, &device->dialect);
}

size_t wb_cl_scratch_bytes(const void *any) { return ((const kernel *)any)->source.scratch_bytes; }

/* ---- running ---- */

typedef struct running {
    wb_cl_device *device;
    wb_cl_queue *queue;
    const wb_memory *memory;
    const uint64_t *late;
} running;

static void fill_words(const running *r, const wb_command *command, const wb_source *source) {
    wb_source_fill(source, command, r->memory, source->words);
    for (int32_t i = 0; i < source->late_count; i++)
        memcpy(&source->words[source->first_late + i], &r->late[source->late[i]], sizeof(int64_t));
}

static cl_int set_arguments(const running *r, const wb_command *command, const wb_source *source,
                            cl_mem status, cl_kernel launch) {
    cl_int code = CL_SUCCESS;
    cl_uint place = 0;
    for (int32_t i = 0; i < source->buffer_count && code == CL_SUCCESS; i++) {
        cl_mem mem = r->memory[command->arguments[i].memory].handle;
        if (!mem) mem = r->device->dummy;
        code = cl.SetKernelArg(launch, place++, sizeof mem, &mem);
    }
    if (source->uses_status && code == CL_SUCCESS)
        code = cl.SetKernelArg(launch, place++, sizeof status, &status);
    if (code == CL_SUCCESS)
        code = cl.SetKernelArg(launch, place, (size_t)source->word_count * sizeof *source->words,
                               source->words);
    return code;
}

static wb_status launch(const running *r, const wb_command *command, const kernel *k, int number,
                        cl_mem status) {
    const size_t group = (size_t)k->device->dialect.group;
    const size_t items = (size_t)k->source.launches[number].groups * group;
    cl_event event = NULL;
    if (items == 0) return WB_OK;
    cl_int code = set_arguments(r, command, &k->source, status, k->launches[number]);
    if (code != CL_SUCCESS) return wb_cl_fail(command->what, "clSetKernelArg", code);
    code = cl.EnqueueNDRangeKernel(r->queue->queue, k->launches[number], 1, NULL, &items, &group, 0,
                                   NULL, &event);
    if (code != CL_SUCCESS) return wb_cl_fail(command->what, "clEnqueueNDRangeKernel", code);
    wb_cl_watch(r->queue, event, command->what);
    return WB_OK;
}

static wb_status run_command(const running *r, const wb_command *command) {
    const kernel *k = command->kernel;
    cl_mem status_words = NULL;
    wb_status status = WB_OK;
    if (k->source.launch_count == 0) return WB_OK;
    fill_words(r, command, &k->source);
    if (k->source.uses_status)
        status = wb_cl_slot_take(r->device, r->queue, command->what, &status_words);
    for (int i = 0; i < k->source.launch_count && status == WB_OK; i++)
        status = launch(r, command, k, i, status_words);
    wb_cl_program *program = program_of(k);
    if (!atomic_load_explicit(&program->launched, memory_order_relaxed))
        atomic_store(&program->launched, true);
    return status;
}

wb_status wb_cl_run(void *any, void *queue, const wb_command *commands, int count,
                    const wb_memory *memory, const uint64_t *late) {
    wb_cl_device *device = any;
    const running r = {device, wb_cl_queue_of(device, queue), memory, late};
    wb_status status = WB_OK;
    pthread_mutex_lock(&device->lock);
    for (int i = 0; i < count && status == WB_OK; i++) status = run_command(&r, &commands[i]);
    (void)cl.Flush(r.queue->queue); /* the device starts while the next list is made */
    pthread_mutex_unlock(&device->lock);
    return status;
}
