/* tools/weber/evaluate.c, dataset.c: models over Fashion-MNIST and files of one's own. */
#include "support/tool.h"

enum { IMAGES = 4, PIXELS = 784, CLASSES = 10 };

static void write_idx(const char *path, const unsigned char *head, size_t head_bytes,
                      const unsigned char *data, size_t size) {
    FILE *file = fopen(path, "wb");
    expect(file && fwrite(head, 1, head_bytes, file) == head_bytes &&
           fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

/* Image k is dark but for pixel k, the last one is as the first; label k. */
static void set_data(void) {
    static const unsigned char image_head[] = {0, 0, 8, 3,  0, 0, 0, IMAGES,
                                               0, 0, 0, 28, 0, 0, 0, 28},
                               label_head[] = {0, 0, 8, 1, 0, 0, 0, IMAGES},
                               labels[IMAGES] = {0, 1, 2, 3};
    static unsigned char images[IMAGES][PIXELS];
    for (int k = 0; k < IMAGES; k++) images[k][k % (IMAGES - 1)] = 255;
    write_idx("t10k-images-idx3-ubyte.gz", image_head, sizeof image_head, images[0], sizeof images);
    write_idx("t10k-labels-idx1-ubyte.gz", label_head, sizeof label_head, labels, sizeof labels);
    (void)setenv("WEBER_DATA", stage_folder(), 1);
}

/* Class c is pixel c, so that three of four answers are right. */
static wb_layer *pixel_classifier(void) {
    static float weight[PIXELS][CLASSES];
    for (int c = 0; c < CLASSES; c++) weight[c][c] = 2; /* 2, not 1: that would be probabilities */
    return wb_dense(.given_weight = wb_from(WB_F32, weight, CLASSES, PIXELS));
}

/* Three times log(e^2 + 9) - 2, once without the - 2. */
static void expect_three_of_four(const char *arguments, const char *loss) {
    expect(weber(arguments) == 0);
    expect_part(output, ": 4 test images of fashion-mnist\nloss 1.2966");
    expect_part(output, loss);
    expect_part(output, "\naccuracy 75.00%\n");
    expect_part(output, "\n       Dress      1      0      0      0      0      0      0      0    "
                        "  0      0    0.00%\n");
}

static void a_saved_model_is_evaluated(void) {
    set_data();
    wb_scope_open();
    wb_layer *flat = pixel_classifier();
    expect(wb_save("flat.bson", flat) == WB_OK);
    wb_free(flat);
    wb_layer *model = wb_chain(wb_flatten(), pixel_classifier(), wb_fn(wb_softmax));
    expect(wb_save_named("m.safetensors", {"net", model}) == WB_OK);
    wb_free(model);
    wb_scope_close();
    expect_three_of_four("evaluate flat.bson --data fashion-mnist", "(logitcrossentropy)");
    expect_three_of_four(
        "evaluate --key=net --batch=3 --data=fashion-mnist --device=CPU m.safetensors",
        "(crossentropy)");
}

/* Arrays as another library writes them: no structure, no key. */
static void arrays_alone_are_evaluated(void) {
    set_data();
    wb_scope_open();
    wb_layer *flat = pixel_classifier();
    expect(wb_save_named("arrays.safetensors", {"layers.2.weight", wb_get(flat, "weight")},
                         {"layers.2.bias", wb_get(flat, "bias")}) == WB_OK);
    wb_free(flat);
    wb_scope_close();
    expect(weber("evaluate arrays.safetensors --data=fashion-mnist") == 1);
    expect_three_of_four("evaluate arrays.safetensors --data=fashion-mnist "
                         "'--structure=Chain(flatten, Dense(784 => 10))'",
                         "(logitcrossentropy)");
    expect(weber("evaluate arrays.safetensors --data=fashion-mnist '--structure=Chain('") == 1);
    expect_part(output, "character 7 of the structure: a value is expected");
}

static void what_cannot_be_evaluated_says_why(void) {
    static const char *const rows[][2] = {
        {"evaluate m.bson", "weber evaluate: --data is missing\n"},
        {"evaluate m.bson --data x.npz --scale=1/0",
         "weber evaluate: --scale must be a number such as 0.5 or 1/255, got 1/0\n"},
        {"evaluate m.bson --data x.npz --scale=nan",
         "weber evaluate: --scale must be a number such as 0.5 or 1/255, got nan\n"},
        {"evaluate m.bson --data x.npz --scale=1/inf",
         "weber evaluate: --scale must be a number such as 0.5 or 1/255, got 1/inf\n"},
        {"evaluate m.bson --data=",
         "weber evaluate: --data must be fashion-mnist or a file, got nothing\n"},
        {"evaluate m.bson --data x.csv --separator=",
         "weber evaluate: --separator must be one character, as in --separator=';', or \\t, got "
         "\"\"\n"},
        {"evaluate m.bson --data x.csv --separator=semicolon", "or \\t, got \"semicolon\"\n"},
        {"evaluate m.bson --data fashion-mnist --split both",
         "weber evaluate: --split must be test or train, got both\n"},
        {"evaluate m.bson --data fashion-mnist --batch x",
         "weber evaluate: --batch must be a whole number from 1 to 60000, got x\n"},
        {"evaluate m.bson --data fashion-mnist --loss mse",
         "weber evaluate: --loss must be crossentropy or logitcrossentropy, got mse\n"},
        {"evaluate --data fashion-mnist", "weber evaluate: takes one file MODEL, got none\n"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        expect(weber(rows[i][0]) == 2);
        expect_part(output, rows[i][1]);
        expect_part(output, "usage: weber evaluate MODEL");
    }
    set_data();
    expect(weber("evaluate m.bson --data mnist") == 1);
    expect_part(output, "mnist has no labels: --labels=FILE says where they are; the only data set "
                        "by name is fashion-mnist");
    expect(weber("evaluate m.bson --data=.") == 1);
    expect_part(output, "weber evaluate: . is a folder; --data needs a file\n");
    expect(weber("evaluate none.bson --data fashion-mnist") == 1);
    expect_part(output, "none.bson: cannot be opened");
    wb_layer *model = wb_dense(PIXELS, 3), *other = wb_dense(5, 10);
    expect(wb_save("three.bson", model) == WB_OK && wb_save("five.bson", other) == WB_OK);
    wb_free(model), wb_free(other);
    expect(weber("evaluate three.bson --data fashion-mnist") == 1);
    expect_part(output, "three.bson gives (3) for an image, not 10 numbers");
    expect(weber("evaluate five.bson --data fashion-mnist") == 1);
    expect_part(output, "input has 28 features");
}

/* ---- data of one's own ---- */

/* Answers 0 where the pixel (1, 0) of channel 0 is lit, else 1, in (2, 1, 2, N). */
static void save_two_pixels(const char *path) {
    static const float weight[4][2] = {{0, 0}, {9, -9}, {0, 0}, {0, 0}};
    static const float bias[2] = {0, 1};
    wb_scope_open();
    wb_layer *dense = wb_dense(.given_weight = wb_from(WB_F32, weight, 2, 4),
                               .given_bias = wb_from(WB_F32, bias, 2));
    wb_layer *model = wb_chain(wb_flatten(), dense);
    expect(wb_save(path, model) == WB_OK);
    wb_free(model);
    wb_scope_close();
}

static void expect_all_right(const char *arguments, const char *count) {
    expect(weber(arguments) == 0);
    expect_part(output, count);
    expect_part(output, "accuracy 100.00%\n");
}

/* Two images of 2 x 1 pixels and 2 channels: pixel 1 of channel 0 is lit, or pixel 0 of channel
 * 1. */
static void images_are_turned(void) {
    save_two_pixels("two.bson");
    wb_scope_open();
    wb_array *x = wb_from(WB_F64, ((const double[]){0, 1, 0, 0, /**/ 0, 0, 1, 0}), 2, 1, 2, 2);
    wb_array *y = wb_from(WB_I64, ((const int64_t[]){0, 1}), 2);
    expect(wb_save_named("n.npz", {"x", x}, {"y", y}) == WB_OK);
    expect(wb_save_named("t.npz", {"x_test", wb_permute(x, 2, 0, 1, 3)},
                         {"y_test", wb_reshape(y, 1, 2)}) == WB_OK);
    expect(wb_save_named("h.safetensors", {"a", wb_permute(x, 1, 0, 2, 3)},
                         {"b", wb_onehot(y, 2)}) == WB_OK);
    wb_scope_close();
    expect_all_right("evaluate two.bson --data=n.npz", "two.bson: 2 observations of n.npz\n");
    expect(!strstr(output, "warning")); /* of f64 given to f32 */
    expect_all_right("evaluate two.bson --data=n.npz --layout=NCHW", "2 observations");
    expect_all_right("evaluate two.bson --data=n.npz --layout=WHCN", "2 observations");
    expect_all_right("evaluate two.bson --data=t.npz --layout=NHWC", "2 observations");
    expect_all_right("evaluate two.bson --data=h.safetensors --x=a --y=b --layout=HWCN", "2 obs");
    expect(weber("evaluate two.bson --data=t.npz --layout=NCHW") == 0);
    expect_part(output, "accuracy 0.00%\n");
    wb_layer *conv = wb_chain(wb_conv({1, 1}, 2, 2), wb_flatten());
    expect(wb_save("conv.bson", conv) == WB_OK);
    wb_free(conv);
    expect(weber("evaluate conv.bson --data=t.npz") == 1);
    expect_part(output, "input has 1 channels in (2, 2, 1, 2), expected 2; "
                        "--layout=NHWC and the like say what");
    expect(weber("evaluate two.bson --data=n.npz --layout=NHW") == 1);
    expect_part(output, "weber evaluate: the layout NHW has 3 dimensions, x has 4\n");
    expect(weber("evaluate two.bson --data=n.npz --layout=CHW") == 1);
    expect_part(output, "weber evaluate: CHW: a layout has N, for observations, at one end");
    expect(weber("evaluate two.bson --data=n.npz --x=images") == 1);
    expect_part(output, "there is no \"images\"; it has x, y");
}

/* The bytes (28, 28, N) of IDX files, and the same in a .npy; turned, the answers are others. */
static void idx_and_npy_have_labels_beside_them(void) {
    set_data();
    wb_scope_open();
    wb_layer *flat = pixel_classifier();
    expect(wb_save("flat.bson", flat) == WB_OK);
    wb_free(flat);
    wb_array *images = wb_read_idx("t10k-images-idx3-ubyte.gz");
    expect(wb_save("images.npy", images) == WB_OK);
    wb_scope_close();
    expect(weber("evaluate flat.bson --data=t10k-images-idx3-ubyte.gz "
                 "--labels=t10k-labels-idx1-ubyte.gz") == 0);
    expect_part(output, "flat.bson: 4 images of t10k-images-idx3-ubyte.gz\nloss 1.2966");
    expect_part(output, "\naccuracy 75.00%\n");
    expect_part(output, "\n           3      1      0      0      0      0      0      0      0    "
                        "  0      0    0.00%\n");
    expect(weber("evaluate flat.bson --data=images.npy --labels=t10k-labels-idx1-ubyte.gz") == 0);
    expect_part(output, "loss 1.2966");
    expect(weber("evaluate flat.bson --data=images.npy --labels=t10k-labels-idx1-ubyte.gz "
                 "--layout=NWH") == 0);
    expect_part(output, "accuracy 25.00%\n");
    expect(weber("evaluate flat.bson --data=images.npy --labels=t10k-labels-idx1-ubyte.gz "
                 "--scale=2/255") == 0);
    expect_part(output, "loss 1.1525");
    expect(weber("evaluate flat.bson --data=images.npy") == 1);
    expect_part(output, "images.npy has no labels: --labels=FILE says where they are");
    expect(weber("evaluate flat.bson --data=images.npy --labels=images.npy") == 1);
    expect_part(output, "images.npy: labels must be whole numbers (N), or one-hot: as many rows as "
                        "there are classes, with a 1 in each column; got u8 (28, 28, 4)\n");
}

/* The larger of two numbers: class 0 is the first, "low". */
static void tables_are_evaluated(void) {
    static const float weight[2][2] = {{1, 0}, {0, 1}};
    wb_scope_open();
    wb_layer *model = wb_dense(.given_weight = wb_from(WB_F32, weight, 2, 2));
    expect(wb_save("m.npz", model) == WB_OK);
    expect(wb_save_named("named.npz", {"model", model}, {"which", wb_text("low\x1b[2J\nhigh")}) ==
           WB_OK);
    wb_free(model);
    wb_scope_close();
    stage_write("n.csv", "a,b,which\n3,1,0\n1.5,2,1\n5,6,1\n");
    stage_write("t.csv", "which;a;b\nlow\x1b[2J;3;1\nhigh;1;2\nhigh;5;6\n");
    stage_write("h.tsv", "3\t1\t0\n1\t2\t1\n");
    stage_write("r.csv", "a,b,c\n3,1,0.5\n");
    expect_all_right("evaluate m.npz --data=n.csv", "m.npz: 3 observations of n.csv\n");
    expect_all_right("evaluate m.npz --data=h.tsv --no-header", "2 observations");
    expect_all_right("evaluate named.npz --data=t.csv --separator=';' --y=which", "3 observations");
    expect_part(output, "low\\x1b[2J");
    expect(weber("evaluate m.npz --data=t.csv --separator=';' --y=which") == 0);
    expect_part(output, "accuracy 0.00%\n"); /* by the order of bytes high comes first */
    expect(weber("evaluate m.npz --data=r.csv") == 1);
    expect_part(output, "r.csv: labels must be whole numbers (N)");
    expect(weber("evaluate m.npz --data=n.csv --y=none") == 1);
    expect_part(output, "n.csv: there is no column \"none\"");
    expect(weber("evaluate m.npz --data=n.csv --labels=n.csv") == 1);
    expect_part(output, "n.csv: the labels of a CSV are one of its columns, --y=NAME");
}

static void tables_with_mistakes_name_options(void) {
    static const char *const rows[][3] = {
        {"semicolons.csv", "a;b;c\n1;2;0\n",
         " must have two columns or more, of numbers and of "
         "labels; perhaps --separator=';'\n"},
        {"tabs.csv", "a\tb\tc\n1\t2\t0\n", "labels; perhaps --separator='\\t'\n"},
        {"missing.csv", "a,b,c\n1,,0\n",
         ": line 2, column \"b\": the value is missing: \"\"; give "
         "it a value, or leave the line out\n"},
        {"names.csv", "a,b,c\n1,NA,0\n",
         ": line 2, column \"b\": this is not a number: \"NA\"; names may be in the column of "
         "labels alone, --y=NAME\n"}};
    wb_layer *model = wb_dense(2, 2);
    expect(wb_save("m.npz", model) == WB_OK);
    wb_free(model);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char command[100], wanted[300];
        stage_write(rows[i][0], rows[i][1]);
        (void)snprintf(command, sizeof command, "evaluate m.npz --data=%s", rows[i][0]);
        (void)snprintf(wanted, sizeof wanted, "weber evaluate: %s%s", rows[i][0], rows[i][2]);
        expect(weber(command) == 1);
        expect_part(output, i == 1 ? rows[i][2] : wanted);
    }
    expect(weber("evaluate m.npz --data=tabs.csv '--separator=\\t'") == 0);
}

static void labels_are_whole_numbers_or_onehot(void) {
    static const char *const rows[][2] = {
        {"half", "got f32 (2, 4); in NumPy y.astype(\"int64\") makes whole numbers\n"},
        {"real", "got f64 (4); in NumPy y.astype("},
        {"row", "got f64 (1, 4); in NumPy y.astype("}};
    wb_scope_open();
    wb_layer *model = wb_dense(2, 2);
    wb_array *x = wb_ones(WB_F32, 2, 4), *y = wb_vector_of(WB_F64, 0, 1, 0, 1);
    expect(wb_save("m.npz", model) == WB_OK);
    expect(wb_save_named("y.npz", {"x", x}, {"half", wb_full(WB_F32, 0.5, 2, 4)}, {"real", y},
                         {"row", wb_reshape(y, 1, 4)},
                         {"onehot", wb_stack(0, y, wb_sub(1, y))}) == WB_OK);
    wb_free(model);
    wb_scope_close();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char command[100];
        (void)snprintf(command, sizeof command, "evaluate m.npz --data=y.npz --y=%s", rows[i][0]);
        expect(weber(command) == 1);
        expect_part(output, "weber evaluate: y.npz: labels must be whole numbers (N), or one-hot");
        expect_part(output, rows[i][1]);
    }
    expect(weber("evaluate m.npz --data=y.npz --y=onehot") == 0);
}

static void many_classes_have_no_matrix(void) {
    wb_scope_open();
    wb_layer *model = wb_dense(2, 21);
    expect(wb_save("m.npz", model) == WB_OK);
    wb_free(model);
    wb_scope_close();
    stage_write("n.csv", "a,b,which\n3,1,20\n");
    expect(weber("evaluate m.npz --data=n.csv") == 0);
    expect_part(output, "\nno confusion matrix of 21 classes: more than 20\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCENE(a_saved_model_is_evaluated),          SCENE(arrays_alone_are_evaluated),
        SCENE(what_cannot_be_evaluated_says_why),   SCENE(images_are_turned),
        SCENE(idx_and_npy_have_labels_beside_them), SCENE(tables_are_evaluated),
        SCENE(many_classes_have_no_matrix),         SCENE(tables_with_mistakes_name_options),
        SCENE(labels_are_whole_numbers_or_onehot),
    };
    return cmocka_run_group_tests_name("models/test_tool_evaluate", tests, NULL, NULL);
}
