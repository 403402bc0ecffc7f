/* A generative adversarial network: points on a ring, made of noise. Both networks are one model;
 * each of two optimisers freezes the other's half, so that a step differentiates and changes one
 * half alone (Goodfellow and others 2014).
 *
 * | a step of one half leaves the other as it is: yes
 * | 512 points were made
 * | their mean distance from the middle is about 2: yes
 * | they are all around the ring: yes
 * | they are in ring.pgm
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <weber.h>

enum { BATCH = 64, STEPS = 3000, POINTS = 512, SIDE = 64 };

typedef struct Gan {
    wb_layer layer;
    wb_layer *generator;     /* noise (2, N) to points (2, N) */
    wb_layer *discriminator; /* points to a logit: is it real? */
} Gan;
WB_FUNCTOR(Gan, NULL, WB_CHILD_FIELD(Gan, generator), WB_CHILD_FIELD(Gan, discriminator));

static wb_array *made_by(const Gan *gan, int64_t count) {
    return wb_apply(gan->generator, wb_normal(WB_F32, 2, count));
}

/* The ring: radius 2, a little noise. */
static wb_array *real_points(void) {
    wb_array *angle = wb_mul_number(wb_uniform(WB_F32, 1, BATCH), 6.283185307179586);
    wb_array *ring = wb_mul_number(wb_concat(0, wb_cos(angle), wb_sin(angle)), 2);
    return wb_add(ring, wb_mul_number(wb_normal(WB_F32, 2, BATCH), 0.1));
}

/* What the discriminator is to say of real points is 1, of made ones 0. */
static wb_array *loss_of_discriminator(wb_layer *model, const wb_batch *batch, void *user) {
    const Gan *gan = (const Gan *)(const void *)model;
    (void)user;
    wb_array *real = wb_apply(gan->discriminator, batch->x);
    wb_array *made = wb_apply(gan->discriminator, made_by(gan, BATCH));
    return wb_add(wb_logitbinarycrossentropy(real, wb_number(1)),
                  wb_logitbinarycrossentropy(made, wb_number(0)));
}

/* The generator is to make points of which it says 1. */
static wb_array *loss_of_generator(wb_layer *model, const wb_batch *batch, void *user) {
    const Gan *gan = (const Gan *)(const void *)model;
    (void)batch, (void)user;
    wb_array *made = wb_apply(gan->discriminator, made_by(gan, BATCH));
    return wb_logitbinarycrossentropy(made, wb_number(1));
}

static wb_layer *network(int64_t out) {
    return wb_chain(wb_dense(2, 32, wb_leakyrelu), wb_dense(32, 32, wb_leakyrelu),
                    wb_dense(32, out));
}

static wb_optimiser *for_half(Gan *gan, const char *other) {
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 1e-3, .beta1 = 0.5), &gan->layer);
    wb_freeze(adam, other);
    return adam;
}

/* A step of the discriminator changes that, and not the generator. */
static bool halves_are_apart(Gan *gan, wb_optimiser *adam) {
    wb_scope_open();
    wb_array *g = wb_get(&gan->layer, "generator.layers.1.weight");
    wb_array *d = wb_get(&gan->layer, "discriminator.layers.1.weight");
    const wb_batch batch = {.x = real_points()};
    wb_train_step(loss_of_discriminator, &gan->layer, &batch, NULL, adam);
    const bool apart = wb_get(&gan->layer, "generator.layers.1.weight") == g &&
                       wb_get(&gan->layer, "discriminator.layers.1.weight") != d;
    wb_scope_close();
    return apart;
}

static void train(Gan *gan, wb_optimiser *discriminator, wb_optimiser *generator) {
    for (int i = 0; i < STEPS; i++) {
        wb_scope_open();
        const wb_batch batch = {.x = real_points()};
        wb_train_step(loss_of_discriminator, &gan->layer, &batch, NULL, discriminator);
        wb_train_step(loss_of_generator, &gan->layer, &batch, NULL, generator);
        wb_scope_close();
    }
}

/* The square from -3 to 3; what is met by more points is brighter. */
static void save(const char *path, float points[POINTS][2]) {
    unsigned char pixels[SIDE][SIDE] = {{0}};
    for (int i = 0; i < POINTS; i++) {
        const int x = (int)((points[i][0] + 3) / 6 * SIDE),
                  y = (int)((points[i][1] + 3) / 6 * SIDE);
        if (x < 0 || x >= SIDE || y < 0 || y >= SIDE) continue;
        pixels[y][x] = pixels[y][x] < 192 ? (unsigned char)(pixels[y][x] + 63) : 255;
    }
    FILE *file = fopen(path, "wb");
    if (!file) exit(1);
    fprintf(file, "P5 %d %d 255\n", SIDE, SIDE);
    fwrite(pixels, 1, sizeof pixels, file);
    if (fclose(file) != 0) exit(1);
    printf("they are in %s\n", path);
}

int main(void) {
    static float points[POINTS][2];
    wb_scope_open();
    wb_seed(2);
    Gan *gan = wb_new(Gan);
    gan->generator = network(2), gan->discriminator = network(1);
    wb_optimiser *discriminator = for_half(gan, "generator");
    wb_optimiser *generator = for_half(gan, "discriminator");
    printf("a step of one half leaves the other as it is: %s\n",
           halves_are_apart(gan, discriminator) ? "yes" : "no");
    train(gan, discriminator, generator);

    wb_read_f32(made_by(gan, POINTS), points[0], 2 * POINTS);
    double distance = 0;
    int quarters[4] = {0}, least = POINTS;
    for (int i = 0; i < POINTS; i++) {
        distance += hypot((double)points[i][0], (double)points[i][1]) / POINTS;
        quarters[(points[i][0] > 0) + 2 * (points[i][1] > 0)]++;
    }
    for (int k = 0; k < 4; k++) least = quarters[k] < least ? quarters[k] : least;
    printf("%d points were made\n", POINTS);
    printf("their mean distance from the middle is about 2: %s\n",
           fabs(distance - 2) < 0.3 ? "yes" : "no");
    printf("they are all around the ring: %s\n", least > POINTS / 20 ? "yes" : "no");
    save("ring.pgm", points);

    wb_free(discriminator), wb_free(generator), wb_free(gan);
    wb_scope_close();
    return wb_report("21_gan");
}
