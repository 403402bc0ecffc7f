/* The functions for each kind of field, a section for each kind, and the table of all. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/kinds.h"
#include "ops/ops.h"

/* ---- ranges ---- */

static bool in_range(const wb_field *f, double x) {
    return (f->is_above ? x > f->low : x >= f->low) && (f->high == 0 || x <= f->high);
}

/* A 0 in the row's member. */
static bool stands_for_usual(const wb_field *f) { return !f->zero_counts && !in_range(f, 0); }

void wb_range_text(const wb_field *f, char *text, size_t size) {
    const bool is_real = f->kind == WB_FIELD_REAL;
    if (f->high == 0 && f->low == 1 && !is_real)
        (void)snprintf(text, size, "positive");
    else if (f->high == 0)
        (void)snprintf(text, size, "%s %g", f->is_above ? "above" : "at least", f->low);
    else if (f->is_above)
        (void)snprintf(text, size, "above %g and at most %.10g", f->low, f->high);
    else
        (void)snprintf(text, size, "from %g to %.10g", f->low, f->high);
}

static bool fail_range(const wb_member *m, const char *name, const char *got) {
    char range[80];
    wb_range_text(m->field, range, sizeof range);
    return wb_member_fail(m, "%s must be %s, got %s", name, range, got);
}

/* 0 becomes the usual value, and WB_NONE_ becomes 0. */
static void set_integer(int64_t *x, int64_t usual) {
    if (*x == 0) *x = usual;
    if (*x == WB_NONE_) *x = 0;
}

/* ---- INTEGER, PAIR: numbers in groups, joined by => ---- */

const char *wb_pair_form(const wb_field *f) {
    return f->form ? f->form : f->kind == WB_FIELD_PAIR ? "in => out" : f->name;
}

int wb_pair_groups(const wb_field *f, int counts[WB_MOST_GROUPS]) {
    int groups = 1;
    counts[0] = 1;
    for (const char *at = wb_pair_form(f); *at; at++) {
        if (*at == ',') counts[groups - 1]++;
        if (*at == '>' && groups < WB_MOST_GROUPS) counts[groups++] = 1;
    }
    return groups;
}

static int count_pair(const wb_field *f) {
    int counts[WB_MOST_GROUPS], count = 0;
    for (int groups = wb_pair_groups(f, counts); groups > 0;) count += counts[--groups];
    return count;
}

/* The next name of a form, which is moved past it, and how long it is. */
static const char *next_name(const char **form, int *length) {
    const char *name = *form + strspn(*form, "(), =>");
    *length = (int)strcspn(name, "(), =>");
    *form = name + *length;
    return name;
}

static void put_form(wb_writer *w, const wb_field *f) { wb_put(w, "%s", wb_pair_form(f)); }

static void put_pair_names(wb_writer *w, const wb_field *f) {
    const char *form = wb_pair_form(f);
    for (int i = 0; i < count_pair(f); i++) {
        int length;
        const char *name = next_name(&form, &length);
        wb_put(w, "%s%.*s", i ? ", " : "", length, name);
    }
}

static void put_pair(wb_writer *w, const wb_member *m) {
    const int64_t *x = m->numbers;
    int counts[WB_MOST_GROUPS];
    const int groups = wb_pair_groups(m->field, counts);
    for (int g = 0; g < groups; x += counts[g++]) {
        wb_put(w, "%s", g ? " => " : "");
        wb_put_numbers(w, counts[g], x, true);
    }
}

/* The groups are the sizes of the array, the last one first: (out, in), (out, in, in2). */
static void derive_pair(const wb_member *m, const wb_array *given) {
    int64_t *x = m->numbers;
    int counts[WB_MOST_GROUPS], rest = count_pair(m->field);
    if (given->ndim != rest) return;
    const int groups = wb_pair_groups(m->field, counts);
    for (int g = 0; g < groups; x += counts[g++]) {
        rest -= counts[g];
        for (int i = 0; i < counts[g]; i++)
            if (x[i] == 0) x[i] = given->sizes[rest + i];
    }
}

