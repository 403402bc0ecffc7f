#include "support/metal_cpp.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fibers.h"
#include "support/host_cpp.h"

#define FOLDER WB_TESTS_DIR "/program/metal"
#define READING                                                                                    \
    "-E -x c++ -std=gnu++14 -nostdinc -nostdinc++ -D__METAL__ -D__METAL_MACOS__ -I " FOLDER
#define BUILDING                                                                                   \
    "-std=gnu++14 -O1 -fwrapv -fsingle-precision-constant -fno-gnu-unique -fno-math-errno "        \
    "-fno-strict-aliasing -ffp-contract=off"
#define CHECKING "-x c++ -std=gnu++14 -fsyntax-only -w -Xclang -fallow-half-arguments-and-returns"

/* ---- a text, word by word ---- */

typedef struct reader {
    const char *at;
    int depth;         /* of parentheses */
    bool is_checked;   /* the result is for clang, with address spaces */
    int threads;       /* of the last attribute */
    FILE *out, *table; /* the text; its kernels */
    char *fault;       /* what the language does not have; "" while all is well */
    size_t fault_bytes;
} reader;

static bool is_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

static size_t word_length(const char *at) {
    size_t length = 0;
    while (is_name(at[length])) length++;
    return length;
}

static bool is_word(const char *at, size_t length, const char *word) {
    return strlen(word) == length && strncmp(at, word, length) == 0;
}

static void find_fault(reader *r, const char *fault) {
    if (!r->fault[0]) (void)snprintf(r->fault, r->fault_bytes, "program_source: error: %s", fault);
}

/* `threadgroup float x[8];` is a variable, `threadgroup float *x` is not. */
static bool is_variable(const reader *r, const char *at) {
    if (r->depth > 0) return false;
    const size_t length = strcspn(at, ";,)=({[*&>");
    return at[length] != '*' && at[length] != '&' && at[length] != '>';
}

/* What a word becomes; NULL: it stays. */
static const char *replaced(reader *r, const char *at, size_t length) {
    static const char *const spaces[][3] = {
        {"device", "", "__attribute__((address_space(1)))"},
        {"constant", "const", "const __attribute__((address_space(2)))"},
        {"thread", "", ""},
        {"kernel", "", ""}};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (is_word(at, length, spaces[i][0])) return spaces[i][1 + r->is_checked];
    if (!is_word(at, length, "threadgroup")) return NULL;
    if (is_variable(r, at + length))
        return r->is_checked ? "static __attribute__((address_space(3)))"
                             : "static __attribute__((section(\"metal_shared\")))";
    return r->is_checked ? "__attribute__((address_space(3)))" : "";
}

static void print_words(reader *r, const char *from, const char *to) {
    while (from < to) {
        const size_t length = word_length(from);
        const char *other = length ? replaced(r, from, length) : NULL;
        if (other)
            (void)fputs(other, r->table);
        else
            (void)fprintf(r->table, "%.*s", length ? (int)length : 1, from);
        from += length ? length : 1;
    }
}

/* ---- kernels ---- */

typedef struct parameter {
    const char *type, *name, *attribute; /* in the text; type ends where name begins */
    int buffer;                          /* -1: none */
    bool is_reference;
} parameter;

enum { MOST_PARAMETERS = 64 };

static const char *back_over_name(const char *begin, const char *at) {
    while (at > begin && !is_name(at[-1])) at--;
    while (at > begin && is_name(at[-1])) at--;
    return at;
}

/* `TYPE NAME [[ATTRIBUTE]]` from begin to end. */
static bool read_parameter(const char *begin, const char *end, parameter *p) {
    const char *attribute = strstr(begin, "[[");
    if (!attribute || attribute >= end) return false;
    const char *name = back_over_name(begin, attribute);
    p->type = begin, p->name = name;
    p->attribute = attribute + 2 + strspn(attribute + 2, " ");
    p->buffer = -1;
    p->is_reference = memchr(begin, '&', (size_t)(name - begin)) != NULL;
    return name > begin && (sscanf(p->attribute, "buffer ( %d", &p->buffer) == 1 ||
                            sscanf(p->attribute, "buffer(%d", &p->buffer) == 1 || p->buffer < 0);
}

