/* Libraries, functions, pipelines, archives of pipelines. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_metal.h"
#include "support/host_cpp.h"

enum { LOG_BYTES = 1 << 14, PATH_BYTES = 4096 };

/* MTLLibraryError, MTLBinaryArchiveError */
enum { COMPILE_FAILURE = 3, COMPILE_WARNING = 4, INVALID_FILE = 1, COMPILATION_FAILURE = 3 };

/* ---- options ---- */

void send_set_language(mtl_id self, mtl_selector selector, mtl_uint version) {
    FAKE_ENTER();
    (void)selector;
    ((fake_options *)(void *)self)->language = version;
}

void send_set_fast_math(mtl_id self, mtl_selector selector, bool is_fast) {
    FAKE_ENTER();
    (void)selector;
    fake_options *o = (void *)self;
    o->is_exact = o->has_exact_functions = !is_fast;
}

void send_set_math_mode(mtl_id self, mtl_selector selector, mtl_int mode) {
    FAKE_ENTER();
    (void)selector;
    ((fake_options *)(void *)self)->is_exact = mode == MTL_MATH_SAFE;
}

void send_set_math_functions(mtl_id self, mtl_selector selector, mtl_int functions) {
    FAKE_ENTER();
    (void)selector;
    ((fake_options *)(void *)self)->has_exact_functions = functions == MTL_FUNCTIONS_PRECISE;
}

/* ---- texts, kept on disk ---- */

static void keep(const char *path, const void *object, size_t bytes) {
    char temporary[PATH_BYTES + 16];
    (void)snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
    FILE *file = fopen(temporary, "wbe");
    if (!file) return;
    const bool written = fwrite(object, 1, bytes, file) == bytes;
    if (fclose(file) != 0 || !written || rename(temporary, path) != 0) (void)unlink(temporary);
}

/* Without the lock: other threads go on. */
static void *compile(const char *text, int version, uint64_t hash, size_t *bytes, char *log) {
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, FAKE_CACHE "/metal-%016llx.so", (unsigned long long)hash);
    void *object = host_cpp_read(path, bytes);
    if (object) return object;
    object = metal_cpp_build(text, version, bytes, log, LOG_BYTES);
    if (object) keep(path, object, *bytes);
    return object;
}

static int version_of(mtl_uint language) {
    return (int)(language >> 16) * 100 + (int)(language & 0xffff) * 10;
}

/* Metal allows 31 buffers. */
static const char *beyond_limit(void *handle) {
    const metal_cpp_entry *e = dlsym(handle, "metal_cpp_entries");
    for (; e && e->name; e++)
        for (int i = 0; i < e->count; i++)
            if (e->buffers[i] > 30) return e->name;
    return NULL;
}

static mtl_id library_new(void *handle, uint64_t hash) {
    fake_library *library = fake_new(FAKE_MTLLibrary);
    if (!library) abort();
    library->handle = handle, library->hash = hash;
    return &library->object;
}

/* As Apple's, which sets an error for warnings, too. */
mtl_id send_new_library(mtl_id self, mtl_selector selector, mtl_id source, mtl_id given,
                        mtl_errors errors) {
    static const char domain[] = "MTLLibraryErrorDomain";
    char log[LOG_BYTES] = "";
    size_t bytes = 0;
    int lock = fake_enter();
    (void)self;
    const fake_options *options = fake_argument(given, FAKE_MTLCompileOptions, selector, true);
    const char *text = fake_text_of(fake_argument(source, FAKE_NSString, selector, false));
    fake_count.compilations++;
    const bool fails = fake_fails(selector, errors) || fake_is_removed();
    if (!options || !options->is_exact || !options->has_exact_functions)
        fake_complain("a text is compiled with fast math");
    const int version = options && options->language ? version_of(options->language) : 320;
    char *copy = strdup(text);
    fake_leave(&lock);
    if (!copy) abort();
    const uint64_t hash = host_cpp_hash(copy, strlen(copy), metal_cpp_hash() + (uint64_t)version);
    void *object = fails ? NULL : compile(copy, version, hash, &bytes, log);
    free(copy);
    FAKE_ENTER();
    if (fails) return NULL;
    void *handle = object ? host_cpp_open(object, bytes) : NULL;
    free(object);
    if (object && !handle) fake_abort("a compiled text does not open: %s", dlerror());
    const char *beyond = handle ? beyond_limit(handle) : NULL;
    if (beyond) (void)snprintf(log, sizeof log, "%s: a buffer's index is above 30", beyond);
    (void)fake_error_set(errors, domain, log[0] ? COMPILE_FAILURE : COMPILE_WARNING,
                         log[0] ? log : "program_source: warning: all went well");
    if (!log[0]) return library_new(handle, hash);
    if (handle) (void)dlclose(handle);
    return NULL;
}