/* A number that is not given is the one before in its group. */
static bool complete_pair(const wb_member *m) {
    int64_t *x = m->numbers;
    int counts[WB_MOST_GROUPS];
    const int groups = wb_pair_groups(m->field, counts);
    for (int g = 0; g < groups; x += counts[g++]) {
        if (x[0] == 0 && m->field->usual < 0) x[0] = m->numbers[0];
        for (int i = 1; i < counts[g]; i++)
            if (x[i] == 0) x[i] = x[i - 1];
    }
    return true;
}

static bool check_pair(const wb_member *m) {
    const char *form = wb_pair_form(m->field);
    char name[80], got[24];
    for (int i = 0; i < count_pair(m->field); i++) {
        int length;
        const char *own = next_name(&form, &length);
        if (in_range(m->field, (double)m->numbers[i])) continue;
        (void)snprintf(name, sizeof name, "%.*s", length, own);
        (void)snprintf(got, sizeof got, "%lld", (long long)wb_said(m->numbers[i]));
        return fail_range(m, m->field->choices ? m->field->choices[i] : name, got);
    }
    return true;
}

static void begin_integer(const wb_member *m) { *m->numbers = (int64_t)m->field->usual; }

/* Any number is possible, also those that have a special meaning in lists. */
static bool complete_integer(const wb_member *m) {
    if (*m->numbers == 0 && stands_for_usual(m->field)) *m->numbers = (int64_t)m->field->usual;
    return true;
}

static bool is_usual_integer(const wb_member *m) { return *m->numbers == (int64_t)m->field->usual; }

/* ---- REAL ---- */

static void begin_real(const wb_member *m) { *m->reals = m->field->usual; }

static bool complete_real(const wb_member *m) {
    double *x = m->reals;
    if (*x == 0) *x = signbit(*x) || !stands_for_usual(m->field) ? 0 : m->field->usual;
    return true;
}

/* With as many digits as distinguish it from its neighbours. */
static void exact_text(double x, char *text, size_t size) {
    for (int digits = 6; digits <= 17; digits++) {
        (void)snprintf(text, size, "%.*g", digits, x);
        if (strtod(text, NULL) == x) return;
    }
}

/* No setting may be infinite, because files could not hold it. */
static bool check_number(const wb_member *m, double x) {
    char got[40];
    exact_text(x, got, sizeof got);
    if (!in_range(m->field, x)) return fail_range(m, m->field->name, got);
    return !isinf(x) || wb_member_fail(m, "%s must be finite, got %s", m->field->name, got);
}

static bool check_real(const wb_member *m) { return check_number(m, *m->reals); }

static void put_number(wb_writer *w, double x) {
    char number[40];
    w->real(x, number, sizeof number);
    wb_put(w, "%s", number);
}

static void put_real(wb_writer *w, const wb_member *m) { put_number(w, *m->reals); }

/* Files have defaults as f32, too. */
static bool is_usual_real(const wb_member *m) {
    return *m->reals == m->field->usual || *m->reals == (double)(float)m->field->usual;
}

/* ---- REALS ---- */

int wb_count_reals(const double *x) {
    int n = 0;
    while (n < WB_MOST_SIZES && x[n] != 0) n++;
    return n;
}

/* Exactly one of two rows must be given. */
static bool check_instead(const wb_member *m) {
    const bool is_given = *m->reals != 0;
    for (int i = 0; m->field->instead && i < m->layer->class_->field_count; i++) {
        const wb_field *other = &m->layer->class_->fields[i];
        const double *reals = wb_field_at(m->layer, other);
        if (other->offset == m->field->instead && is_given == (*reals != 0))
            return wb_member_fail(m, "either %s or %s must be given, got %s", other->name,
                                  m->field->name, is_given ? "both" : "none");
    }
    return true;
}

static bool check_reals(const wb_member *m) {
    for (int i = wb_count_reals(m->reals); i < WB_MOST_SIZES; i++)
        if (m->reals[i] != 0)
            return wb_member_fail(m, "%s must not have a 0 before number %d, which is %g",
                                  m->field->name, i + 1, m->reals[i]);
    for (int i = 0; i < wb_count_reals(m->reals); i++)
        if (!check_number(m, m->reals[i])) return false;
    return check_instead(m);
}

