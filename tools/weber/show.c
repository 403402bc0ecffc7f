/* `weber show FILE`: the tree of a file of models or arrays. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weber.h>

#include "tool.h"

static const char help[] =
    "usage: weber show FILE [--records]\n"
    "       weber show FILE --svg=PICTURE --input=SIZES [--key=NAME]\n"
    "\n"
    "Prints the layers of the models in the file, and the other values as a tree: for arrays type, "
    "sizes (fastest\n"
    "dimension first), numbers and bytes. A value in several places (tied weights) is printed at "
    "the first;\n"
    "the others have the path of the first.\n"
    "Formats: .bson (Julia's, as Flux saves), .safetensors, .npy, .npz, PyTorch's .pt, "
    "llama.cpp's\n"
    ".gguf, Julia's .jld2.\n"
    "\n"
    "  --records      the tree of models, too\n"
    "  --svg=PICTURE  draws the model as a graph with the sizes after each layer, through the\n"
    "                 program dot of the package graphviz: PICTURE.svg, .png, .pdf or .dot\n"
    "  --input=SIZES  sizes of the model's input, fastest first, with the batch: 28,28,1,32\n"
    "  --key=NAME     where the model is in the file (model)\n"
    "  --help         this text\n"
    "\n"
    "Exit status: 0, 1 after an error, 2 for a command line that is not understood.\n";

/* ---- what was printed, with its first place ---- */

typedef struct place {
    const wb_record *record;
    char *path;
} place;

typedef struct shown {
    place *table; /* open addressing; capacity is a power of two, at most half is used */
    size_t count, capacity;
    int64_t arrays, numbers, bytes, shared;
} shown;

static place *find(const shown *s, const wb_record *r) {
    size_t i = (size_t)((uintptr_t)r / 16 * 0x9E3779B97F4A7C15u) & (s->capacity - 1);
    while (s->table[i].record && s->table[i].record != r) i = (i + 1) & (s->capacity - 1);
    return &s->table[i];
}

static void make_room(shown *s) {
    if (2 * (s->count + 1) <= s->capacity) return;
    const shown old = *s;
    s->capacity = old.capacity ? 2 * old.capacity : 1024;
    s->table = calloc(s->capacity, sizeof *s->table);
    if (!s->table) {
        (void)fputs("weber show: out of memory\n", stderr);
        exit(1);
    }
    for (size_t i = 0; i < old.capacity; i++)
        if (old.table[i].record) *find(s, old.table[i].record) = old.table[i];
    free(old.table);
}

/* The place where r was printed before; NULL the first time, when path is noted as the place. */
static const char *seen_at(shown *s, const wb_record *r, const char *path) {
    make_room(s);
    place *p = find(s, r);
    if (p->record) return p->path;
    *p = (place){r, strdup(path)};
    s->count++;
    return NULL;
}

static void forget(shown *s) {
    for (size_t i = 0; i < s->capacity; i++) free(s->table[i].path);
    free(s->table);
}

/* ---- values ---- */

static void print_count(int64_t count, const char *noun) {
    (void)printf("%" PRId64 " %s%s", count, noun, count == 1 ? "" : "s");
}

static void print_sizes(const wb_record *r) {
    (void)printf("(");
    for (int d = 0; d < wb_record_ndim(r); d++)
        (void)printf("%s%" PRId64, d ? ", " : "", wb_record_size(r, d));
    (void)printf(")");
}

static void print_shared(const char *first, shown *s) {
    (void)printf("shared with ");
    put_plain(first);
    (void)printf("\n");
    s->shared++;
}

static void print_array(const wb_record *r, const char *path, shown *s) {
    const wb_dtype dtype = wb_record_dtype(r);
    const int64_t bytes = wb_record_bytes(r), numbers = bytes / (int64_t)wb_dtype_size(dtype);
    const char *first = seen_at(s, r, path);
    (void)printf("%s ", wb_dtype_name(dtype));
    if (*wb_record_type(r)) (void)printf("of %s ", wb_record_type(r));
    print_sizes(r);
    (void)printf(", ");
    if (first) {
        print_shared(first, s);
        return;
    }
    print_count(numbers, "number");
    (void)printf(", %" PRId64 " bytes\n", bytes);
    s->arrays++, s->numbers += numbers, s->bytes += bytes;
}

/* The fewest digits that give the number back. */
static void print_real(double value) {
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    (void)puts(text);
}

static void print_scalar(const wb_record *r) {
    switch (wb_record_kind_of(r)) {
    case WB_RECORD_BOOL:
        (void)puts(wb_record_bool(r) ? "true" : "false");
        return;
    case WB_RECORD_INTEGER:
        (void)printf("%" PRId64 "\n", wb_record_integer(r));
        return;
    case WB_RECORD_REAL:
        print_real(wb_record_real(r));
        return;
    case WB_RECORD_TEXT:
        (void)printf("\"");
        put_plain(wb_record_text(r));
        (void)printf("\"\n");
        return;
    default:
        (void)puts("nothing");
        return;
    }
}

