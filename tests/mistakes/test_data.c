/* Mistakes with data, files and what is shown: a call, its status, and words of its message. */
#include <weber.h>

#include "mistakes/refused.h"

static void calls_alone(void **state) {
    (void)state;
    REFUSED(wb_loader_new(.x = wb_ones(WB_F32, 2), .numobs = 2), ARGUMENT,
            ".numobs needs .getobs or .observe");
    REFUSED(wb_read_csv(NULL), ARGUMENT, "read_csv: path is NULL");
    REFUSED(wb_csv_column(NULL, "a"), ARGUMENT, "csv_column: the table is NULL");
    REFUSED(wb_read_idx("/nowhere/at/all"), IO, "/nowhere/at/all: No such file");
    REFUSED(wb_read_idx(NULL), ARGUMENT, "path is NULL");
    REFUSED(wb_getobs(wb_scalar(WB_F32, 1), 0, 1), SHAPE, "scalar");
    REFUSED(wb_getobs(NULL, 0, 1), ARGUMENT, "x is NULL");
    REFUSED(wb_random_crop(wb_vector(1, 2), 1, 1, 0), SHAPE,
            "images must be (width, height, channels, number), got (2)");
    REFUSED(wb_open_memory("m.npz", NULL, 1, NULL, NULL), ARGUMENT,
            "wb_open_memory: bytes is NULL");
    REFUSED(wb_file_model(NULL, NULL, NULL), ARGUMENT, "wb_file_model: the file is NULL");
    REFUSED(wb_text("caf\xe9"), ARGUMENT,
            "wb_text: a text must be UTF-8, but byte 3 of it (from 0) is 0xe9");
    FAILS(wb_register_function("x", NULL), ARGUMENT, "the function is NULL");
    FAILS(wb_image_write(NULL, wb_ones(WB_F32, 1, 1)), ARGUMENT, "image_write: the path is NULL");
    REFUSED(wb_progress_begin(.total = 10, .done = -3, .always = true), ARGUMENT,
            "wb_progress_begin: done must be at least 0");
    REFUSED(wb_progress_begin(.total = -1, .always = true), ARGUMENT,
            "wb_progress_begin: total must be at least 0");
    REFUSED(wb_progress_begin(.items = -1, .always = true), ARGUMENT,
            "wb_progress_begin: items must be at least 0");
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest all[] = {TEST(calls_alone)};
    ADD_TESTS(&tests, all);
    return run_test_list("mistakes/test_data", &tests, NULL, NULL);
}
