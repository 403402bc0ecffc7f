/* What the rest of the library takes for granted of the system that it was built for. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "base/clock.h"
#include "platform/files.h"
#include "platform/library.h"
#include "platform/memory.h"
#include "platform/process.h"
#include "platform/processor.h"
#include "platform/threads.h"
#include "support/sanitized.h"
#include "support/support.h"

/* ---- libraries ---- */

static void libraries_know_where_they_are(void **state) {
    (void)state;
    char path[PATH_MAX];
    union {
        const char *(*function)(void);
        const void *address;
    } in_zlib = {.function = zlibVersion};
    assert_true(wb_platform_library_of(in_zlib.address, path, sizeof path));
    assert_int_equal(path[0], '/');
    assert_non_null(strstr(path, "libz."));
    assert_false(wb_platform_library_of(in_zlib.address, path, 3));
    static const int own;
    assert_false(wb_platform_library_of(&own, path, sizeof path));
}

static void loaded_libraries_are_known_by_their_names(void **state) {
    (void)state;
    assert_true(wb_platform_is_loaded("libz."));
    assert_false(wb_platform_is_loaded("ibz."));
    assert_false(wb_platform_is_loaded("libnothing"));
}

/* A library that is absent, and one that is there and is none. */
static void the_loaders_words_are_understood(void **state) {
    (void)state;
    char path[] = "/tmp/weber-library-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0 && write(file, "no library", 10) == 10 && close(file) == 0);
    const struct {
        const char *file;
        bool is_absent;
    } rows[] = {{"/no/such/library.so", true}, {"libweber_no_such.so", true}, {path, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_null(dlopen(rows[i].file, RTLD_NOW | RTLD_LOCAL));
        const char *message = dlerror(), *words = wb_platform_loader_words(message, rows[i].file);
        assert_int_equal(wb_platform_loader_says_absent(message), rows[i].is_absent);
        assert_true(words && *words);
        assert_int_not_equal(strncmp(words, rows[i].file, strlen(rows[i].file)), 0);
    }
    assert_null(wb_platform_loader_words(NULL, "x"));
    (void)unlink(path);
}

/* ---- memory and processor ---- */

static void memory_has_sizes(void **state) {
    (void)state;
    enum { MORE = 8 << 20 };
    const size_t page = wb_platform_page_bytes();
    const int64_t heap = wb_platform_heap_bytes(), own = wb_platform_own_bytes();
    assert_true(page >= 4096 && (page & (page - 1)) == 0);
    assert_true(wb_platform_memory_bytes() > MORE && own > 0);
    char *block = malloc(MORE);
    assert_non_null(block);
    wb_platform_use_large_pages(block, MORE);
    memset(block, 1, MORE);
    assert_true(SANITIZED || wb_platform_heap_bytes() >= heap + MORE);
    assert_true(SANITIZED || wb_platform_own_bytes() >= own + MORE / 2);
    assert_true(wb_platform_peak_bytes() >= MORE);
    assert_true(wb_platform_has_address_space(MORE));
    assert_int_equal(block[MORE - 1], 1);
    free(block);
}

static void processors_have_features_and_perhaps_a_name(void **state) {
    (void)state;
    char name[128] = "?";
    wb_platform_processor_name(name, sizeof name);
    assert_string_not_equal(name, "?");
    for (int f = WB_X86_AVX2; f <= WB_ARM_BF16; f++)
        print_message("  feature %d: %d\n", f, wb_platform_processor_has((wb_processor_feature)f));
#if defined(__x86_64__)
    assert_false(wb_platform_processor_has(WB_ARM_BF16));
    if (wb_platform_processor_has(WB_X86_AVX512_BF16))
        assert_true(wb_platform_processor_has(WB_X86_AVX512));
    if (wb_platform_processor_has(WB_X86_AVX512))
        assert_true(wb_platform_processor_has(WB_X86_AVX2));
#else
    for (int f = WB_X86_AVX2; f < WB_ARM_BF16; f++)
        assert_false(wb_platform_processor_has((wb_processor_feature)f));
#endif
}

/* ---- threads ---- */

typedef struct seen {
    bool blocks_term;
    char name[32];
} seen;

static void *look(void *to) {
    seen *s = to;
    sigset_t blocked;
    wb_platform_begin_work("weber test");
    (void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    s->blocks_term = sigismember(&blocked, SIGTERM);
    (void)pthread_getname_np(pthread_self(), s->name, sizeof s->name);
    return NULL;
}

static void threads_get_no_signals_and_have_names(void **state) {
    (void)state;
    seen s = {.blocks_term = false};
    sigset_t blocked;
    pthread_t thread;
    assert_true(wb_platform_start_thread(&thread, look, &s));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(s.blocks_term);
    assert_string_equal(s.name, "weber test");
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &blocked), 0);
    assert_false(sigismember(&blocked, SIGTERM));
}