static void put_reals(wb_writer *w, const wb_member *m) {
    const int n = wb_count_reals(m->reals);
    wb_put(w, n == 1 ? "" : "(");
    for (int i = 0; i < n; i++) {
        wb_put(w, i ? ", " : "");
        put_number(w, m->reals[i]);
    }
    wb_put(w, n == 1 ? "" : ")");
}

/* ---- SIZES ---- */

int wb_field_most(const wb_field *f) { return f->most ? f->most : WB_MOST_SIZES; }

const int64_t *wb_layer_sizes(const wb_layer *layer, int *n) {
    *n = 0;
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *f = &layer->class_->fields[i];
        if (f->kind != WB_FIELD_SIZES) continue;
        const int64_t *sizes = wb_field_at(layer, f);
        while (*n < wb_field_most(f) && sizes[*n] != 0) ++*n;
        return sizes;
    }
    return NULL;
}

static void derive_sizes(const wb_member *m, const wb_array *given) {
    if (m->numbers[0] == 0 && given->ndim <= wb_field_most(m->field))
        memcpy(m->numbers, given->sizes, (size_t)given->ndim * sizeof *m->numbers);
}

/* Whether `count` numbers are within the range; at least one has to be there. */
static bool check_numbers(const wb_member *m, int count) {
    int64_t got[WB_MAX_DIMS] = {0};
    bool good = count > 0;
    for (int i = 0; i < count; i++) {
        got[i] = wb_said(m->numbers[i]);
        good = good && in_range(m->field, (double)m->numbers[i]);
    }
    return good || fail_range(m, m->field->name, wb_sizes_text(count ? count : 1, got));
}

/* A 0 between others is one of them, not the end. */
static bool check_sizes(const wb_member *m) {
    int count = wb_field_most(m->field);
    while (count > 0 && m->numbers[count - 1] == 0) count--;
    for (int i = 0; i < count; i++)
        if (m->numbers[i] == WB_SAME_)
            return wb_member_fail(m,
                                  "%s says how many dimensions there are: write its numbers alone, "
                                  "as {3, 3}, not WB_ALL or WB_EACH",
                                  m->field->name);
    return check_numbers(m, count);
}

static bool check_each(const wb_member *m) { return check_numbers(m, m->n); }

static void put_sizes(wb_writer *w, const wb_member *m) {
    for (int i = 0; m->field->spread && i < m->n; i++)
        wb_put(w, "%s%lld", i ? ", " : "", (long long)m->numbers[i]);
    if (!m->field->spread) wb_put_numbers(w, m->n, m->numbers, false);
}

static void put_default_sizes(wb_writer *w, const wb_field *f) {
    wb_put(w, f->spread ? "size..." : "(size...)");
}

/* ---- EACH ---- */

static int64_t usual_each(const wb_member *m, int i) {
    return m->field->usual >= 0 ? (int64_t)m->field->usual : m->sizes[i];
}

static bool complete_each(const wb_member *m) {
    int64_t *x = m->numbers;
    wb_spread_all(m->n, x);
    if (m->field->low > 0 && wb_has_gap(m->n, x)) return check_each(m);
    if (m->field->low > 0) wb_repeat_last(m->n, x); /* else 0 is a valid number */
    for (int i = 0; i < WB_MOST_SIZES; i++) {
        if (i >= m->n) x[i] = 0;
        if (i < m->n) set_integer(&x[i], usual_each(m, i));
    }
    return true;
}

static void put_each(wb_writer *w, const wb_member *m) {
    wb_put_numbers(w, m->n, m->numbers, true);
}

static bool is_usual_each(const wb_member *m) {
    for (int i = 0; i < m->n; i++)
        if (m->numbers[i] != usual_each(m, i)) return false;
    return true;
}

static void put_default_each(wb_writer *w, const wb_field *f) {
    if (f->usual < 0)
        wb_put(w, "%s=size", f->name);
    else
        wb_put(w, "%s=%g", f->name, f->usual);
}

