/* Converts a setting of a layer to a record, and a term or record to a setting, by its kind
 * (number, sizes, padding, ...). Which settings a layer has is in its table of fields, not here. */
#include "models/settings.h"

#include <string.h>

#include "base/count.h"
#include "formats/julia.h"
#include "models/flux.h"

/* ---- written ---- */

static wb_record *integer(wb_arena *arena, int64_t value) {
    wb_record *r = wb_record_new(arena, WB_RECORD_INTEGER);
    if (r) r->integer = value;
    return r;
}

static wb_record *real(wb_arena *arena, double value) {
    wb_record *r = wb_record_new(arena, WB_RECORD_REAL);
    if (r) r->real = value;
    return r;
}

static wb_record *boolean(wb_arena *arena, bool value) {
    wb_record *r = wb_record_new(arena, WB_RECORD_BOOL);
    if (r) r->boolean = value;
    return r;
}

static wb_record *tuple(wb_arena *arena, int count, const int64_t *numbers) {
    wb_record *r = wb_record_new(arena, WB_RECORD_LIST);
    if (!r || !wb_record_room(arena, r, count, false)) return NULL;
    for (int i = 0; i < count; i++)
        if (!(r->children[i] = integer(arena, numbers[i]))) return NULL;
    return r;
}

static wb_record *write_integer(wb_arena *arena, const wb_member *m) {
    return integer(arena, *m->numbers);
}

static wb_record *write_pair(wb_arena *arena, const wb_member *m) {
    return tuple(arena, wb_kind_of(m->field)->count(m->field), m->numbers);
}

static wb_record *write_real(wb_arena *arena, const wb_member *m) { return real(arena, *m->reals); }

static wb_record *write_bool(wb_arena *arena, const wb_member *m) {
    return boolean(arena, *m->flag);
}

static wb_record *write_sizes(wb_arena *arena, const wb_member *m) {
    return tuple(arena, m->n, m->numbers);
}

/* pad = 1 and SamePad() are kept before and after each dimension, pad = (1, 2) is kept as it is. */
static wb_record *write_padding(wb_arena *arena, const wb_member *m) {
    const int64_t *pad = m->numbers;
    const int n = m->n;
    int64_t both[2 * WB_MOST_SIZES];
    const bool is_uneven = wb_padding_numbers(n, pad, both);
    bool is_equal = true;
    for (int i = 0; i < n; i++) is_equal = is_equal && pad[i] == pad[0];
    return wb_is_without(m->layer, m->field) || is_uneven || is_equal ? tuple(arena, 2 * n, both)
                                                                      : tuple(arena, n, pad);
}

static wb_record *write_dims(wb_arena *arena, const wb_member *m) {
    int64_t numbers[WB_MAX_DIMS];
    const int count = wb_dims_numbers(*m->dims, numbers);
    return count == 1 ? integer(arena, numbers[0]) : tuple(arena, count, numbers);
}

/* nothing, a number, or a tuple of them; whole ones as integers. */
static wb_record *write_reals(wb_arena *arena, const wb_member *m) {
    const double *x = m->reals;
    const int n = wb_count_reals(x);
    wb_record *r = wb_record_new(arena, n ? WB_RECORD_LIST : WB_RECORD_NULL);
    if (!r || !n || !wb_record_room(arena, r, n, false)) return r;
    for (int i = 0; i < n; i++) {
        int64_t whole;
        r->children[i] = wb_is_whole(x[i], &whole) ? integer(arena, whole) : real(arena, x[i]);
        if (!r->children[i]) return NULL;
    }
    return n == 1 ? r->children[0] : r;
}

static wb_record *write_name(wb_arena *arena, const wb_member *m) {
    wb_record *r = wb_record_new(arena, WB_RECORD_TEXT);
    return r && (r->text = wb_arena_text(arena, m->name, strlen(m->name))) ? r : NULL;
}

/* nothing: automatic. */
static wb_record *write_mode(wb_arena *arena, const wb_member *m) {
    const int mode = m->layer->mode_;
    return mode == WB_MODE_AUTO ? wb_record_new(arena, WB_RECORD_NULL)
                                : boolean(arena, mode == WB_MODE_TRAIN);
}

/* (), as Flux.state says of functions. */
static wb_record *write_none(wb_arena *arena, const wb_member *m) {
    (void)m;
    return tuple(arena, 0, NULL);
}

/* ---- read ---- */

/* A setting, and what it is read from. */
typedef struct wb_source {
    wb_member to;
    wb_layer *layer;
    const wb_part *part;
    const wb_term *term;
    const wb_record *record; /* NULL beside a term */
} source;

/* ", got ..." of a text; of a file's tree "". */
typedef struct given_text {
    char text[64];
} given_text;