static void cores_can_be_counted_and_left(void **state) {
    (void)state;
    const int cores = wb_platform_cores(), core = wb_platform_current_core();
    assert_true(cores >= 1 && core >= -1);
    wb_platform_change_core();
    assert_int_equal(wb_platform_cores(), cores);
    wb_platform_note_cores();
    wb_platform_leave_core(core);
    if (core >= 0 && cores > 1) assert_int_not_equal(wb_platform_current_core(), core);
    wb_platform_use_all_cores();
    assert_true(wb_platform_cores() >= cores);
}

static _Atomic uint32_t word;

static void *change_word(void *unused) {
    (void)unused;
    wb_platform_sleep_until(wb_clock() + 0.02);
    atomic_store(&word, 2);
    wb_platform_wake(&word);
    return NULL;
}

static void a_word_wakes_who_sleeps_on_it(void **state) {
    (void)state;
    const double begin = wb_clock();
    pthread_t thread;
    atomic_store(&word, 1);
    wb_platform_sleep_on(&word, 0, 100000); /* is another already */
    assert_true(wb_platform_start_thread(&thread, change_word, NULL));
    while (atomic_load(&word) == 1) wb_platform_sleep_on(&word, 1, 100000);
    assert_true(wb_clock() - begin < 50);
    assert_int_equal(pthread_join(thread, NULL), 0);
    wb_platform_sleep_on(&word, 2, 1); /* nobody wakes it: it comes back */
}

static void sleeping_takes_until_then(void **state) {
    (void)state;
    const double end = wb_clock() + 0.01;
    wb_platform_sleep_until(end);
    assert_true(wb_clock() >= end);
    wb_platform_sleep_until(end - 1);
}

/* ---- files ---- */

static bool is_locked_for_others(int file) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 3, .l_len = 1};
        _exit(fcntl(file, F_SETLK, &lock) == 0 ? 0 : 1);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return WEXITSTATUS(status) == 1;
}

static void shared_memory_is_mapped_grown_and_locked(void **state) {
    (void)state;
    char name[64];
    (void)snprintf(name, sizeof name, "/weber-test-platform-%d-0123456789abcdef", (int)getpid());
    const size_t bytes = 3 * wb_platform_page_bytes();
    assert_int_equal(wb_platform_open_shared(name, O_RDWR), -1);
    assert_int_equal(errno, ENOENT);
    const int file = wb_platform_open_shared(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC);
    const int other = wb_platform_open_shared(name, O_RDWR | O_CLOEXEC);
    assert_true(file >= 0 && other >= 0);
    assert_int_equal(wb_platform_open_shared(name, O_CREAT | O_EXCL | O_RDWR), -1);
    assert_int_equal(wb_platform_grow_shared(file, bytes), 0);
    assert_int_equal(wb_platform_grow_shared(other, bytes), 0);
    char *a = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    char *b = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
    assert_true(a != MAP_FAILED && b != MAP_FAILED);
    assert_int_equal(b[bytes - 1], 0);
    a[bytes - 1] = 7;
    assert_int_equal(b[bytes - 1], 7);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 3, .l_len = 1};
    assert_false(is_locked_for_others(file));
    assert_int_equal(fcntl(file, F_SETLK, &lock), 0);
    assert_true(is_locked_for_others(other));
    wb_platform_unlink_shared(name);
    assert_int_equal(wb_platform_open_shared(name, O_RDWR), -1);
    (void)munmap(a, bytes), (void)munmap(b, bytes);
    (void)close(file), (void)close(other);
}

