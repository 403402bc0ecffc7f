/* src/models/load_named.c and objects.c: several objects into a file and back, all or none. */
#include <weber.h>

#include "base/memory.h"
#include "formats/format.h"
#include "optimise/optimiser.h"
#include "support/files.h"
#include "support/support.h"

/* ---- what is saved ---- */

typedef struct shape {
    int64_t out, points, batchsize;
    bool shuffle, drop_partial;
    wb_rule (*rule)(void); /* default: AdamW */
    wb_rule (*into)(void); /* of what the file is loaded into; default: AdamW */
} shape;

typedef struct things {
    wb_layer *model;
    wb_optimiser *optimiser;
    wb_loader *loader;
} things;

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_sum(wb_square(wb_apply(model, batch->x)));
}

static wb_rule adam(void) { return wb_adamw(.eta = 0.01, .lambda = 0.1, .decoupled = true); }

static wb_rule momentum(void) { return wb_momentum(.eta = 0.1, .rho = 0.5); }
static wb_rule clip(void) { return wb_rule_chain(wb_clip_norm(), wb_descent()); }
static wb_rule clip_by_sum(void) { return wb_rule_chain(wb_clip_norm(.p = 1), wb_descent()); }
static wb_rule plain_adam(void) { return wb_adam(.eta = 0.1); }

static things make(shape s, int steps) {
    wb_seed(3);
    things t = {.model = wb_chain(wb_dense(4, 3, wb_tanh), wb_dense(3, s.out ? s.out : 2))};
    t.loader = wb_loader_new(.x = wb_normal(WB_F32, 4, s.points ? s.points : 20),
                             .batchsize = s.batchsize ? s.batchsize : 4, .shuffle = !s.shuffle,
                             .seed = 8, .drop_partial = s.drop_partial);
    t.optimiser = wb_setup(s.rule ? s.rule() : adam(), t.model, .clip_total_norm = 3);
    wb_batch batch = {0};
    while (steps-- > 0 && wb_next(t.loader, &batch)) {
        wb_gradients *g;
        (void)wb_withgradient(loss, t.model, &batch, NULL, &g);
        assert_int_equal(wb_update(t.optimiser, t.model, g), WB_OK);
    }
    if (batch.turn_) assert_int_equal(wb_scope_close(), WB_OK); /* the place stays in the epoch */
    assert_false(wb_failed());
    return t;
}

static void drop(things *t) { wb_free(t->optimiser), wb_free(t->loader), wb_free(t->model); }

#define LIST(t)                                                                                    \
    {"model", (t).model}, {"optimiser", (t).optimiser}, {"data", (t).loader}, {                    \
        "random", wb_random_state()                                                                \
    }

static void save(const things *t, const char *path) {
    assert_int_equal(wb_save_named(path, LIST(*t)), WB_OK);
}

static const char *const files[] = {"t.bson", "t.npz"};

static void everything_comes_back(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        things t = make((shape){.out = 0}, 3);
        assert_int_equal(wb_adjust(t.optimiser, 0.25), WB_OK);
        assert_int_equal(wb_freeze(t.optimiser, "layers.2"), WB_OK);
        wb_array *next = wb_uniform(WB_F32, 3); /* the sequence is somewhere */
        save(&t, path_of(files[i]));
        next = wb_uniform(WB_F32, 3);
        things u = make((shape){.out = 0}, 0);
        assert_int_equal(wb_load_named(path_of(files[i]), LIST(u)), WB_OK);
        assert_same_bits(wb_uniform(WB_F32, 3), next, "random numbers");
        assert_int_equal(wb_load_named(path_of(files[i]), LIST(u)), WB_OK);
        char again[64];
        snprintf(again, sizeof again, "again-%s", files[i]);
        save(&u, path_of(again));
        assert_same_files(path_of(files[i]), path_of(again));
        drop(&t), drop(&u);
    }
}

/* ---- what does not fit ---- */

typedef struct misfit {
    const char *name;
    shape saved;
    wb_status status;
    const char *message;
} misfit;