static given_text given(const source *s) {
    const wb_term *t = s->term;
    given_text g = {.text = ""};
    const int bytes = !t ? 0 : t->text_bytes < 48 ? (int)t->text_bytes : 48;
    if (t) (void)snprintf(g.text, sizeof g.text, ", got %.*s", bytes, t->text);
    return g;
}

static bool fail(const source *s, const char *what) {
    char subject[WB_NAME_BYTES + 2];
    (void)wb_part_fail(s->part, WB_ERROR_FORMAT, "%s%s must be a %s%s",
                       wb_part_subject(s->part, subject), s->to.field->name, what, given(s).text);
    return false;
}

/* "its σ must be a function that Weber knows: f" */
static bool fail_unknown(const source *s, const char *what, const char *name) {
    char subject[WB_NAME_BYTES + 2];
    (void)wb_part_fail(s->part, WB_ERROR_UNSUPPORTED, "%s%s %s%s%s",
                       wb_part_subject(s->part, subject), s->to.field->name, what, name ? ": " : "",
                       name ? name : "");
    return false;
}

static int64_t or_none(int64_t number) { return number ? number : WB_NONE_; }

/* The range is checked when the layer is complete. */
static bool is_number(const wb_term *t, const wb_record *r) {
    return t ? t->kind == WB_TERM_INTEGER : r->kind == WB_RECORD_INTEGER;
}

/* Numbers, alone or as a tuple: how many; -1 with the error recorded. */
static int numbers_of(const source *s, int most, int64_t *numbers) {
    const wb_term *t = s->term;
    const wb_record *r = s->record;
    const bool is_list = t ? t->kind == WB_TERM_TUPLE : r->kind == WB_RECORD_LIST;
    const int64_t count = !is_list ? 1 : t ? t->count : r->count;
    bool good = count <= most;
    if (is_list && t) t = t->first;
    for (int i = 0; good && i < count; i++) {
        const wb_record *one = t ? NULL : is_list ? r->children[i] : r;
        good = is_number(t, one);
        if (good) numbers[i] = t ? t->integer : one->integer;
        if (t) t = t->next;
    }
    if (good) return (int)count;
    if (most == 1)
        (void)fail(s, "whole number");
    else
        (void)wb_part_fail(s->part, WB_ERROR_FORMAT, "%s must be at most %d whole numbers%s",
                           s->to.field->name, most, given(s).text);
    return -1;
}

/* A 0 in the file is a value, and never stands for the default. */
static bool read_integer(const source *s) {
    const wb_field *f = s->to.field;
    if (numbers_of(s, 1, s->to.numbers) != 1) return fail(s, "whole number");
    return *s->to.numbers != 0 || wb_kind_of(f)->check(&s->to);
}

/* One number for all of them, or a tuple whose last one stands for the rest. */
static bool read_group(const wb_term *t, int count, int64_t *x) {
    const bool is_tuple = t && t->kind == WB_TERM_TUPLE && t->count > 1 && t->count <= count;
    for (const wb_term *each = is_tuple ? t->first : t; count > 0; count--) {
        if (!each || !is_number(each, NULL)) return false;
        *x++ = or_none(each->integer);
        if (is_tuple && each->next) each = each->next;
    }
    return true;
}

static bool read_groups(const source *s, int64_t *x) {
    int counts[WB_MOST_GROUPS];
    const int groups = wb_pair_groups(s->to.field, counts);
    const wb_term *t = s->term;
    for (int g = 0; g < groups - 1; x += counts[g++], t = t->first->next)
        if (t->kind != WB_TERM_PAIR || !read_group(t->first, counts[g], x)) return false;
    return read_group(t, counts[groups - 1], x);
}

/* (in, in2) => out; one number for all where the row says so. */
static bool read_pair(const source *s) {
    int64_t *x = s->to.numbers;
    char what[80];
    const bool may_be_one = s->to.field->usual < 0;
    const int count = wb_kind_of(s->to.field)->count(s->to.field);
    (void)snprintf(what, sizeof what, "%s%s",
                   may_be_one ? "number, or sizes like " : "pair of numbers, ",
                   wb_pair_form(s->to.field));
    if (s->term && may_be_one && s->term->kind == WB_TERM_INTEGER)
        return read_group(s->term, count, x) || fail(s, what);
    if (s->term) return read_groups(s, x) || fail(s, what);
    if (numbers_of(s, count, x) != count) return fail(s, what);
    for (int i = 0; i < count; i++) x[i] = or_none(x[i]);
    return true;
}

static bool take_real(const wb_term *t, const wb_record *r, double *x) {
    if (t && t->kind <= WB_TERM_REAL)
        *x = t->kind == WB_TERM_REAL ? t->real : (double)t->integer;
    else if (!t && r && (r->kind == WB_RECORD_REAL || r->kind == WB_RECORD_INTEGER))
        *x = wb_record_real(r);
    else
        return false;
    return true;
}

