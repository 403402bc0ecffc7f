/* Saving and showing while allocations fail: an error, or the whole file. */
#include "base/memory.h"
#include "support/files.h"
#include "support/support.h"

#include <weber/layers.h>
#include <weber/show.h>
#include <weber/state.h>

enum { MOST_ALLOCATIONS = 10000 };

/* A list, ties, names with dots, settings: each format says them in a text of its own. */
static wb_layer *model_of_many_parts(void) {
    wb_array *w = wb_keep(wb_ones(WB_F32, 3, 3));
    wb_layer *m = wb_chain(wb_dense(.given_weight = w), wb_dense(.given_weight = w),
                           wb_parallel(wb_connect_add, wb_dense(3, 2, wb_relu), wb_dense(3, 2)),
                           wb_dropout(.p = .5));
    wb_free(w);
    return m;
}

static const struct format {
    const char *name, *file;
} formats[] = {{"a bson is whole or an error", "m.bson"},
               {"an npz is whole or an error", "m.npz"},
               {"a safetensors is whole or an error", "m.safetensors"}};

static void a_file_is_whole_or_an_error(void **state) {
    const struct format *f = *state;
    wb_layer *m = model_of_many_parts();
    char whole[192];
    snprintf(whole, sizeof whole, "%s", path_of("whole"));
    strcat(whole, strrchr(f->file, '.'));
    assert_int_equal(wb_save(whole, m), WB_OK);
    wb_status status = WB_ERROR_MEMORY;
    for (int64_t n = 1; status != WB_OK; n++) {
        assert_true(n < MOST_ALLOCATIONS);
        (void)remove(path_of(f->file));
        (void)wb_fail_allocation(n);
        status = wb_save(path_of(f->file), m);
        (void)wb_fail_allocation(0);
        if (status == WB_OK) {
            assert_same_files(path_of(f->file), whole);
            continue;
        }
        assert_int_equal(status, WB_ERROR_MEMORY);
        assert_error(WB_ERROR_MEMORY, "a test asked for this failure");
        assert_int_equal(access(path_of(f->file), F_OK), -1);
    }
    wb_free(m);
}

static void a_text_is_whole_or_an_error(void **state) {
    (void)state;
    static char whole[4000], text[4000];
    wb_layer *m = model_of_many_parts();
    assert_int_equal(wb_show_text(m, whole, sizeof whole), WB_OK);
    wb_status status = WB_ERROR_MEMORY;
    for (int64_t n = 1; status != WB_OK; n++) {
        assert_true(n < MOST_ALLOCATIONS);
        (void)wb_fail_allocation(n);
        status = wb_show_text(m, text, sizeof text);
        (void)wb_fail_allocation(0);
        assert_string_equal(text, status == WB_OK ? whole : "");
        if (status != WB_OK) assert_error(WB_ERROR_MEMORY, "a test asked for this failure");
    }
    wb_free(m);
}

int main(void) {
    static test_list tests;
    ADD_ROWS(&tests, formats, a_file_is_whole_or_an_error);
    const struct CMUnitTest others[] = {TEST(a_text_is_whole_or_an_error)};
    ADD_TESTS(&tests, others);
    return run_test_list("models/test_save_memory", &tests, make_folder, drop_folder);
}
