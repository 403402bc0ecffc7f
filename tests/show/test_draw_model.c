/* src/show/draw_model.c: the text for Graphviz. */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weber/show.h>

#include "support/support.h"
#include "twofold.h"

/* What is written for the model; NULL on failure. */
static char *drawn(wb_layer *model, wb_outputsize_desc desc) {
    char path[] = "/tmp/weber-draw-XXXXXX.dot";
    const int file = mkstemps(path, 4);
    assert_true(file >= 0);
    (void)close(file);
    const wb_status status = wb_draw_model_make(path, model, desc);
    char *text = calloc(1, 1 << 16);
    FILE *picture = fopen(path, "r");
    assert_non_null(picture);
    if (text) text[fread(text, 1, (1 << 16) - 1, picture)] = 0;
    (void)fclose(picture), (void)unlink(path);
    if (status == WB_OK) return text;
    free(text);
    return NULL;
}

static void assert_has(const char *text, const char *part) {
    assert_non_null(text);
    if (!strstr(text, part)) fail_msg("\"%s\" does not have \"%s\"", text, part);
}

static int count_of(const char *text, const char *part) {
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) count++;
    return count;
}

static void a_chain_is_a_line_with_sizes(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_conv(.kernel = {3, 3}, .in = 1, .out = 4, .activation = wb_relu),
                               wb_dropout(0.5), wb_flatten(), wb_dense(2704, 10));
    char *text = drawn(model, (wb_outputsize_desc){.inputs = {{28, 28, 1, 32}}});
    assert_has(text, "n0 [label=\"input\", shape=plaintext");
    assert_has(text, "n1 [label=\"Conv((3, 3), 1 => 4, relu)\\nlayers.1\\n40 parameters\"]");
    assert_has(text, "n2 [label=\"Dropout(0.5)\\nlayers.2\"]"); /* gives its input in test mode */
    assert_has(text, "n0 -> n1 [label=\"(28, 28, 1, 32)\"]");
    assert_has(text, "n1 -> n2 [label=\"(26, 26, 4, 32)\"]");
    assert_has(text, "n3 -> n4 [label=\"(2704, 32)\"]");
    assert_has(text, "n4 -> result [label=\"(10, 32)\"]");
    assert_int_equal(count_of(text, "->"), 5);
    free(text);
    wb_free(model);
}

static void branches_meet_in_a_box_of_their_container(void **state) {
    (void)state;
    wb_layer *model =
        wb_chain(wb_skip(wb_chain(wb_dense(3, 3), wb_dense(3, 3)), wb_connect_add), wb_dense(3, 2));
    char *text = drawn(model, (wb_outputsize_desc){.inputs = {{3, 5}}});
    assert_has(text, "subgraph \"cluster_layers.1\" { label=\"SkipConnection  layers.1\"; subgraph "
                     "\"cluster_layers.1.layers\" { label=\"Chain  layers.1.layers\"; n1 [");
    assert_has(text, "n0 -> n3 [label=\"(3, 5)\"]"); /* past the inner layers */
    assert_has(text, "n2 -> n3 [label=\"(3, 5)\"]");
    assert_has(text, "n3 -> n4 [label=\"(3, 5)\"]");
    assert_has(text, "subgraph \"cluster_layers.1\" { label=\"SkipConnection  layers.1\"; n3 "
                     "[label=\"SkipConnection: "
                     "+\\nlayers.1\"]");
    free(text);
    wb_free(model);
    model = wb_parallel(wb_connect_add, wb_dropout(0.5), wb_dense(3, 3));
    text = drawn(model, (wb_outputsize_desc){.inputs = {{3, 5}}});
    assert_has(text, "n0 -> n2 [label=\"(3, 5)\"]"); /* not what Dropout passes on */
    assert_has(text, "n1 -> n3 [label=\"(3, 5)\"]");
    assert_false(strstr(text, "n1 -> n2") != NULL);
    free(text);
    wb_free(model);
}

static void a_layer_used_twice_is_two_boxes(void **state) {
    (void)state;
    wb_layer *d = wb_dense(3, 3), *model = wb_chain(d, d);
    char *text = drawn(model, (wb_outputsize_desc){.inputs = {{3, 5}}});
    assert_int_equal(count_of(text, "Dense(3 => 3)"), 2);
    assert_has(text, "n1 -> n2");
    free(text);
    wb_free(model);
}

/* What happens in the body of a scan is the layer's own affair. */
static void cells_are_not_drawn(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_lstm(2, 3), wb_dense(3, 1));
    char *text = drawn(model, (wb_outputsize_desc){.inputs = {{2, 7, 5}}});
    assert_has(text, "LSTM(2 => 3)\\nlayers.1");
    assert_has(text, "[label=\"(3, 7, 5)\"]");
    assert_int_equal(count_of(text, "LSTMCell"), 0);
    assert_int_equal(count_of(text, "->"), 3);
    free(text);
    wb_free(model);
}