/* ---- PADDING ---- */

static bool complete_padding(const wb_member *m) {
    wb_plain_numbers(m->n, m->numbers + WB_MOST_SIZES);
    return wb_check_padding(m->layer->class_->name, m->n, m->numbers);
}

static bool check_padding(const wb_member *m) {
    int64_t *pad = m->numbers, *more = pad + WB_MOST_SIZES;
    for (int i = 0; i < WB_MOST_SIZES; i++) {
        if (i >= m->n) pad[i] = more[i] = 0;
        if (!wb_window_takes(pad[i], 0))
            return fail_range(m, m->field->name, wb_sizes_text(m->n, pad));
        if (!wb_window_takes(more[i], -pad[i]))
            return wb_member_fail(m, "pad + pad_more must be from 0 to 1048575, got %s + %s",
                                  wb_sizes_text(m->n, pad), wb_sizes_text(m->n, more));
    }
    return true;
}

bool wb_padding_numbers(int n, const int64_t *pad, int64_t *both) {
    bool is_uneven = false;
    for (int i = 0; i < n; i++) {
        both[2 * i] = pad[i], both[2 * i + 1] = pad[i] + pad[WB_MOST_SIZES + i];
        is_uneven = is_uneven || pad[WB_MOST_SIZES + i] != 0;
    }
    return is_uneven;
}

/* 1, (1, 2), or, uneven, (lo, hi, lo, hi), as in Flux. */
static void put_padding(wb_writer *w, const wb_member *m) {
    int64_t both[2 * WB_MOST_SIZES];
    const bool is_uneven = wb_padding_numbers(m->n, m->numbers, both);
    wb_put_numbers(w, is_uneven ? 2 * m->n : m->n, is_uneven ? both : m->numbers, !is_uneven);
}

/* ---- BOOL ---- */

static void begin_bool(const wb_member *m) { *m->flag = m->field->usual != 0; }

static void put_bool(wb_writer *w, const wb_member *m) { wb_put(w, *m->flag ? "true" : "false"); }

static bool is_usual_bool(const wb_member *m) { return *m->flag == (m->field->usual != 0); }

static void put_default_bool(wb_writer *w, const wb_field *f) {
    wb_put(w, "%s=%s", f->name, f->usual != 0 ? "true" : "false");
}

/* ---- MODE ---- */

static void put_mode(wb_writer *w, const wb_member *m) {
    static const char *const modes[] = {
        [WB_MODE_AUTO] = "auto", [WB_MODE_TRAIN] = "true", [WB_MODE_TEST] = "false"};
    wb_put(w, "%s", modes[m->layer->mode_]);
}

static void put_default_mode(wb_writer *w, const wb_field *f) { wb_put(w, "%s=nothing", f->name); }

/* ---- CHOICE ---- */

int wb_choice_named(const wb_field *f, const char *name) {
    name += *name == ':';
    for (int i = 0; f->choices[i]; i++) {
        const char *at = f->choices[i] + (f->choices[i][0] == ':');
        for (size_t length = strcspn(at, "|"); length; length = strcspn(at, "|")) {
            if (strlen(name) == length && strncmp(at, name, length) == 0) return i;
            at += length + (at[length] == '|');
        }
    }
    return -1;
}

static bool check_choice(const wb_member *m) {
    int count = 0;
    while (m->field->choices[count]) count++;
    return (*m->choice >= 0 && *m->choice < count) ||
           wb_member_fail(m, "%s must be from 0 to %d, got %d", m->field->name, count - 1,
                          *m->choice);
}

static void put_name_of_choice(wb_writer *w, const char *choice) {
    wb_put(w, "%.*s", (int)strcspn(choice, "|"), choice);
}

static void put_choice(wb_writer *w, const wb_member *m) {
    put_name_of_choice(w, m->field->choices[*m->choice]);
}

static bool is_usual_choice(const wb_member *m) { return (double)*m->choice == m->field->usual; }

/* mean/+/max; the first is the default. */
static void put_choices(wb_writer *w, const wb_field *f) {
    for (int i = 0; f->choices[i]; i++) {
        wb_put(w, i ? "/" : "");
        put_name_of_choice(w, f->choices[i]);
    }
}

