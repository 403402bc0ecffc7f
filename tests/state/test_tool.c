/* tools/weber: show and convert, as people call them. */
#include <sys/wait.h>
#include <unistd.h>

#include "support/stage.h"

static char output[16384];

/* Runs the tool in the scene's folder; output is what it printed on both streams. Its exit status. */
static int weber(const char *arguments) {
    char command[4096];
    (void)snprintf(command, sizeof command, "'%s' %s 2>&1", stage_build("bin/weber"), arguments);
    FILE *pipe = popen(command, "r");
    if (!pipe) return -1;
    output[fread(output, 1, sizeof output - 1, pipe)] = 0;
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* m.safetensors with PyTorch's names: a Linear (2, 3) and its bias. */
static void save_torch(const char *path) {
    wb_scope_open();
    expect(wb_save_named(path, {"0.weight", wb_reshape(wb_vector(1, 2, 3, 4, 5, 6), 3, 2)},
                         {"0.bias", wb_vector(7, 8)}) == WB_OK);
    wb_scope_close();
}

static void commands_have_help(void) {
    expect(weber("--help") == 0);
    expect_part(output, "weber show FILE");
    expect_part(output, "weber convert IN OUT [--rename TABLE]");
    expect(weber("show --help") == 0);
    expect_part(output, "usage: weber show FILE");
    expect(weber("convert --help") == 0);
    expect_part(output, "--rename=TABLE");
}

static void what_is_not_understood_is_status_2(void) {
    static const char *const rows[] = {
        "show",          "show a b",      "show --deep a",        "convert",
        "convert a.npz", "convert a b c", "convert a b --rename", "convert --x a b"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        expect(weber(rows[i]) == 2);
        expect_part(output, "usage: weber ");
    }
}

static void what_does_not_work_is_status_1(void) {
    save_torch("m.npz");
    stage_write("bad.npz", "no zip file");
    stage_write("names", "5.weight -> w");
    expect(weber("show none.npz") == 1);
    expect_part(output, "weber error: weber show: none.npz: cannot be opened: No such file");
    expect(weber("show bad.npz") == 1);
    expect_part(output, "bad.npz, offset 11: this does not end as a zip file does");
    expect(weber("convert m.npz m.txt") == 1);
    expect_part(output, "m.txt: the format is not known by the name");
    expect(weber("convert m.npz out.npz --rename=none") == 1);
    expect_part(output, "weber convert: none: No such file");
    expect(weber("convert m.npz out.npz --rename=names") == 1);
    expect_part(output, "rename table, line 1: there is no \"5.weight\" in the file");
    expect(access("out.npz", F_OK) != 0);
}

static void files_are_converted_and_shown(void) {
    save_torch("m.npz");
    stage_write("names", "0.weight -> layers.1.weight transpose\n0.bias -> layers.1.bias\n");
    expect(weber("convert m.npz --rename names m.bson") == 0);
    expect_text(output, "");
    expect(weber("show m.bson") == 0);
    expect_part(output, "m.bson: BSON, ");
    expect_part(output, " bytes, map of 1\n"
                        "  layers: list of 1\n"
                        "    1: map of 2\n"
                        "      bias: f32 (2), 2 numbers, 8 bytes\n"
                        "      weight: f32 (2, 3), 6 numbers, 24 bytes\n"
                        "2 arrays, 8 numbers, 32 bytes\n");
}

static void what_is_shared_is_shown_once(void) {
    wb_layer *shared = wb_dense(2, 2);
    wb_layer *model = wb_chain(shared, wb_retain(shared));
    expect(wb_save("m.bson", model) == WB_OK);
    wb_free(model);
    expect(weber("show m.bson") == 0);
    expect_part(output, "1: map of 3\n"
                        "        weight: f32 (2, 2), 4 numbers, 16 bytes\n"
                        "        bias: f32 (2), 2 numbers, 8 bytes\n"
                        "        σ: list of 0\n"
                        "      2: shared with model.layers.1\n"
                        "  model_structure: \"Chain(Dense(2 => 2), Dense(2 => 2))\"\n"
                        "2 arrays, 6 numbers, 24 bytes; 1 shared\n");
}

/* What Flux wrote: structs, functions, numbers. */
static void files_of_flux_are_shown(void) {
    char arguments[1024];
    (void)snprintf(arguments, sizeof arguments, "show '%s/state/fixtures/bson/%s'", WB_TESTS_DIR,
                   "flux_docs_mymodel.bson");
    expect(weber(arguments) == 0);
    expect_part(output, "Flux.Chain\n");
    expect_part(output, "f32 (5, 10), 50 numbers, 200 bytes\n");
    expect_part(output, "4 arrays, 67 numbers, 268 bytes\n");
}

/* A name must not steer the terminal. */
static void names_and_texts_are_shown_as_text(void) {
    static const char bson[] = "\x15\0\0\0\2a\x1b[2J\xc2\x9b\0\3\0\0\0\x07\xff\0\0";
    FILE *file = fopen("evil.bson", "wb");
    expect(file && fwrite(bson, 1, 0x15, file) == 0x15);
    if (file) (void)fclose(file);
    expect(weber("show evil.bson") == 0);
    expect_part(output, "  a\\x1b[2J\\xc2\\x9b: \"\\x07\\xff\"\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCENE(commands_have_help),
        SCENE(what_is_not_understood_is_status_2),
        SCENE(what_does_not_work_is_status_1),
        SCENE(files_are_converted_and_shown),
        SCENE(what_is_shared_is_shown_once),
        SCENE(files_of_flux_are_shown),
        SCENE(names_and_texts_are_shown_as_text),
    };
    return cmocka_run_group_tests_name("state/test_tool", tests, NULL, NULL);
}