static void print_opaque(const wb_record *r) {
    if (wb_record_ndim(r)) {
        (void)printf(" ");
        print_sizes(r);
    }
    (void)printf("%snot understood", *wb_record_type(r) ? ", " : "");
    if (wb_record_bytes(r)) (void)printf(", %" PRId64 " bytes", wb_record_bytes(r));
}

static void print_heading(const wb_record *r) {
    const wb_record_kind kind = wb_record_kind_of(r);
    const int64_t count = wb_record_count(r);
    if (kind == WB_RECORD_LIST) (void)printf("list of %" PRId64, count);
    if (kind == WB_RECORD_MAP) (void)printf("map of %" PRId64, count);
    put_plain(wb_record_type(r));
    if (kind == WB_RECORD_OPAQUE) print_opaque(r);
    (void)printf("\n");
}

/* ---- the tree ---- */

static void print_record(const wb_record *r, const char *path, int depth, shown *s);

static void print_child(const wb_record *r, int64_t i, const char *parent, int depth, shown *s) {
    char number[24];
    (void)snprintf(number, sizeof number, "%" PRId64, i + 1);
    const char *name = wb_record_name(r, i) ? wb_record_name(r, i) : number;
    const size_t size = strlen(parent) + strlen(name) + 2;
    char *path = malloc(size);
    if (!path) return;
    (void)snprintf(path, size, "%s%s%s", parent, *parent ? "." : "", name);
    (void)printf("%*s", 2 * depth, "");
    put_plain(name);
    (void)printf(": ");
    print_record(wb_record_at(r, i), path, depth, s);
    free(path);
}

/* Recursive: no file's tree is deeper than 256. A shared record is printed once. */
static void print_record(const wb_record *r, const char *path, int depth, shown *s) {
    const wb_record_kind kind = wb_record_kind_of(r);
    if (kind == WB_RECORD_ARRAY) {
        print_array(r, path, s);
        return;
    }
    if (kind < WB_RECORD_LIST) {
        print_scalar(r);
        return;
    }
    const char *first = wb_record_count(r) ? seen_at(s, r, path) : NULL;
    if (first) {
        print_shared(first, s);
        return;
    }
    print_heading(r);
    for (int64_t i = 0; i < wb_record_count(r); i++) print_child(r, i, path, depth + 1, s);
}

static void print_sums(const shown *s) {
    print_count(s->arrays, "array");
    (void)printf(", ");
    print_count(s->numbers, "number");
    (void)printf(", %" PRId64 " bytes", s->bytes);
    if (s->shared) (void)printf("; %" PRId64 " shared", s->shared);
    (void)printf("\n");
}

static void print_tree(const wb_file *file) {
    shown s = {.table = NULL};
    (void)printf(", ");
    print_record(wb_file_root(file), "", 0, &s);
    print_sums(&s);
    const wb_record *metadata = wb_file_metadata(file);
    make_room(&s);
    if (wb_record_count(metadata) && !find(&s, metadata)->record) { /* BSON's is in the tree */
        (void)printf("metadata: ");
        print_record(metadata, "metadata", 0, &s);
    }
    forget(&s);
}

/* ---- models ---- */

/* Whether it can be made into layers, which are printed. */
static bool print_model(const char *path, const char *key) {
    wb_scope_open();
    wb_layer *model = wb_load_model(path, key);
    if (model) {
        (void)printf("\n");
        put_plain(key);
        (void)printf(": ");
        (void)fflush(stdout);
        (void)wb_show(model);
    }
    wb_free(model);
    if (!model) wb_clear_error();
    wb_scope_close();
    return model != NULL;
}

/* A key that has the text of a model beside it, KEY_structure. */
typedef struct structure {
    char *key;
    bool is_printed; /* as layers: the text says nothing more */
} structure;

typedef struct structures {
    structure *list; /* by key */
    size_t count;
} structures;

static const char ending[] = "_structure";

/* The length of KEY in the name KEY_structure; 0: the name is not one of these. */
static size_t key_bytes(const char *name) {
    const size_t length = name ? strlen(name) : 0, end = sizeof ending - 1;
    return length > end && strcmp(name + length - end, ending) == 0 ? length - end : 0;
}

static int by_key(const void *a, const void *b) {
    const structure *left = a, *right = b;
    return strcmp(left->key, right->key);
}

static void add_structures(structures *all, const wb_record *texts) {
    for (int64_t i = 0; i < wb_record_count(texts) && all->list; i++) {
        const char *name = wb_record_name(texts, i);
        const size_t bytes = key_bytes(name);
        char *key = bytes ? strndup(name, bytes) : NULL;
        if (key) all->list[all->count++] = (structure){.key = key};
    }
}

static structures structures_of(const wb_file *file) {
    const wb_record *root = wb_file_root(file), *about = wb_file_metadata(file);
    const size_t most = (size_t)(wb_record_count(root) + wb_record_count(about));
    structures all = {.list = calloc(most + 1, sizeof *all.list)};
    add_structures(&all, root);
    add_structures(&all, about);
    if (all.count) qsort(all.list, all.count, sizeof *all.list, by_key);
    return all;
}

