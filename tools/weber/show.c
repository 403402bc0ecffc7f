/* `weber show FILE`: the tree of a file of models or arrays. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weber/state.h>

#include "tool.h"

static const char help[] =
    "usage: weber show FILE\n"
    "\n"
    "Prints the tree of the file's values: for arrays type, sizes (fastest dimension first), "
    "numbers and bytes;\n"
    "what stands in several places (tied weights) once, and where it stands again the place of the "
    "first.\n"
    "Formats: .bson (Julia's, as Flux saves), .safetensors, .npy, .npz.\n"
    "\n"
    "  --help  this text\n"
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
    size_t i = (uintptr_t)r / 16 * 0x9E3779B97F4A7C15u & (s->capacity - 1);
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

/* The place where r was printed; NULL the first time, when path becomes it. */
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

/* As few digits as say the number. */
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

/* Recursive: no file's tree is deeper than 256. What is shared is gone through once. */
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

static void print_file(const wb_file *file, const char *path) {
    shown s = {.table = NULL};
    (void)printf("%s: %s, %" PRId64 " bytes, ", path, wb_file_format(file), wb_file_size(file));
    print_record(wb_file_root(file), "", 0, &s);
    print_count(s.arrays, "array");
    (void)printf(", ");
    print_count(s.numbers, "number");
    (void)printf(", %" PRId64 " bytes", s.bytes);
    if (s.shared) (void)printf("; %" PRId64 " shared", s.shared);
    (void)printf("\n");
    const wb_record *metadata = wb_file_metadata(file);
    make_room(&s);
    if (wb_record_count(metadata) && !find(&s, metadata)->record) { /* BSON's is in the tree */
        (void)printf("metadata: ");
        print_record(metadata, "metadata", 0, &s);
    }
    forget(&s);
}

int tool_show(int count, char **arguments) {
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    const int letter = getopt_long(count + 1, arguments - 1, "", options, NULL);
    if (letter != -1 || count != 1) return tool_help(help, letter == 'h');
    wb_file *file = wb_open(arguments[0]);
    if (file) print_file(file, arguments[0]);
    wb_free(file);
    return wb_report("weber show");
}
