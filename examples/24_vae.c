/* A variational autoencoder of small pictures: bars that lie or stand. Two halves in a struct, a
 * sample between them (z = mean + deviation * noise), and a loss of two parts, both of which it
 * hands out (Kingma and Welling 2014).
 *
 * | 280 pictures of 8 x 8, 14 different ones
 * | both parts were handed out: error and kl
 * | the error fell to less than half: yes
 * | the code says something: kl is above 1: yes
 * | of 64 samples most are bars: yes
 * | they are in samples.pgm
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <weber.h>

enum { SIDE = 8, PIXELS = SIDE * SIDE, BARS = 14, COPIES = 20, N = BARS * COPIES, SAMPLES = 64 };

typedef struct Vae {
    wb_layer layer;
    wb_layer *encoder; /* to means and logarithms of variances, (4, N) */
    wb_layer *decoder; /* of codes (2, N) to logits of pixels */
} Vae;
WB_FUNCTOR(Vae, NULL, WB_CHILD_FIELD(Vae, encoder), WB_CHILD_FIELD(Vae, decoder));

/* Bar k, two pixels wide: 0 to 6 lie, 7 to 13 stand. */
static bool is_lit(int k, int row, int column) {
    const int at = k < 7 ? row - k : column - (k - 7);
    return at == 0 || at == 1;
}

static void draw(float pictures[N][PIXELS]) {
    for (int i = 0; i < N; i++)
        for (int p = 0; p < PIXELS; p++) pictures[i][p] = is_lit(i % BARS, p / SIDE, p % SIDE);
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    const Vae *vae = (const Vae *)(const void *)model;
    (void)user;
    wb_array *code = wb_apply(vae->encoder, batch->x);
    wb_array *mean = wb_slice(code, 0, 0, 2, 1), *log_variance = wb_slice(code, 0, 2, 4, 1);
    wb_array *noise = wb_normal(WB_F32, 2, wb_size(code, 1));
    wb_array *z = wb_add(mean, wb_mul(noise, wb_exp(wb_mul_number(log_variance, 0.5))));
    const double each = 1.0 / (double)wb_size(code, 1);
    wb_array *error =
        wb_logitbinarycrossentropy(wb_apply(vae->decoder, z), batch->x, .agg = WB_AGG_SUM);
    /* sum of mean^2 + variance - 1 - log variance, halved */
    wb_array *kl = wb_sub(wb_add(wb_square(mean), wb_exp(log_variance)), log_variance);
    kl = wb_mul_number(wb_sum(wb_sub(kl, wb_number(1))), 0.5 * each);
    error = wb_aux("error", wb_mul_number(error, each)), kl = wb_aux("kl", kl);
    return wb_add(error, kl);
}

typedef struct history {
    double first, error, kl; /* means of an epoch */
    bool has_both;
} history;

static bool note(const wb_train_event *event) {
    history *h = event->user;
    h->has_both = event->aux_count == 2;
    h->error = event->aux[0].mean, h->kl = event->aux[1].mean;
    if (event->epoch == 1) h->first = h->error;
    return true;
}

/* How many pixels of the picture differ from the bar that is most like it. */
static int distance(const float *picture) {
    int least = PIXELS;
    for (int k = 0; k < BARS; k++) {
        int different = 0;
        for (int p = 0; p < PIXELS; p++)
            different += (picture[p] > 0.5F) != is_lit(k, p / SIDE, p % SIDE);
        if (different < least) least = different;
    }
    return least;
}

/* The samples in rows of 8. */
static void save(const char *path, float pictures[SAMPLES][PIXELS]) {
    FILE *file = fopen(path, "wb");
    if (!file) exit(1);
    fprintf(file, "P5 %d %d 255\n", 8 * SIDE, SAMPLES / 8 * SIDE);
    for (int y = 0; y < SAMPLES / 8 * SIDE; y++)
        for (int x = 0; x < 8 * SIDE; x++)
            fputc((int)(255 * pictures[y / SIDE * 8 + x / SIDE][y % SIDE * SIDE + x % SIDE]), file);
    if (fclose(file) != 0) exit(1);
    printf("they are in %s\n", path);
}

int main(void) {
    static float pictures[N][PIXELS], samples[SAMPLES][PIXELS];
    draw(pictures);
    wb_scope_open();
    wb_seed(1);
    wb_loader *data = wb_loader_new(.x = wb_from(WB_F32, pictures, PIXELS, N), .batchsize = 28,
                                    .shuffle = true, .seed = 1);
    Vae *vae = wb_new(Vae);
    vae->encoder = wb_chain(wb_dense(PIXELS, 64, wb_relu), wb_dense(64, 4));
    vae->decoder = wb_chain(wb_dense(2, 64, wb_relu), wb_dense(64, PIXELS));
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 0.005), &vae->layer);
    printf("%d pictures of %d x %d, %d different ones\n", N, SIDE, SIDE, BARS);

    history h = {.first = 0};
    wb_train(loss, &vae->layer, data, adam, .epochs = 150, .on_epoch = note, .user = &h);
    printf("both parts were handed out: %s\n", h.has_both ? "error and kl" : "no");
    printf("the error fell to less than half: %s\n", h.error < h.first / 2 ? "yes" : "no");
    printf("the code says something: kl is above 1: %s\n", h.kl > 1 ? "yes" : "no");

    wb_array *made = wb_sigmoid(wb_apply(vae->decoder, wb_normal(WB_F32, 2, SAMPLES)));
    wb_read_f32(made, samples[0], SAMPLES * PIXELS);
    int bars = 0;
    for (int i = 0; i < SAMPLES; i++) bars += distance(samples[i]) <= 6;
    printf("of %d samples most are bars: %s\n", SAMPLES, bars > SAMPLES / 2 ? "yes" : "no");
    save("samples.pgm", samples);

    wb_free(adam), wb_free(data), wb_free(vae);
    wb_scope_close();
    return wb_report("24_vae");
}
