/* What ranks tell each other first, and what they read of one another: values that there are not,
 * texts without an end, ranks of other versions and other runs, memory of others. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <weber.h>

#include "platform/files.h"
#include "ranks/compare.h"
#include "ranks/greeting.h"
#include "ranks/segment.h"
#include "ranks/told.h"
#include "support/ranks.h"
#include "support/support.h"

/* Aumasson and Bernstein 2012, appendix A. */
static void codes_are_those_of_the_paper(void **state) {
    (void)state;
    const uint64_t key[2] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
    unsigned char bytes[15];
    for (unsigned char i = 0; i < sizeof bytes; i++) bytes[i] = i;
    assert_int_equal(wb_siphash(key, bytes, sizeof bytes), 0xa129ca6149be45e5u);
}

/* ---- greetings ---- */

typedef struct greeting_row {
    const char *says;
    void (*change)(wb_greeting *g);
} greeting_row;

static void change_mark(wb_greeting *g) { g->mark[0] = 'x'; }
static void change_layout(wb_greeting *g) { g->layout++; }
static void change_version(wb_greeting *g) { memset(g->version, '\33', sizeof g->version); }
static void take_secret(wb_greeting *g) { g->has_secret = 0; }
static void change_nothing(wb_greeting *g) { (void)g; }

static void greetings_that_differ(void **state) {
    (void)state;
    const greeting_row rows[] = {
        {NULL, change_nothing},
        {"rank 1 has \"0.", change_mark},
        {"; this one has", change_layout},
        {"rank 1 has \"????????????????????????????????\"", change_version},
        {"rank 1 has none, rank 0 one", take_secret},
    };
    const wb_secret secret = {{1, 2}, true};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wb_greeting all[2];
        assert_true(wb_greeting_make(&all[0], &secret) && wb_greeting_make(&all[1], &secret));
        rows[i].change(&all[1]);
        assert_int_equal(wb_greetings_check(all, 2), rows[i].says ? WB_ERROR_ARGUMENT : WB_OK);
        if (rows[i].says) assert_non_null(strstr(wb_error_message(), rows[i].says));
        wb_clear_error();
    }
}

/* Of the secret, the rank, and each greeting, so that no proof can be used again. */
static void proofs_depend_on_all(void **state) {
    (void)state;
    const wb_secret secret = {{1, 2}, true}, other = {{1, 3}, true};
    wb_greeting all[2];
    assert_true(wb_greeting_make(&all[0], &secret) && wb_greeting_make(&all[1], &secret));
    assert_memory_not_equal(all[0].nonce, all[1].nonce, sizeof all[0].nonce);
    const uint64_t proof = wb_greeting_proof(&secret, all, 2, 1);
    assert_int_equal(wb_greeting_proof(&secret, all, 2, 1), proof);
    assert_int_not_equal(wb_greeting_proof(&secret, all, 2, 0), proof);
    assert_int_not_equal(wb_greeting_proof(&other, all, 2, 1), proof);
    all[0].nonce[1]++;
    assert_int_not_equal(wb_greeting_proof(&secret, all, 2, 1), proof);
}

/* ---- ranks of another run ---- */

static const char *secrets[3];

static void join_with_own_secret(void) {
    if (secrets[0]) (void)unsetenv("WEBER_SECRET");
    const char *own = secrets[atoi(getenv("WEBER_RANK"))];
    if (own) (void)setenv("WEBER_SECRET", own, 1);
    const wb_status status = wb_distributed_initialize(NULL);
    if (status == WB_OK) exit(0);
    exit(strstr(wb_error_message(), "does not have the secret of this run")   ? 2
         : strstr(wb_error_message(), "must have the secret of the run")      ? 4
         : strstr(wb_error_message(), "must be 32 hexadecimal digits, got 3") ? 8
                                                                              : 16);
}

