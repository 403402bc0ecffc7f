/* bench_files [--smoke] [MEBIBYTES]: a model of 1 GiB through every format, beside `cp` of the same
 * file, all in the page cache.
 *
 * write   the format's writer to a new file, without waiting for the disk (wb_save does wait, cp
 *         does not)
 * open    wb_open: the file is mapped and its tree made
 * load    wb_load into a model of the same structure; not for .npy, which holds one array
 * touch   open, and every byte of every array added up where it lies
 * memory  the most that a load took on top of the model and the file's own pages, in sizes of the
 *         model
 *
 * Times are the least of the rounds, which take turns with cp. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weber.h>

#include "clock.h"
#include "formats/record.h"
#include "platform/memory.h"

enum { ARRAYS = 64, ROUNDS = 5, MIB = 1 << 20 };

static char folder[] = "/tmp/weber-bench-XXXXXX";
static char path[256], copy[256];

static double seconds_since(double begin_us) { return (bench_us() - begin_us) * 1e-6; }

/* ---- the model ---- */

static wb_record *array_record(wb_arena *arena, int64_t count) {
    wb_record *r = wb_record_new(arena, WB_RECORD_ARRAY);
    wb_array *x = wb_keep(wb_uniform(WB_F32, count / 256, 256));
    if (!r || wb_eval(x) != WB_OK) return NULL;
    r->ndim = 2, r->dtype = WB_F32;
    r->sizes[0] = count / 256, r->sizes[1] = 256;
    r->data_bytes = wb_count(x) * 4;
    r->array = x;
    return r;
}

/* {parts: [{weight}, ...]}, or one array alone for .npy. */
static wb_record *make_model(wb_arena *arena, int64_t size_bytes, int64_t arrays) {
    static const char *const names[] = {"weight", "parts"};
    wb_record *layers = wb_record_new(arena, WB_RECORD_LIST);
    wb_record *root = wb_record_new(arena, WB_RECORD_MAP);
    if (!layers || !root || !wb_record_room(arena, layers, arrays, false) ||
        !wb_record_room(arena, root, 1, true))
        return NULL;
    for (int64_t i = 0; i < arrays; i++) {
        wb_record *layer = layers->children[i] = wb_record_new(arena, WB_RECORD_MAP);
        if (!layer || !wb_record_room(arena, layer, 1, true)) return NULL;
        layer->names[0] = names[0];
        layer->children[0] = array_record(arena, size_bytes / arrays / 4);
        if (!layer->children[0]) return NULL;
    }
    root->names[0] = names[1], root->children[0] = layers;
    return root;
}

static void free_model(const wb_record *r) {
    if (r->array) wb_free(r->array);
    for (int64_t i = 0; i < r->count; i++) free_model(r->children[i]);
}

/* The same as layers: what a file is loaded into. */
static wb_layer *make_layers(int64_t size_bytes) {
    wb_layer *items[ARRAYS];
    wb_scope_open();
    for (int64_t i = 0; i < ARRAYS; i++)
        items[i] = wb_tree_named({"weight", wb_zeros(WB_F32, size_bytes / ARRAYS / 1024, 256)});
    wb_layer *model = wb_tree_named({"parts", wb_tree_make(ARRAYS, (void *const *)items)});
    wb_scope_close();
    return model;
}

/* ---- what is measured ---- */

static double write_once(const wb_format *format, const wb_record *root) {
    (void)unlink(path);
    const double begin = bench_us();
    FILE *file = fopen(path, "wb");
    if (!file) return -1;
    wb_text out = {.file = file, .path = path};
    wb_status status = format->write(root, NULL, &out);
    if (fclose(file) != 0) status = WB_ERROR_IO;
    return status == WB_OK ? seconds_since(begin) : -1;
}

static double copy_once(void) {
    char command[600];
    (void)unlink(copy);
    (void)snprintf(command, sizeof command, "cp '%s' '%s'", path, copy);
    const double begin = bench_us();
    return system(command) == 0 ? seconds_since(begin) : -1;
}

static uint64_t sum_of(const void *data, int64_t size_bytes) {
    const uint64_t *words = data;
    uint64_t sum = 0;
    for (int64_t i = 0; i < size_bytes / 8; i++) sum += words[i];
    return sum;
}

static uint64_t visit(const wb_record *r) {
    uint64_t sum = sum_of(r->data, r->data_bytes);
    for (int64_t i = 0; i < wb_record_count(r); i++) sum += visit(wb_record_at(r, i));
    return sum;
}

