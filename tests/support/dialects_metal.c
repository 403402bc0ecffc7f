/* Metal's language as C++: built into a shared object, run item by item. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/dialects.h"
#include "support/fibers.h"
#include "support/host_cpp.h"

bool metal_is_there(char *reason, size_t reason_bytes) {
    if (host_cpp_is_there()) return true;
    (void)snprintf(reason, reason_bytes, "g++ is not installed");
    return false;
}

/* ---- building ---- */

/* A function of C for each kernel: run_NAME(buffers, block, group, groups, lane). */
static void print_callers(FILE *file, const dialect_unit *unit) {
    for (int i = 0; i < unit->count; i++) {
        const wb_source *s = unit->sources[i];
        bool is_again = false;
        for (int k = 0; k < i; k++)
            is_again = is_again || strcmp(unit->sources[k]->text, s->text) == 0;
        for (int l = 0; l < s->launch_count && !is_again; l++) {
            const char *entry = s->launches[l].entry;
            const int buffers = s->buffer_count + s->uses_status;
            (void)fprintf(file, "template <class W> static void with_%s(void (*f)(", entry);
            for (int b = 0; b < buffers; b++)
                (void)fprintf(file, b < s->buffer_count ? "uchar *, " : "wb_i64 *, ");
            (void)fprintf(file, "const W &, uint, uint, uint), void **b, const void *w, uint g, "
                                "uint n, uint l) {\nf(");
            for (int b = 0; b < buffers; b++)
                (void)fprintf(file, b < s->buffer_count ? "(uchar *)b[%d], " : "(wb_i64 *)b[%d], ",
                              b);
            (void)fprintf(file,
                          "*(const W *)w, g, n, l);\n}\nextern \"C\" void run_%s(void **b, const "
                          "void *w, uint g, "
                          "uint n, uint l) { with_%s(%s, b, w, g, n, l); }\n",
                          entry, entry, entry);
        }
    }
}

static char *text_of(const dialect_unit *unit) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    char *joined = dialect_join(unit->kind, unit->sources, unit->count);
    (void)fprintf(stream, "%s\n", joined);
    print_callers(stream, unit);
    (void)fclose(stream);
    free(joined);
    return text;
}

bool metal_build(dialect_unit *unit, char log[DIALECT_LOG]) {
    size_t size = 0;
    char *text = text_of(unit);
    void *object = host_cpp_build(text, "-std=gnu++14 -O0 -I " WB_TESTS_DIR "/program/metal", &size,
                                  log, DIALECT_LOG);
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

/* ---- running ---- */

typedef void caller(void **buffers, const void *block, unsigned group, unsigned groups,
                    unsigned lane);

typedef struct running {
    caller *call;
    void **buffers;
    const void *block;
    unsigned group, groups;
} running;

static void one_item(int lane, void *user) {
    const running *r = user;
    r->call(r->buffers, r->block, r->group, r->groups, (unsigned)lane);
}

static bool launch(const dialect_unit *unit, const wb_launch *l, running *r) {
    char name[64];
    (void)snprintf(name, sizeof name, "run_%s", l->entry);
    *(void **)&r->call = dlsym(unit->handle, name);
    void (**meet)(int) = dlsym(unit->handle, "wb_meet");
    if (!r->call || !meet) return false;
    *meet = fibers_meet;
    r->groups = (unsigned)l->groups;
    for (r->group = 0; r->group < r->groups; r->group++)
        if (!fibers_run(dialect_of(unit->kind)->group, r->group % 2, one_item, r)) return false;
    return true;
}

bool metal_run(const dialect_unit *unit, const wb_source *s, void *const *arguments,
               const size_t *sizes, const uint64_t *late, int64_t *status, char log[DIALECT_LOG]) {
    const bool has_scratch = s->scratch_bytes > 0;
    const int narguments = s->buffer_count - has_scratch;
    (void)sizes;
    void **buffers = calloc((size_t)s->buffer_count + 2, sizeof *buffers);
    int64_t *offsets = calloc((size_t)s->buffer_count + 1, sizeof *offsets);
    int64_t *block = dialect_block(s, offsets, late);
    for (int i = 0; i < narguments; i++) buffers[i] = arguments[i];
    void *scratch = has_scratch ? calloc(1, s->scratch_bytes) : NULL;
    if (has_scratch) buffers[narguments] = scratch;
    if (s->uses_status) buffers[s->buffer_count] = status;
    running r = {.buffers = buffers, .block = block};
    bool ran = true;
    for (int i = 0; i < s->launch_count && ran; i++) ran = launch(unit, &s->launches[i], &r);
    if (!ran)
        (void)snprintf(log, DIALECT_LOG,
                       "a kernel is missing, or its items do not meet at barriers");
    free(scratch);
    free(buffers);
    free(offsets);
    free(block);
    return ran;
}