/* The first of that key; NULL: there is none. */
static structure *structure_of(const structures *all, const char *key) {
    size_t from = 0, to = all->count;
    while (from < to) {
        const size_t middle = (from + to) / 2;
        if (strcmp(all->list[middle].key, key) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    const bool is_there = from < all->count && strcmp(all->list[from].key, key) == 0;
    return is_there ? &all->list[from] : NULL;
}

static void forget_structures(structures *all) {
    for (size_t i = 0; i < all->count; i++) free(all->list[i].key);
    free(all->list);
}

/* The text of a model that was printed. */
static bool is_said(const structures *all, const char *name) {
    char *key = key_bytes(name) ? strndup(name, key_bytes(name)) : NULL;
    const structure *s = key ? structure_of(all, key) : NULL;
    free(key);
    return s && s->is_printed;
}

/* The rest of a map whose models were printed. */
static void print_rest(const wb_file *file, const bool *is_model, const structures *all) {
    const wb_record *root = wb_file_root(file);
    shown s = {.table = NULL};
    for (int64_t i = 0; i < wb_record_count(root); i++)
        if (!is_model[i] && !is_said(all, wb_record_name(root, i))) print_child(root, i, "", 0, &s);
    if (s.arrays) print_sums(&s);
    forget(&s);
}

/* A struct of Julia's, or what has a structure. */
static bool may_be_model(const wb_record *root, int64_t i, const structures *all) {
    return wb_record_kind_of(wb_record_at(root, i)) == WB_RECORD_STRUCT ||
           structure_of(all, wb_record_name(root, i));
}

/* False: there is no model, and nothing was printed. Each model reads the file once more. */
static bool print_models(const wb_file *file, const char *path) {
    enum { MOST_TRIED = 20 };
    const wb_record *root = wb_file_root(file);
    const int64_t count = wb_record_kind_of(root) == WB_RECORD_MAP ? wb_record_count(root) : 0;
    bool *is_model = calloc((size_t)count + 1, sizeof *is_model), is_any = false;
    structures all = structures_of(file);
    for (int64_t i = 0, tried = 0; is_model && i < count && tried < MOST_TRIED; i++) {
        structure *text = structure_of(&all, wb_record_name(root, i));
        if (!may_be_model(root, i, &all)) continue;
        tried++;
        is_model[i] = print_model(path, wb_record_name(root, i));
        if (text) text->is_printed = is_model[i];
        is_any = is_any || is_model[i];
    }
    if (is_any) print_rest(file, is_model, &all);
    forget_structures(&all);
    free(is_model);
    return is_any;
}

static void print_file(const wb_file *file, const char *path, bool has_records) {
    (void)printf("%s: %s, %" PRId64 " bytes", path, wb_file_format(file), wb_file_size(file));
    if (has_records || !print_models(file, path)) print_tree(file);
}

/* ---- a picture ---- */

/* "28,28,1,32"; false: it is not a list of sizes. */
static bool read_sizes(const char *text, int64_t *sizes) {
    for (int d = 0; d < WB_MAX_DIMS; d++) {
        char *end;
        sizes[d] = strtoll(text, &end, 10);
        if (end == text || sizes[d] < 1) return false;
        if (*end == 0) return true;
        if (*end != ',') return false;
        text = end + 1;
    }
    return false;
}

static int draw(const char *path, const char *picture, const char *input, const char *key) {
    wb_outputsize_desc desc = {.pad_batch = false};
    if (!input || !read_sizes(input, desc.inputs[0])) {
        (void)fprintf(stderr,
                      "weber show: --svg needs the sizes of the model's input, as "
                      "--input=28,28,1,32, got %s\n",
                      input ? input : "none");
        return 2;
    }
    wb_scope_open();
    wb_layer *model = wb_load_model(path, key);
    if (model) (void)wb_draw_model_make(picture, model, desc);
    wb_free(model);
    wb_scope_close();
    return wb_report("weber show");
}

int tool_show(int count, char **arguments) {
    static const struct option options[] = {
        {"records", no_argument, NULL, 'r'},     {"svg", required_argument, NULL, 's'},
        {"input", required_argument, NULL, 'i'}, {"key", required_argument, NULL, 'k'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0}};
    bool has_records = false;
    const char *picture = NULL, *input = NULL, *key = NULL;
    for (int letter; (letter = getopt_long(count + 1, arguments - 1, "", options, NULL)) != -1;) {
        if (letter == 'r')
            has_records = true;
        else if (letter == 's')
            picture = optarg;
        else if (letter == 'i')
            input = optarg;
        else if (letter == 'k')
            key = optarg;
        else
            return tool_help(help, letter == 'h');
    }
    if (count + 1 - optind != 1)
        return tool_wrong_count(help, "show", "one FILE", count + 1 - optind);
    if (!picture && (input || key))
        return tool_wrong(help, "show: %s needs --svg=PICTURE", input ? "--input" : "--key");
    const char *path = arguments[optind - 1];
    if (picture) return draw(path, picture, input, key);
    wb_file *file = wb_open(path);
    if (file) print_file(file, path, has_records);
    wb_free(file);
    return wb_report("weber show");
}
