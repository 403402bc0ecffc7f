/* Modules, functions, launches. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "fake_driver.h"
#include "support/cuda_cpp.h"
#include "support/host_cpp.h"

/* ---- modules ---- */

static void *open_portable(const char *text) {
    char log[256];
    size_t bytes = 0;
    void *object = fake_compile(text + strlen(FAKE_PORTABLE), &bytes, log, sizeof log);
    void *library = object ? host_cpp_open(object, bytes) : NULL;
    free(object);
    return library;
}

static gpu_code open_image(const void *data, void **library) {
    fake_image image;
    const char *object = (const char *)data + sizeof image;
    if (strncmp(data, FAKE_PORTABLE, strlen(FAKE_PORTABLE)) == 0) {
        *library = open_portable(data);
        return *library ? GPU_SUCCESS : FAKE_INVALID_IMAGE;
    }
    if (memcmp(data, FAKE_MAGIC, sizeof image.magic) != 0) return FAKE_INVALID_IMAGE;
    memcpy(&image, data, sizeof image);
    if (strcmp(image.architecture, fake_architecture()) != 0) return FAKE_NO_BINARY;
    if (fake_hash(object, image.bytes) != image.hash) return FAKE_INVALID_IMAGE;
    *library = host_cpp_open(object, image.bytes);
    return *library ? GPU_SUCCESS : FAKE_INVALID_IMAGE;
}

gpu_code fake_ModuleLoadData(gpu_module *result, const void *data) {
    FAKE_ENTER_CONTEXT(FAKE_ModuleLoadData);
    void *library = NULL;
    gpu_code code = fake_check_unsafe();
    if (code == GPU_SUCCESS) code = open_image(data, &library);
    if (code != GPU_SUCCESS) return code;
    gpu_module module = fake_object_new(FAKE_MODULE, sizeof *module);
    if (!module) {
        (void)dlclose(library);
        return GPU_OUT_OF_MEMORY;
    }
    module->object.context = context;
    module->library = library;
    fake_count.modules++;
    *result = module;
    return GPU_SUCCESS;
}

gpu_code fake_ModuleUnload(gpu_module handle) {
    FAKE_LOCKED(FAKE_ModuleUnload);
    gpu_module module = fake_object_of(FAKE_MODULE, handle);
    if (!module) {
        fake_complain("ModuleUnload of what is no module");
        return FAKE_INVALID_HANDLE;
    }
    fake_check_capture("ModuleUnload");
    if (fake_is_module_in_use(module)) {
        fake_complain("ModuleUnload of a module that queued launches use");
        fake_drain_context(module->object.context);
    }
    (void)dlclose(module->library);
    module->library = NULL;
    module->object.kind = FAKE_RELEASED;
    fake_count.modules--;
    return refused ? refused : module->object.context->fault;
}

gpu_code fake_ModuleGetFunction(gpu_function *result, gpu_module handle, const char *name) {
    FAKE_ENTER_CONTEXT(FAKE_ModuleGetFunction);
    gpu_module module = fake_object_of(FAKE_MODULE, handle);
    if (!module || module->object.context != context) return FAKE_INVALID_HANDLE;
    const cuda_cpp_entry *entry = cuda_cpp_find(module->library, name);
    if (!entry) return FAKE_NOT_FOUND;
    gpu_function function = fake_object_new(FAKE_FUNCTION, sizeof *function);
    if (!function) return GPU_OUT_OF_MEMORY;
    function->object.context = context;
    function->module = module;
    function->entry = entry;
    *result = function;
    return GPU_SUCCESS;
}

/* ---- launches ---- */

enum {
    MOST_THREADS = 1024,
    MOST_SIDE = 65535,
    MOST_PARAMETER_BYTES = 4096,
    ALIGNMENT = 16,
    WORD = 8
};

static bool fits(const fake_launch *l) {
    const unsigned *b = l->block, *g = l->grid;
    if (b[0] == 0 || b[1] == 0 || b[2] == 0 || g[0] == 0 || g[1] == 0 || g[2] == 0) return false;
    if (b[0] > MOST_THREADS || b[1] > MOST_THREADS || b[2] > 64) return false;
    return b[0] * b[1] * b[2] <= MOST_THREADS && g[0] <= INT32_MAX && g[1] <= MOST_SIDE &&
           g[2] <= MOST_SIDE;
}

/* As a driver packs them: pointers and words. */
static size_t packed_bytes(const cuda_cpp_entry *entry) {
    size_t bytes = 0;
    for (int i = 0; i < entry->count; i++) bytes += (entry->sizes[i] + WORD - 1) / WORD * WORD;
    return bytes;
}

