/* Texts to programs: in memory by key, on disk as binaries, else through the compiler.
 *
 * PoCL keeps a cache of its own, but asks LLVM for each text again (18 ms on the machine where this
 * was measured); from a binary it takes about 1 ms. Its binaries hold what was launched before they
 * are asked for, hence the late saving. */
#include "program.h"

#include <stdio.h>
#include <string.h>

enum { LOG_BYTES = 600, LOG_LINES = 6 };

/* ---- the compiler ---- */

/* The build log's first lines. */
static void read_log(const wb_cl_device *device, cl_program program, char text[LOG_BYTES]) {
    size_t size = 0;
    text[0] = 0;
    if (cl.GetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) !=
        CL_SUCCESS)
        return;
    char *log = wb_cl_host->alloc(size + 1);
    if (log && cl.GetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, size, log, NULL) ==
                   CL_SUCCESS) {
        if (size > 2) wb_cl_host->log(WB_LOG_DEBUG, "OpenCL: build log: %s", log);
        (void)snprintf(text, LOG_BYTES, "%s", log);
    }
    wb_cl_host->release(log);
    char *end = text;
    for (int line = 0; line < LOG_LINES && end; line++) end = strchr(end + (line > 0), '\n');
    if (end) *end = 0;
}

static cl_program from_text(wb_cl_device *device, const wb_source *source) {
    const char *texts[] = {device->prelude, source->text};
    cl_int code = CL_SUCCESS;
    cl_program program = cl.CreateProgramWithSource(device->context, 2, texts, NULL, &code);
    if (!program) {
        (void)wb_cl_fail(source->launches[0].entry, "clCreateProgramWithSource", code);
        return NULL;
    }
    code = cl.BuildProgram(program, 1, &device->id, device->options, NULL, NULL);
    char log[LOG_BYTES];
    read_log(device, program, log);
    if (code == CL_SUCCESS) return program;
    (void)wb_cl_host->fail(WB_ERROR_DEVICE, "%s: clBuildProgram: %s: %s", source->launches[0].entry,
                           wb_cl_error_name(code), log);
    wb_cl_host->log(WB_LOG_DEBUG, "OpenCL: the source that does not compile: %s", source->text);
    (void)cl.ReleaseProgram(program);
    return NULL;
}

/* ---- binaries ---- */

enum { NAME_BYTES = 64 };

static void name_of(const wb_cl_device *device, uint64_t key, char name[NAME_BYTES]) {
    (void)snprintf(name, NAME_BYTES, "%016llx-%016llx", (unsigned long long)key,
                   (unsigned long long)device->compiler);
}

/* True if the program has all kernels that are needed. */
static bool has_entry(cl_program program, const char *entry) {
    cl_int code = CL_SUCCESS;
    cl_kernel kernel = cl.CreateKernel(program, entry, &code);
    if (kernel) (void)cl.ReleaseKernel(kernel);
    return kernel;
}

static cl_program load_binary(wb_cl_device *device, const void *data, size_t size,
                              const char *entry) {
    const unsigned char *binary = data;
    cl_int state = CL_SUCCESS, code = CL_SUCCESS;
    cl_program program =
        cl.CreateProgramWithBinary(device->context, 1, &device->id, &size, &binary, &state, &code);
    if (!program) return NULL;
    if (code == CL_SUCCESS && state == CL_SUCCESS &&
        cl.BuildProgram(program, 1, &device->id, device->options, NULL, NULL) == CL_SUCCESS &&
        has_entry(program, entry))
        return program;
    (void)cl.ReleaseProgram(program);
    return NULL;
}

static cl_program from_cache(wb_cl_device *device, const wb_source *source) {
    char name[NAME_BYTES];
    void *data = NULL;
    size_t size = 0;
    name_of(device, source->key, name);
    if (!wb_cl_host->cache_read("OpenCL", name, &data, &size)) return NULL;
    cl_program program = load_binary(device, data, size, source->launches[0].entry);
    if (!program)
        wb_cl_host->log(WB_LOG_DEBUG, "OpenCL: the cached binary %s cannot be used", name);
    wb_cl_host->release(data);
    return program;
}

/* The device's place among those of the program, which are the context's, and how many they are;
 * -1: not found. */
static int place_in(cl_program program, cl_device_id id, cl_uint *count) {
    cl_device_id devices[WB_CL_MOST_DEVICES];
    if (cl.GetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof *count, count, NULL) !=
            CL_SUCCESS ||
        *count > WB_CL_MOST_DEVICES ||
        cl.GetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof devices, devices, NULL) != CL_SUCCESS)
        return -1;
    for (int i = 0; i < (int)*count; i++)
        if (devices[i] == id) return i;
    return -1;
}

static void save(wb_cl_device *device, const wb_text *text) {
    char name[NAME_BYTES];
    size_t sizes[WB_CL_MOST_DEVICES] = {0};
    unsigned char *binaries[WB_CL_MOST_DEVICES] = {NULL};
    cl_uint count = 0;
    const cl_program program = ((const wb_cl_program *)text->binary)->program;
    const int place = place_in(program, device->id, &count);
    if (place < 0 || cl.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes,
                                       NULL) != CL_SUCCESS)
        return;
    if (sizes[place] == 0 || !(binaries[place] = wb_cl_host->alloc(sizes[place]))) return;
    name_of(device, text->key, name);
    if (cl.GetProgramInfo(program, CL_PROGRAM_BINARIES, count * sizeof *binaries, binaries, NULL) ==
        CL_SUCCESS)
        wb_cl_host->cache_write("OpenCL", name, binaries[place], sizes[place]);
    wb_cl_host->release(binaries[place]);
}

void wb_cl_programs_save(wb_cl_device *device) {
    if (atomic_load(&device->new_count) == 0 || !wb_cl_host->cache_wanted()) return;
    if (pthread_mutex_trylock(&device->texts.lock) != 0) return; /* saved at a later sync */
    for (const wb_text *t = device->texts.first; t && device->new_count > 0; t = t->next) {
        wb_cl_program *p = t->binary;
        if (!p->is_new || !atomic_load(&p->launched)) continue;
        save(device, t);
        p->is_new = false, device->new_count--;
    }
    pthread_mutex_unlock(&device->texts.lock);
}

/* ---- for wb_texts ---- */

void wb_cl_program_drop(void *any, void *which) {
    wb_cl_device *device = any;
    wb_cl_program *program = which;
    (void)cl.ReleaseProgram(program->program);
    if (program->is_new) device->new_count--;
    wb_cl_host->release(program);
}

void *wb_cl_program_build(void *any, const wb_source *source) {
    wb_cl_device *device = any;
    wb_cl_program *program = wb_cl_host->alloc(sizeof *program);
    if (!program) return NULL;
    program->program = from_cache(device, source);
    if (!program->program) {
        program->program = from_text(device, source);
        program->is_new = program->program;
    }
    device->new_count += program->is_new;
    if (program->program) return program;
    wb_cl_host->release(program);
    return NULL;
}