static const misfit misfits[] = {
    {"another number of features",
     {.out = 5},
     WB_ERROR_SHAPE,
     "layers.2.weight is (5, 3) in the file under \"model\", (2, 3) in the model"},
    {"another rule",
     {.rule = momentum},
     WB_ERROR_ARGUMENT,
     "optimiser.rule is Momentum in the file, AdamW in the optimiser"},
    {"another kind of Adam",
     {.rule = plain_adam},
     WB_ERROR_ARGUMENT,
     "optimiser.rule is Adam in the file, AdamW in the optimiser"},
    {"a rule with a setting more",
     {.rule = clip_by_sum, .into = clip},
     WB_ERROR_ARGUMENT,
     "optimiser.rule.1.p is in the file, but the optimiser's ClipNorm has no such setting"},
    {"more data",
     {.points = 24},
     WB_ERROR_ARGUMENT,
     "data.observations is 24 in the file, but must be 20"},
    {"larger batches",
     {.batchsize = 5},
     WB_ERROR_ARGUMENT,
     "data.batchsize is 5 in the file, but must be 4"},
    {"no shuffling",
     {.shuffle = true},
     WB_ERROR_ARGUMENT,
     "data.shuffle is false in the file, but must be true"},
    {"full batches only",
     {.drop_partial = true},
     WB_ERROR_ARGUMENT,
     "data.drop_partial is true in the file, but must be false"},
};

/* That nothing has changed is seen by the file that it would be. */
static void what_does_not_fit_changes_nothing(void **state) {
    const misfit *m = *state;
    things other = make(m->saved, 3), t = make((shape){.rule = m->saved.into}, 2);
    save(&other, path_of("misfit.npz"));
    save(&t, path_of("before.npz"));
    /* the part that does not fit comes last as well as first */
    assert_int_equal(wb_load_named(path_of("misfit.npz"), LIST(t)), m->status);
    assert_error(m->status, m->message);
    assert_int_equal(wb_load_named(path_of("misfit.npz"), {"random", wb_random_state()},
                                   {"data", t.loader}, {"optimiser", t.optimiser},
                                   {"model", t.model}),
                     m->status);
    wb_clear_error();
    save(&t, path_of("after.npz"));
    assert_same_files(path_of("before.npz"), path_of("after.npz"));
    drop(&other), drop(&t);
}