static void ranks_of_another_run(void **state) {
    (void)state;
    static const char one[] = "00112233445566778899aabbccddeeff";
    static const char two[] = "00112233445566778899AABBCCDDEEF0";
    const struct {
        const char *secrets[3];
        int status;
    } rows[] = {
        {{one, one, one}, 0},
        {{one, two, one}, 2},
        {{one, one, NULL}, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        memcpy(secrets, rows[i].secrets, sizeof secrets);
        assert_int_equal(ranks_run(3, join_with_own_secret), rows[i].status);
    }
    secrets[0] = secrets[1] = secrets[2] = "abc";
    assert_int_equal(ranks_run(1, join_with_own_secret), 8);
}

/* ---- what others have written ---- */

static void unknown_values(void **state) {
    (void)state;
    const wb_collective mine = {.count = 4, .dtype = WB_F32};
    const wb_collective rows[] = {
        {.kind = 7}, {.kind = -1}, {.dtype = 99}, {.reduction = INT32_MIN}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const void *all[] = {&mine, &rows[i]};
        assert_int_equal(wb_collectives_check(all, 2), WB_ERROR_ARGUMENT);
        assert_non_null(strstr(wb_error_message(), "unknown"));
        wb_clear_error();
    }
}

static void texts_end(void **state) {
    (void)state;
    const char endless[8] = {'a', '\33', '\n', 'b', '\177', 'c', 'd', 'e'};
    char text[16], little[4];
    wb_copy_told(text, sizeof text, endless, sizeof endless);
    assert_string_equal(text, "a?\nb?cde");
    wb_copy_told(little, sizeof little, endless, sizeof endless);
    assert_string_equal(little, "a?\n");
}

/* ---- shared memory ---- */

typedef struct memory_row {
    const char *says;
    void (*change)(int file);
} memory_row;

static void write_word(int file, uint32_t word, off_t at) {
    assert_int_equal(pwrite(file, &word, sizeof word, at), sizeof word);
}
static void leave(int file) { (void)file; }
static void open_to_others(int file) { assert_int_equal(fchmod(file, 0644), 0); }
static void open_to_group(int file) { assert_int_equal(fchmod(file, 0660), 0); }
static void other_layout(int file) { write_word(file, 0x57424c32u, 0); }
static void other_ranks(int file) { write_word(file, 5, 4); }

static void memory_of_others(void **state) {
    (void)state;
    const memory_row rows[] = {
        {NULL, leave},
        {"can be opened by other users", open_to_others},
        {"can be opened by other users", open_to_group},
        {"must have the same version of Weber and the same size of group", other_layout},
        {"must have the same version of Weber and the same size of group", other_ranks},
    };
    char name[64];
    (void)snprintf(name, sizeof name, "/weber-test-memory-%d", (int)getpid());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wb_segment s;
        const int file = wb_platform_open_shared(name, O_CREAT | O_EXCL | O_RDWR);
        assert_true(file >= 0);
        rows[i].change(file);
        assert_int_equal(wb_segment_open(&s, name, 1, 2), !rows[i].says);
        if (rows[i].says) assert_non_null(strstr(wb_error_message(), rows[i].says));
        wb_clear_error();
        wb_segment_close(&s);
        (void)close(file);
        wb_platform_unlink_shared(name);
    }
}

static void only_the_user_may_map_it(void **state) {
    (void)state;
    struct stat about;
    wb_segment s;
    char name[64];
    (void)snprintf(name, sizeof name, "/weber-test-own-%d", (int)getpid());
    assert_true(wb_segment_open(&s, name, 0, 2));
    assert_int_equal(fstat(s.file, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    memset(s.shared->text, 'x', sizeof s.shared->text); /* without an end */
    atomic_store(&s.shared->failed_rank, 7), atomic_store(&s.shared->failure, 99);
    assert_true(wb_segment_is_told(&s));
    assert_int_equal(wb_segment_fail_as_told(&s), WB_ERROR_LOST);
    assert_non_null(strstr(wb_error_message(), "rank 7 has failed: xxx"));
    wb_clear_error();
    wb_segment_close(&s);
    wb_platform_unlink_shared(name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_another_run), /* before anything else of the library */
        cmocka_unit_test(codes_are_those_of_the_paper),
        cmocka_unit_test(greetings_that_differ),
        cmocka_unit_test(proofs_depend_on_all),
        cmocka_unit_test(unknown_values),
        cmocka_unit_test(texts_end),
        cmocka_unit_test(memory_of_others),
        cmocka_unit_test(only_the_user_may_map_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
