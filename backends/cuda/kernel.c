/* Kernels of rendered texts, and the choice of what makes a call's kernel. */
#include "kernel.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../common/source.h"

enum {
    MOST_LAUNCHES = 4,
    MOST_PARAMETERS = WB_GPU_PARAMETER_BYTES / 8,
};

typedef struct text_kernel {
    wb_gpu_kernel kernel;
    wb_source source; /* without its text */
    wb_text *text;
    gpu_function launches[MOST_LAUNCHES];
} text_kernel;

void wb_gpu_kernel_init(wb_gpu_kernel *kernel, wb_gpu_device *device) {
    static _Atomic uint64_t made;
    kernel->device = device;
    kernel->number = atomic_fetch_add(&made, 1) + 1;
}

/* ---- running ---- */

/* The texts read late values by their addresses (WB_LATE), so that a graph does not contain the
 * values. */
static void fill_words(const text_kernel *k, const wb_gpu_run *run, const wb_command *command,
                       int64_t *words) {
    const wb_source *source = &k->source;
    wb_source_fill(source, command, run->memory, words);
    for (int32_t i = 0; i < source->late_count; i++)
        words[source->first_late + i] =
            (int64_t)(run->late + (gpu_pointer)source->late[i] * sizeof(int64_t));
}

static gpu_pointer buffer_of(const wb_gpu_run *run, const wb_command *command, int i) {
    const gpu_pointer base = (gpu_pointer)run->memory[command->arguments[i].memory].handle;
    return base ? base : run->device->dummy;
}

static wb_gpu_outcome launch(const text_kernel *k, int number, int64_t groups,
                             const wb_gpu_run *run, void **parameters) {
    if (groups == 0) return (wb_gpu_outcome){.error = NULL};
    return GPU_TRY(LaunchKernel, k->launches[number], (unsigned)groups, 1, 1,
                   (unsigned)k->source.group, 1, 1, 0, run->stream, parameters, NULL);
}

/* The kernel's parameters: pointers to them, in order; they are copied at the launch. */
typedef struct parameters {
    gpu_pointer buffers[MOST_PARAMETERS];
    int64_t words[MOST_PARAMETERS];
    void *list[MOST_PARAMETERS + 1];
} parameters;

static wb_gpu_outcome set_parameters(const text_kernel *k, const wb_gpu_run *run,
                                     const wb_command *command, parameters *p) {
    wb_gpu_outcome o = {.error = NULL};
    int count = 0;
    for (; count < k->source.buffer_count; count++) {
        p->buffers[count] = buffer_of(run, command, count);
        p->list[count] = &p->buffers[count];
    }
    if (k->source.uses_status) {
        o = wb_gpu_queue_status(run->queue, command->what, &p->buffers[count]);
        p->list[count] = &p->buffers[count];
        count++;
    }
    fill_words(k, run, command, p->words);
    p->list[count] = p->words;
    return o;
}

/* ---- jobs of one launch ---- */

/* One job: its first group, its buffers, its block. */
static int64_t *add_job(const wb_gpu_run *run, const wb_command *command, int64_t first_group,
                        int64_t *at) {
    const text_kernel *k = command->kernel;
    *at++ = first_group;
    for (int32_t i = 0; i < k->source.buffer_count; i++)
        *at++ = (int64_t)buffer_of(run, command, i);
    fill_words(k, run, command, at);
    return at + k->source.word_count;
}

static wb_gpu_outcome run_jobs(const wb_gpu_run *run, const wb_command *commands) {
    const text_kernel *k = commands[0].kernel;
    int64_t words[MOST_PARAMETERS], *at = words, groups = 0;
    void *list[] = {words, NULL};
    *at++ = run->joined;
    for (int i = 0; i < run->joined; i++) {
        at = add_job(run, &commands[i], groups, at);
        groups += ((const text_kernel *)commands[i].kernel)->source.launches[0].groups;
    }
    return launch(k, 0, groups, run, list);
}

static wb_gpu_outcome run_text(const wb_gpu_kernel *kernel, const wb_gpu_run *run,
                               const wb_command *command) {
    const text_kernel *k = (const text_kernel *)kernel;
    parameters p;
    if (k->source.launch_count == 0) return (wb_gpu_outcome){.error = NULL};
    if (k->source.most_jobs > 0) return run_jobs(run, command);
    wb_gpu_outcome o = set_parameters(k, run, command, &p);
    for (int i = 0; i < k->source.launch_count && !o.error; i++)
        o = launch(k, i, k->source.launches[i].groups, run, p.list);
    return o;
}