/* From after `(` to the matching one: the parameters; -1: one of them has no attribute. */
static int read_parameters(const char *at, parameter *list) {
    const char *begin = at;
    int depth = 1, count = 0;
    for (; *at && depth > 0; at++) {
        depth += (*at == '(' || *at == '<') - (*at == ')' || *at == '>');
        if (depth > 1 || (depth == 1 && *at != ',')) continue;
        if (at == begin + strspn(begin, " \n") && depth == 0) break;
        if (count == MOST_PARAMETERS || !read_parameter(begin, at, &list[count])) return -1;
        count++;
        begin = at + 1;
    }
    return count;
}

static int width_of(const parameter *p) {
    const char *begin = p->type + strspn(p->type, " \n");
    const size_t length = word_length(begin);
    const bool is_position = strncmp(p->attribute, "thread", 6) == 0 &&
                             strncmp(p->attribute, "threads_per_simdgroup", 21) != 0 &&
                             strncmp(p->attribute, "thread_index", 12) != 0 &&
                             strncmp(p->attribute, "thread_execution", 16) != 0;
    return is_position && length ? isdigit((unsigned char)begin[length - 1]) ? begin[length - 1] : 1
                                 : 0;
}

static void check_parameters(reader *r, const parameter *list, int count) {
    int width = 0;
    for (int i = 0; i < count; i++) {
        const int other = width_of(&list[i]);
        if (list[i].buffer >= METAL_CPP_BUFFERS) find_fault(r, "a buffer's index is above 255");
        if (width && other && other != width) find_fault(r, "positions have different widths");
        width = other ? other : width;
    }
}

/* The kernel `name`: one thread of it, and its row. */
static void print_kernel(reader *r, const char *name, int length) {
    parameter list[MOST_PARAMETERS];
    const int count = read_parameters(strchr(name, '(') + 1, list);
    if (count < 0) find_fault(r, "a kernel's parameter has no attribute");
    check_parameters(r, list, count);
    (void)fprintf(r->table, "static const int metal_cpp_buffers_%.*s[] = {", length, name);
    int buffers = 0;
    for (int i = 0; i < count; i++)
        if (list[i].buffer >= 0 && ++buffers) (void)fprintf(r->table, "%d, ", list[i].buffer);
    (void)fprintf(r->table,
                  "-1};\nstatic void metal_cpp_item_%.*s(void *const *b, const metal_cpp_places "
                  "*p) {\n    %.*s(",
                  length, name, length, name);
    for (int i = 0; i < count; i++) {
        const parameter *p = &list[i];
        (void)fputs(i ? ", " : "", r->table);
        if (p->buffer < 0) {
            (void)fputs("metal_cpp_place<", r->table);
            print_words(r, p->type, p->name);
            (void)fprintf(r->table, ">::of(p->%.*s)", (int)word_length(p->attribute), p->attribute);
            continue;
        }
        (void)fputs(p->is_reference ? "*(" : "(", r->table);
        for (const char *at = p->type; at < p->name; at++)
            if (*at == '&') { /* a reference is bound to what an address names */
                print_words(r, p->type, at);
                (void)fputs("*", r->table);
            }
        if (!p->is_reference) print_words(r, p->type, p->name);
        (void)fprintf(r->table, ")b[%d]", p->buffer);
    }
    (void)fprintf(r->table, ");\n}\n");
    (void)fprintf(r->table, "#define METAL_CPP_ROW_%.*s {\"%.*s\", %d, %d, ", length, name, length,
                  name, r->threads, buffers);
    (void)fprintf(r->table, "metal_cpp_buffers_%.*s, metal_cpp_item_%.*s},\n", length, name, length,
                  name);
    r->threads = METAL_CPP_THREADS;
}

/* ---- the whole text ---- */

static const char *copy_line(reader *r) {
    const size_t length = strcspn(r->at, "\n");
    (void)fprintf(r->out, "%.*s", (int)length, r->at);
    return r->at + length;
}

static const char *copy_string(reader *r) {
    const char *end = r->at + 1;
    while (*end && *end != *r->at) end += *end == '\\' && end[1] ? 2 : 1;
    end += *end != 0;
    (void)fprintf(r->out, "%.*s", (int)(end - r->at), r->at);
    return end;
}

