/* Metal's language as C++: built into a shared object, run item by item. Items of a group are fibers that take turns at barriers. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "support/dialects.h"

enum { STACK = 64 << 10 };

bool metal_is_there(char *reason, size_t reason_bytes) {
    if (system("g++ --version >/dev/null 2>&1") == 0) return true;
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

static bool write_text(const dialect_unit *unit, const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) return false;
    char *text = dialect_join(unit->kind, unit->sources, unit->count);
    (void)fprintf(file, "%s\n", text);
    print_callers(file, unit);
    free(text);
    return fclose(file) == 0;
}

static void read_log(const char *path, char log[DIALECT_LOG]) {
    FILE *file = fopen(path, "r");
    if (!file) return;
    log[fread(log, 1, DIALECT_LOG - 1, file)] = 0;
    (void)fclose(file);
}

bool metal_build(dialect_unit *unit, char log[DIALECT_LOG]) {
    char folder[] = "/tmp/weber-metal-XXXXXX", command[1024], path[128];
    if (!mkdtemp(folder)) return false;
    (void)snprintf(path, sizeof path, "%s/k.cpp", folder);
    bool built = write_text(unit, path);
    (void)snprintf(command, sizeof command,
                   "g++ -std=gnu++14 -w -O0 -fPIC -shared -I %s/program/metal -o %s/k.so %s/k.cpp "
                   ">%s/log 2>&1",
                   WB_TESTS_DIR, folder, folder, folder);
    built = built && system(command) == 0;
    (void)snprintf(path, sizeof path, "%s/log", folder);
    if (!built) read_log(path, log);
    (void)snprintf(path, sizeof path, "%s/k.so", folder);
    if (built) unit->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (built && !unit->handle) (void)snprintf(log, DIALECT_LOG, "%s", dlerror());
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 && unit->handle;
}

void metal_release(dialect_unit *unit) {
    if (unit->handle) (void)dlclose(unit->handle);
}

/* ---- running ---- */

typedef void caller(void **buffers, const void *block, unsigned group, unsigned groups,
                    unsigned lane);

static struct group {
    caller *call;
    void **buffers;
    const void *block;
    unsigned group, groups;
    int items, current, done;
    ucontext_t main, *fibers;
    char *stacks;
} now;

static void one_item(void) {
    now.call(now.buffers, now.block, now.group, now.groups, (unsigned)now.current);
    now.done++;
}

/* A barrier: the item waits until all others have come to it, since they take turns. */
static void next_fiber(void) { (void)swapcontext(&now.fibers[now.current], &now.main); }

static void start_fiber(void) {
    (void)getcontext(&now.fibers[now.current]);
    now.fibers[now.current].uc_stack.ss_sp = now.stacks + (size_t)now.current * STACK;
    now.fibers[now.current].uc_stack.ss_size = STACK;
    now.fibers[now.current].uc_link = &now.main;
    makecontext(&now.fibers[now.current], one_item, 0);
}

static void run_group(void) {
    bool *ended = calloc((size_t)now.items, sizeof *ended);
    now.done = 0;
    for (now.current = 0; now.current < now.items; now.current++) start_fiber();
    while (now.done < now.items)
        for (int i = 0; i < now.items; i++) {
            if (ended[i]) continue;
            const int before = now.done;
            now.current = i;
            (void)swapcontext(&now.main, &now.fibers[i]);
            ended[i] = now.done > before;
        }
    free(ended);
}

static bool launch(const dialect_unit *unit, const wb_launch *l, bool has_barriers) {
    char name[64];
    (void)snprintf(name, sizeof name, "run_%s", l->entry);
    *(void **)&now.call = dlsym(unit->handle, name);
    void **hook = dlsym(unit->handle, "wb_next_fiber");
    if (!now.call || !hook) return false;
    void (*next)(void) = next_fiber;
    memcpy(hook, &next, sizeof next);
    now.groups = (unsigned)l->groups;
    for (now.group = 0; now.group < now.groups; now.group++) {
        if (has_barriers) {
            run_group();
            continue;
        }
        for (now.current = 0; now.current < now.items; now.current++) one_item();
    }
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
    now =
        (struct group){.buffers = buffers, .block = block, .items = dialect_of(unit->kind)->group};
    now.fibers = calloc((size_t)now.items, sizeof *now.fibers);
    now.stacks = malloc((size_t)now.items * STACK);
    const bool has_barriers = strstr(s->text, "WB_BARRIER") != NULL;
    bool ran = true;
    for (int i = 0; i < s->launch_count && ran; i++)
        ran = launch(unit, &s->launches[i], has_barriers);
    if (!ran) (void)snprintf(log, DIALECT_LOG, "a kernel is missing");
    free(now.fibers);
    free(now.stacks);
    free(scratch);
    free(buffers);
    free(offsets);
    free(block);
    return ran;
}