static bool joins(const text_kernel *k, const wb_command *command) {
    const text_kernel *other = command->kernel;
    return command->is_concurrent && other->kernel.run == k->kernel.run && other->text == k->text;
}

int wb_gpu_joined(const wb_command *commands, int count) {
    const text_kernel *k = commands[0].kernel;
    int joined = 1;
    if (k->kernel.run != run_text || k->source.most_jobs == 0) return 1;
    while (joined < count && joined < k->source.most_jobs && joins(k, &commands[joined])) joined++;
    return joined;
}

/* ---- making ---- */

static void release_text(wb_gpu_kernel *kernel) {
    text_kernel *k = (text_kernel *)kernel;
    if (k->text) wb_texts_put(&kernel->device->texts, k->text);
    wb_source_drop(wb_gpu_host, &k->source);
    wb_gpu_host->release(k);
}

static bool find_launches(text_kernel *k, const wb_source *source) {
    wb_gpu_device *device = k->kernel.device;
    k->text = wb_texts_get(&device->texts, source);
    if (!k->text) return false;
    wb_gpu_outcome o = wb_gpu_enter(device);
    for (int i = 0; !o.error && i < source->launch_count; i++)
        o = GPU_TRY(ModuleGetFunction, &k->launches[i], k->text->binary, source->launches[i].entry);
    return wb_gpu_report(source->launches[0].entry, o) == WB_OK;
}

static int32_t late_count(const wb_source *source) {
    int32_t count = 0;
    for (int32_t i = 0; i < source->late_count; i++)
        if (source->late[i] >= count) count = source->late[i] + 1;
    return count;
}

static wb_gpu_kernel *new_kernel(wb_gpu_device *device, const wb_source *source) {
    text_kernel *k = wb_gpu_host->alloc(sizeof *k);
    if (!k) return NULL;
    wb_gpu_kernel_init(&k->kernel, device);
    k->kernel.scratch_bytes = source->scratch_bytes;
    k->kernel.uses_status = source->uses_status;
    k->kernel.late_count = late_count(source);
    k->kernel.run = run_text;
    k->kernel.release = release_text;
    if (wb_source_keep(wb_gpu_host, source, &k->source) &&
        (source->launch_count == 0 || find_launches(k, source)))
        return &k->kernel;
    release_text(&k->kernel);
    return NULL;
}

static bool fits(const wb_source *source) {
    const int64_t words = source->buffer_count + source->uses_status + source->word_count;
    return words <= MOST_PARAMETERS;
}

static bool can_launch(const wb_source *source) {
    for (int i = 0; i < source->launch_count; i++)
        if (source->launches[i].groups > wb_gpu_vendor_table.most_threads / source->group) {
            (void)wb_gpu_host->fail(WB_ERROR_ARGUMENT, "%s: %lld groups are too many for a launch",
                                    source->launches[i].entry,
                                    (long long)source->launches[i].groups);
            return false;
        }
    return true;
}

/* Takes the source over. NULL without an error if it has too many parameters: then the host cuts
 * the program into smaller ones. */
static wb_gpu_kernel *kernel_of(wb_gpu_device *device, wb_source *source) {
    if (!source) return NULL;
    wb_gpu_kernel *k = fits(source) && can_launch(source) ? new_kernel(device, source) : NULL;
    wb_gpu_host->release_source(source);
    return k;
}

void *wb_gpu_kernel_new(void *any, const wb_program *program) {
    wb_gpu_device *device = any;
    return kernel_of(device, wb_gpu_host->render(program, &device->dialect));
}

wb_gpu_kernel *wb_gpu_text_of_call(wb_gpu_device *device, const wb_call *call) {
    return kernel_of(device, wb_gpu_host->render_call(call, NULL, 0, &device->dialect));
}

static bool takes_call(wb_gpu_device *device, const wb_call *call) {
    for (int i = 0; wb_gpu_parts[i]; i++)
        if (wb_gpu_parts[i]->takes_call && wb_gpu_parts[i]->takes_call(device, call)) return true;
    return wb_gpu_host->has_text(call, &device->dialect);
}

