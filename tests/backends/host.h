/* A host for one plugin: the library's memory and errors, texts written here, a cache of binaries
 * in memory; and the device under test. BACKEND is the backend's name, PLUGIN its file without
 * folder and "libweber_": both are defined by who includes this. */
#ifndef WB_TESTS_BACKENDS_HOST_H
#define WB_TESTS_BACKENDS_HOST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "platform/process.h"
#include "support/scoped.h"

enum { SKIPPED = 77, N = 1000 };

/* ---- the host ---- */

/* What the fake renderer makes a source of, given in place of a program. */
typedef struct recipe {
    const char *text; /* GROUP is the dialect's */
    int32_t buffers, extra_words, late_count, launches;
    size_t scratch_bytes;
    bool uses_status;
    int64_t items;
} recipe;

static wb_host host;
static struct {
    char name[128];
    void *data;
    size_t size;
} cached[64];
static int cached_count, cache_hits, cache_writes;
static atomic_int live_sources;

static inline uint64_t hash_of(const char *text) {
    uint64_t hash = 1469598103934665603u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

static inline char *text_of(const recipe *r, const wb_dialect *dialect) {
    char *text = host.alloc(strlen(r->text) + 128);
    (void)sprintf(text, "#define GROUP %d\n#define OFFSET(i) w.v[%d + i]\n%s", dialect->group,
                  r->extra_words, r->text);
    return text;
}

/* The block: extra words (the first is `items`), offsets, late values. */
static inline wb_source *render(const wb_program *program, const wb_dialect *dialect) {
    const recipe *r = (const void *)program;
    wb_source *s = host.alloc(sizeof *s);
    s->text = text_of(r, dialect);
    s->key = hash_of(dialect->prelude) ^ hash_of(s->text);
    s->launch_count = r->launches;
    s->group = dialect->group;
    for (int i = 0; i < r->launches; i++) {
        (void)snprintf(s->launches[i].entry, sizeof s->launches[i].entry, "k_%d", i);
        s->launches[i].groups = (r->items + dialect->group - 1) / dialect->group;
    }
    s->buffer_count = r->buffers;
    s->first_offset = r->extra_words;
    s->first_late = r->extra_words + r->buffers;
    s->late_count = r->late_count;
    s->word_count = s->first_late + r->late_count;
    s->words = host.alloc((size_t)s->word_count * sizeof *s->words);
    s->words[0] = r->items;
    s->late = host.alloc(8 * sizeof *s->late);
    for (int i = 0; i < r->late_count; i++) s->late[i] = (uint16_t)i;
    s->scratch_bytes = r->scratch_bytes;
    s->uses_status = r->uses_status;
    live_sources++;
    return s;
}

static inline wb_source *render_call(const wb_call *call, const wb_program *epilogue, int split,
                                     const wb_dialect *dialect) {
    (void)call, (void)epilogue, (void)split, (void)dialect;
    return NULL;
}

static inline void release_source(wb_source *s) {
    if (!s) return;
    host.release(s->text);
    host.release(s->words);
    host.release(s->late);
    host.release(s);
    live_sources--;
}

static inline bool cache_wanted(void) { return true; }

static inline bool cache_read(const char *name_of_backend, const char *name, void **data,
                              size_t *size_bytes) {
    assert_string_equal(name_of_backend, BACKEND);
    for (int i = 0; i < cached_count; i++) {
        if (strcmp(cached[i].name, name) != 0) continue;
        *data = host.alloc(cached[i].size);
        memcpy(*data, cached[i].data, *size_bytes = cached[i].size);
        cache_hits++;
        return true;
    }
    return false;
}

static inline void cache_write(const char *name_of_backend, const char *name, const void *data,
                               size_t size) {
    int i = 0;
    (void)name_of_backend;
    while (i < cached_count && strcmp(cached[i].name, name) != 0) i++;
    if (i == 64) return;
    if (i == cached_count) cached_count++;
    free(cached[i].data);
    (void)snprintf(cached[i].name, sizeof cached[i].name, "%s", name);
    cached[i].data = malloc(size);
    memcpy(cached[i].data, data, cached[i].size = size);
    cache_writes++;
}

static inline void forget_cache(void) {
    for (int i = 0; i < cached_count; i++) free(cached[i].data);
    memset(cached, 0, sizeof cached);
    cached_count = cache_hits = cache_writes = 0;
}

static inline void ignore_log(wb_log_level level, const char *format, ...) {
    (void)level, (void)format;
}

static inline const wb_backend *open_plugin(void) {
    char path[512];
    assert_true(wb_platform_program(path, sizeof path));
    for (int up = 0; up < 4; up++) *strrchr(path, '/') = 0;
    (void)strcat(path, "/weber/libweber_" PLUGIN ".so");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    wb_plugin_fn *plugin;
    *(void **)&plugin = dlsym(library, WB_PLUGIN_SYMBOL);
    assert_non_null(plugin);
    assert_null(plugin(NULL));
    host = wb_builtin_host;
    host.abi++;
    assert_null(plugin(&host));
    host.abi--;
    host.render = render, host.render_call = render_call, host.release_source = release_source;
    host.cache_wanted = cache_wanted;
    host.cache_read = cache_read, host.cache_write = cache_write, host.log = ignore_log;
    return plugin(&host);
}

/* ---- the device under test ---- */

static const wb_backend *backend;
static void *device;

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if ((call) != WB_OK) fail_msg("%s: %s", #call, wb_error_message());                        \
    } while (0)

/* True if there is a device; the reason is printed otherwise. */
static inline bool open_device(int index) {
    char reason[256] = "";
    backend = open_plugin();
    assert_non_null(backend);
    if (!backend->load(reason, sizeof reason) || backend->count(reason, sizeof reason) <= index) {
        print_message("no device: %s\n", reason);
        return false;
    }
    device = backend->open(index);
    if (!device) fail_msg("open: %s", wb_error_message());
    return true;
}

static inline int need_device(void **state) {
    wb_clear_error();
    return device ? open_scope(state) : 0;
}
static inline int leave(void **state) { return device ? close_scope(state) : 0; }
#define NEED_DEVICE()                                                                              \
    do {                                                                                           \
        if (!device) skip();                                                                       \
    } while (0)

static inline wb_memory at(void *handle, int64_t offset_bytes) {
    return (wb_memory){handle, offset_bytes};
}

static inline void *upload(const void *data, size_t size) {
    void *memory = backend->alloc(device, size);
    assert_non_null(memory);
    assert_ok(backend->copy(device, NULL, WB_COPY_UPLOAD, at(memory, 0),
                            at((void *)(uintptr_t)data, 0), size));
    return memory;
}

static inline void download(void *data, void *memory, int64_t offset, size_t size) {
    assert_ok(backend->copy(device, NULL, WB_COPY_DOWNLOAD, at(data, 0), at(memory, offset), size));
    assert_ok(backend->sync(device, NULL));
}

static inline void *make_kernel(const recipe *r) {
    return backend->kernel(device, (const void *)r);
}

static inline wb_status run_on(void *queue, void *kernel, int count, const wb_memory *memory,
                               const char *what, const uint64_t *late) {
    wb_argument arguments[8];
    for (int i = 0; i < count; i++) arguments[i] = (wb_argument){(uint32_t)i, 0};
    const wb_command command = {
        .kernel = kernel, .narguments = count, .arguments = arguments, .what = what};
    return backend->run(device, queue, &command, 1, memory, late);
}

/* y = x * late + 1 */
static const recipe scale = {
    .text = "WB_WORDS(k_words, 5)\n"
            "WB_KERNEL(k_0, GROUP)(WB_BUFFER(0, a), WB_BUFFER(1, b), WB_BUFFER(2, c),"
            " WB_BLOCK(3, k_words, w)) {\n"
            "    const wb_i64 i = (wb_i64)WB_GROUP * GROUP + WB_LANE;\n"
            "    if (i < w.v[0]) WB_POINTER(f32, b, OFFSET(1))[i] ="
            " WB_POINTER(f32, a, OFFSET(0))[i] * WB_F32((wb_u32)WB_LATE(w, 4)) + 1;\n"
            "}\n",
    .buffers = 3,
    .extra_words = 1,
    .late_count = 1,
    .launches = 1,
    .items = N};

static inline uint64_t late_number(float x) {
    uint64_t word = 0;
    memcpy(&word, &x, sizeof x);
    return word;
}

/* Slow, so that it is still queued when what it uses is released: y = x, many steps later. */
static const recipe slow = {
    .text = "WB_WORDS(k_words, 4)\n"
            "WB_KERNEL(k_0, GROUP)(WB_BUFFER(0, a), WB_BUFFER(1, b), WB_BUFFER(2, c),"
            " WB_BLOCK(3, k_words, w)) {\n"
            "    const wb_i64 i = (wb_i64)WB_GROUP * GROUP + WB_LANE;\n"
            "    if (i >= w.v[0]) return;\n"
            "    wb_u32 x = WB_POINTER(u32, a, OFFSET(0))[i];\n"
            "    for (int step = 0; step < 200000; step++) x = x * 1664525u + 1013904223u;\n"
            "    WB_POINTER(u32, b, OFFSET(1))[i] = x;\n"
            "}\n",
    .buffers = 3,
    .extra_words = 1,
    .launches = 1,
    .items = N};

static inline uint32_t slow_result(uint32_t x) {
    for (int step = 0; step < 200000; step++) x = x * 1664525u + 1013904223u;
    return x;
}

#endif