void fake_end_library(void *object) { (void)dlclose(((fake_library *)object)->handle); }

mtl_id send_new_function(mtl_id self, mtl_selector selector, mtl_id name) {
    FAKE_ENTER();
    fake_library *library = (void *)self;
    const char *text = fake_text_of(fake_argument(name, FAKE_NSString, selector, false));
    const metal_cpp_entry *entry = metal_cpp_find(library->handle, text);
    if (fake_fails(selector, NULL) || !entry) return NULL;
    fake_function *f = fake_new(FAKE_MTLFunction);
    if (!f) abort();
    f->library = fake_keep(library), f->entry = entry;
    return &f->object;
}

void fake_end_function(void *object) { fake_drop(((fake_function *)object)->library); }

/* ---- descriptors ---- */

static void replace(void *place, void *object) {
    void *const old = *(void **)place;
    *(void **)place = fake_keep(object);
    fake_drop(old);
}

void send_set_function(mtl_id self, mtl_selector selector, mtl_id function) {
    FAKE_ENTER();
    replace(&((fake_recipe *)(void *)self)->function,
            fake_argument(function, FAKE_MTLFunction, selector, true));
}

void send_set_archives(mtl_id self, mtl_selector selector, mtl_id archives) {
    FAKE_ENTER();
    replace(&((fake_recipe *)(void *)self)->archives,
            fake_argument(archives, FAKE_NSArray, selector, true));
}

void fake_end_recipe(void *object) {
    fake_drop(((fake_recipe *)object)->function);
    fake_drop(((fake_recipe *)object)->archives);
}

void send_set_url(mtl_id self, mtl_selector selector, mtl_id url) {
    FAKE_ENTER();
    replace(&((fake_place *)(void *)self)->url, fake_argument(url, FAKE_NSURL, selector, true));
}

void fake_end_place(void *object) { fake_drop(((fake_place *)object)->url); }

/* ---- pipelines ---- */

static uint64_t pipeline_hash(const fake_function *f) {
    return host_cpp_hash(f->entry->name, strlen(f->entry->name), f->library->hash);
}

static bool is_archived(const fake_recipe *recipe, uint64_t hash) {
    const fake_array *archives = (const void *)recipe->archives;
    for (long i = 0; archives && i < archives->count; i++) {
        const fake_archive *a = archives->objects[i];
        for (int k = 0; k < a->count; k++)
            if (a->pipelines[k] == hash) return true;
    }
    return false;
}

mtl_id send_new_pipeline(mtl_id self, mtl_selector selector, mtl_id given, mtl_uint options,
                         mtl_errors reflection, mtl_errors errors) {
    FAKE_ENTER();
    (void)self;
    const fake_recipe *recipe =
        fake_argument(given, FAKE_MTLComputePipelineDescriptor, selector, false);
    if (options || reflection) fake_abort("a pipeline with options or reflection");
    if (fake_fails(selector, errors) || fake_is_removed()) return NULL;
    if (!recipe->function) fake_abort("a pipeline without a computeFunction");
    fake_pipeline *p = fake_new(FAKE_MTLComputePipelineState);
    if (!p) abort();
    fake_count.archive_hits += is_archived(recipe, pipeline_hash(recipe->function));
    p->function = fake_keep(recipe->function);
    return &p->object;
}