bool wb_gpu_takes(void *any, const char *name, const wb_call *call) {
    if (call) return takes_call(any, call);
    for (int i = 0; wb_gpu_parts[i]; i++)
        if (wb_gpu_parts[i]->takes && wb_gpu_parts[i]->takes(name)) return true;
    return false;
}

void *wb_gpu_lower(void *any, const wb_call *call, const wb_program *epilogue, int split) {
    wb_gpu_device *device = any;
    for (int i = 0; wb_gpu_parts[i]; i++) {
        const wb_gpu_part *part = wb_gpu_parts[i];
        wb_gpu_kernel *kernel = NULL;
        const wb_gpu_answer answer =
            part->lower ? part->lower(device, call, epilogue, split, &kernel) : WB_GPU_PASS;
        if (answer == WB_GPU_TAKEN) return kernel;
        if (answer == WB_GPU_APART) return NULL;
    }
    if (!wb_gpu_host->has_text(call, &device->dialect)) {
        (void)wb_gpu_host->fail(WB_ERROR_DEVICE,
                                "%s: attention: a library accepted the call, but cannot run it",
                                wb_gpu_vendor_table.backend);
        return NULL;
    }
    return kernel_of(device, wb_gpu_host->render_call(call, epilogue, split, &device->dialect));
}

size_t wb_gpu_scratch_bytes(const void *kernel) {
    return ((const wb_gpu_kernel *)kernel)->scratch_bytes;
}

void wb_gpu_release(void *any) {
    wb_gpu_kernel *kernel = any;
    if (!kernel) return;
    if (atomic_load(&kernel->is_in_graph)) {
        wb_gpu_queue *own = &kernel->device->own;
        pthread_mutex_lock(&own->lock);
        (void)wb_gpu_enter(kernel->device);
        wb_gpu_graphs_drop(own, kernel);
        pthread_mutex_unlock(&own->lock);
    }
    kernel->release(kernel);
}

/* ---- parts ---- */

int64_t wb_gpu_most_scratch_bytes(const wb_gpu_device *device) {
    enum { MOST = 1 << 30, PART = 64 };
    size_t memory_bytes = 0;
    if (gpu.DeviceTotalMem(&memory_bytes, device->ordinal) != GPU_SUCCESS) return 0;
    return (int64_t)(memory_bytes / PART < MOST ? memory_bytes / PART : MOST);
}

bool wb_gpu_part_works(const char *part, char *reason, size_t reason_bytes) {
    for (int i = 0; wb_gpu_parts[i]; i++)
        if (strcasecmp(wb_gpu_parts[i]->name, part) == 0)
            return wb_gpu_parts[i]->load(reason, reason_bytes);
    (void)snprintf(reason, reason_bytes, "%s has no part %s", wb_gpu_vendor_table.backend, part);
    return false;
}

static void *keep(const wb_gpu_keeping *keeping, wb_gpu_outcome *outcome) {
    void *made = wb_gpu_host->alloc(keeping->size_bytes);
    char version[256];
    if (!made) {
        *outcome = (wb_gpu_outcome){.call = "memory", .error = "out of memory"};
        return NULL;
    }
    *outcome = keeping->init(made);
    if (outcome->error) {
        wb_gpu_host->release(made);
        return NULL;
    }
    if (keeping->load(version, sizeof version))
        wb_gpu_host->log(WB_LOG_DEBUG, "%s: %s", wb_gpu_vendor_table.backend, version);
    return made;
}

void *wb_gpu_kept(wb_gpu_device *device, void **kept, const wb_gpu_keeping *keeping,
                  wb_gpu_outcome *outcome) {
    *outcome = wb_gpu_enter(device);
    if (outcome->error) return NULL;
    pthread_mutex_lock(&device->libraries_lock);
    void *result = *kept;
    pthread_mutex_unlock(&device->libraries_lock);
    if (result) return result;
    wb_gpu_pause_graphs(device);
    pthread_mutex_lock(&device->libraries_lock);
    if (!*kept) *kept = keep(keeping, outcome);
    result = *kept;
    pthread_mutex_unlock(&device->libraries_lock);
    wb_gpu_resume_graphs(device);
    return result;
}