/* Seconds to open; *all: and to touch every byte. */
static double touch_once(double *all) {
    const double begin = bench_us();
    wb_file *file = wb_open(path);
    const double open = seconds_since(begin);
    volatile uint64_t sum = file ? visit(wb_file_root(file)) : 0;
    (void)sum; /* the bytes were touched */
    *all = seconds_since(begin);
    wb_free(file);
    return open;
}

typedef struct watch {
    double most_bytes;
    int done; /* __atomic */
} watch;

static void *watch_memory(void *user) {
    watch *w = user;
    while (!__atomic_load_n(&w->done, __ATOMIC_RELAXED)) {
        const double now = (double)wb_platform_own_bytes();
        if (now > w->most_bytes) w->most_bytes = now;
        usleep(2000);
    }
    return NULL;
}

/* Seconds; with memory_bytes, the most that it takes beside the model instead. */
static double load_once(wb_layer *model, double *memory_bytes) {
    pthread_t thread;
    watch w = {.done = 0};
    const double before = (double)wb_platform_own_bytes();
    const bool is_watched = memory_bytes && pthread_create(&thread, NULL, watch_memory, &w) == 0;
    const double begin = bench_us();
    const wb_status status = wb_load(path, model);
    const double seconds = seconds_since(begin);
    __atomic_store_n(&w.done, 1, __ATOMIC_RELAXED);
    if (is_watched) {
        (void)pthread_join(thread, NULL);
        *memory_bytes = w.most_bytes - before;
    }
    return status == WB_OK ? seconds : -1;
}

static double least(int count, double *values) { return bench_times_of(count, values).least; }

static void print_part(const char *what, double seconds, double base) {
    printf("   %s %7.1f ms (%.2f)", what, seconds * 1e3, seconds / base);
}

static void measure(const wb_format *format, const wb_record *root, wb_layer *model, double size,
                    int rounds) {
    double cp[ROUNDS], write[ROUNDS], open[ROUNDS], load[ROUNDS], touch[ROUNDS], memory = 0;
    (void)snprintf(path, sizeof path, "%s/model%s", folder, format->extension);
    (void)snprintf(copy, sizeof copy, "%s/copy", folder);
    if (write_once(format, root) < 0) {
        printf("%-12s %s\n", format->name, wb_error_message());
        wb_clear_error();
        return;
    }
    if (model) (void)load_once(model, &memory);
    for (int i = 0; i < rounds; i++) {
        write[i] = write_once(format, root);
        cp[i] = copy_once();
        if (model) load[i] = load_once(model, NULL);
        open[i] = touch_once(&touch[i]);
    }
    const double base = least(rounds, cp);
    printf("%-12s cp %7.1f ms   open %6.2f ms", format->name, base * 1e3,
           least(rounds, open) * 1e3);
    print_part("write", least(rounds, write), base);
    print_part("touch", least(rounds, touch), base);
    if (model) print_part("load", least(rounds, load), base);
    if (model) printf("   memory %.2f", memory / size);
    printf("\n");
    (void)unlink(path), (void)unlink(copy);
}

static bool run(const wb_format *format, int64_t size_bytes, int rounds) {
    wb_arena arena = {.blocks = NULL};
    const bool is_alone = format == &wb_format_npy;
    wb_layer *model = is_alone ? NULL : make_layers(size_bytes);
    wb_record *root = make_model(&arena, size_bytes, is_alone ? 1 : ARRAYS);
    if (!root || (!is_alone && !model)) return false;
    const wb_record *what = is_alone ? root->children[0]->children[0]->children[0] : root;
    measure(format, what, model, (double)size_bytes, rounds);
    free_model(root);
    wb_arena_release(&arena);
    wb_free(model);
    return !wb_report("bench_files");
}

/* Each format in a process of its own, with memory that no other has used. */
int main(int argc, char **argv) {
    static const wb_format *const formats[] = {&wb_format_safetensors, &wb_format_bson,
                                               &wb_format_npz, &wb_format_npy};
    const bool smoke = argc > 1 && strcmp(argv[1], "--smoke") == 0;
    const int64_t mebibytes = smoke ? 8 : argc > 1 ? atoll(argv[1]) : 1024;
    bool is_good = mebibytes >= 1 && mkdtemp(folder);
    printf("a model of %lld MiB in %s; in brackets: times of cp\n", (long long)mebibytes, folder);
    for (int i = 0; i < 4 && is_good; i++) {
        int status = 1;
        (void)fflush(stdout);
        const pid_t child = fork();
        if (child == 0) exit(!run(formats[i], mebibytes * MIB, smoke ? 1 : ROUNDS));
        is_good = child > 0 && waitpid(child, &status, 0) == child && status == 0;
    }
    (void)rmdir(folder);
    return !is_good;
}