static void files_are_synced_and_what_is_none_is_not(void **state) {
    (void)state;
    char path[] = "/tmp/weber-sync-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0 && write(file, "x", 1) == 1);
    assert_true(wb_platform_sync_file(file));
    (void)close(file), (void)unlink(path);
    assert_false(wb_platform_sync_file(file));
    assert_int_equal(errno, EBADF);
}

/* ---- this process ---- */

static void the_process_knows_itself(void **state) {
    (void)state;
    char path[PATH_MAX];
    assert_true(wb_platform_program(path, sizeof path));
    assert_string_equal(strrchr(path, '/'), "/test_platform");
    assert_int_equal(access(path, X_OK), 0);
    assert_false(wb_platform_program(path, 4));
    assert_int_equal(setenv("WEBER_TEST_PLATFORM", "here", 1), 0);
    assert_string_equal(wb_platform_trusted_variable("WEBER_TEST_PLATFORM"), "here");
    assert_null(wb_platform_trusted_variable("WEBER_TEST_NO_PLATFORM"));
    bool is_there = false;
    for (char **v = wb_platform_environment(); *v; v++)
        is_there = is_there || strcmp(*v, "WEBER_TEST_PLATFORM=here") == 0;
    assert_true(is_there);
}

static void signals_can_be_waited_for(void **state) {
    (void)state;
    sigset_t set, before;
    bool is_from_terminal = true;
    (void)sigemptyset(&set), (void)sigaddset(&set, SIGUSR1);
    assert_int_equal(sigprocmask(SIG_BLOCK, &set, &before), 0);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    assert_int_equal(wb_platform_await_signal(&set, &is_from_terminal), SIGUSR1);
    assert_false(is_from_terminal);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

/* A shell gives the path back, whatever stands in it. */
static void a_path_is_one_word_of_a_shell(void **state) {
    (void)state;
    static const char *const paths[] = {"/bin/plain", "/it's/here", "'", "/a b/$HOME/`x`/\"\\/'"};
    char word[100], command[160], said[100];
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_true(wb_platform_quote(paths[i], word, sizeof word));
        (void)snprintf(command, sizeof command, "printf %%s %s", word);
        FILE *pipe = popen(command, "r");
        assert_non_null(pipe);
        said[fread(said, 1, sizeof said - 1, pipe)] = 0;
        assert_int_equal(pclose(pipe), 0);
        assert_string_equal(said, paths[i]);
        assert_false(wb_platform_quote(paths[i], word, strlen(word)));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libraries_know_where_they_are),
        cmocka_unit_test(a_path_is_one_word_of_a_shell),
        cmocka_unit_test(loaded_libraries_are_known_by_their_names),
        cmocka_unit_test(the_loaders_words_are_understood),
        cmocka_unit_test(memory_has_sizes),
        cmocka_unit_test(processors_have_features_and_perhaps_a_name),
        cmocka_unit_test(threads_get_no_signals_and_have_names),
        cmocka_unit_test(a_word_wakes_who_sleeps_on_it),
        cmocka_unit_test(sleeping_takes_until_then),
        cmocka_unit_test(cores_can_be_counted_and_left),
        cmocka_unit_test(shared_memory_is_mapped_grown_and_locked),
        cmocka_unit_test(files_are_synced_and_what_is_none_is_not),
        cmocka_unit_test(the_process_knows_itself),
        cmocka_unit_test(signals_can_be_waited_for),
    };
    return cmocka_run_group_tests_name("platform", tests, NULL, NULL);
}
