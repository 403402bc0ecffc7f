/* What holds for the settings of every layer, by its rows: src/layers/kinds.c, src/layers/rows.c,
 * src/models/settings.c; and a layer of a user's own, which has the same. */
#include <math.h>

#include <weber/state.h>

#include "models/model_files.h"
#include "models/settings.h"
#include "support/sample.h"

/* ---- a layer of entries by name ---- */

/* As bindings of other languages have them: paths are the entries' names. */
typedef struct Entries {
    wb_layer layer;
    wb_layer_list items;
} Entries;
static wb_array *forward_entries(wb_layer *layer, wb_array *x) {
    return wb_mul(wb_apply(wb_get_layer(layer, "dense"), x), wb_get(layer, "gain"));
}
WB_FUNCTOR(
    Entries, forward_entries,
    {.offset = offsetof(Entries, items), .kind = WB_FIELD_LIST, .trainable = true, .spread = true});

static void a_list_without_a_name_holds_arrays_and_is_saved(void **state) {
    (void)state;
    assert_int_equal(wb_register_layer(&Entries_functor), WB_OK);
    wb_layer *layer = (wb_layer *)(void *)wb_new(Entries);
    assert_int_equal(wb_list_append(layer, "", "dense", wb_dense(2, 3)), WB_OK);
    assert_int_equal(wb_list_append(layer, "", "gain", wb_vector(1, 2, 3)), WB_OK);
    assert_int_equal(wb_list_append(layer, "", "layers", wb_chain(wb_dense(4, 4))), WB_OK);
    assert_sizes(wb_get(layer, "dense.weight"), 3, 2);
    wb_array *x = wb_normal(WB_F32, 2, 4);
    static const char *const names[] = {"m.bson", "m.safetensors", "m.npz", "m.gguf"};
    for (int i = 0; i < 4; i++) {
        wb_file *file = wb_save_memory(names[i], {"model", layer});
        wb_layer *again = wb_file_model(file, NULL, NULL);
        assert_true(wb_approx(wb_apply(again, x), wb_apply(layer, x), 0, 0, NULL, 0));
        assert_sizes(wb_get(again, "layers.layers.1.weight"), 4, 4);
        wb_free(again), wb_free(file);
    }
    wb_free(layer);
}

/* The entry "gain" and the member would have one path. */
typedef struct Crowded {
    wb_layer layer;
    wb_layer_list items;
    wb_array *gain;
} Crowded;
WB_FUNCTOR(
    Crowded, NULL,
    {.offset = offsetof(Crowded, items), .kind = WB_FIELD_LIST, .trainable = true, .spread = true},
    WB_ARRAY_FIELD(Crowded, gain));

