/* What ranks refuse to start with: transports that do not fit this Weber, launchers whose transport
 * is not there or to which the program does not belong, MPI that the program has started without
 * threads or has ended. Launchers run this program again, as a rank that has a role. */
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <weber.h>
#include <weber/transport.h>

#include "ranks/transport.h"
#include "support/mpi.h"
#include "support/ranks.h"
#include "support/stage.h"

#define TEXT(x)    #x
#define AS_TEXT(x) TEXT(x)
#define NUMBER     AS_TEXT(WB_TRANSPORT_ABI)

/* ---- transports ---- */

typedef struct transport_row {
    const char *fake; /* or NULL: there is none */
    const char *says;
} transport_row;

static const transport_row transports[] = {
    {NULL,
     "distributed: Open MPI started rank 0 of 2, but its transport cannot be used: "
     "transport_openmpi.so is not installed beside the library (Debian: libopenmpi3); weber run -n "
     "2 starts the program without MPI"},
    {"transport_other_abi", "transport_openmpi.so is for ABI 1, but this Weber needs ABI " NUMBER},
    {"transport_short", "the table of transport_openmpi.so has 16 bytes, but needs "},
    {"transport_refuses", "transport_openmpi.so is for another version of Weber"},
    {"no_symbol", "transport_openmpi.so is not a transport"},
};

static const transport_row *next_transport;

static void join_by_it(void) {
    if (next_transport->fake) stage_install(next_transport->fake, "plugins/transport_openmpi.so");
    (void)setenv("OMPI_COMM_WORLD_RANK", "0", 1), (void)setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    expect(wb_distributed_initialize(NULL) == WB_ERROR_UNSUPPORTED);
    expect_part(wb_error_message(), next_transport->says);
    wb_clear_error();
}

static void transports_that_do_not_fit(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++) {
        next_transport = &transports[i];
        assert_int_equal(on_stage(join_by_it), 0);
    }
}

static void a_transport_of_devices_that_does_not_fit(void) {
    char reason[256] = "";
    stage_install("device_transport_other_abi", "plugins/transport_nccl.so");
    expect(!wb_device_transport_open("transport_nccl.so", reason, sizeof reason));
    expect_text(reason, "transport_nccl.so is for ABI 1, but this Weber needs ABI " NUMBER);
}

/* That of the other implementation alone would make N groups of one. */
static void only_the_other_implementation_s(void) {
    stage_install("transport_other_abi", "plugins/transport_openmpi.so");
    (void)setenv("PMI_RANK", "1", 1), (void)setenv("PMI_SIZE", "3", 1);
    expect(wb_distributed_initialize("MPI") == WB_ERROR_UNSUPPORTED);
    expect_part(wb_error_message(),
                "MPICH started rank 1 of 3, but its transport cannot be used: transport_mpich.so "
                "is not installed beside the library (Debian: libmpich12)");
    wb_clear_error();
}

/* ---- MPI that the program starts ---- */

enum { SINGLE, FUNNELED, SERIALIZED }; /* the same numbers in both implementations */

typedef int start_fn(int *count, char ***arguments, int wanted, int *given);
typedef int end_fn(void);

static struct {
    start_fn *start;
    end_fn *end;
} mpi;

/* As a program that is linked with it has it. */
static void load_mpi(const char *file) {
    void *library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
    union {
        void *symbol;
        start_fn *function;
    } start = {.symbol = library ? dlsym(library, "MPI_Init_thread") : NULL};
    union {
        void *symbol;
        end_fn *function;
    } end = {.symbol = library ? dlsym(library, "MPI_Finalize") : NULL};
    CHECK(start.symbol && end.symbol);
    mpi.start = start.function, mpi.end = end.function;
}

static void start_mpi(int wanted) {
    int given = 0;
    CHECK(mpi.start(NULL, NULL, wanted, &given) == 0 && given >= wanted);
}

static void is_refused(wb_status status, const char *text) {
    if (status != WB_OK && strstr(wb_error_message(), text)) {
        wb_clear_error();
        return;
    }
    (void)fprintf(stderr, "expected \"%s\", got %d \"%s\"\n", text, (int)status,
                  wb_error_message());
    _exit(1);
}

static void add_up(void) {
    wb_scope_open();
    const int64_t count = 3;
    wb_array *x = wb_full_make(WB_F32, wb_rank() + 1, 1, &count);
    CHECK(wb_total_workers() == 2);
    CHECK(wb_item(wb_sum(wb_allreduce(x, WB_REDUCE_SUM))) == 9);
    CHECK(wb_scope_close() == WB_OK);
}

static void single(void) {
    start_mpi(SINGLE);
    is_refused(wb_distributed_initialize("MPI"),
               "the program has started MPI without threads; it must ask for "
               "MPI_THREAD_SERIALIZED at least");
    CHECK(mpi.end() == 0);
}