static const char *copy_word(reader *r, size_t length, char *names, size_t names_bytes) {
    const char *at = r->at, *next = at + length + strspn(at + length, " \n");
    const char *other = replaced(r, at, length);
    if (is_word(at, length, "double")) find_fault(r, "'double' is not supported in Metal");
    if (is_word(at, length, "long") && is_word(next, word_length(next), "long"))
        find_fault(r, "'long long' is not supported in Metal");
    if (is_word(at, length, "max_total_threads_per_threadgroup"))
        (void)sscanf(at + length, " ( %d", &r->threads);
    if (is_word(at, length, "kernel") && is_word(next, word_length(next), "void")) {
        next += 4 + strspn(next + 4, " \n");
        const int name = (int)word_length(next);
        if (!r->is_checked) print_kernel(r, next, name);
        const size_t used = strlen(names);
        (void)snprintf(names + used, names_bytes - used, "METAL_CPP_ROW_%.*s ", name, next);
    }
    if (other)
        (void)fputs(other, r->out);
    else
        (void)fprintf(r->out, "%.*s", (int)length, at);
    return at + length;
}

static void copy_text(reader *r, char *names, size_t names_bytes) {
    bool is_line = true; /* nothing but blanks so far in this line */
    while (*r->at) {
        const size_t length = word_length(r->at);
        const char c = *r->at;
        if (is_line && c == '#') {
            r->at = copy_line(r);
        } else if (c == '"' || c == '\'') {
            r->at = copy_string(r);
        } else if (length) {
            r->at = copy_word(r, length, names, names_bytes);
        } else {
            r->depth += (c == '(') - (c == ')');
            (void)fputc(*r->at++, r->out);
        }
        is_line = c == '\n' || (is_line && c == ' ');
    }
}

enum { NAMES_BYTES = 1 << 16 };

/* What the preprocessor left, for g++ or (is_checked) for clang. NULL: the fault is in the log. */
static char *translate(const char *text, bool is_checked, char *log, size_t log_bytes) {
    char *result = NULL, *rows = NULL, *names = calloc(NAMES_BYTES, 1);
    size_t size = 0, row_bytes = 0;
    log[0] = 0;
    reader r = {.at = text,
                .is_checked = is_checked,
                .threads = METAL_CPP_THREADS,
                .out = open_memstream(&result, &size),
                .table = open_memstream(&rows, &row_bytes),
                .fault = log,
                .fault_bytes = log_bytes};
    if (is_checked) (void)fputs("#define METAL_CPP_SPACES 1\n", r.out);
    copy_text(&r, names, NAMES_BYTES);
    (void)fclose(r.table);
    if (!is_checked) {
        (void)fprintf(r.out, "\n%s", rows);
        (void)fprintf(r.out, "extern \"C\" const metal_cpp_entry metal_cpp_entries[] = {\n%s{}};\n",
                      names);
        (void)fputs("extern char __start_metal_shared[] __attribute__((weak, "
                    "visibility(\"hidden\")));\nextern char __stop_metal_shared[] "
                    "__attribute__((weak, visibility(\"hidden\")));\nextern \"C\" char *const "
                    "metal_cpp_shared[] = {__start_metal_shared, __stop_metal_shared};\n",
                    r.out);
    }
    (void)fclose(r.out);
    free(rows), free(names);
    if (!log[0]) return result;
    free(result);
    return NULL;
}

/* ---- building ---- */

bool metal_cpp_has_clang(void) {
    static int has = -1;
    if (has < 0) has = system("clang++ --version >/dev/null 2>&1") == 0;
    return has;
}

uint64_t metal_cpp_hash(void) {
    static const char *const files[] = {FOLDER "/metal_stdlib", FOLDER "/metal_simdgroup",
                                        FOLDER "/metal_simdgroup_matrix"};
    uint64_t hash = host_cpp_hash(READING BUILDING CHECKING, sizeof READING BUILDING CHECKING, 0);
    hash = host_cpp_hash(host_cpp_compiler(), strlen(host_cpp_compiler()), hash);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t bytes = 0;
        char *text = host_cpp_read(files[i], &bytes);
        if (text) hash = host_cpp_hash(text, bytes, hash);
        free(text);
    }
    return hash * 2 + metal_cpp_has_clang();
}

/* The text with its macros replaced; to be freed. */
static char *preprocess(const char *text, int version, const char *more, char *log,
                        size_t log_bytes) {
    char options[512], *named = NULL;
    size_t size = 0;
    (void)snprintf(options, sizeof options, READING " -D__METAL_VERSION__=%d %s", version, more);
    FILE *file = open_memstream(&named, &size);
    (void)fprintf(file, "#line 1 \"program_source\"\n%s\n", text);
    (void)fclose(file);
    char *result = host_cpp_through(host_cpp_compiler(), named, options, &size, log, log_bytes);
    free(named);
    return result;
}

