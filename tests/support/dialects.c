#include "support/dialects.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <backends/cuda/prelude.txt.h>
#include <backends/metal/prelude.txt.h>
#include <backends/opencl/prelude.txt.h>

/* ---- the dialects ---- */

static const char *serial_prelude(void) {
    static const char line[] = "#define WB_SERIAL 1\n";
    static char text[sizeof line + sizeof opencl_prelude_text];
    if (!text[0]) (void)snprintf(text, sizeof text, "%s%s", line, opencl_prelude_text);
    return text;
}

const wb_dialect *dialect_of(dialect_kind kind) {
    static wb_dialect dialects[DIALECT_COUNT] = {
        [DIALECT_OPENCL_SERIAL] = {.name = "OpenCL C (serial)",
                                   .group = 1,
                                   .is_serial = true,
                                   .has_f64 = true},
        [DIALECT_OPENCL] = {.name = "OpenCL C",
                            .prelude = opencl_prelude_text,
                            .group = 64,
                            .has_f64 = true},
        [DIALECT_METAL] = {.name = "Metal", .prelude = metal_prelude_text, .group = 64},
        [DIALECT_CUDA] = {.name = "CUDA C",
                          .prelude = cuda_prelude_text,
                          .group = 256,
                          .warp = 32,
                          .job_bytes = 4096,
                          .most_group = 512,
                          .has_f64 = true},
        [DIALECT_HIP] = {.name = "HIP",
                         .prelude = cuda_prelude_text,
                         .group = 256,
                         .warp = 32,
                         .job_bytes = 4096,
                         .has_f64 = true},
        [DIALECT_OPENCL_NVIDIA] = {.name = "OpenCL C (NVIDIA)",
                                   .prelude = opencl_prelude_text,
                                   .group = 256,
                                   .has_f64 = true},
    };
    dialects[DIALECT_OPENCL_SERIAL].prelude = serial_prelude();
    return &dialects[kind];
}

char *dialect_join(dialect_kind kind, const wb_source *const *sources, int count) {
    const char *prelude = dialect_of(kind)->prelude;
    size_t size = strlen(prelude) + 2;
    for (int i = 0; i < count; i++) size += strlen(sources[i]->text) + 1;
    char *text = malloc(size), *at = text;
    at += sprintf(at, "%s\n", prelude);
    for (int i = 0; i < count; i++) {
        bool is_again = false; /* equal texts are one */
        for (int k = 0; k < i; k++)
            is_again = is_again || strcmp(sources[k]->text, sources[i]->text) == 0;
        if (!is_again) at += sprintf(at, "%s\n", sources[i]->text);
    }
    return text;
}

int64_t *dialect_block(const wb_source *s, const int64_t *offsets, const uint64_t *late) {
    int64_t *words = calloc((size_t)s->word_count + 1, sizeof *words);
    memcpy(words, s->words, (size_t)s->word_count * sizeof *words);
    for (int i = 0; i < s->buffer_count; i++) words[s->first_offset + i] = offsets[i];
    for (int i = 0; i < s->late_count; i++) words[s->first_late + i] = (int64_t)late[s->late[i]];
    return words;
}

/* ---- CUDA and HIP: compilers with the same functions ---- */

typedef struct compiler {
    const char *libraries[6], *prefix, *package;
    const char *options[2][3]; /* of each architecture */
} compiler;

static const compiler compilers[DIALECT_COUNT] = {
    [DIALECT_CUDA] = {.libraries = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                    "libnvrtc.so"},
                      .prefix = "nvrtc",
                      .package = "NVRTC of the CUDA toolkit",
                      .options = {{"--gpu-architecture=sm_80"}, {"--gpu-architecture=sm_90"}}},
    [DIALECT_HIP] = {.libraries = {"libhiprtc.so.6", "libhiprtc.so.5", "libamdhip64.so.6",
                                   "libamdhip64.so.5"},
                     .prefix = "hiprtc",
                     .package = "hipRTC (Debian: libamdhip64-5, libhiprtc-builtins5)",
                     .options = {{"--offload-arch=gfx90a"}, {"--offload-arch=gfx1030"}}},
};

static void *function_of(void *library, const char *prefix, const char *name) {
    char full[64];
    (void)snprintf(full, sizeof full, "%s%s", prefix, name);
    return dlsym(library, full);
}

static void *open_compiler(const compiler *c) {
    for (int i = 0; i < 6 && c->libraries[i]; i++) {
        void *library = dlopen(c->libraries[i], RTLD_NOW | RTLD_LOCAL);
        if (library && function_of(library, c->prefix, "CompileProgram")) return library;
        if (library) dlclose(library);
    }
    return NULL;
}