static bool read_real(const source *s) {
    double *x = s->to.reals;
    if (!take_real(s->term, s->record, x)) return fail(s, "number");
    if (*x == 0) *x = -0.0;
    return true;
}

/* One number or a tuple of up to three, none of them 0. */
static bool read_reals(const source *s) {
    double *x = s->to.reals;
    const wb_term *t = s->term;
    const wb_record *r = s->record;
    const bool is_list = t ? t->kind == WB_TERM_TUPLE : r->kind == WB_RECORD_LIST;
    const int64_t count = !is_list ? 1 : t ? t->count : r->count;
    if (is_list && t) t = t->first;
    for (int64_t i = 0; i < count; i++) {
        const wb_record *one = t ? NULL : is_list ? r->children[i] : r;
        if (count > WB_MOST_SIZES || !take_real(t, one, &x[i]) || x[i] == 0)
            return fail(s, "list of 1 to 3 numbers other than 0");
        if (t) t = t->next;
    }
    return true;
}

static bool read_name(const source *s) {
    const wb_term *t = s->term;
    const char *text = t ? t->kind == WB_TERM_NAME ? t->name : NULL
                       : s->record->kind == WB_RECORD_TEXT ? s->record->text
                                                           : NULL;
    if (!text || strlen(text) >= WB_NAME_BYTES) return fail(s, "name of less than 48 bytes");
    (void)snprintf(s->to.name, WB_NAME_BYTES, "%s", text);
    return true;
}

static bool read_choice(const source *s) {
    int *choice = s->to.choice;
    const wb_term *t = s->term;
    const wb_record *r = s->record;
    const char *name = t ? t->kind == WB_TERM_NAME ? t->name : NULL
                       : r->kind == WB_RECORD_STRUCT && s->to.field->parameter
                           ? r->text
                           : wb_julia_function(r);
    const bool is_struct = t || r->kind == WB_RECORD_STRUCT;
    if (!is_struct && (s->to.field->parameter || r->count == 0)) return true; /* () in Flux.state */
    *choice = name ? wb_choice_named(s->to.field, name) : -1;
    return *choice >= 0 || fail_unknown(s, "is not one that Weber has", name);
}

static bool read_bool(const source *s) {
    const wb_term *t = s->term;
    const bool is_bool =
        t ? t->kind == WB_TERM_BOOL : s->to.field->parameter || s->record->kind == WB_RECORD_BOOL;
    if (!is_bool) return fail(s, "bool");
    *s->to.flag = t ? t->integer != 0 : s->record->boolean;
    return true;
}

static bool fail_sizes(const source *s) {
    char what[40];
    (void)snprintf(what, sizeof what, "list of 1 to %d numbers", wb_field_most(s->to.field));
    return fail(s, what);
}

static bool read_sizes(const source *s) {
    int64_t *sizes = s->to.numbers;
    int64_t given[WB_MAX_DIMS];
    const int most = wb_field_most(s->to.field);
    int count = s->term && s->to.field->spread ? 0 : numbers_of(s, most, given);
    const wb_term *t = s->to.field->spread ? s->term : NULL;
    for (; t && !t->key && t->kind == WB_TERM_INTEGER; t = t->next, count++) {
        if (count == most || !is_number(t, NULL)) return fail_sizes(s);
        given[count] = t->integer;
    }
    for (int i = 0; count >= 0 && i < most; i++) sizes[i] = i < count ? or_none(given[i]) : 0;
    return count >= 0;
}

static bool fail_count(const source *s, int count, int n) {
    (void)wb_part_fail(s->part, WB_ERROR_FORMAT,
                       "%d numbers do not fit %s, which has %d "
                       "dimensions",
                       count, s->to.field->name, n);
    return false;
}

/* One number for all dimensions, or one for each. */
static bool read_each(const source *s) {
    int64_t *numbers = s->to.numbers, given[WB_MOST_SIZES];
    const int n = s->to.n;
    const int count = numbers_of(s, n, given);
    if (count > 1 && count < n) return fail_count(s, count, n);
    for (int i = 0; count > 0 && i < n; i++) numbers[i] = or_none(given[count == 1 ? 0 : i]);
    return count >= 0;
}

/* One number, one for each dimension, or two for each. */
static bool read_padding(const source *s) {
    int64_t *pad = s->to.numbers, given[2 * WB_MOST_SIZES];
    const int n = s->to.n;
    const int count = numbers_of(s, 2 * n, given);
    if (count > 1 && count != n && count != 2 * n) return fail_count(s, count, n);
    for (int i = 0; count > 0 && i < n; i++) {
        const bool is_whole = count == 2 * n;
        const int64_t before = given[is_whole ? 2 * i : count == 1 ? 0 : i];
        const int64_t after = is_whole ? given[2 * i + 1] : before;
        pad[i] = or_none(before);
        if (__builtin_sub_overflow(after, before, &pad[WB_MOST_SIZES + i]))
            return fail(s, "padding of less than 2^20");
    }
    return count >= 0;
}

