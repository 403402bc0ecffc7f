/* bench_files [--smoke] [MEBIBYTES]: a model of 1 GiB through every format, beside `cp` of the same file, all in the page cache.
 *
 * write   the format's writer to a new file, without waiting for the disk (wb_save does wait, cp does not)
 * open    wb_open: the file is mapped and its tree made
 * read    open, and every array copied into memory of its own
 * touch   open, and every byte of every array added up where it lies
 * memory  what reading added, beyond the file's own pages, in sizes of the model */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weber.h>

#include "base/memory.h"
#include "clock.h"
#include "state/record.h"

enum { ARRAYS = 64, ROUNDS = 5, MIB = 1 << 20 };

static char folder[] = "/tmp/weber-bench-XXXXXX";
static char path[256], copy[256];

static double seconds_since(double begin_us) { return (bench_us() - begin_us) * 1e-6; }

/* One line of the process's status, in bytes. */
static double status_bytes(const char *name) {
    char line[256], format[64];
    long long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    (void)snprintf(format, sizeof format, "%s: %%lld", name);
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, format, &kb) == 1) break;
    if (file) (void)fclose(file);
    return (double)kb * 1024;
}

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

/* {layers: [{weight}, ...]}, or one array alone for .npy. */
static wb_record *make_model(wb_arena *arena, int64_t size_bytes, int64_t arrays) {
    static const char *const names[] = {"weight", "layers"};
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

/* ---- what is measured ---- */

static double write_once(const wb_format *format, const wb_record *root) {
    (void)unlink(path);
    const double begin = bench_us();
    FILE *file = fopen(path, "wb");
    if (!file) return -1;
    wb_status status = format->write(root, NULL, file, path);
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

/* Reads every array; own: into memory of its own. kept receives them. */
static bool visit(const wb_file *file, const wb_record *r, bool own, void **kept, int64_t *count) {
    volatile uint64_t sum = 0;
    if (wb_record_kind_of(r) == WB_RECORD_ARRAY) {
        if (own && !(kept[(*count)++] = wb_alloc_aligned((size_t)r->data_bytes))) return false;
        if (own)
            memcpy(kept[*count - 1], r->data, (size_t)r->data_bytes);
        else
            sum += sum_of(r->data, r->data_bytes);
    }
    for (int64_t i = 0; i < wb_record_count(r); i++)
        if (!visit(file, wb_record_at(r, i), own, kept, count)) return false;
    (void)sum; /* the bytes were touched */
    return true;
}

typedef struct reading {
    double open, all, memory_bytes;
} reading;

static reading read_once(bool own) {
    void *kept[ARRAYS];
    int64_t count = 0;
    const double before = status_bytes("RssAnon"), begin = bench_us();
    wb_file *file = wb_open(path);
    reading r = {.open = seconds_since(begin)};
    const bool is_done = file && visit(file, wb_file_root(file), own, kept, &count);
    r.all = is_done ? seconds_since(begin) : -1;
    r.memory_bytes = status_bytes("RssAnon") - before;
    wb_free(file);
    for (int64_t i = 0; i < count; i++) wb_release_aligned(kept[i]);
    return r;
}

static double median(int count, double *values) { return bench_times_of(count, values).median; }

static void measure(const wb_format *format, const wb_record *root, double size, int rounds) {
    double cp[ROUNDS], write[ROUNDS], open[ROUNDS], read[ROUNDS], touch[ROUNDS], memory = 0;
    (void)snprintf(path, sizeof path, "%s/model%s", folder, format->extension);
    (void)snprintf(copy, sizeof copy, "%s/copy", folder);
    if (write_once(format, root) < 0) {
        printf("%-12s %s\n", format->name, wb_error_message());
        wb_clear_error();
        return;
    }
    for (int i = 0; i < rounds; i++) {
        write[i] = write_once(format, root);
        cp[i] = copy_once();
        const reading own = read_once(true), lying = read_once(false);
        open[i] = own.open, read[i] = own.all, touch[i] = lying.all;
        memory = own.memory_bytes > memory ? own.memory_bytes : memory;
    }
    const double base = median(rounds, cp);
    printf(
        "%-12s cp %7.1f ms   write %7.1f ms (%.2f)   open %6.2f ms   read %7.1f ms (%.2f)   touch "
        "%7.1f ms (%.2f)   memory %.2f\n",
        format->name, base * 1e3, median(rounds, write) * 1e3, median(rounds, write) / base,
        median(rounds, open) * 1e3, median(rounds, read) * 1e3, median(rounds, read) / base,
        median(rounds, touch) * 1e3, median(rounds, touch) / base, memory / size);
    (void)unlink(path), (void)unlink(copy);
}

int main(int argc, char **argv) {
    static const wb_format *const formats[] = {&wb_format_safetensors, &wb_format_bson,
                                               &wb_format_npz, &wb_format_npy};
    const bool smoke = argc > 1 && strcmp(argv[1], "--smoke") == 0;
    const int64_t mebibytes = smoke ? 8 : argc > 1 ? atoll(argv[1]) : 1024;
    if (mebibytes < 1 || !mkdtemp(folder)) return 1;
    printf("a model of %lld MiB in %s; in brackets: times of cp\n", (long long)mebibytes, folder);
    for (int i = 0; i < 4; i++) {
        wb_arena arena = {.blocks = NULL};
        const bool is_alone = formats[i] == &wb_format_npy;
        wb_record *root = make_model(&arena, mebibytes * MIB, is_alone ? 1 : ARRAYS);
        if (!root) break;
        const wb_record *what = is_alone ? root->children[0]->children[0]->children[0] : root;
        measure(formats[i], what, (double)mebibytes * MIB, smoke ? 1 : ROUNDS);
        free_model(root);
        wb_arena_release(&arena);
    }
    (void)rmdir(folder);
    return wb_report("bench_files");
}