static void a_list_without_a_name_is_alone(void **state) {
    (void)state;
    wb_layer *layer = (wb_layer *)(void *)wb_new(Crowded);
    assert_int_equal(wb_list_append(layer, "", "dense", wb_dense(2, 3)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "Crowded has other members in its table, so its list must have "
                                    "a name");
    wb_free(layer);
}

/* Plain values, as bindings of other languages have them, take no place. */
typedef struct Labelled {
    wb_layer layer;
    void *label;
    wb_layer_list items;
} Labelled;
WB_FUNCTOR(Labelled, NULL, WB_VALUE_FIELD(Labelled, label),
           {.offset = offsetof(Labelled, items), .kind = WB_FIELD_LIST, .trainable = true});

static void a_list_without_a_name_may_follow_a_plain_value(void **state) {
    (void)state;
    wb_layer *layer = (wb_layer *)(void *)wb_new(Labelled);
    assert_int_equal(wb_list_append(layer, "", "gain", wb_vector(1, 2)), WB_OK);
    wb_file *file = wb_save_memory("m.safetensors", {"model", layer});
    const wb_record *gain = wb_record_get(wb_file_root(file), "model.gain");
    assert_values(wb_record_array(file, gain), 0, 1, 2);
    wb_free(file), wb_free(layer);
}

/* ---- every layer of the library ---- */

typedef struct class_row {
    const char *name;
    const wb_layer_class *k;
} class_row;
static class_row classes[64];
static int class_count;

static void find_classes(void) {
    for (const wb_layer_class *k; (k = wb_class_at(class_count)) != NULL; class_count++)
        classes[class_count] = (class_row){k->name, k};
}

/* The first three values that are out of a setting's range: which is 0 to 2. */
static void spoil_real(wb_layer *layer, const wb_field *f, int which) {
    *(double *)wb_field_at(layer, f) = which == 0                   ? NAN
                                       : f->high != 0 && which == 1 ? f->high * 1.01
                                                                    : f->low - 1;
}

static void spoil_reals(wb_layer *layer, const wb_field *f, int which) {
    *(double *)wb_field_at(layer, f) = which == 0 ? -NAN : which == 1 ? f->low - 2 : -3;
}

static void spoil_choice(wb_layer *layer, const wb_field *f, int which) {
    *(int *)wb_field_at(layer, f) = which == 0 ? -1 : 99;
}

static void spoil_numbers(wb_layer *layer, const wb_field *f, int which) {
    int64_t *numbers = wb_field_at(layer, f);
    int count = f->kind == WB_FIELD_SIZES ? 3 : 1, n;
    (void)wb_layer_sizes(layer, &n);
    if (wb_kind_of(f)->per_size) count = n;
    for (int i = 0; i < count; i++)
        numbers[i] = f->high != 0 && which == 1 ? (int64_t)f->high + 1 : -1 - which;
}

static void spoil_dims(wb_layer *layer, const wb_field *f, int which) {
    *(unsigned *)wb_field_at(layer, f) = WB_DIM(WB_MAX_DIMS + which);
}

static void spoil_name(wb_layer *layer, const wb_field *f, int which) {
    memset(wb_field_at(layer, f), 'x' + which, WB_NAME_BYTES);
}

/* NULL: nothing is out of its range. */
static void (*const spoilers[WB_FIELD_KINDS])(wb_layer *, const wb_field *, int) = {
    [WB_FIELD_INTEGER] = spoil_numbers, [WB_FIELD_PAIR] = spoil_numbers,
    [WB_FIELD_REAL] = spoil_real,       [WB_FIELD_CHOICE] = spoil_choice,
    [WB_FIELD_REALS] = spoil_reals,     [WB_FIELD_SIZES] = spoil_numbers,
    [WB_FIELD_EACH] = spoil_numbers,    [WB_FIELD_PADDING] = spoil_numbers,
    [WB_FIELD_DIMS] = spoil_dims,       [WB_FIELD_NAME] = spoil_name};

static void every_kind_of_field_has_its_rows(void **state) {
    (void)state;
    for (int i = 0; i < WB_FIELD_KINDS; i++) {
        const bool is_setting = i > WB_FIELD_VALUE, is_written = is_setting && i != WB_FIELD_OTHER;
        const bool has_sound_rows =
            (wb_kind_rows[i].bytes > 0) == (i != WB_FIELD_OTHER) &&
            (wb_kind_rows[i].put != NULL) == is_written &&
            (wb_file_rows[i].read != NULL) == is_setting &&
            (wb_file_rows[i].write != NULL) == is_setting && sampler_of(i) != NULL &&
            (spoilers[i] != NULL) == (is_setting && wb_kind_rows[i].check != NULL);
        if (!has_sound_rows) fail_msg("a table has no row for the kind %d, or half of one", i);
    }
}

static void a_setting_out_of_range_is_named(void **state) {
    const wb_layer_class *k = ((const class_row *)*state)->k;
    test_random r = {test_seed()};
    for (int i = 0; i < 3 * k->field_count; i++) {
        const wb_field *f = &k->fields[i / 3];
        char wanted[120], message[700];
        wb_layer *layer = sample_incomplete(&r, k);
        if (!spoilers[f->kind]) {
            wb_free(layer);
            continue;
        }
        spoilers[f->kind](layer, f, i % 3);
        assert_null(wb_layer_complete(layer));
        snprintf(wanted, sizeof wanted, "%s: %s must be ", k->name, f->name);
        assert_int_equal(wb_take_error(message, sizeof message), WB_ERROR_ARGUMENT);
        if (strncmp(message, wanted, strlen(wanted)) != 0) fail_msg("%s: %s", wanted, message);
    }
}

/* A default is a number within its range. */
static void a_default_is_within_its_range(void **state) {
    const wb_layer_class *k = ((const class_row *)*state)->k;
    for (int i = 0; i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        if (!wb_field_is_setting(f) || f->usual <= 0) continue;
        assert_true(f->is_above ? f->usual > f->low : f->usual >= f->low);
        assert_true(f->high == 0 || f->usual <= f->high);
    }
}

typedef struct pair {
    wb_visitor visitor;
    wb_layer *other;
    const char *text;
} pair;

static bool compare(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    pair *p = (pair *)(void *)visitor;
    char text[WB_PATH_BYTES];
    (void)trainable;
    wb_path_text(path, text, sizeof text);
    assert_same_bits(*slot, wb_get(p->other, text), p->text);
    return true;
}

static void assert_comes_back(wb_layer *layer, const char *file) {
    wb_arena arena = {.blocks = NULL};
    const char *text = wb_structure_text(layer, &arena);
    assert_int_equal(wb_save(path_of(file), layer), WB_OK);
    wb_layer *again = wb_load_model(path_of(file), NULL);
    if (!again) fail_msg("%s: %s", text, wb_error_message());
    assert_structure(again, text);
    assert_int_equal(again->mode_, layer->mode_);
    pair p = {.visitor = {.array = compare}, .other = again, .text = text};
    assert_true(wb_visit(&p.visitor, layer));
    wb_arena_release(&arena);
    wb_free(again);
}

static const char *const files[] = {"m.bson", "m.safetensors", "m.npz"};

static void a_layer_comes_back_from_every_format(void **state) {
    const wb_layer_class *k = ((const class_row *)*state)->k;
    test_random r = {test_seed()};
    for (int i = 0; i < 60; i++) {
        wb_scope_open();
        wb_layer *layer = sample_layer(&r, k);
        if (!layer) fail_msg("%s", wb_error_message());
        assert_comes_back(layer, files[i % 3]);
        wb_free(layer);
        assert_int_equal(wb_scope_close(), WB_OK);
    }
}

/* ---- a layer of one's own ---- */

typedef struct Power {
    wb_layer layer;
    int64_t in, out;
    wb_activation *activation;
    double p;
    bool is_odd;
    wb_layer *before; /* or NULL */
    wb_array *weight; /* (out, in) */
} Power;

/* activation(W x)^p */
static wb_array *power_forward(wb_layer *layer, wb_array *x) {
    const Power *d = (const Power *)(const void *)layer;
    if (d->before) x = wb_apply(d->before, x);
    wb_array *y = wb_matmul(d->weight, x);
    if (d->activation) y = d->activation(y);
    return wb_pow(y, wb_number(d->p));
}

WB_FUNCTOR(Power, power_forward, WB_SETTING(Power, in, WB_FIELD_PAIR, .low = 1),
           WB_SETTING(Power, activation, WB_FIELD_ACTIVATION),
           WB_SETTING(Power, p, WB_FIELD_REAL, .usual = 2, .high = 10, .is_above = true),
           WB_SETTING(Power, is_odd, WB_FIELD_BOOL), WB_CHILD_FIELD(Power, before),
           WB_ARRAY_FIELD(Power, weight));

static wb_layer *power(double p, wb_layer *before) {
    Power *d = wb_new(Power);
    d->in = 2, d->out = 3, d->p = p, d->activation = wb_tanh, d->before = before;
    d->weight = wb_keep(wb_normal(WB_F32, 3, 2));
    return wb_layer_complete(&d->layer);
}

static void assert_printed(wb_layer *layer, const char *wanted) {
    char text[1000];
    assert_int_equal(wb_show_text(layer, text, sizeof text), WB_OK);
    if (!strstr(text, wanted)) fail_msg("%s is not in %s", wanted, text);
}

static void a_layer_of_ones_own_has_what_others_have(void **state) {
    (void)state;
    wb_layer *model = wb_chain(power(0, NULL), power(0.5, wb_dense(2, 2)));
    assert_int_equal(wb_register_layer(&Power_functor), WB_OK);
    assert_int_equal(wb_register_layer(&Power_functor), WB_OK);
    assert_structure(model, "Chain(Power(2 => 3, tanh, before = false), Power(2 => 3, tanh, p=0.5, "
                            "before = Dense(2 => 2)))");
    for (int i = 0; i < 3; i++) assert_comes_back(model, files[i]);
    wb_layer *copy = wb_clone(model);
    assert_structure(copy, "Chain(Power(2 => 3, tanh, before = false), Power(2 => 3, tanh, p=0.5, "
                           "before = Dense(2 => 2)))");
    assert_null(wb_apply(model, wb_ones(WB_F32, 4, 5)));
    assert_error(WB_ERROR_SHAPE, "Power, layer 1 of Chain: matmul");
    assert_null(power(11, NULL));
    assert_error(WB_ERROR_ARGUMENT, "Power: p must be above 0 and at most 10, got 11");
    assert_null(power(-1, NULL));
    assert_error(WB_ERROR_ARGUMENT, "Power: p must be above 0 and at most 10, got -1");
    wb_free(model), wb_free(copy);
}

/* No containers in it: it is one line. */
typedef struct Shift {
    wb_layer layer;
    double by;
    wb_array *last;
} Shift;
static wb_array *shift(wb_layer *layer, wb_array *x) {
    return wb_add_number(x, ((const Shift *)(const void *)layer)->by);
}
WB_FUNCTOR(Shift, shift, WB_SETTING(Shift, by, WB_FIELD_REAL, .low = -INFINITY),
           WB_STATE_FIELD(Shift, last));

static void a_layer_of_ones_own_is_printed_in_one_line(void **state) {
    (void)state;
    Shift *s = wb_new(Shift);
    s->by = -1.5;
    wb_layer *model = wb_chain(wb_layer_complete(&s->layer));
    assert_printed(model, "Shift(by=-1.5)");
    assert_int_equal(wb_register_layer(&Shift_functor), WB_OK);
    for (int i = 0; i < 3; i++) assert_comes_back(model, files[i]);
    wb_free(model);
}

typedef struct Mix {
    wb_layer layer;
    int64_t sizes[4];
} Mix;
WB_FUNCTOR(Mix, NULL, WB_SETTING(Mix, sizes, WB_FIELD_PAIR, .low = 1, .form = "(a, b) => (c, d)"));

static wb_layer *mix(int64_t a, int64_t b, int64_t c, int64_t d) {
    Mix *m = wb_new(Mix);
    m->sizes[0] = a, m->sizes[1] = b, m->sizes[2] = c, m->sizes[3] = d;
    return wb_layer_complete(&m->layer);
}

static void a_pair_has_the_groups_of_its_form(void **state) {
    (void)state;
    wb_layer *model = wb_chain(mix(8, 0, 4, 2), mix(8, 6, 4, 0));
    assert_structure(model, "Chain(Mix(8 => (4, 2)), Mix((8, 6) => 4))");
    assert_int_equal(wb_register_layer(&Mix_functor), WB_OK);
    for (int i = 0; i < 3; i++) assert_comes_back(model, files[i]);
    assert_null(mix(8, 0, 0, 0));
    assert_error(WB_ERROR_ARGUMENT, "Mix: c must be positive, got 0");
    assert_null(wb_parse("Mix(8)"));
    assert_error(WB_ERROR_FORMAT, "Mix: sizes must be a pair of numbers, (a, b) => (c, d), got 8");
    assert_null(wb_parse("Mix((8, 6, 4) => 2)"));
    assert_error(WB_ERROR_FORMAT, "must be a pair of numbers, (a, b) => (c, d)");
    wb_free(model);
}

/* Numbers of any size and sign, and names of any letters. */
typedef struct Wide {
    wb_layer layer;
    int64_t n, pair[2], sizes[3];
    double x;
    char name[48];
} Wide;
WB_FUNCTOR(Wide, NULL, WB_SETTING(Wide, n, WB_FIELD_INTEGER, .usual = 5, .low = (double)INT64_MIN),
           WB_SETTING(Wide, pair, WB_FIELD_PAIR, .low = -1e18),
           WB_SETTING(Wide, sizes, WB_FIELD_SIZES, .low = -1e18),
           WB_SETTING(Wide, x, WB_FIELD_REAL, .high = 8), WB_SETTING(Wide, name, WB_FIELD_NAME));

static const struct wide_row {
    const char *name;
    int64_t n, in, out, size;
    const char *text;
} wide_rows[] = {
    {"a negative number", -3, -1, 2, -4, "plain"},
    {"0, which is not the default", 0, 1, 2, 1, ""},
    {"numbers above 2^31", (int64_t)1 << 31, (int64_t)1 << 40, 1, (int64_t)1 << 50, "a.b_1!"},
    {"the largest numbers", INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, "\xc3\xa4"},
    {"the smallest number", INT64_MIN, 1, 1, 1, "it's \"so\" \\ and, (more) = true"},
    {"the next one", INT64_MIN + 1, 1, 1, 1, "\""},
    {"a number that no double is", ((int64_t)1 << 53) + 1, 1, 1, 1, "1"},
};

static Wide *new_wide(const struct wide_row *row) {
    Wide *w = wb_new(Wide);
    w->pair[0] = row->in, w->pair[1] = row->out, w->sizes[0] = row->size, w->n = row->n;
    (void)snprintf(w->name, sizeof w->name, "%s", row->text);
    return (Wide *)(void *)wb_layer_complete(&w->layer);
}

static void numbers_and_names_come_back(void **state) {
    const struct wide_row *row = *state;
    assert_int_equal(wb_register_layer(&Wide_functor), WB_OK);
    for (int i = 0; i < 3; i++) {
        Wide *w = new_wide(row);
        assert_non_null(w);
        assert_int_equal(w->n, row->n);
        assert_int_equal(wb_save(path_of(files[i]), w), WB_OK);
        Wide *again = (Wide *)(void *)wb_load_model(path_of(files[i]), NULL);
        if (!again) fail_msg("%s", wb_error_message());
        assert_int_equal(again->n, w->n);
        assert_memory_equal(again->pair, w->pair, sizeof w->pair);
        assert_memory_equal(again->sizes, w->sizes, sizeof w->sizes);
        assert_string_equal(again->name, row->text);
        wb_free(w), wb_free(again);
    }
}

/* Settings that were changed after the layer was complete. */
static void what_loading_would_refuse_is_not_saved(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        Wide *w = new_wide(&wide_rows[0]);
        wb_layer *model = wb_chain(wb_dense(2, 2), &w->layer);
        w->x = 9;
        assert_int_equal(wb_save(path_of(files[i]), model), WB_ERROR_ARGUMENT);
        assert_error(WB_ERROR_ARGUMENT, "wb_save: layers.2: Wide: x must be from 0 to 8, got 9");
        w->x = NAN;
        assert_int_equal(wb_save(path_of(files[i]), model), WB_ERROR_ARGUMENT);
        assert_error(WB_ERROR_ARGUMENT, "Wide: x must be from 0 to 8, got");
        w->x = 1;
        memset(w->name, 'x', sizeof w->name);
        assert_int_equal(wb_save(path_of(files[i]), model), WB_ERROR_ARGUMENT);
        assert_error(WB_ERROR_ARGUMENT, "Wide: name must be shorter than 48 bytes");
        wb_free(model);
    }
}

