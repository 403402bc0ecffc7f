/* tools/weber: show and convert, as people call them. */
#include <unistd.h>

#include "support/tool.h"

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
    expect_part(output, "usage: weber show FILE [--records]");
    expect(weber("convert --help") == 0);
    expect_part(output, "--rename=TABLE");
}

typedef struct wrong {
    const char *arguments, *said; /* in front of the usage */
} wrong;

static void expect_wrong(const wrong *rows, size_t count, const char *usage) {
    for (size_t i = 0; i < count; i++) {
        expect(weber(rows[i].arguments) == 2);
        expect_part(output, rows[i].said);
        expect_part(output, usage);
        expect(strstr(output, rows[i].said) < strstr(output, usage));
    }
}

static void what_is_not_understood_is_named_and_status_2(void) {
    static const wrong rows[] = {
        {"show", "weber show: takes one FILE, got none\n"},
        {"show a b", "weber show: takes one FILE, got 2 words\n"},
        {"show --records", "weber show: takes one FILE, got none\n"},
        {"show --deep a", "--deep"},
        {"show a --input=3", "weber show: --input needs --svg=PICTURE\n"},
        {"show a --key=b", "weber show: --key needs --svg=PICTURE\n"},
        {"generate", "weber generate: takes a FOLDER and a TEXT, got none\n"},
        {"generate a b --top-k=few",
         "weber generate: --top-k takes a whole number from 0 on, got \"few\"\n"},
        {"generate a b --temperature=-1",
         "weber generate: --temperature takes a number from 0 on, got \"-1\"\n"},
        {"generate a b --top-p=2",
         "weber generate: --top-p takes a number above 0 and at most 1, got \"2\"\n"},
        {"generate a b --repetition=0",
         "weber generate: --repetition takes a number above 0, got \"0\"\n"},
        {"generate a b --tokens=-1",
         "weber generate: --tokens takes a whole number from 0 on, got \"-1\"\n"},
        {"convert", "weber convert: takes two files, IN and OUT, got none\n"},
        {"convert a.npz", "weber convert: takes two files, IN and OUT, got 1 word\n"},
        {"convert a b c", "weber convert: takes two files, IN and OUT, got 3 words\n"},
        {"convert a b --rename", "rename"},
        {"convert --x a b", "--x"},
        {"convert a b --model --rename=c",
         "weber convert: --rename and --model exclude each other\n"}};
    expect_wrong(rows, sizeof rows / sizeof *rows, "usage: weber ");
}

static void what_does_not_work_is_status_1(void) {
    save_torch("m.npz");
    stage_write("bad.npz", "no zip file");
    stage_write("names", "5.weight -> w");
    expect(weber("show none.npz") == 1);
    expect_part(output, "weber error: weber show: none.npz: cannot be opened: No such file");
    expect(weber("show bad.npz") == 1);
    expect_part(output, "bad.npz, offset 11: the file must end with a zip directory; it may be "
                        "cut short");
    expect(weber("convert m.npz m.txt") == 1);
    expect_part(output, "m.txt: the name must end in .bson");
    expect(weber("convert m.npz out.npz --rename=none") == 1);
    expect_part(output, "weber convert: none: No such file");
    expect(weber("convert m.npz out.npz --rename=names") == 1);
    expect_part(output, "rename table, line 1: there is no \"5.weight\" in the file");
    expect(access("out.npz", F_OK) != 0);
}

/* /dev/full takes nothing, as a full disk. */
static void lost_output_is_status_1(void) {
    if (access("/dev/full", W_OK) != 0) return;
    expect(weber("--version >/dev/full") == 1);
    expect(weber("--help >/dev/full") == 1);
    expect(weber("layers 2>&1 >/dev/full #") == 1);
    expect_part(output, "weber: the output could not be written");
    expect(!strstr(output, "never read"));
}

