/* weber ranks: what a group of processes can do, asked of the group itself. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weber/array.h>
#include <weber/device.h>
#include <weber/distributed.h>
#include <weber/ops.h>

#include "tool.h"

static const char help[] =
    "usage: weber run -n N [--mpi] --self-test     or: mpiexec -n N weber ranks\n"
    "\n"
    "Checks a group of processes: where its ranks are and what carries their arrays (under MPI,\n"
    "whether it takes memory of GPUs), sums of whole numbers in every type, the same bits on all\n"
    "ranks, how long sums take, and that a rank which makes another collective is refused by all.\n"
    "Exit status 1 where something is wrong.\n";

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_everywhere(wb_array *x, double value) {
    wb_array *right = wb_cast(wb_eq(wb_cast(x, WB_F64), wb_number(value)), WB_I64);
    return wb_item(wb_sum(right)) == (double)wb_count(x);
}

static bool check_sums(void) {
    static const wb_dtype types[] = {WB_F32, WB_F64, WB_F16, WB_BF16, WB_I32, WB_I64, WB_U8};
    const int64_t count = 1000;
    const int n = wb_total_workers();
    const double sum = n <= 20 ? n * (n + 1) / 2.0 : n; /* u8 holds 210 */
    const double own = n <= 20 ? wb_rank() + 1 : 1;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        wb_array *x = wb_full_make(types[i], own, 1, &count);
        if (is_everywhere(wb_allreduce(x, WB_REDUCE_SUM), sum)) continue;
        (void)fprintf(stderr, "weber ranks: rank %d: a sum of %s is wrong\n", wb_rank(),
                      wb_dtype_name(types[i]));
        return false;
    }
    return true;
}

/* Magnitudes that differ: another order of adding shows in the last bits. */
static bool check_bits(void) {
    const int64_t count = 10000;
    wb_array *i = wb_iota_make(WB_F32, 0, 1, &count);
    wb_array *x = wb_mul(wb_sin(wb_mul(i, wb_number(wb_rank() + 0.7))), wb_exp(wb_cos(i)));
    wb_array *sum = wb_allreduce(x, WB_REDUCE_SUM);
    wb_array *most = wb_allreduce(sum, WB_REDUCE_MAX), *least = wb_allreduce(sum, WB_REDUCE_MIN);
    return is_everywhere(wb_sub(most, least), 0);
}

/* The median of a few sums, seconds. */
static double time_of(int64_t bytes) {
    enum { TIMES = 9 };
    double seconds[TIMES];
    const int64_t count = bytes / 4;
    wb_array *x = wb_full_make(WB_F32, 1, 1, &count);
    if (wb_eval(x) != WB_OK) return 0;
    for (int k = 0; k < TIMES; k++) {
        if (wb_scope_open() != WB_OK || wb_barrier() != WB_OK) return 0;
        const double begin = now();
        if (wb_eval(wb_allreduce(x, WB_REDUCE_SUM)) != WB_OK) return 0;
        const double taken = now() - begin;
        (void)wb_scope_close();
        int at = k;
        for (; at > 0 && seconds[at - 1] > taken; at--) seconds[at] = seconds[at - 1];
        seconds[at] = taken;
    }
    return seconds[TIMES / 2];
}

static void show_times(void) {
    for (int64_t bytes = 4; bytes <= 64 << 20; bytes *= 64) {
        const double seconds = time_of(bytes);
        if (wb_rank() == 0 && !wb_failed())
            (void)printf("sum of %8lld bytes: %10.1f us\n", (long long)bytes, 1e6 * seconds);
    }
}

/* ---- MPI ---- */

/* A function of the MPI that the transport has loaded; NULL: there is none. */
static void *find_in_mpi(const char *name) {
    static const char *const libraries[] = {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12"};
    void *found = dlsym(RTLD_DEFAULT, name);
    for (size_t i = 0; !found && i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        if (!library) continue;
        found = dlsym(library, name);
        (void)dlclose(library);
    }
    return found;
}

/* Open MPI (mpi-ext.h) and MPICH (mpi.h) have functions of these names and this type. */
static const char *answer(const char *name) {
    union {
        void *symbol;
        int (*function)(void);
    } ask = {.symbol = find_in_mpi(name)};
    if (!ask.symbol) return "not known";
    return ask.function() ? "yes" : "no";
}

static void show_mpi(void) {
    union {
        void *symbol;
        int (*function)(char *text, int *length);
    } version = {.symbol = find_in_mpi("MPI_Get_library_version")};
    char text[8192] = "MPI"; /* MPICH's, the longest */
    int length;
    if (version.symbol) (void)version.function(text, &length);
    text[strcspn(text, ",\n")] = 0;
    for (char *c = text; *c; c++)
        if (*c == '\t') *c = ' ';
    const char *rocm = answer("MPIX_Query_rocm_support");
    if (strcmp(rocm, "not known") == 0) rocm = answer("MPIX_Query_hip_support");
    (void)printf("%s accepts memory of CUDA: %s, of ROCm: %s; Weber passes it memory of the host\n",
                 text, answer("MPIX_Query_cuda_support"), rocm);
}

/* ---- the last check, after which the group is given up ---- */

/* One rank's array has another size: an error on all. */
static bool check_refusal(void) {
    const int64_t count = wb_rank() == 1 ? 5 : 4;
    if (wb_total_workers() == 1) return true;
    const wb_status status =
        wb_eval(wb_allreduce(wb_full_make(WB_F32, 1, 1, &count), WB_REDUCE_SUM));
    const bool is_refused =
        status != WB_OK && strstr(wb_error_message(), "is allreduce of 5 f32") != NULL;
    if (is_refused) wb_clear_error();
    if (wb_rank() == 0 || !is_refused)
        (void)printf("another size on one rank: %s\n", is_refused ? "refused by all" : "NOT seen");
    return is_refused;
}

int tool_ranks(int count, char **arguments) {
    if (count == 1 && strcmp(arguments[0], "--help") == 0) return tool_help(help, true);
    if (count) return tool_wrong(help, "ranks: does not take \"%s\"", arguments[0]);
    const char *transport = wb_get_distributed_backend(NULL);
    char host[256] = "";
    (void)gethostname(host, sizeof host - 1);
    if (!transport || wb_scope_open() != WB_OK) return wb_report("weber ranks");
    const wb_device *device = wb_get_device();
    if (!device) return wb_report("weber ranks");
    const wb_properties about = wb_device_properties(device);
    (void)printf("rank %d of %d by %s: %d of %d on %s, process %ld, %d threads, device %s%s%s\n",
                 wb_rank(), wb_total_workers(), transport, wb_local_rank(), wb_local_workers(),
                 host, (long)getpid(), wb_threads(), wb_device_name(device),
                 about.uuid[0] || about.address[0] ? " at " : "",
                 about.uuid[0] ? about.uuid : about.address);
    if (wb_rank() == 0 && strcmp(transport, "MPI") == 0) show_mpi();
    (void)fflush(stdout);
    const bool sums = check_sums() && !wb_failed(), bits = check_bits() && !wb_failed();
    if (wb_rank() == 0)
        (void)printf("sums: %s; bits: %s\n", sums ? "exact" : "wrong",
                     bits ? "the same on all ranks" : "they differ");
    if (sums && bits) show_times();
    const bool refusal = !wb_failed() && check_refusal();
    (void)wb_scope_close();
    return wb_report("weber ranks") || !sums || !bits || !refusal;
}