typedef int create_fn(void **program, const char *text, const char *name, int headers,
                      const char **header_texts, const char **header_names);
typedef int compile_fn(void *program, int options, const char **option_texts);
typedef int size_fn(void *program, size_t *size);
typedef int log_fn(void *program, char *log);

/* In the child: compiles for each architecture; prints the log of a failure. */
static int compile(const compiler *c, const char *text) {
    void *library = open_compiler(c);
    if (!library) return 1;
    create_fn *create;
    compile_fn *build;
    size_fn *log_size;
    log_fn *get_log;
    *(void **)&create = function_of(library, c->prefix, "CreateProgram");
    *(void **)&build = function_of(library, c->prefix, "CompileProgram");
    *(void **)&log_size = function_of(library, c->prefix, "GetProgramLogSize");
    *(void **)&get_log = function_of(library, c->prefix, "GetProgramLog");
    for (int a = 0; a < 2; a++) {
        void *program = NULL;
        const char *options[3];
        int count = 0;
        for (; count < 3 && c->options[a][count]; count++) options[count] = c->options[a][count];
        int code = create(&program, text, "weber.cu", 0, NULL, NULL);
        if (code == 0) code = build(program, count, options);
        if (code == 0) continue;
        size_t size = 0;
        char *log = program && log_size(program, &size) == 0 ? calloc(size + 1, 1) : NULL;
        if (log) (void)get_log(program, log);
        printf("%s: error %d\n%s\n", options[0], code, log ? log : "");
        return 1;
    }
    return 0;
}

/* Runs in a child whose output goes to the log. */
static bool in_child(int (*run)(const compiler *, const char *), const compiler *c,
                     const char *text, char log[DIALECT_LOG]) {
    int ends[2];
    (void)fflush(NULL);
    if (pipe(ends) != 0) return false;
    const pid_t child = fork();
    if (child == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)dup2(ends[1], STDERR_FILENO);
        const int failed = run(c, text);
        (void)fflush(NULL);
        _exit(failed);
    }
    (void)close(ends[1]);
    size_t size = 0;
    for (ssize_t more; (more = read(ends[0], log + size, DIALECT_LOG - 1 - size)) > 0;)
        size += (size_t)more;
    log[size] = 0;
    (void)close(ends[0]);
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child) return false;
    if (WIFSIGNALED(status) && size + 64 < DIALECT_LOG)
        (void)sprintf(log + size, "the compiler was ended by signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int look_for(const compiler *c, const char *text) {
    (void)text;
    return open_compiler(c) ? 0 : 1;
}

/* ---- all of them ---- */

bool dialect_can_run(dialect_kind kind) { return kind < DIALECT_CUDA; }

bool dialect_is_there(dialect_kind kind, char *reason, size_t reason_bytes) {
    char log[DIALECT_LOG];
    if (kind == DIALECT_METAL) return metal_is_there(reason, reason_bytes);
    if (kind < DIALECT_METAL) return opencl_is_there(reason, reason_bytes);
    if (kind == DIALECT_OPENCL_NVIDIA) return clang_is_there(reason, reason_bytes);
    if (in_child(look_for, &compilers[kind], NULL, log)) return true;
    (void)snprintf(reason, reason_bytes, "%s is not installed", compilers[kind].package);
    return false;
}

dialect_unit *dialect_build(dialect_kind kind, const wb_source *const *sources, int count,
                            char log[DIALECT_LOG]) {
    dialect_unit *unit = calloc(1, sizeof *unit);
    *unit = (dialect_unit){.kind = kind, .sources = sources, .count = count};
    log[0] = 0;
    bool built;
    if (kind == DIALECT_METAL) {
        built = metal_build(unit, log);
    } else if (kind < DIALECT_METAL) {
        built = opencl_build(unit, log);
    } else {
        char *text = dialect_join(kind, sources, count);
        built = kind == DIALECT_OPENCL_NVIDIA ? clang_check(text, log)
                                              : in_child(compile, &compilers[kind], text, log);
        free(text);
    }
    if (built) return unit;
    free(unit);
    return NULL;
}

bool dialect_run(dialect_unit *unit, int index, void *const *arguments, const size_t *sizes,
                 const uint64_t *late, int64_t *status, char log[DIALECT_LOG]) {
    const wb_source *source = unit->sources[index];
    if (unit->kind == DIALECT_METAL)
        return metal_run(unit, source, arguments, sizes, late, status, log);
    return opencl_run(unit, source, arguments, sizes, late, status, log);
}

void dialect_release(dialect_unit *unit) {
    if (!unit) return;
    if (unit->kind == DIALECT_METAL)
        metal_release(unit);
    else if (unit->kind < DIALECT_METAL)
        opencl_release(unit);
    free(unit);
}
