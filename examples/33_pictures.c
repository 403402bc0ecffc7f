/* Pictures: a folder with a folder of PNG files for each class is data. A loader reads and prepares
 * them while the network learns; the classes' names are saved beside it, and number another folder.
 *
 * | 3 classes: cross, plus, square; 180 pictures
 * | from the file: 3 names
 * | right in a test with two of the classes: 95% or more
 * | test/plus/0.png is a plus
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <weber.h>

enum { SIDE = 24, CLASSES = 3 };
static const char *const names[CLASSES] = {"cross", "plus", "square"};

/* A shape of 15 x 15 in a random colour, at a random place of a noisy picture. */
static void draw(const char *path, int shape) {
    float u[5], picture[3][SIDE][SIDE];
    wb_read_f32(wb_uniform(WB_F32, 5), u, 5);
    wb_read_f32(wb_mul_number(wb_uniform(WB_F32, SIDE, SIDE, 3), 0.4), picture[0][0],
                SIDE * SIDE * 3);
    const int column = (int)(u[0] * 9), row = (int)(u[1] * 9);
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < 15; y++)
            for (int x = 0; x < 15; x++) {
                const int d = x - y, e = x + y - 14;
                const bool lit[] = {d * d < 5 || e * e < 5, (x > 5 && x < 9) || (y > 5 && y < 9),
                                    x < 3 || y < 3 || x > 11 || y > 11};
                if (lit[shape]) picture[c][row + y][column + x] = 0.5f + u[2 + c] / 2;
            }
    wb_image_write(path, wb_from(WB_F32, picture, SIDE, SIDE, 3));
}

static void draw_folder(const char *root, int first, int count) {
    char path[64];
    mkdir(root, 0755);
    for (int k = first; k < CLASSES; k++) {
        snprintf(path, sizeof path, "%s/%s", root, names[k]);
        mkdir(path, 0755);
        for (int i = 0; i < count; i++) {
            snprintf(path, sizeof path, "%s/%s/%d.png", root, names[k], i);
            draw(path, k);
        }
    }
}

static wb_layer *network(void) {
    return wb_chain(wb_conv({3, 3}, 3, 16, wb_relu, .pad = WB_ALL(1)), wb_maxpool({2, 2}),
                    wb_conv({3, 3}, 16, 32, wb_relu, .pad = WB_ALL(1)), wb_maxpool({2, 2}),
                    wb_conv({3, 3}, 32, 32, wb_relu), wb_global_maxpool(), wb_flatten(),
                    wb_dense(32, CLASSES));
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

/* In numbers from -1 to 1; for training a little is random. */
static wb_image_prepare_desc prepared(double flip) {
    return WB_DESC(image_prepare, .resize = 0, .crop = SIDE, .mean = {0.5, 0.5, 0.5},
                   .std = {0.5, 0.5, 0.5}, .flip = flip);
}

static wb_layer *train(void) {
    wb_image_folder *folder = wb_image_folder_open("train", .prepare = prepared(0.5));
    printf("%d classes: %s, %s, %s; %d pictures\n", CLASSES, wb_image_folder_class(folder, 0),
           wb_image_folder_class(folder, 1), wb_image_folder_class(folder, 2),
           (int)wb_image_folder_count(folder));
    wb_loader *data =
        wb_loader_new(.images = folder, .batchsize = 20, .shuffle = true, .seed = 1, .threads = 2);
    wb_layer *model = network();
    wb_optimiser *optimiser = wb_setup(wb_adam(0.003), model);
    wb_train(loss, model, data, optimiser, .epochs = 12);
    wb_save_named("shapes.npz", {"model", model}, {"classes", wb_image_folder_vocabulary(folder)});
    wb_free(optimiser);
    wb_free(data);
    wb_free(folder);
    return model;
}

/* The test has no crosses, but a plus is still class 1. */
static void test(wb_layer *model) {
    wb_file *file = wb_open("shapes.npz");
    const char *classes = wb_file_text(file, "classes");
    printf("from the file: %d names\n", (int)wb_vocabulary_size(classes));
    wb_image_folder *folder =
        wb_image_folder_open("test", .prepare = prepared(0), .vocabulary = classes);
    wb_loader *data = wb_loader_new(.images = folder, .batchsize = 20);
    const double accuracy = wb_evaluate(model, data).accuracy;
    printf("right in a test with two of the classes: %s\n",
           accuracy >= 0.95 ? "95% or more" : "too few");
    wb_array *x =
        wb_image_prepare_make(wb_image_read("test/plus/0.png", .channels = 3), prepared(0));
    wb_array *label = wb_onecold(wb_apply(model, wb_unsqueeze(x, -1)));
    printf("test/plus/0.png is a %s\n", wb_image_folder_class(folder, (int64_t)wb_item(label)));
    wb_free(data);
    wb_free(folder);
    wb_free(file);
}

int main(void) {
    wb_seed(1);
    wb_scope_open();
    draw_folder("train", 0, 60);
    draw_folder("test", 1, 40);
    wb_layer *model = train();
    test(model);
    wb_free(model);
    wb_scope_close();
    return wb_report("pictures");
}