static size_t padded(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static size_t parameter_bytes(const cuda_cpp_entry *entry) {
    size_t bytes = 0;
    for (int i = 0; i < entry->count; i++) bytes += padded(entry->sizes[i]);
    return bytes;
}

/* Parameters are read at the call, for good. */
static fake_launch *copy_launch(const fake_launch *l, void *const *parameters) {
    const cuda_cpp_entry *entry = l->function->entry;
    fake_launch *copy = malloc(sizeof *copy);
    char *bytes = aligned_alloc(ALIGNMENT, parameter_bytes(entry) + ALIGNMENT);
    void **list = calloc((size_t)entry->count + 1, sizeof *list);
    if (!copy || !bytes || !list) {
        free(copy), free(bytes), free(list);
        return NULL;
    }
    *copy = *l;
    copy->bytes = bytes, copy->parameters = list;
    for (int i = 0; i < entry->count; i++) {
        list[i] = bytes;
        memcpy(bytes, parameters[i], entry->sizes[i]);
        bytes += padded(entry->sizes[i]);
    }
    return copy;
}

void fake_launch_release(fake_launch *launch) {
    if (!launch) return;
    free(launch->bytes);
    free(launch->parameters);
    free(launch);
}

gpu_code fake_LaunchKernel(gpu_function handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned shared_bytes, gpu_stream where, void **parameters,
                           void **extra) {
    FAKE_ENTER_CONTEXT(FAKE_LaunchKernel);
    gpu_function function = fake_object_of(FAKE_FUNCTION, handle);
    fake_stream *stream = fake_stream_of(context, where);
    if (!function || !stream || !function->module->library) return FAKE_INVALID_HANDLE;
    const fake_launch launch = {.function = function,
                                .grid = {grid_x, grid_y, grid_z},
                                .block = {block_x, block_y, block_z}};
    if (!fits(&launch) || shared_bytes || extra || (!parameters && function->entry->count > 0))
        return FAKE_INVALID_VALUE;
    if (packed_bytes(function->entry) > MOST_PARAMETER_BYTES)
        fake_complain("%s has more than %d bytes of parameters", function->entry->name,
                      MOST_PARAMETER_BYTES);
    fake_op op = {.kind = FAKE_OP_LAUNCH, .what = "launch"};
    op.launch = copy_launch(&launch, parameters);
    return op.launch ? fake_enqueue(stream, op) : GPU_OUT_OF_MEMORY;
}

/* ---- running ---- */

static long fault_in; /* launches until one ends its context; 0: none does */

FAKE_EXPORT fake_fault_fn fake_fault;
void fake_fault(long n) { fault_in = n; }

/* Memory of this device, of one that it reaches, or pinned memory of the host. */
static bool can_use(const fake_context *context, void *pointer) {
    if (!pointer || fake_is_pinned(pointer, 1)) return true;
    const int device = fake_memory_device((gpu_pointer)pointer, 1);
    return device == context->ordinal || (device >= 0 && context->reaches[device]);
}

static bool has_memory(const fake_context *context, const fake_launch *launch) {
    const cuda_cpp_entry *entry = launch->function->entry;
    for (int i = 0; i < entry->count; i++) {
        void *pointer;
        if (!entry->are_pointers[i]) continue;
        memcpy(&pointer, launch->parameters[i], sizeof pointer);
        if (can_use(context, pointer)) continue;
        fake_complain("parameter %d of %s is %p, which is no memory of this device", i, entry->name,
                      pointer);
        return false;
    }
    return true;
}

void fake_run_launch(fake_context *context, const fake_launch *launch) {
    const bool is_reversed = fake_count.launches++ % 2;
    if (fault_in > 0 && --fault_in == 0) {
        context->fault = FAKE_ILLEGAL_ADDRESS;
        return;
    }
    if (!has_memory(context, launch)) {
        context->fault = FAKE_ILLEGAL_ADDRESS;
        return;
    }
    if (fake_is_idle()) return;
    void *library = launch->function->module->library;
    fake_memory_open();
    const bool ran = cuda_cpp_launch(library, launch->function->entry, launch->grid, launch->block,
                                     launch->parameters, is_reversed);
    fake_memory_close();
    char text[256] = "its threads do not meet at the same barriers";
    if (!cuda_cpp_hazard(library, text, sizeof text) && ran) return;
    fake_complain("%s: %s", launch->function->entry->name, text);
    context->fault = FAKE_LAUNCH_FAILED;
}
