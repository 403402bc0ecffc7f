/* A rule of one's own for the optimiser: signs of a running mean of gradients (Signum, Bernstein
 * and others 2018). It chains, is adjusted by name, saved and loaded as the built-in ones are.
 *
 * | Signum(eta=0.02, beta=0.9)
 * | after 100 steps the loss is below 0.01: yes
 * | saved, loaded and gone on with: the same bits
 * | wb_adjust_named: there is no setting "gamma"; there are: eta, beta
 */
#include <stdio.h>
#include <string.h>

#include <weber.h>

/* ---- the rule: settings, states, an expression ---- */

typedef struct signum_desc {
    double eta, beta;
} signum_desc;

/* m = beta m + (1 - beta) g;  x -= eta sign(m) */
static wb_array *signum_step(wb_rule_at *at) {
    wb_array *m = wb_add(wb_mul(at->state[0], wb_setting(at, "beta")),
                         wb_mul(at->g, wb_setting_rest(at, "beta")));
    at->state[0] = m;
    return wb_mul(wb_sign(m), wb_setting(at, "eta"));
}

static const wb_rule_row signum_row = {
    .name = "Signum",
    .settings = {{"eta", WB_SETTING_RATE, .offset = offsetof(signum_desc, eta)},
                 {"beta", WB_SETTING_FRACTION, .offset = offsetof(signum_desc, beta)}},
    .states = {{"m", WB_START_ZERO, NULL}},
    .step = signum_step};

static wb_rule signum(double eta, double beta) {
    return wb_rule_make(&signum_row, &(signum_desc){eta, beta});
}

/* ---- a model and its steps ---- */

typedef struct learner {
    wb_layer *model;
    wb_optimiser *optimiser;
} learner;

static learner begin(void) {
    wb_seed(1);
    learner l = {.model = wb_dense(4, 1)};
    l.optimiser = wb_setup(signum(0.02, 0.9), l.model);
    return l;
}

static void end(learner *l) { wb_free(l->optimiser), wb_free(l->model); }

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static double train(const learner *l, int steps) {
    double last = 0;
    for (int i = 0; i < steps; i++) {
        wb_scope_open();
        const float x[] = {1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1}, y[] = {0.5f, -0.5f, 0.25f};
        const wb_batch batch = {.x = wb_from(WB_F32, x, 4, 3), .y = wb_from(WB_F32, y, 1, 3)};
        last = wb_item(wb_train_step(loss, l->model, &batch, NULL, l->optimiser));
        if (wb_scope_close() != WB_OK) return -1;
    }
    return last;
}

static bool same(const learner *a, const learner *b) {
    float x[4], y[4];
    wb_scope_open();
    const bool read = wb_read_f32(wb_get(a->model, "weight"), x, 4) == WB_OK &&
                      wb_read_f32(wb_get(b->model, "weight"), y, 4) == WB_OK;
    return wb_scope_close() == WB_OK && read && memcmp(x, y, sizeof x) == 0;
}

int main(void) {
    wb_set_default_device(wb_get_device()); /* WEBER_DEVICE chooses; else a GPU, if there is one */
    learner a = begin(), b = begin();
    if (wb_failed()) return wb_report("own rule");
    char text[1024];
    if (wb_show_text(a.optimiser, text, sizeof text) == WB_OK)
        printf("%.*s\n", (int)strcspn(text, ")") + 1, text);
    printf("after 100 steps the loss is below 0.01: %s\n", train(&a, 100) < 0.01 ? "yes" : "no");
    wb_status status = wb_save_named("run.bson", {"model", a.model}, {"optimiser", a.optimiser});
    if (status == WB_OK)
        status = wb_load_named("run.bson", {"model", b.model}, {"optimiser", b.optimiser});
    (void)train(&a, 7), (void)train(&b, 7);
    if (status == WB_OK)
        printf("saved, loaded and gone on with: %s bits\n", same(&a, &b) ? "the same" : "other");
    if (wb_adjust_named(a.optimiser, "gamma", 1) != WB_OK &&
        wb_take_error(text, sizeof text) != WB_OK)
        printf("%s\n", text);
    end(&a), end(&b);
    return wb_report("own rule") || status != WB_OK;
}
