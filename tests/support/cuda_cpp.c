#include "support/cuda_cpp.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fibers.h"

/* ---- the instructions of PTX ---- */

/* Prints the operands `"=f"(x), "h"(h)` between from and to without their constraints; they follow
 * others where comma says so. */
static bool print_operands(FILE *file, const char *from, const char *to, bool comma) {
    for (const char *at = from; at < to;) {
        int depth = 0;
        if (*at != '(') {
            at++;
            continue;
        }
        const char *begin = at;
        do depth += (*at == '(') - (*at == ')');
        while (++at < to && depth > 0);
        (void)fprintf(file, "%s%.*s", comma ? ", " : "", (int)(at - begin), begin);
        comma = true;
    }
    return comma;
}

/* One instruction with outputs and inputs, `("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h))`, as
 * `ptx_cvt_f32_f16((x), (h))`. NULL: it is not of this form; else what follows. */
static const char *print_instruction(FILE *file, const char *at) {
    at += strspn(at, " ");
    if (strncmp(at, "volatile", 8) == 0) at += 8 + strspn(at + 8, " ");
    if (*at++ != '(') return NULL;
    at += strspn(at, " \n");
    const char *outputs = strchr(at, ':'), *end = strchr(at, ';');
    if (strncmp(at, "\"\"", 2) == 0) return NULL; /* nothing but its effects: C++ has that, too */
    if (*at != '"' || !outputs || !(end = strstr(outputs, ");"))) return NULL;
    (void)fputs("ptx_", file);
    for (at++; *at && *at != ' ' && *at != '"'; at++)
        if (*at != ':') (void)fputc(*at == '.' ? '_' : *at, file);
    const char *inputs = memchr(outputs + 1, ':', (size_t)(end - outputs - 1));
    (void)fputc('(', file);
    const bool any = print_operands(file, outputs, inputs ? inputs : end, false);
    if (inputs) (void)print_operands(file, inputs, end, any);
    (void)fputc(')', file);
    return end + 1;
}

static bool is_word(const char *text, const char *at, const char *word) {
    const size_t length = strlen(word);
    if (strncmp(at, word, length) != 0) return false;
    return (at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_')) &&
           !isalnum((unsigned char)at[length]) && at[length] != '_';
}

/* ---- the kernels ---- */

static bool is_in_definition(const char *text, const char *at) {
    while (at > text && at[-1] != '\n') at--;
    return *at == '#';
}

/* The name of the kernel that is defined at `at`, WB_KERNEL(name, threads)(...) or __global__ void
 * name(...), the latter perhaps with __launch_bounds__(n) before the name; its length, 0: there is
 * none. */
static int kernel_at(const char *text, const char *at, const char **name) {
    if (is_word(text, at, "WB_KERNEL")) {
        *name = at + strlen("WB_KERNEL");
    } else if (is_word(text, at, "__global__")) {
        *name = at + strlen("__global__");
        *name += strspn(*name, " ");
        if (is_word(text, *name, "void")) *name += 4;
        *name += strspn(*name, " ");
        if (is_word(text, *name, "__launch_bounds__")) *name = strchr(*name, ')') + 1;
    } else {
        return 0;
    }
    *name += strspn(*name, " (");
    const char *end = *name;
    while (isalnum((unsigned char)*end) || *end == '_') end++;
    return is_in_definition(text, at) ? 0 : (int)(end - *name);
}

/* Kernels leave a definition behind where they stand, which may be between #if and #endif. */
static void print_text(FILE *file, const char *text) {
    for (const char *at = text; *at;) {
        const char *name,
            *behind = is_word(text, at, "asm") ? print_instruction(file, at + 3) : NULL;
        const int length = kernel_at(text, at, &name);
        if (length) (void)fprintf(file, "\n#define CUDA_CPP_HAS_%.*s\n", length, name);
        if (behind)
            at = behind;
        else
            (void)fputc(*at++, file);
    }
}

static void print_entries(FILE *file, const char *text) {
    (void)fputs("\nextern \"C\" const cuda_cpp_entry cuda_cpp_entries[] = {\n", file);
    for (const char *at = text; *at; at++) {
        const char *name;
        const int length = kernel_at(text, at, &name);
        if (length)
            (void)fprintf(
                file,
                "#ifdef CUDA_CPP_HAS_%.*s\n    cuda_cpp_kernel<%.*s>::entry(\"%.*s\"),\n#endif\n",
                length, name, length, name, length, name);
    }
    (void)fputs("    {}};\n", file);
}

char *cuda_cpp_text(const char *text, const char *definitions, int warp) {
    char *result = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&result, &size);
    if (!file) return NULL;
    (void)fprintf(file, "#define CUDA_CPP_WARP %d\n%s\n#include \"%s\"\n#line 1\n", warp,
                  definitions, CUDA_CPP_HEADER);
    print_text(file, text);
    print_entries(file, text);
    return fclose(file) == 0 ? result : NULL;
}

