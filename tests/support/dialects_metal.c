/* Metal's language as C++: built into a shared object, run on the CPU. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/dialects.h"
#include "support/host_cpp.h"
#include "support/metal_cpp.h"

bool metal_is_there(char *reason, size_t reason_bytes) {
    if (host_cpp_is_there()) return true;
    (void)snprintf(reason, reason_bytes, "g++ is not installed");
    return false;
}

bool metal_build(dialect_unit *unit, char log[DIALECT_LOG]) {
    size_t size = 0;
    char *text = dialect_join(unit->kind, unit->sources, unit->count);
    void *object = metal_cpp_build(text, METAL_CPP_VERSION, &size, log, DIALECT_LOG);
    free(text);
    if (!object) return false;
    unit->handle = host_cpp_open(object, size);
    if (!unit->handle) (void)snprintf(log, DIALECT_LOG, "%s", dlerror());
    free(object);
    return unit->handle;
}

void metal_release(dialect_unit *unit) {
    if (unit->handle) (void)dlclose(unit->handle);
}

static bool launch(const dialect_unit *unit, const wb_launch *l, void *const *buffers) {
    const metal_cpp_entry *entry = metal_cpp_find(unit->handle, l->entry);
    const uint32_t groups[3] = {(uint32_t)l->groups, 1, 1};
    const uint32_t threads[3] = {(uint32_t)dialect_of(unit->kind)->group, 1, 1};
    return entry && metal_cpp_launch(unit->handle, entry, groups, threads, buffers, false);
}

bool metal_run(const dialect_unit *unit, const wb_source *s, void *const *arguments,
               const size_t *sizes, const uint64_t *late, int64_t *status, char log[DIALECT_LOG]) {
    const bool has_scratch = s->scratch_bytes > 0;
    const int narguments = s->buffer_count - has_scratch;
    (void)sizes;
    void *buffers[METAL_CPP_BUFFERS] = {NULL};
    int64_t *offsets = calloc((size_t)s->buffer_count + 1, sizeof *offsets);
    int64_t *block = dialect_block(s, offsets, late);
    for (int i = 0; i < narguments; i++) buffers[i] = arguments[i];
    void *scratch = has_scratch ? calloc(1, s->scratch_bytes) : NULL;
    if (has_scratch) buffers[narguments] = scratch;
    if (s->uses_status) buffers[s->buffer_count] = status;
    buffers[s->buffer_count + s->uses_status] = block;
    bool ran = true;
    for (int i = 0; i < s->launch_count && ran; i++) ran = launch(unit, &s->launches[i], buffers);
    if (!ran)
        (void)snprintf(log, DIALECT_LOG,
                       "a kernel is missing, or its items do not meet at barriers");
    free(scratch);
    free(offsets);
    free(block);
    return ran;
}