/* A Colon is all of them. */
static bool read_dims(const source *s) {
    unsigned *dims = s->to.dims;
    int64_t numbers[WB_MAX_DIMS];
    const wb_record *r = s->record;
    if (r && r->kind == WB_RECORD_STRUCT && strcmp(wb_flux_last(r->type), "Colon") == 0)
        return true;
    const int count = numbers_of(s, WB_MAX_DIMS, numbers);
    for (int i = 0; i < count; i++) {
        if (numbers[i] < 1 || numbers[i] > WB_MAX_DIMS) {
            (void)wb_part_fail(s->part, WB_ERROR_FORMAT, "%s must be numbers from 1 to %d",
                               s->to.field->name, WB_MAX_DIMS);
            return false;
        }
        *dims |= WB_DIM(numbers[i] - 1);
    }
    return count >= 0;
}

static bool read_activation(const source *s) {
    return wb_part_activation(s->part, s->term, s->record, s->to.activation);
}

static bool read_connection(const source *s) {
    const wb_term *t = s->term;
    const char *name = t ? t->kind == WB_TERM_NAME ? t->name : NULL : wb_julia_function(s->record);
    return (name && wb_connection_named(name, s->to.connection)) ||
           fail_unknown(s, "must be a function that Weber knows", name);
}

/* active=true, false, nothing. */
static bool read_mode_term(const source *s) {
    const wb_term *t = s->term;
    if (t->kind == WB_TERM_NAME && strcmp(t->name, "nothing") == 0)
        return wb_auto_mode(s->layer) == WB_OK;
    if (t->kind != WB_TERM_BOOL) return fail(s, "bool, or nothing");
    return (t->integer ? wb_train_mode(s->layer) : wb_test_mode(s->layer)) == WB_OK;
}

/* testmode! and trainmode! are kept. In old versions, which had no automatic mode, true was the
 * initial value of every layer, so it means automatic. */
static bool read_mode(const source *s) {
    const wb_record *r = s->record;
    if (s->term) return read_mode_term(s);
    if (!r || r->kind != WB_RECORD_BOOL) return true;
    if (!r->boolean) return wb_test_mode(s->layer) == WB_OK;
    return !wb_flux_is_newest(s->layer->class_, s->part->record) ||
           wb_train_mode(s->layer) == WB_OK;
}

static bool read_none(const source *s) {
    (void)s;
    return true;
}

/* ---- all ---- */

const wb_file_row wb_file_rows[WB_FIELD_KINDS] = {
    [WB_FIELD_INTEGER] = {read_integer, write_integer},
    [WB_FIELD_PAIR] = {read_pair, write_pair},
    [WB_FIELD_REAL] = {read_real, write_real},
    [WB_FIELD_BOOL] = {read_bool, write_bool},
    [WB_FIELD_ACTIVATION] = {read_activation, write_none},
    [WB_FIELD_CONNECTION] = {read_connection, write_none},
    [WB_FIELD_CHOICE] = {read_choice, write_none},
    [WB_FIELD_NAME] = {read_name, write_name},
    [WB_FIELD_REALS] = {read_reals, write_reals},
    [WB_FIELD_SIZES] = {read_sizes, write_sizes},
    [WB_FIELD_EACH] = {read_each, write_sizes},
    [WB_FIELD_PADDING] = {read_padding, write_padding},
    [WB_FIELD_DIMS] = {read_dims, write_dims},
    [WB_FIELD_MODE] = {read_mode, write_mode},
    [WB_FIELD_OTHER] = {read_none, write_none},
};

wb_record *wb_setting_record(wb_arena *arena, const wb_layer *layer, const wb_field *f) {
    const wb_member m = wb_member_of(layer, f);
    return wb_file_rows[f->kind].write(arena, &m);
}

bool wb_setting_read(const wb_part *part, wb_layer *layer, const wb_field *f, const wb_term *term) {
    if (!wb_field_is_setting(f)) return true;
    const bool is_record = !part->term || f->kind == WB_FIELD_MODE;
    const source s = {.to = wb_member_of(layer, f),
                      .part = part,
                      .layer = layer,
                      .term = term,
                      .record = !is_record     ? NULL
                                : f->parameter ? part->record
                                               : wb_part_field(part, wb_flux_name(f))};
    if (!s.term && (!s.record || s.record->kind == WB_RECORD_NULL)) return true;
    return wb_file_rows[f->kind].read(&s);
}