static void several_inputs_are_numbered(void **state) {
    (void)state;
    wb_layer *model = wb_bilinear(2, 3, 4);
    char *text = drawn(model, (wb_outputsize_desc){.inputs = {{2, 5}, {3, 5}}});
    assert_has(text, "n0 [label=\"input 1\"");
    assert_has(text, "n1 -> n2 [label=\"(3, 5)\"]");
    free(text);
    wb_free(model);
}

static void what_a_scope_ended_is_no_part_of_the_result(void **state) {
    (void)state;
    twofold *model = new_twofold();
    char *text = drawn(&model->layer, (wb_outputsize_desc){.inputs = {{3, 5}}});
    assert_has(text, "[label=\"Dense(3 => 2)\\nused\\n8 parameters\"]");
    assert_false(strstr(text, "dropped") != NULL);
    assert_int_equal(count_of(text, "->"), 2);
    free(text);
    wb_free(model);
}

/* Instead of dot: a script of this text; without a text, what cannot be run. */
static void put_program(const char *folder, const char *text) {
    char path[64];
    (void)snprintf(path, sizeof path, "%s/dot", folder);
    (void)unlink(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file, "#!/bin/sh\n%s\n", text ? text : "");
    (void)fclose(file);
    assert_int_equal(chmod(path, text ? 0700 : 0600), 0);
}

static void what_the_program_says_is_told(void **state) {
    (void)state;
    const struct {
        const char *text;
        bool ignores_ends; /* of children: then their exit status is not known */
        wb_status status;
        const char *message;
    } rows[] = {
        {"echo drawn", false, WB_OK, ""},
        {"exit 0", false, WB_ERROR_IO, "could not draw "},
        {"exec /usr/bin/head -c 300000 /dev/zero", false, WB_ERROR_IO,
         "a.svg: cannot be written: File too large"},
        {"exit 3", false, WB_ERROR_IO, "could not draw "},
        {"exit 3", false, WB_ERROR_IO, "a.svg (exit status 3)"},
        {"echo drawn", true, WB_OK, ""},
        {"exit 3", true, WB_ERROR_IO, "a.svg (exit status unknown)"},
        {NULL, false, WB_ERROR_UNSUPPORTED, "a.svg needs the program dot, which could not"},
    };
    char folder[] = "/tmp/weber-draw-XXXXXX", picture[64], program[64];
    assert_non_null(mkdtemp(folder));
    const char *before = getenv("PATH");
    char *kept = strdup(before ? before : "/bin:/usr/bin");
    (void)snprintf(picture, sizeof picture, "%s/a.svg", folder);
    (void)snprintf(program, sizeof program, "%s/dot", folder);
    wb_layer *model = wb_dense(3, 2);
    struct rlimit limit; /* stands for a full disk */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    (void)setrlimit(RLIMIT_FSIZE, &(struct rlimit){100000, limit.rlim_max});
    (void)signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)unlink(picture);
        put_program(folder, rows[i].text);
        (void)setenv("PATH", folder, 1);
        (void)signal(SIGCHLD, rows[i].ignores_ends ? SIG_IGN : SIG_DFL);
        assert_int_equal(wb_draw_model(picture, model, {{3, 5}}), rows[i].status);
        (void)signal(SIGCHLD, SIG_DFL);
        (void)setenv("PATH", kept, 1);
        if (rows[i].status != WB_OK) assert_error(rows[i].status, rows[i].message);
        assert_int_equal(access(picture, F_OK) == 0, rows[i].status == WB_OK);
    }
    (void)setrlimit(RLIMIT_FSIZE, &limit);
    (void)signal(SIGXFSZ, SIG_DFL);
    (void)unlink(picture), (void)unlink(program);
    assert_int_equal(rmdir(folder), 0); /* nothing half-written is left */
    free(kept);
    wb_free(model);
}

static void mistakes_are_named(void **state) {
    (void)state;
    wb_layer *model = wb_dense(3, 2);
    assert_null(drawn(model, (wb_outputsize_desc){.inputs = {{4, 5}}}));
    assert_error(WB_ERROR_SHAPE, "Dense(3 => 2)");
    assert_int_equal(wb_draw_model(NULL, model, {{3, 5}}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "draw_model: path is NULL");
    assert_int_equal(wb_draw_model("a.jpeg", model, {{3, 5}}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "draw_model: the name of the picture must end in .svg, .png, "
                                    ".pdf or .dot, got a.jpeg");
    assert_int_equal(wb_draw_model("/nowhere/a.dot", model, {{3, 5}}), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "draw_model: /nowhere/a.dot: ");
    wb_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_chain_is_a_line_with_sizes),    TEST(branches_meet_in_a_box_of_their_container),
        TEST(a_layer_used_twice_is_two_boxes), TEST(cells_are_not_drawn),
        TEST(several_inputs_are_numbered),     TEST(what_a_scope_ended_is_no_part_of_the_result),
        TEST(what_the_program_says_is_told),   TEST(mistakes_are_named),
    };
    return cmocka_run_group_tests_name("show/test_draw_model", tests, NULL, NULL);
}