/* ---- running ---- */

const cuda_cpp_entry *cuda_cpp_find(void *object, const char *name) {
    const cuda_cpp_entry *e = dlsym(object, "cuda_cpp_entries");
    while (e && e->name && strcmp(e->name, name) != 0) e++;
    return e && e->name ? e : NULL;
}

typedef struct place {
    unsigned x, y, z;
} place;

/* What the object has of the threads that run; thread, block, size of blocks and of the grid. */
typedef struct running {
    place *places;
    const cuda_cpp_entry *entry;
    void **parameters;
} running;

static place place_of(unsigned number, place size) {
    return (place){number % size.x, number / size.x % size.y, number / size.x / size.y};
}

static void one_thread(int lane, void *user) {
    const running *r = user;
    r->places[0] = place_of((unsigned)lane, r->places[2]);
    r->entry->item(r->parameters);
}

bool cuda_cpp_launch(void *object, const cuda_cpp_entry *entry, const unsigned grid[3],
                     const unsigned block[3], void **parameters, bool is_reversed) {
    running r = {dlsym(object, "cuda_cpp_places"), entry, parameters};
    char **shared = dlsym(object, "cuda_cpp_shared");
    void (**meet)(int) = dlsym(object, "cuda_cpp_meet");
    void (**meet_part)(int, int) = dlsym(object, "cuda_cpp_meet_part");
    if (!r.places || !shared || !meet || !meet_part) return false;
    *meet = fibers_meet, *meet_part = fibers_meet_part;
    r.places[2] = (place){block[0], block[1], block[2]};
    r.places[3] = (place){grid[0], grid[1], grid[2]};
    unsigned *number = dlsym(object, "cuda_cpp_block");
    const unsigned blocks = grid[0] * grid[1] * grid[2];
    const int threads = (int)(block[0] * block[1] * block[2]);
    for (unsigned i = 0; i < blocks; i++) {
        if (shared[0]) memset(shared[0], 0xff, (size_t)(shared[1] - shared[0]));
        if (number) ++*number;
        r.places[1] = place_of(is_reversed ? blocks - 1 - i : i, r.places[3]);
        if (!fibers_run(threads, is_reversed, one_thread, &r)) return false;
    }
    return true;
}

typedef struct hazard {
    int threads[2];
    long byte;
    int has_written[2];
} hazard;

const char *cuda_cpp_hazard(void *object, char *text, size_t text_bytes) {
    const hazard *h = dlsym(object, "cuda_cpp_hazard");
    if (!h || h->threads[1] < 0) return NULL;
    (void)snprintf(text, text_bytes,
                   "thread %d %s byte %ld of the block's memory, thread %d %s it, and no barrier "
                   "is between them",
                   h->threads[0], h->has_written[0] ? "writes" : "reads", h->byte, h->threads[1],
                   h->has_written[1] ? "writes" : "reads");
    return text;
}