/* The tool calls the shared library. */
static void an_error_says_where_the_program_made_it(void) {
    (void)setenv("WEBER_DEBUG", "where", 1);
    expect(weber("show none.npz") == 1);
    expect_part(output, "none.npz: cannot be opened: No such file or directory; called at: ");
    char line[400] = "";
    FILE *pipe = popen(strstr(output, "called at: ") + strlen("called at: "), "r");
    expect(pipe && fread(line, 1, sizeof line - 1, pipe) < sizeof line);
    if (pclose(pipe) == 0) expect_part(line, "tool_show at "); /* else there is no addr2line */
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

static void models_are_drawn(void) {
    wb_layer *model = wb_chain(wb_dense(3, 4), wb_dense(4, 2));
    expect(wb_save("m.bson", model) == WB_OK);
    wb_free(model);
    expect(weber("show m.bson --svg=m.dot --input=3,5") == 0);
    expect_text(output, "");
    expect(access("m.dot", F_OK) == 0);
    expect(weber("show m.bson --svg=m.dot") == 2);
    expect_part(output, "--svg needs the sizes of the model's input, as --input=28,28,1,32, got "
                        "none");
    expect(weber("show m.bson --svg=m.dot --input=3,x") == 2);
    expect_part(output, "got 3,x");
    expect(weber("show m.bson --svg=m.dot --input=7,5") == 1);
    expect_part(output, "Dense(3 => 4), layer 1 of Chain: input ");
    expect(weber("show m.bson --svg=m.jpg --input=3,5") == 1);
    expect_part(output, "must end in .svg, .png, .pdf or .dot, got m.jpg");
}

static void what_is_shared_is_shown_once(void) {
    wb_layer *shared = wb_dense(2, 2);
    wb_layer *model = wb_chain(shared, wb_keep_layer(shared));
    expect(wb_save("m.bson", model) == WB_OK);
    wb_free(model);
    expect(weber("show --records m.bson") == 0);
    expect_part(output, "1: map of 3\n"
                        "        weight: f32 (2, 2), 4 numbers, 16 bytes\n"
                        "        bias: f32 (2), 2 numbers, 8 bytes\n"
                        "        σ: list of 0\n"
                        "      2: shared with model.layers.1\n"
                        "  model_structure: \"Chain(Dense(2 => 2), Dense(2 => 2))\"\n"
                        "2 arrays, 6 numbers, 24 bytes; 1 shared\n");
}

static void numbers_are_shown_by_as_few_digits_as_say_them(void) {
    wb_layer *model = wb_chain(wb_dropout(.p = 0.1), wb_dropout(.p = 1.0 / 3), wb_batchnorm(2));
    expect(wb_save("m.bson", model) == WB_OK);
    wb_free(model);
    expect(weber("show --records m.bson") == 0);
    expect_part(output, "p: 0.1\n");
    expect_part(output, "p: 0.3333333333333333\n");
    expect_part(output, "ϵ: 1e-05\n");
}

/* What Flux wrote: structs, functions, numbers. */
static void files_of_flux_are_shown(void) {
    char arguments[1024];
    (void)snprintf(arguments, sizeof arguments, "show --records '%s/formats/fixtures/bson/%s'",
                   WB_TESTS_DIR, "flux_docs_mymodel.bson");
    expect(weber(arguments) == 0);
    expect_part(output, "Flux.Chain\n");
    expect_part(output, "f32 (5, 10), 50 numbers, 200 bytes\n");
    expect_part(output, "4 arrays, 67 numbers, 268 bytes\n");
}

static void a_model_of_flux_becomes_one_of_weber(void) {
    char arguments[1024];
    (void)snprintf(arguments, sizeof arguments,
                   "convert '%s/formats/fixtures/bson/%s' m.bson --model", WB_TESTS_DIR,
                   "flux_docs_mymodel.bson");
    expect(weber(arguments) == 0);
    expect(weber("convert --model m.bson m.safetensors") == 0);
    expect(weber("show m.safetensors --records") == 0);
    expect_part(output, "layers: list of 2\n");
    expect_part(output, "weight: f32 (5, 10), 50 numbers, 200 bytes\n");
    expect_part(output, "\"Chain(Dense(10 => 5, relu), Dense(5 => 2), softmax)\"");
    expect(weber("convert --model=net m.bson out.npz") == 1);
    expect_part(output, "there is no \"net\"");
    expect(access("out.npz", F_OK) != 0);
}

/* A list of arrays, and another library's names, become a model by a text. */
static void arrays_alone_become_a_model(void) {
    save_torch("m.npz");
    stage_write("names", "0.weight -> weight transpose\n0.bias -> bias\n");
    wb_scope_open();
    wb_layer *model = wb_dense(3, 2, wb_relu);
    wb_layer *list = wb_tree(wb_get(model, "weight"), wb_get(model, "bias"));
    expect(wb_save_named("list.bson", {"weights", list}) == WB_OK);
    expect(weber("convert list.bson l.safetensors --model=weights "
                 "'--structure=Dense(3 => 2, relu)'") == 0);
    wb_layer *again = wb_load_model("l.safetensors", "weights");
    expect(wb_approx(wb_get(again, "weight"), wb_get(model, "weight"), 0, 0, NULL, 0));
    expect(weber("convert m.npz t.bson --rename=names '--structure=Dense(3 => 2)'") == 0);
    wb_layer *torch = wb_load_model("t.bson", NULL);
    expect(wb_approx(wb_get(torch, "bias"), wb_vector(7, 8), 0, 0, NULL, 0));
    expect(wb_at(wb_get(torch, "weight"), 1, 0) == 4);
    wb_scope_close();
    wb_free(model), wb_free(list), wb_free(again), wb_free(torch);
    expect(weber("convert m.npz t.bson '--structure=Dense(3 => 2)'") == 1);
    expect_part(output, "weber convert: m.npz: it needs weight, which the file does not have; "
                        "--model=KEY takes a part of the file, --rename=TABLE gives its arrays "
                        "other names");
    expect(weber("convert m.npz t.bson --rename=names '--structure=Dense(2 => 2)'") == 1);
    expect_part(output, "0.weight, renamed weight and transposed, is (2, 3) in the file, (2, 2)");
}

static void models_are_shown_as_layers(void) {
    char arguments[1024];
    (void)snprintf(arguments, sizeof arguments, "show '%s/formats/fixtures/bson/%s'", WB_TESTS_DIR,
                   "flux_cnn_mnist.bson");
    expect(weber(arguments) == 0);
    expect_part(output, " bytes\nmodel: Chain(\n  Conv((3, 3), 1 => 16, relu, pad=1),   # 160");
    expect_part(output, "16_938 parameters, 66.164 KiB.\nepoch: 10\n");
    wb_layer *model = wb_dense(2, 3);
    wb_scope_open();
    expect(wb_save_named("two.npz", {"net", model}, {"x", wb_vector(1, 2)}) == WB_OK);
    wb_scope_close();
    wb_free(model);
    expect(weber("show two.npz") == 0);
    expect_part(output, " bytes\nnet: Dense(2 => 3)");
    expect_part(output, "\nx: f32 (2), 2 numbers, 8 bytes\n1 array, 2 numbers, 8 bytes\n");
}

static void a_struct_that_bson_cannot_have_may_be_a_model(void) {
    char arguments[1024], advice[1024];
    (void)snprintf(arguments, sizeof arguments, "convert '%s/formats/fixtures/bson/%s' out.bson",
                   WB_TESTS_DIR, "flux_docs_mymodel.bson");
    expect(weber(arguments) == 0);
    expect_part(output, "out.bson: BSON cannot hold 1 of the values, which were left out: model "
                        "(Flux.Chain, but its fields stay)");
    (void)snprintf(advice, sizeof advice,
                   "weber convert: `weber convert %s/formats/fixtures/bson/flux_docs_mymodel.bson "
                   "out.bson --model=model` builds the model",
                   WB_TESTS_DIR);
    expect_part(output, advice);
    expect(weber("show out.bson") == 0);
    expect_part(output, "4 arrays, 67 numbers");
}

/* A struct that is no layer of Weber's: nothing is promised of it. */
static void what_is_no_model_has_no_advice(void) {
    char arguments[1024];
    (void)snprintf(arguments, sizeof arguments, "convert '%s/formats/fixtures/bson/%s' out.bson",
                   WB_TESTS_DIR, "bsonjl_dataframe.bson");
    (void)weber(arguments);
    expect_part(output, "out.bson: BSON cannot hold ");
    expect(!strstr(output, "--model="));
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

static void expect_completed(const char *words, const char *wanted) {
    char command[4096], found[256];
    (void)snprintf(command, sizeof command,
                   "bash -c '. \"%s/../tools/weber/completion.bash\"; COMP_WORDS=(\"%s\" %s); "
                   "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _weber; echo \"${COMPREPLY[@]}\"'",
                   WB_TESTS_DIR, stage_build("bin/weber"), words);
    FILE *pipe = popen(command, "r");
    found[pipe ? fread(found, 1, sizeof found - 1, pipe) : 0] = 0;
    expect(pipe && pclose(pipe) == 0);
    expect_text(found, wanted);
}

static void bash_completes_commands_and_options(void) {
    expect_completed("con", "convert\n");
    expect_completed("de", "devices\n");
    expect_completed("convert --re", "--rename=\n");
    expect_completed("evaluate --d", "--data= --device=\n");
    expect_completed("evaluate --no", "--no-header\n");
    expect_completed("convert m.b", "\n"); /* names of files are bash's */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCENE(commands_have_help),
        SCENE(what_is_not_understood_is_named_and_status_2),
        SCENE(what_does_not_work_is_status_1),
        SCENE(lost_output_is_status_1),
        SCENE(an_error_says_where_the_program_made_it),
        SCENE(files_are_converted_and_shown),
        SCENE(models_are_drawn),
        SCENE(what_is_shared_is_shown_once),
        SCENE(numbers_are_shown_by_as_few_digits_as_say_them),
        SCENE(files_of_flux_are_shown),
        SCENE(a_model_of_flux_becomes_one_of_weber),
        SCENE(arrays_alone_become_a_model),
        SCENE(models_are_shown_as_layers),
        SCENE(a_struct_that_bson_cannot_have_may_be_a_model),
        SCENE(what_is_no_model_has_no_advice),
        SCENE(names_and_texts_are_shown_as_text),
        SCENE(bash_completes_commands_and_options),
    };
    return cmocka_run_group_tests_name("models/test_tool", tests, NULL, NULL);
}
