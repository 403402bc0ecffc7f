/* Converts a setting of a layer to a record, and a term or record to a setting, by its kind
 * (number, sizes, padding, ...). Which settings a layer has is in its table of fields, not here. */
#include "models/settings.h"

#include <limits.h>
#include <string.h>

#include "base/count.h"
#include "formats/bson.h"
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

/* pad = 1 and SamePad() are kept before and after each dimension, pad = (1, 2) is kept as it is. */
static wb_record *padding(wb_arena *arena, int n, const int64_t *pad, bool same_pad) {
    int64_t both[2 * WB_MOST_SIZES];
    const bool is_uneven = wb_padding_numbers(n, pad, both);
    bool is_equal = true;
    for (int i = 0; i < n; i++) is_equal = is_equal && pad[i] == pad[0];
    return same_pad || is_uneven || is_equal ? tuple(arena, 2 * n, both) : tuple(arena, n, pad);
}

static wb_record *dims_record(wb_arena *arena, unsigned dims) {
    int64_t numbers[WB_MAX_DIMS];
    const int count = wb_dims_numbers(dims, numbers);
    return count == 1 ? integer(arena, numbers[0]) : tuple(arena, count, numbers);
}

/* nothing, a number, or a tuple of them; whole ones as integers. */
static wb_record *reals(wb_arena *arena, const double *x) {
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

static wb_record *name_record(wb_arena *arena, const char *name) {
    wb_record *r = wb_record_new(arena, WB_RECORD_TEXT);
    return r && (r->text = wb_arena_text(arena, name, strlen(name))) ? r : NULL;
}

/* nothing: automatic. */
static wb_record *mode(wb_arena *arena, const wb_layer *layer) {
    return layer->mode_ == WB_MODE_AUTO ? wb_record_new(arena, WB_RECORD_NULL)
                                        : boolean(arena, layer->mode_ == WB_MODE_TRAIN);
}

wb_record *wb_setting_record(wb_arena *arena, const wb_layer *layer, const wb_field *f) {
    const void *at = wb_field_at(layer, f);
    int n;
    (void)wb_layer_sizes(layer, &n);
    switch (f->kind) {
    case WB_FIELD_INTEGER:
        return integer(arena, *(const int64_t *)at);
    case WB_FIELD_PAIR:
        return tuple(arena, 2, at);
    case WB_FIELD_JOINT:
        return tuple(arena, 3, at);
    case WB_FIELD_PROJECTIONS:
        return tuple(arena, 6, at);
    case WB_FIELD_REAL:
        return real(arena, *(const double *)at);
    case WB_FIELD_NAME:
        return name_record(arena, at);
    case WB_FIELD_REALS:
        return reals(arena, at);
    case WB_FIELD_BOOL:
        return boolean(arena, *(const bool *)at);
    case WB_FIELD_SIZES:
    case WB_FIELD_EACH:
        return tuple(arena, n, at);
    case WB_FIELD_PADDING:
        return padding(arena, n, at, wb_is_without(layer, f));
    case WB_FIELD_DIMS:
        return dims_record(arena, *(const unsigned *)at);
    case WB_FIELD_MODE:
        return mode(arena, layer);
    default:
        return tuple(arena, 0, NULL);
    }
}

/* ---- read ---- */

/* What a setting is read from; both NULL: it is not there. */
typedef struct source {
    const wb_part *part;
    const wb_field *field;
    const wb_term *term;
    const wb_record *record;
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
                       wb_part_subject(s->part, subject), s->field->name, what, given(s).text);
    return false;
}

static int64_t or_none(int64_t number) { return number ? number : WB_NONE_; }

static bool is_number(const wb_term *t, const wb_record *r) {
    const int64_t n = t ? t->integer : r->integer;
    return (t ? t->kind == WB_TERM_INTEGER : r->kind == WB_RECORD_INTEGER) && n >= 0 &&
           n <= INT32_MAX;
}

/* Numbers from 0 to 2^31, alone or as a tuple: how many; -1 with the error recorded. */
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
    (void)wb_part_fail(s->part, WB_ERROR_FORMAT, "%s must be at most %d numbers from 0 to 2^31%s",
                       s->field->name, most, given(s).text);
    return -1;
}

static bool read_integer(const source *s, int64_t *x) {
    int64_t number;
    if (numbers_of(s, 1, &number) != 1) return wb_failed() ? false : fail(s, "number");
    *x = or_none(number);
    return true;
}