static bool has_right_spaces(const char *text, int version, char *log, size_t log_bytes) {
    size_t size = 0;
    char *read = preprocess(text, version, "-D__clang__=14 -DMETAL_CPP_SPACES", log, log_bytes);
    char *checked = read ? translate(read, true, log, log_bytes) : NULL;
    char *result =
        checked ? host_cpp_through("clang++", checked, CHECKING, &size, log, log_bytes) : NULL;
    free(read), free(checked), free(result);
    return result;
}

void *metal_cpp_build(const char *text, int version, size_t *size_bytes, char *log,
                      size_t log_bytes) {
    if (metal_cpp_has_clang() && !has_right_spaces(text, version, log, log_bytes)) return NULL;
    char *read = preprocess(text, version, "", log, log_bytes);
    char *cpp = read ? translate(read, false, log, log_bytes) : NULL;
    void *object = cpp ? host_cpp_build(cpp, BUILDING, size_bytes, log, log_bytes) : NULL;
    free(read), free(cpp);
    return object;
}

/* ---- running ---- */

typedef struct place {
    uint32_t x, y, z, unused;
} place;

/* As in metal_stdlib. */
struct metal_cpp_places {
    place thread, group, group_size, groups, thread_in_grid, grid_size, given_group_size;
    uint32_t thread_index, lane, simdgroup, simdgroups, simd_size, execution_width;
};

const metal_cpp_entry *metal_cpp_find(void *object, const char *name) {
    const metal_cpp_entry *e = dlsym(object, "metal_cpp_entries");
    while (e && e->name && strcmp(e->name, name) != 0) e++;
    return e && e->name ? e : NULL;
}

typedef struct running {
    metal_cpp_places places;
    const metal_cpp_entry *entry;
    void *const *buffers;
    uint32_t *lane;
    uint64_t *turns;
} running;

static place place_of(uint32_t number, place size) {
    return (place){number % size.x, number / size.x % size.y, number / size.x / size.y, 0};
}

static void one_thread(int lane, void *user) {
    const running *r = user;
    metal_cpp_places p = r->places;
    const uint32_t number = (uint32_t)lane;
    *r->lane = number;
    r->turns[lane] = 0;
    p.thread = place_of(number, p.group_size);
    p.thread_in_grid =
        (place){p.group.x * p.group_size.x + p.thread.x, p.group.y * p.group_size.y + p.thread.y,
                p.group.z * p.group_size.z + p.thread.z, 0};
    p.thread_index = number;
    p.lane = number % METAL_CPP_SIMD, p.simdgroup = number / METAL_CPP_SIMD;
    r->entry->item(r->buffers, &p);
}

static void fill_places(metal_cpp_places *p, const uint32_t groups[3], const uint32_t threads[3]) {
    p->groups = (place){groups[0], groups[1], groups[2], 0};
    p->group_size = p->given_group_size = (place){threads[0], threads[1], threads[2], 0};
    p->grid_size =
        (place){groups[0] * threads[0], groups[1] * threads[1], groups[2] * threads[2], 0};
    p->simdgroups = (threads[0] * threads[1] * threads[2] + METAL_CPP_SIMD - 1) / METAL_CPP_SIMD;
    p->simd_size = p->execution_width = METAL_CPP_SIMD;
}

bool metal_cpp_launch(void *object, const metal_cpp_entry *entry, const uint32_t groups[3],
                      const uint32_t threads[3], void *const *buffers, bool is_reversed) {
    char *const *shared = dlsym(object, "metal_cpp_shared");
    uint64_t *number = dlsym(object, "metal_cpp_group");
    void (**meet)(int) = dlsym(object, "metal_cpp_meet");
    void (**meet_part)(int, int) = dlsym(object, "metal_cpp_meet_part");
    running r = {.entry = entry,
                 .buffers = buffers,
                 .lane = dlsym(object, "metal_cpp_lane"),
                 .turns = dlsym(object, "metal_cpp_turns")};
    if (!shared || !number || !meet || !meet_part || !r.lane || !r.turns) return false;
    *meet = fibers_meet, *meet_part = fibers_meet_part;
    fill_places(&r.places, groups, threads);
    const uint32_t count = groups[0] * groups[1] * groups[2];
    for (uint32_t i = 0; i < count; i++) {
        if (shared[0]) memset(shared[0], 0xff, (size_t)(shared[1] - shared[0]));
        r.places.group = place_of(is_reversed ? count - 1 - i : i, r.places.groups);
        ++*number;
        if (!fibers_run((int)(threads[0] * threads[1] * threads[2]), is_reversed, one_thread, &r))
            return false;
    }
    return true;
}