static void funneled(void) {
    start_mpi(FUNNELED);
    is_refused(wb_distributed_initialize("MPI"), "MPI_THREAD_SERIALIZED at least");
    CHECK(mpi.end() == 0);
}

/* To have started it is no error; it is not ended for the program. */
static void serialized(void) {
    start_mpi(SERIALIZED);
    add_up();
    CHECK(wb_distributed_initialize("MPI") == WB_OK);
    CHECK(mpi.end() == 0);
}

static void ended_too_early(void) {
    start_mpi(SERIALIZED);
    add_up();
    CHECK(mpi.end() == 0);
    is_refused(wb_barrier(), "the program has called MPI_Finalize");
    is_refused(wb_barrier(), "given up");
}

static void ended_before(void) {
    start_mpi(SERIALIZED);
    CHECK(mpi.end() == 0);
    is_refused(wb_distributed_initialize("MPI"), "the program has called MPI_Finalize");
}

static void never_ended(void) {
    start_mpi(SERIALIZED);
    add_up();
}

/* Who ends before the others have joined would be what they complain of. */
static void wait_for_both(void) {
    struct stat about = {.st_size = 0};
    const int file = open("refused", O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(file >= 0 && write(file, "x", 1) == 1);
    for (int tries = 0; about.st_size < 2 && tries < 2000; tries++) {
        CHECK(fstat(file, &about) == 0);
        (void)usleep(10000);
    }
    (void)close(file);
}

/* The program belongs to the other launcher, to which each process is alone. */
static void foreign(void) {
    is_refused(wb_distributed_initialize("MPI"), "of 2, but in ");
    wait_for_both();
}

typedef struct role {
    const char *name;
    void (*play)(void);
    bool is_foreign;
    bool is_without_end; /* which Open MPI's launcher takes for a failure */
} role;

static const char no_end[] = "has started MPI, but ends without MPI_Finalize";

static const role roles[] = {
    {"single", single, false, false},
    {"funneled", funneled, false, false},
    {"serialized", serialized, false, false},
    {"ended_too_early", ended_too_early, false, false},
    {"ended_before", ended_before, false, false},
    {"never_ended", never_ended, false, true},
    {"foreign", foreign, true, false},
};
enum { ROLES = sizeof roles / sizeof *roles };

/* What the ranks say goes to a file: a launcher that ends on a failure may lose what it was to pass
 * on. */
static int be_a_rank(const char *name, const char *library) {
    (void)alarm(RANKS_SECONDS);
    CHECK(freopen("said", "a", stderr));
    load_mpi(library);
    for (size_t i = 0; i < ROLES; i++)
        if (strcmp(roles[i].name, name) == 0) roles[i].play();
    return wb_failed() ? wb_report("rank") : 0;
}

static const char *self;

static bool launch(const char *launcher, const char *library, const role *r) {
    char command[1024];
    (void)snprintf(command, sizeof command, "timeout 120 %s -n 2 %s %s %s >printed 2>&1", launcher,
                   self, r->name, library);
    (void)unlink("refused"), stage_write("said", "");
    const bool fails = r->is_without_end && strcmp(launcher, OPEN_MPI) == 0;
    const bool has_failed = system(command) != 0;
    const bool is_right =
        has_failed == fails && (strstr(stage_read("said"), no_end) != NULL) == r->is_without_end;
    if (!is_right) (void)fprintf(stderr, "%s\n%s\n", command, stage_read("said"));
    if (!is_right) (void)fprintf(stderr, "%s\n", stage_read("printed"));
    return is_right;
}

#define OPEN_LIBRARY  "libmpi.so.40"
#define MPICH_LIBRARY "libmpich.so.12"

static void play_all(const char *launcher, const char *library, const char *other) {
    set_mpi_environment();
    for (size_t i = 0; i < ROLES; i++)
        if (!roles[i].is_foreign)
            expect(launch(launcher, library, &roles[i]));
        else if (other)
            expect(launch(launcher, other, &roles[i]));
}

static void by_open_mpi(void) {
    if (has_mpi("mpirun.openmpi", "openmpi"))
        play_all(OPEN_MPI, OPEN_LIBRARY, has_mpi("mpirun.mpich", "mpich") ? MPICH_LIBRARY : NULL);
}

static void by_mpich(void) {
    if (has_mpi("mpirun.mpich", "mpich"))
        play_all(MPICH, MPICH_LIBRARY, has_mpi("mpirun.openmpi", "openmpi") ? OPEN_LIBRARY : NULL);
}

int main(int count, char **arguments) {
    char path[4096];
    if (count == 3) return be_a_rank(arguments[1], arguments[2]);
    self = realpath(arguments[0], path);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transports_that_do_not_fit),
        SCENE(a_transport_of_devices_that_does_not_fit),
        SCENE(only_the_other_implementation_s),
        SCENE(by_open_mpi),
        SCENE(by_mpich),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