static bool read_pair(const source *s, int64_t *x) {
    const wb_term *in = s->term && s->term->kind == WB_TERM_PAIR ? s->term->first : NULL;
    int64_t both[2];
    if (!in && s->record && numbers_of(s, 2, both) != 2) return fail(s, "pair of numbers");
    if (!in && !s->record) return fail(s, "pair of numbers, in => out");
    for (int i = 0; in && i < 2; i++, in = in->next) {
        if (!is_number(in, NULL)) return fail(s, "pair of numbers, in => out");
        both[i] = in->integer;
    }
    for (int i = 0; i < 2; i++) x[i] = or_none(both[i]);
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

static bool read_real(const source *s, double *x) {
    if (!take_real(s->term, s->record, x)) return fail(s, "number");
    if (*x == 0) *x = -0.0;
    return true;
}

/* One number or a tuple of up to three, none of them 0. */
static bool read_reals(const source *s, double *x) {
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

static bool read_name(const source *s, char *name) {
    const wb_term *t = s->term;
    const char *text = t ? t->kind == WB_TERM_NAME ? t->name : NULL
                       : s->record->kind == WB_RECORD_TEXT ? s->record->text
                                                           : NULL;
    if (!text || strlen(text) >= WB_NAME_BYTES) return fail(s, "name of less than 48 bytes");
    (void)snprintf(name, WB_NAME_BYTES, "%s", text);
    return true;
}

static bool read_choice(const source *s, int *choice) {
    const wb_term *t = s->term;
    const wb_record *r = s->record;
    const char *name = t ? t->kind == WB_TERM_NAME ? t->name : NULL
                       : r->kind == WB_RECORD_STRUCT && s->field->parameter ? r->text
                                                                            : wb_bson_function(r);
    const bool is_struct = t || r->kind == WB_RECORD_STRUCT;
    if (!is_struct && (s->field->parameter || r->count == 0)) return true; /* () in Flux.state */
    *choice = name ? wb_choice_named(s->field, name) : -1;
    if (*choice >= 0) return true;
    char subject[WB_NAME_BYTES + 2];
    (void)wb_part_fail(s->part, WB_ERROR_UNSUPPORTED, "%s%s is none that Weber has%s%s",
                       wb_part_subject(s->part, subject), s->field->name, name ? ": " : "",
                       name ? name : "");
    return false;
}

/* (8, 16) => 4 or 8 => 4, which stands in text alone. */
static bool read_joint(const source *s, int64_t *x) {
    const wb_term *in = s->term && s->term->kind == WB_TERM_PAIR ? s->term->first : NULL;
    const bool are_two = in && in->kind == WB_TERM_TUPLE && in->count == 2;
    const wb_term *const parts[3] = {are_two ? in->first : in, are_two ? in->first->next : in,
                                     in ? in->next : NULL};
    for (int i = 0; i < 3; i++) {
        if (!parts[i] || !is_number(parts[i], NULL))
            return fail(s, "pair of numbers, (in, in2) => out");
        x[i] = or_none(parts[i]->integer);
    }
    return true;
}

/* One number for all of them, or as many as there are. */
static bool read_group(const wb_term *t, int count, int64_t *x) {
    const bool is_tuple = t && t->kind == WB_TERM_TUPLE && t->count == count;
    const wb_term *each = is_tuple ? t->first : t;
    for (int i = 0; i < count; i++) {
        if (!each || !is_number(each, NULL)) return false;
        x[i] = or_none(each->integer);
        if (is_tuple) each = each->next;
    }
    return true;
}

/* d, or in => qkv => out, where in may be (q, k, v) or (q, kv), and qkv (qk, v). */
static bool read_projections(const source *s, int64_t *x) {
    const wb_term *t = s->term;
    if (read_group(t, 6, x)) return true;
    const wb_term *in = t->kind == WB_TERM_PAIR ? t->first : NULL, *rest = in ? in->next : NULL;
    const bool is_pair = rest && rest->kind == WB_TERM_PAIR;
    bool good =
        is_pair && read_group(rest->first, 2, x + 3) && read_group(rest->first->next, 1, x + 5);
    if (good && in->kind == WB_TERM_TUPLE && in->count == 2) {
        good = read_group(in, 2, x);
        x[2] = x[1];
    } else if (good)
        good = read_group(in, 3, x);
    return good || fail(s, "number, or sizes like in => qkv => out");
}

static bool read_bool(const source *s, bool *x) {
    const wb_term *t = s->term;
    const bool is_bool =
        t ? t->kind == WB_TERM_BOOL : s->field->parameter || s->record->kind == WB_RECORD_BOOL;
    if (!is_bool) return fail(s, "bool");
    *x = t ? t->integer != 0 : s->record->boolean;
    return true;
}

static bool fail_sizes(const source *s) {
    char what[40];
    (void)snprintf(what, sizeof what, "list of 1 to %d numbers", wb_field_most(s->field));
    return fail(s, what);
}

static bool read_sizes(const source *s, int64_t *sizes) {
    int64_t given[WB_MAX_DIMS];
    const int most = wb_field_most(s->field);
    int count = s->term && s->field->spread ? 0 : numbers_of(s, most, given);
    const wb_term *t = s->field->spread ? s->term : NULL;
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
                       count, s->field->name, n);
    return false;
}

/* One number for all dimensions, or one for each. */
static bool read_each(const source *s, int n, int64_t *numbers) {
    int64_t given[WB_MOST_SIZES];
    const int count = numbers_of(s, n, given);
    if (count > 1 && count < n) return fail_count(s, count, n);
    for (int i = 0; count > 0 && i < n; i++) numbers[i] = or_none(given[count == 1 ? 0 : i]);
    return count >= 0;
}

/* One number, one for each dimension, or two for each. */
static bool read_padding(const source *s, int n, int64_t *pad) {
    int64_t given[2 * WB_MOST_SIZES];
    const int count = numbers_of(s, 2 * n, given);
    if (count > 1 && count != n && count != 2 * n) return fail_count(s, count, n);
    for (int i = 0; count > 0 && i < n; i++) {
        const bool is_whole = count == 2 * n;
        const int64_t before = given[is_whole ? 2 * i : count == 1 ? 0 : i];
        pad[i] = or_none(before);
        pad[WB_MOST_SIZES + i] = is_whole ? given[2 * i + 1] - before : 0;
    }
    return count >= 0;
}

/* A Colon is all of them. */
static bool read_dims(const source *s, unsigned *dims) {
    int64_t numbers[WB_MAX_DIMS];
    const wb_record *r = s->record;
    if (r && r->kind == WB_RECORD_STRUCT && strcmp(wb_flux_last(r->type), "Colon") == 0)
        return true;
    const int count = numbers_of(s, WB_MAX_DIMS, numbers);
    for (int i = 0; i < count; i++) {
        if (numbers[i] < 1 || numbers[i] > WB_MAX_DIMS) {
            (void)wb_part_fail(s->part, WB_ERROR_FORMAT, "%s must be numbers from 1 to %d",
                               s->field->name, WB_MAX_DIMS);
            return false;
        }
        *dims |= WB_DIM(numbers[i] - 1);
    }
    return count >= 0;
}

static bool read_connection(const source *s, wb_connection **connection) {
    const wb_term *t = s->term;
    const char *name = t ? t->kind == WB_TERM_NAME ? t->name : NULL : wb_bson_function(s->record);
    if (name && wb_connection_named(name, connection)) return true;
    char subject[WB_NAME_BYTES + 2];
    (void)wb_part_fail(
        s->part, WB_ERROR_UNSUPPORTED, "%s%s must be a function that Weber knows%s%s",
        wb_part_subject(s->part, subject), s->field->name, name ? ": " : "", name ? name : "");
    return false;
}

/* active=true, false, nothing. */
static bool read_mode_term(const source *s, wb_layer *layer) {
    const wb_term *t = s->term;
    if (t->kind == WB_TERM_NAME && strcmp(t->name, "nothing") == 0)
        return wb_auto_mode(layer) == WB_OK;
    if (t->kind != WB_TERM_BOOL) return fail(s, "bool, or nothing");
    return (t->integer ? wb_train_mode(layer) : wb_test_mode(layer)) == WB_OK;
}

/* testmode! and trainmode! are kept; before there was a third, true was what every layer began
 * with. */
static bool read_mode(const source *s, wb_layer *layer) {
    const wb_record *r = s->record;
    if (!r || r->kind != WB_RECORD_BOOL) return true;
    if (!r->boolean) return wb_test_mode(layer) == WB_OK;
    return !wb_flux_is_newest(layer->class_, s->part->record) || wb_train_mode(layer) == WB_OK;
}

bool wb_setting_read(const wb_part *part, wb_layer *layer, const wb_field *f, const wb_term *term) {
    const bool is_record = !part->term || f->kind == WB_FIELD_MODE;
    const source s = {.part = part,
                      .field = f,
                      .term = term,
                      .record = !is_record     ? NULL
                                : f->parameter ? part->record
                                               : wb_part_field(part, wb_flux_name(f))};
    void *at = wb_field_at(layer, f);
    int n;
    (void)wb_layer_sizes(layer, &n);
    if (!s.term && (!s.record || s.record->kind == WB_RECORD_NULL)) return true;
    switch (f->kind) {
    case WB_FIELD_INTEGER:
        return read_integer(&s, at);
    case WB_FIELD_PAIR:
        return read_pair(&s, at);
    case WB_FIELD_JOINT:
        return !s.term || read_joint(&s, at);
    case WB_FIELD_PROJECTIONS:
        return !s.term || read_projections(&s, at);
    case WB_FIELD_REAL:
        return read_real(&s, at);
    case WB_FIELD_NAME:
        return read_name(&s, at);
    case WB_FIELD_REALS:
        return read_reals(&s, at);
    case WB_FIELD_CHOICE:
        return read_choice(&s, at);
    case WB_FIELD_BOOL:
        return read_bool(&s, at);
    case WB_FIELD_ACTIVATION:
        return wb_part_activation(part, s.term, s.record, at);
    case WB_FIELD_CONNECTION:
        return read_connection(&s, at);
    case WB_FIELD_SIZES:
        return read_sizes(&s, at);
    case WB_FIELD_EACH:
        return read_each(&s, n, at);
    case WB_FIELD_PADDING:
        return read_padding(&s, n, at);
    case WB_FIELD_DIMS:
        return read_dims(&s, at);
    case WB_FIELD_MODE:
        return s.term ? read_mode_term(&s, layer) : read_mode(&s, layer);
    default:
        return true;
    }
}