static void two_classes_cannot_have_one_name(void **state) {
    (void)state;
    const wb_layer_class other = {.name = "Dense", .fields = Shift_fields};
    assert_int_equal(wb_register_layer(&other), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "another layer has the name Dense");
    assert_int_equal(wb_register_layer(NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "the class is NULL");
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(a_list_without_a_name_holds_arrays_and_is_saved),
        TEST(a_list_without_a_name_is_alone),
        TEST(a_list_without_a_name_may_follow_a_plain_value),
        TEST(every_kind_of_field_has_its_rows),
        TEST(a_layer_of_ones_own_has_what_others_have),
        TEST(a_layer_of_ones_own_is_printed_in_one_line),
        TEST(a_pair_has_the_groups_of_its_form),
        TEST(what_loading_would_refuse_is_not_saved),
        TEST(two_classes_cannot_have_one_name),
    };
    find_classes();
    for (int i = 0; i < class_count; i++) {
        add_test(&tests, TEST_ROW(&classes[i], a_setting_out_of_range_is_named));
        add_test(&tests, TEST_ROW(&classes[i], a_default_is_within_its_range));
        add_test(&tests, TEST_ROW(&classes[i], a_layer_comes_back_from_every_format));
    }
    ADD_ROWS(&tests, wide_rows, numbers_and_names_come_back);
    ADD_TESTS(&tests, single);
    return run_test_list("models/test_rows", &tests, make_folder, drop_folder);
}