void fake_end_pipeline(void *object) { fake_drop(((fake_pipeline *)object)->function); }

mtl_uint send_most_threads(mtl_id self, mtl_selector selector) {
    (void)selector;
    const mtl_uint own =
        (mtl_uint)((const fake_pipeline *)(const void *)self)->function->entry->threads;
    const mtl_uint most = (mtl_uint)fake_number("FAKE_METAL_THREADS", METAL_CPP_THREADS);
    return own < most ? own : most;
}

mtl_uint send_simd_width(mtl_id self, mtl_selector selector) {
    (void)self, (void)selector;
    return (mtl_uint)fake_number("FAKE_METAL_SIMD", METAL_CPP_SIMD);
}

/* ---- archives ---- */

typedef struct archive_file {
    char mark[8];
    uint64_t count, pipelines[FAKE_ARCHIVED];
} archive_file;

static const char mark[8] = "fakemtl";

static bool read_archive(fake_archive *archive, const char *path) {
    size_t bytes = 0;
    archive_file *file = host_cpp_read(path, &bytes);
    const bool ok = file && bytes == sizeof *file && memcmp(file->mark, mark, sizeof mark) == 0 &&
                    file->count <= FAKE_ARCHIVED;
    if (ok) memcpy(archive->pipelines, file->pipelines, sizeof file->pipelines);
    if (ok) archive->count = (int)file->count;
    free(file);
    return ok;
}

mtl_id send_new_archive(mtl_id self, mtl_selector selector, mtl_id given, mtl_errors errors) {
    FAKE_ENTER();
    (void)self;
    const fake_place *place =
        fake_argument(given, FAKE_MTLBinaryArchiveDescriptor, selector, false);
    if (fake_fails(selector, errors) || fake_is_removed()) return NULL;
    fake_archive *archive = fake_new(FAKE_MTLBinaryArchive);
    if (!archive) abort();
    if (!place->url || read_archive(archive, fake_text_of(place->url))) return &archive->object;
    fake_drop(archive);
    (void)fake_error_set(errors, "MTLBinaryArchiveDomain", INVALID_FILE, "Invalid file");
    return NULL;
}

void fake_end_archive(void *object) { (void)object; }

bool send_add_pipeline(mtl_id self, mtl_selector selector, mtl_id given, mtl_errors errors) {
    FAKE_ENTER();
    fake_archive *archive = (void *)self;
    const fake_recipe *recipe =
        fake_argument(given, FAKE_MTLComputePipelineDescriptor, selector, false);
    if (fake_fails(selector, errors)) return false;
    if (!recipe->function || archive->count == FAKE_ARCHIVED)
        return fake_error_set(errors, "MTLBinaryArchiveDomain", COMPILATION_FAILURE, "no function");
    archive->pipelines[archive->count++] = pipeline_hash(recipe->function);
    return true;
}

bool send_serialize(mtl_id self, mtl_selector selector, mtl_id url, mtl_errors errors) {
    FAKE_ENTER();
    const fake_archive *archive = (void *)self;
    const char *path = fake_text_of(fake_argument(url, FAKE_NSURL, selector, false));
    archive_file content = {.count = (uint64_t)archive->count};
    memcpy(content.mark, mark, sizeof mark);
    memcpy(content.pipelines, archive->pipelines, sizeof content.pipelines);
    if (fake_fails(selector, errors)) return false;
    if (access(path, F_OK) == 0) fake_complain("an archive is written over %s", path);
    FILE *file = fopen(path, "wbe");
    bool written = file && fwrite(&content, sizeof content, 1, file) == 1;
    written = file && fclose(file) == 0 && written;
    return written || fake_error_set(errors, "MTLBinaryArchiveDomain", INVALID_FILE, path);
}