/* ---- NAME ---- */

static bool complete_name(const wb_member *m) {
    if (!*m->name && m->field->choices)
        (void)snprintf(m->name, WB_NAME_BYTES, "%s", m->field->choices[0]);
    return true;
}

static bool check_name(const wb_member *m) {
    return memchr(m->name, 0, WB_NAME_BYTES) ||
           wb_member_fail(m, "%s must be shorter than %d bytes", m->field->name, WB_NAME_BYTES);
}

static bool is_plain(const char *name) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_!.";
    while (*name && (strchr(plain, *name) || (unsigned char)*name >= 0x80)) name++;
    return *name == 0;
}

/* :weight, or :var"any text", with a backslash before " and itself, as Julia has it. */
static void put_name(wb_writer *w, const wb_member *m) {
    const bool plain = *m->name && is_plain(m->name);
    wb_put(w, plain ? ":" : ":var\"");
    for (const char *at = m->name; *at; at++)
        wb_put(w, "%s%c", *at == '"' || *at == '\\' ? "\\" : "", *at);
    wb_put(w, plain ? "" : "\"");
}

static void put_default_name(wb_writer *w, const wb_field *f) {
    wb_put(w, ":%s", f->choices ? f->choices[0] : f->name);
}

/* ---- ACTIVATION, CONNECTION ---- */

/* The identity is written, and saved, as no activation. */
static bool complete_activation(const wb_member *m) {
    if (*m->activation == wb_identity && m->field->usual == 0) *m->activation = NULL;
    return true;
}

static void put_activation(wb_writer *w, const wb_member *m) {
    wb_put(w, "%s", wb_activation_text(*m->activation));
}

static void put_connection(wb_writer *w, const wb_member *m) {
    wb_put(w, "%s", wb_connection_name(*m->connection));
}

/* ---- DIMS ---- */

int wb_dims_numbers(unsigned dims, int64_t *numbers) {
    int count = 0;
    for (int i = 0; i < WB_MAX_DIMS; i++)
        if (dims & WB_DIM(i)) numbers[count++] = i + 1;
    return count;
}

static bool check_dims(const wb_member *m) {
    return *m->dims < WB_DIM(WB_MAX_DIMS) ||
           wb_member_fail(m, "%s must be among WB_DIM(0) to WB_DIM(%d), got 0x%x", m->field->name,
                          WB_MAX_DIMS - 1, *m->dims);
}

static void put_dims(wb_writer *w, const wb_member *m) {
    int64_t numbers[WB_MAX_DIMS];
    const int n = wb_dims_numbers(*m->dims, numbers);
    wb_put_numbers(w, n, numbers, n == 1);
}

static void put_default_dims(wb_writer *w, const wb_field *f) {
    wb_put(w, "%s=%s", f->name, f->usual < 0 ? "last" : ":");
}

/* ---- ARRAY, STATE ---- */

/* A given array or layer is used; it is an error if the setting says that there is none. */
static bool check_array(const wb_member *m) {
    const wb_field *presence = wb_field_presence(m->layer->class_, m->field);
    if (!presence || !*m->array || !wb_is_without(m->layer, m->field)) return true;
    if (presence->usual != 0)
        return wb_member_fail(m, "%s is false, but %s %s was given", presence->name, m->field->name,
                              wb_text_of(*m->array));
    *(bool *)wb_field_at(m->layer, presence) = true;
    return true;
}

/* ---- all ---- */

wb_member wb_member_of(const wb_layer *layer, const wb_field *f) {
    const bool is_mode = f->kind == WB_FIELD_MODE;
    wb_member m = {.layer = layer, .field = f};
    m.at = (void *)(uintptr_t)(is_mode ? (const char *)&layer->mode_ : wb_field_at(layer, f));
    m.sizes = wb_layer_sizes(layer, &m.n);
    return m;
}

bool wb_member_fail(const wb_member *m, const char *format, ...) {
    char what[300];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return wb_fail(WB_ERROR_ARGUMENT, "%s: %s", m->layer->class_->name, what) == WB_OK;
}