static void what_is_not_there_is_told(void **state) {
    (void)state;
    things t = make((shape){.out = 0}, 1);
    assert_int_equal(wb_save_named(path_of("few.npz"), {"model", t.model}), WB_OK);
    assert_int_equal(wb_load_named(path_of("few.npz"), {"model", t.model}, {"data", t.loader}),
                     WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "few.npz: there is no \"data.observations\"; it has model");
    assert_int_equal(wb_load_named(path_of("few.npz"), {"critic", t.model}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "few.npz: there is no \"critic\"");
    wb_file *few = wb_open(path_of("few.npz"));
    assert_null(wb_record_get(wb_file_root(few), "model.layers.9.weight"));
    assert_error(WB_ERROR_ARGUMENT, "\"model.layers.9.weight\"; \"model.layers\" has 1");
    wb_free(few);
    wb_layer *odd = wb_tree_named({"observations", wb_ones(WB_F32, 2)});
    assert_int_equal(wb_save_named(path_of("odd.npz"), {"data", odd}), WB_OK);
    wb_free(odd);
    assert_int_equal(wb_load_named(path_of("odd.npz"), {"data", t.loader}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "odd.npz: data.observations: the record is an array");
    assert_int_equal(wb_load_named(path_of("none.npz"), {"model", t.model}), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "none.npz: cannot be opened");
    drop(&t);
}

static void not_everything_can_be_loaded_into(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2);
    wb_layer *tree = wb_tree_named({"x", x});
    assert_int_equal(wb_save_named(path_of("x.npz"), {"x", x}, {"tree", tree}), WB_OK);
    assert_int_equal(wb_load_named(path_of("x.npz"), {"x", x}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT,
                 "\"x\" is an array, which keeps its numbers; put it into a tree");
    wb_set(tree, "x", wb_vector(3, 4));
    assert_int_equal(wb_load_named(path_of("x.npz"), {"tree", tree}), WB_OK);
    assert_same_bits(wb_get(tree, "x"), x, "by a tree");
    wb_file *file = wb_open(path_of("x.npz"));
    assert_int_equal(wb_load_named(path_of("x.npz"), {"x", file}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "\"x\" has the type file, which cannot be loaded");
    wb_gradients *g = wb_gradient(wb_sum(wb_get(tree, "x")), tree);
    assert_int_equal(wb_save_named(path_of("x.npz"), {"x", g}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "which cannot be saved");
    wb_free(g);
    assert_int_equal(wb_load_named(path_of("x.npz"), {"x", NULL}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_load_named: x is NULL");
    wb_free(file), wb_free(tree);
}

/* Arrays that two objects had in common at first, as an average and its model, are not mistaken for
 * a tie. */
static void objects_that_shared_arrays_get_their_own(void **state) {
    (void)state;
    wb_layer *model = wb_tree_named({"w", wb_vector(1, 2)});
    wb_layer *average = wb_tree_named({"w", wb_get(model, "w")});
    wb_set(average, "w", wb_vector(7, 8));
    assert_int_equal(wb_save_named(path_of("two.bson"), {"model", model}, {"average", average}),
                     WB_OK);
    wb_tie(average, "w", wb_get(model, "w"));
    assert_int_equal(wb_load_named(path_of("two.bson"), {"model", model}, {"average", average}),
                     WB_OK);
    assert_same_bits(wb_get(model, "w"), wb_vector(1, 2), "the model");
    assert_same_bits(wb_get(average, "w"), wb_vector(7, 8), "the average");
    wb_free(model), wb_free(average);
}

/* ---- ties ---- */

/* Two places over one array, as it is or transposed; or, apart, over equal ones. */
static wb_layer *pair(bool apart, bool transposed) {
    wb_array *w = wb_reshape(wb_vector(1, 2, 3, 4), 2, 2);
    assert_int_equal(wb_eval(w), WB_OK);
    wb_array *second = apart ? wb_copy(w) : w;
    return wb_tree_named({"a", w}, {"b", transposed ? wb_transpose(second) : second});
}

static wb_array *distance(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    return wb_add(wb_sum(wb_square(wb_get(model, "a"))), wb_sum(wb_get(model, "b")));
}

static void step(wb_optimiser *o, wb_layer *model) {
    wb_gradients *g;
    (void)wb_withgradient(distance, model, NULL, NULL, &g);
    assert_int_equal(wb_update(o, model, g), WB_OK);
}

static void a_tie_has_one_state_before_and_after(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        const bool transposed = i & 1;
        const char *file = path_of(files[i / 2]);
        wb_layer *model = pair(false, transposed), *other = pair(false, transposed);
        wb_optimiser *o = wb_setup(wb_adam(), model), *p = wb_setup(wb_adam(), other);
        step(o, model);
        assert_int_equal(wb_save_named(file, {"m", model}, {"o", o}), WB_OK);
        wb_file *saved = wb_open(file);
        const wb_record *root = wb_file_root(saved);
        assert_ptr_equal(wb_record_get(root, "o.state.a"), wb_record_get(root, "o.state.b"));
        wb_free(saved);
        assert_int_equal(wb_load_named(file, {"m", other}, {"o", p}), WB_OK);
        assert_int_equal(p->group_count, 1);
        for (int k = 0; k < 3; k++) step(o, model), step(p, other);
        assert_int_equal(p->group_count, 1);
        assert_same_bits(wb_get(model, "a"), wb_get(other, "a"), "a");
        assert_same_bits(wb_get(model, "b"), wb_get(other, "b"), "b");
        assert_same_bits(o->groups[0].states[1], p->groups[0].states[1], "v");
        wb_free(o), wb_free(p), wb_free(model), wb_free(other);
    }
}

static void two_states_are_not_one(void **state) {
    (void)state;
    wb_layer *apart = pair(true, false), *tied = pair(false, false);
    wb_optimiser *o = wb_setup(wb_momentum(), apart), *p = wb_setup(wb_momentum(), tied);
    assert_int_equal(o->group_count, 2);
    assert_int_equal(wb_save_named(path_of("apart.npz"), {"m", apart}, {"o", o}), WB_OK);
    assert_int_equal(wb_load_named(path_of("apart.npz"), {"m", tied}, {"o", p}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "o.state.b is a state of its own in the file");
    wb_free(o), wb_free(p), wb_free(apart), wb_free(tied);
}

/* ---- files that lie ---- */

/* Writes the file again with another number or text at a place. */
static void lie(const char *from, const char *to, const char *place, int64_t integer,
                const char *text) {
    wb_file *file = wb_open(from);
    wb_record *r = (wb_record *)(uintptr_t)wb_record_get(wb_file_root(file), place);
    assert_non_null(r);
    r->integer = integer, r->text = text;
    assert_int_equal(wb_write_file(file->format, file->root, file->metadata, to), WB_OK);
    wb_free(file);
}

static void numbers_that_cannot_be_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *place;
        int64_t integer;
        const char *text, *message;
    } lies[] = {
        {"data.batch", 6, NULL, "the numbers of \"data\" do not fit together: the file is damaged"},
        {"data.epoch", -1, NULL, ""},
        {"optimiser.step", -1, NULL, ""},
        {"optimiser.step", (int64_t)1 << 31, NULL, "\"optimiser\" do not fit together"},
        {"optimiser.step", INT64_MAX, NULL, "\"optimiser\" do not fit together"},
        {"optimiser.rule.name", 0, "AdamX", "optimiser.rule is AdamX in the file"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        things t = make((shape){.out = 0}, 3);
        save(&t, path_of("before.npz"));
        lie(path_of("before.npz"), path_of("lie.npz"), lies[i].place, lies[i].integer,
            lies[i].text);
        char message[1024];
        assert_true(wb_load_named(path_of("lie.npz"), LIST(t)) != WB_OK);
        (void)wb_take_error(message, sizeof message);
        if (!strstr(message, lies[i].message) || !strstr(message, "lie.npz"))
            fail_msg("\"%s\" does not say \"%s\"", message, lies[i].message);
        save(&t, path_of("after.npz"));
        assert_same_files(path_of("before.npz"), path_of("after.npz"));
        drop(&t);
    }
}

static void arrays_alone_are_no_checkpoint(void **state) {
    (void)state;
    things t = make((shape){.out = 0}, 3);
    assert_int_equal(wb_save_named(path_of("t.safetensors"), LIST(t)), WB_ERROR_UNSUPPORTED);
    assert_error(WB_ERROR_UNSUPPORTED,
                 "safetensors holds named arrays, but \"optimiser.step\" is an integer; .npz and "
                 ".bson hold other values too");
    drop(&t);
}

/* What loading would exchange. */
typedef struct held {
    const void *arrays[16];
    int64_t numbers[4];
} held;

static held look_at(const things *t) {
    static const char *const paths[] = {"layers.1.weight", "layers.1.bias", "layers.2.weight",
                                        "layers.2.bias"};
    held h;
    memset(&h, 0, sizeof h);
    for (int i = 0; i < 4; i++) h.arrays[i] = wb_get(t->model, paths[i]);
    for (int64_t g = 0; g < t->optimiser->group_count; g++)
        for (int k = 0; k < 2; k++) h.arrays[4 + 2 * g + k] = t->optimiser->groups[g].states[k];
    h.numbers[0] = wb_step_count(t->optimiser), h.numbers[1] = wb_loader_epoch(t->loader);
    return h;
}

/* Loads what is in the file, and goes on from there; where that fails nothing has changed. */
static void try_file(const char *path, const things *t) {
    const held before = look_at(t);
    wb_batch batch = {0};
    if (wb_load_named(path, LIST(*t)) == WB_OK) {
        (void)wb_next(t->loader, &batch);
        assert_int_equal(wb_batch_end(&batch), WB_OK);
        return;
    }
    assert_true(wb_failed());
    wb_clear_error();
    const held now = look_at(t);
    assert_memory_equal(&now, &before, sizeof now);
}

/* Flipped bits and cut ends of checkpoints: an error, or numbers that could have been. */
static void damage_is_survived(void **state) {
    (void)state;
    enum { TRIES = 1500 };
    things t = make((shape){.out = 0}, 3);
    for (int i = 0; i < 2; i++) {
        size_t size = 0;
        save(&t, path_of(files[i]));
        unsigned char *bytes = read_file(path_of(files[i]), &size);
        assert_non_null(bytes);
        const size_t step = size / TRIES + 1;
        for (size_t at = 0; at < size; at += step) {
            bytes[at] ^= (unsigned char)(1 << at % 8);
            write_file(path_of(files[i]), bytes, size);
            bytes[at] ^= (unsigned char)(1 << at % 8);
            try_file(path_of(files[i]), &t);
        }
        for (size_t end = 0; end < size; end += 10 * step) {
            write_file(path_of(files[i]), bytes, end);
            try_file(path_of(files[i]), &t);
        }
        free(bytes);
        drop(&t);
        t = make((shape){.out = 0}, 3);
    }
    drop(&t);
}

/* ---- memory ---- */

static void every_allocation_may_fail(void **state) {
    (void)state;
    things t = make((shape){.out = 0}, 1), other = make((shape){.out = 0}, 3);
    save(&other, path_of("memory.bson"));
    save(&t, path_of("memory.npz"));
    const held before = look_at(&t);
    wb_status status = WB_ERROR_MEMORY;
    int64_t n = 0;
    while (status != WB_OK) {
        assert_true(++n < 5000);
        const held now = look_at(&t);
        assert_memory_equal(&now, &before, sizeof now);
        (void)wb_fail_allocation(n);
        status = wb_load_named(path_of("memory.bson"), LIST(t));
        (void)wb_fail_allocation(0);
        if (status != WB_OK) assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
    }
    assert_int_equal(wb_step_count(t.optimiser), 3);
    for (n = 1, status = WB_ERROR_MEMORY; status != WB_OK; n++) {
        assert_true(n < 5000);
        (void)wb_fail_allocation(n);
        status = wb_save_named(path_of("memory.bson"), LIST(t));
        (void)wb_fail_allocation(0);
        if (status != WB_OK) assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
    }
    assert_false(wb_failed());
    drop(&t), drop(&other);
}

/* ---- devices ---- */

static void state_comes_from_and_goes_to_devices(void **state) {
    (void)state;
    const wb_device *device = wb_get_device("checked", 0);
    wb_layer *here = pair(true, false), *there = pair(true, false);
    wb_optimiser *o = wb_setup(wb_adam(), here), *p = wb_setup(wb_adam(), there);
    assert_int_equal(wb_move(device, p), WB_OK);
    step(p, there);
    assert_int_equal(wb_save_named(path_of("d.npz"), {"m", there}, {"o", p}), WB_OK);
    assert_int_equal(wb_load_named(path_of("d.npz"), {"m", here}, {"o", o}), WB_OK);
    assert_ptr_equal(wb_device_of(o), wb_default_device());
    assert_int_equal(wb_load_named(path_of("d.npz"), {"m", there}, {"o", p}), WB_OK);
    assert_ptr_equal(wb_device_of(p), device);
    step(o, here), step(p, there);
    assert_same_bits(wb_cpu(wb_get(here, "a")), wb_cpu(wb_get(there, "a")), "a");
    wb_free(o), wb_free(p), wb_free(here), wb_free(there);
    (void)wb_device_sync(device);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(everything_comes_back),
        TEST(what_is_not_there_is_told),
        TEST(not_everything_can_be_loaded_into),
        TEST(objects_that_shared_arrays_get_their_own),
        TEST(a_tie_has_one_state_before_and_after),
        TEST(two_states_are_not_one),
        TEST(numbers_that_cannot_be_are_refused),
        TEST(arrays_alone_are_no_checkpoint),
        TEST(damage_is_survived),
        TEST(every_allocation_may_fail),
        TEST(state_comes_from_and_goes_to_devices),
    };
    ADD_ROWS(&tests, misfits, what_does_not_fit_changes_nothing);
    ADD_TESTS(&tests, others);
    return run_test_list("models/test_load_named", &tests, make_folder, drop_folder);
}
