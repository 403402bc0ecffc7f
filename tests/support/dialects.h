/* Kernel texts under the compilers that are installed, and, where something can run them, run.
 *
 *     char log[DIALECT_LOG];
 *     dialect_unit *unit = dialect_build(DIALECT_OPENCL, sources, 3, log); // NULL: log says why
 *     dialect_run(unit, 1, arguments, sizes, late, log); // sources[1], on host memory
 *     dialect_release(unit);
 *
 * The texts of a unit are compiled together. CUDA and HIP are compiled for two architectures each,
 * and do not run; Metal is compiled as C++ with a stand-in for Apple's header
 * (tests/program/metal), and runs on the CPU. OpenCL C for NVIDIA's cards is compiled by clang with
 * warnings as errors: their compiler is an older clang, which has neither extensions nor pragmas
 * that others may have. CUDA's and HIP's compilers leak and may abort: they
 * work in a child process; use them before OpenCL, whose threads a child would miss. */
#ifndef WB_TESTS_DIALECTS_H
#define WB_TESTS_DIALECTS_H

#include <weber/plugin.h>

enum { DIALECT_LOG = 1 << 16 };

typedef enum dialect_kind {
    DIALECT_OPENCL_SERIAL, /* for cores that run a group's items one after another */
    DIALECT_OPENCL,
    DIALECT_METAL,
    DIALECT_CUDA,
    DIALECT_HIP,
    DIALECT_OPENCL_NVIDIA, /* compiled as NVIDIA's OpenCL would, as far as clang can say */
    DIALECT_COUNT
} dialect_kind;

typedef struct dialect_unit dialect_unit;

/* What renderers are given. */
const wb_dialect *dialect_of(dialect_kind kind);

/* False: the compiler is not installed; the reason says what is missing. */
bool dialect_is_there(dialect_kind kind, char *reason, size_t reason_bytes);

/* True if dialect_run can run its units. */
bool dialect_can_run(dialect_kind kind);

/* The sources belong to the caller and have to stay. */
dialect_unit *dialect_build(dialect_kind kind, const wb_source *const *sources, int count,
                            char log[DIALECT_LOG]);

/* Runs all launches of source number `index`. arguments: host memory, one for each argument of the
 * command without the scratch memory, of sizes bytes; the same address may come twice. late: as in
 * wb_backend.run. status: NULL, or the four words. */
bool dialect_run(dialect_unit *unit, int index, void *const *arguments, const size_t *sizes,
                 const uint64_t *late, int64_t *status, char log[DIALECT_LOG]);

void dialect_release(dialect_unit *unit);

/* ---- for the files of the harness ---- */

struct dialect_unit {
    dialect_kind kind;
    const wb_source *const *sources;
    int count;
    void *handle; /* the program, or the shared object */
};

/* Prelude and texts one after another; to be freed. */
char *dialect_join(dialect_kind kind, const wb_source *const *sources, int count);

/* The block with the offsets given and the late values; to be freed. */
int64_t *dialect_block(const wb_source *source, const int64_t *offsets, const uint64_t *late);

bool opencl_is_there(char *reason, size_t reason_bytes);
bool opencl_build(dialect_unit *unit, char log[DIALECT_LOG]);
bool opencl_run(const dialect_unit *unit, const wb_source *source, void *const *arguments,
                const size_t *sizes, const uint64_t *late, int64_t *status, char log[DIALECT_LOG]);
void opencl_release(dialect_unit *unit);

/* Compiled only (dialects_clang.c). */
bool clang_is_there(char *reason, size_t reason_bytes);
bool clang_check(const char *text, char log[DIALECT_LOG]);

bool metal_is_there(char *reason, size_t reason_bytes);
bool metal_build(dialect_unit *unit, char log[DIALECT_LOG]);
bool metal_run(const dialect_unit *unit, const wb_source *source, void *const *arguments,
               const size_t *sizes, const uint64_t *late, int64_t *status, char log[DIALECT_LOG]);
void metal_release(dialect_unit *unit);

#endif