static void put_own_name(wb_writer *w, const wb_field *f) { wb_put(w, "%s", f->name); }

/* clang-format off */
const wb_kind_row wb_kind_rows[WB_FIELD_KINDS] = {
    [WB_FIELD_ARRAY] = {.bytes = sizeof(wb_array *), .check = check_array},
    [WB_FIELD_STATE] = {.bytes = sizeof(wb_array *), .check = check_array},
    [WB_FIELD_CHILD] = {.bytes = sizeof(wb_layer *)},
    [WB_FIELD_LIST] = {.bytes = sizeof(wb_layer_list)},
    [WB_FIELD_HIDDEN] = {.bytes = sizeof(wb_array *)},
    [WB_FIELD_VALUE] = {.bytes = 1},
    [WB_FIELD_INTEGER] = {
        .bytes = sizeof(int64_t), .begin = begin_integer, .derive = derive_pair,
        .complete = complete_integer, .check = check_pair, .put = put_pair,
        .is_usual = is_usual_integer, .put_names = put_own_name},
    [WB_FIELD_PAIR] = {
        .bytes = sizeof(int64_t), .count = count_pair, .is_positional = true, .derive = derive_pair,
        .complete = complete_pair, .check = check_pair, .put = put_pair, .put_default = put_form,
        .put_names = put_pair_names},
    [WB_FIELD_REAL] = {
        .bytes = sizeof(double), .begin = begin_real, .complete = complete_real,
        .check = check_real, .put = put_real, .is_usual = is_usual_real, .put_names = put_own_name},
    [WB_FIELD_BOOL] = {
        .bytes = sizeof(bool), .most_byte = 1, .begin = begin_bool, .put = put_bool,
        .is_usual = is_usual_bool, .put_default = put_default_bool},
    [WB_FIELD_ACTIVATION] = {
        .bytes = sizeof(wb_activation *), .is_positional = true, .is_optional = true,
        .is_function = true, .complete = complete_activation, .put = put_activation},
    [WB_FIELD_CONNECTION] = {
        .bytes = sizeof(wb_connection *), .is_positional = true, .is_function = true,
        .put = put_connection},
    [WB_FIELD_CHOICE] = {
        .bytes = sizeof(int), .is_optional = true, .check = check_choice, .put = put_choice,
        .is_usual = is_usual_choice, .put_default = put_choices},
    [WB_FIELD_NAME] = {
        .bytes = WB_NAME_BYTES, .is_ended = true, .complete = complete_name, .check = check_name,
        .put = put_name, .put_default = put_default_name},
    [WB_FIELD_REALS] = {
        .bytes = WB_MOST_SIZES * sizeof(double), .check = check_reals, .put = put_reals,
        .put_default = put_own_name, .put_names = put_own_name},
    [WB_FIELD_SIZES] = {
        .bytes = sizeof(int64_t), .count = wb_field_most, .is_positional = true,
        .derive = derive_sizes, .check = check_sizes, .put = put_sizes,
        .put_default = put_default_sizes, .put_names = put_own_name},
    [WB_FIELD_EACH] = {
        .bytes = WB_MOST_SIZES * sizeof(int64_t), .per_size = 1, .complete = complete_each,
        .check = check_each, .put = put_each, .is_usual = is_usual_each,
        .put_default = put_default_each, .put_names = put_own_name},
    [WB_FIELD_PADDING] = {
        .bytes = 2 * WB_MOST_SIZES * sizeof(int64_t), .per_size = 2,
        .complete = complete_padding, .check = check_padding, .put = put_padding,
        .put_names = put_own_name},
    [WB_FIELD_DIMS] = {
        .bytes = sizeof(unsigned), .check = check_dims, .put = put_dims,
        .put_default = put_default_dims},
    [WB_FIELD_MODE] = {
        .bytes = sizeof(uint8_t), .most_byte = WB_MODE_TEST, .put = put_mode,
        .put_default = put_default_mode},
    [WB_FIELD_OTHER] = {.bytes = 0},
};
/* clang-format on */
