/* The programs of the whole suite, kept by WEBER_PROGRAMS=folder while it ran, rendered in every
 * dialect and compiled by what is installed. WEBER_MOST_TEXTS=n takes about so many per dialect,
 * spread evenly, instead of 64; 0: all. What is only read, not compiled, takes all. */
#include <dirent.h>
#include <limits.h>

#include "program/render.h"
#include "support/dialects.h"
#include "support/support.h"

enum { BATCH = 32, LARGEST_BATCH = 256, MOST_FILES = 1 << 16 };

static char *paths[MOST_FILES];
static int path_count;

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int find_programs(void **state) {
    (void)state;
    const char *folder = getenv("WEBER_PROGRAMS");
    DIR *directory = folder ? opendir(folder) : NULL;
    for (struct dirent *e; directory && (e = readdir(directory)) && path_count < MOST_FILES;) {
        char path[PATH_MAX];
        if (strlen(e->d_name) != 16) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        paths[path_count++] = strdup(path);
    }
    if (directory) closedir(directory);
    qsort(paths, (size_t)path_count, sizeof *paths, by_name);
    (void)unsetenv("WEBER_PROGRAMS"); /* what follows is not kept */
    return 0;
}

static int forget_programs(void **state) {
    (void)state;
    while (path_count > 0) free(paths[--path_count]);
    return 0;
}

/* Metal takes 31 buffers; a device without room asks the planner for smaller programs. */
static bool has_room(dialect_kind kind, const wb_source *source) {
    return kind != DIALECT_METAL || source->buffer_count + source->uses_status + 1 <= 31;
}

/* src/program/keep.c wrote it: the program, its instructions, its accesses. */
static void *get(FILE *file, size_t size, int64_t count) {
    void *items = malloc(size * (size_t)(count + 1));
    assert_non_null(items);
    assert_int_equal(fread(items, size, (size_t)count, file), count);
    return items;
}

static wb_source *render_file(const char *path, dialect_kind kind) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    wb_program *p = get(file, sizeof *p, 1);
    p->instructions = get(file, sizeof *p->instructions, p->ninstructions);
    p->accesses = get(file, sizeof *p->accesses, p->naccesses);
    (void)fclose(file);
    wb_source *source = wb_render(p, dialect_of(kind));
    free(p->instructions), free(p->accesses), free(p);
    if (source && !has_room(kind, source)) {
        wb_source_release(source);
        return NULL;
    }
    if (source || dialect_of(kind)->has_f64) return source;
    wb_clear_error(); /* f64 where there is none */
    return NULL;
}

static void compile(dialect_kind kind, wb_source **sources, int count) {
    static char log[DIALECT_LOG];
    dialect_unit *unit = dialect_build(kind, (const wb_source *const *)sources, count, log);
    if (!unit) fail_msg("%s", log);
    dialect_release(unit);
    for (int i = 0; i < count; i++) wb_source_release(sources[i]);
}

static bool is_among(wb_source *const *sources, int count, uint64_t key) {
    for (int i = 0; i < count; i++)
        if (sources[i]->key == key) return true;
    return false;
}

static int wanted(bool is_read) {
    const char *most = getenv("WEBER_MOST_TEXTS");
    if (!most) return is_read ? path_count : 64;
    return atoi(most) ? atoi(most) : path_count;
}

static void check_dialect(dialect_kind kind) {
    char reason[256];
    if (path_count == 0) {
        print_message("WEBER_PROGRAMS names no folder with programs\n");
        skip();
    }
    if (!dialect_is_there(kind, reason, sizeof reason)) {
        print_message("%s\n", reason);
        skip();
    }
    const bool is_read = kind == DIALECT_OPENCL_NVIDIA;
    const int step = path_count > wanted(is_read) ? path_count / wanted(is_read) : 1;
    const int batch_size = is_read ? LARGEST_BATCH : BATCH;
    wb_source *batch[LARGEST_BATCH];
    int count = 0, all = 0;
    for (int i = 0; i < path_count; i += step) {
        wb_source *source = render_file(paths[i], kind);
        if (source && (source->launch_count == 0 || is_among(batch, count, source->key))) {
            wb_source_release(source);
            continue;
        }
        if (source) batch[count++] = source, all++;
        if (count == batch_size) compile(kind, batch, count), count = 0;
    }
    if (count) compile(kind, batch, count);
    print_message("%d texts of %d programs\n", all, path_count);
}

static void in_cuda_c(void **state) { (void)state, check_dialect(DIALECT_CUDA); }
static void in_hip(void **state) { (void)state, check_dialect(DIALECT_HIP); }
static void in_metal(void **state) { (void)state, check_dialect(DIALECT_METAL); }
static void in_opencl_c(void **state) { (void)state, check_dialect(DIALECT_OPENCL); }
static void in_opencl_c_of_nvidia(void **state) {
    (void)state, check_dialect(DIALECT_OPENCL_NVIDIA);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(in_cuda_c), TEST(in_hip), TEST(in_metal),
                                       TEST(in_opencl_c_of_nvidia), TEST(in_opencl_c)};
    return cmocka_run_group_tests(tests, find_programs, forget_programs);
}
