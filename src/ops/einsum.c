/* Einstein's sums: arrays are multiplied from left to right, each pair as one batched matrix
 * product between permutations and reshapes; an index that neither a later array nor the result has
 * is summed as early as possible. */
#include <string.h>

#include "ops/build.h"

enum { TEXT = 256, LETTERS = 128, PIECE = 32 };

/* "ij,jk" and "ik", without blanks. */
typedef struct sum {
    char in[TEXT], out[LETTERS];
    bool has_out;
    int64_t sizes[LETTERS];
    int array_of[LETTERS]; /* where a letter was first seen, from 1; 0: not yet */
} sum;

/* An array and the letters of its dimensions. */
typedef struct operand {
    wb_array *x;
    char letters[LETTERS];
} operand;

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static void append(char *list, char c) {
    const size_t size = strlen(list);
    list[size] = c, list[size + 1] = 0;
}

/* ---- the text ---- */

static bool read_character(sum *s, const char *text, size_t at) {
    const char c = text[at];
    if (c == ' ' || (c == '>' && at > 0 && text[at - 1] == '-')) return true;
    if (c == '-' && text[at + 1] == '>' && !s->has_out) return s->has_out = true;
    if ((!is_letter(c) && c != ',') || (c == ',' && s->has_out)) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "einsum: letters, commas and one -> are expected, got '%c' at place %d of "
                      "\"%s\"",
                      c, (int)at, text);
        return false;
    }
    if (s->has_out && strchr(s->out, c)) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "einsum: a letter may stand once in the result, got %c twice in \"%s\"", c,
                      text);
        return false;
    }
    append(s->has_out ? s->out : s->in, c);
    return true;
}

static bool read_text(sum *s, const char *text) {
    const size_t size = strlen(text);
    if (size >= TEXT) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "einsum: the text must have less than %d characters, got %d", TEXT,
                      (int)size);
        return false;
    }
    for (size_t i = 0; i < size; i++)
        if (!read_character(s, text, i)) return false;
    for (const char *c = s->out; *c; c++) {
        if (strchr(s->in, *c)) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "einsum: each letter of the result must name a dimension of an array, got %c "
                      "in \"%s\"",
                      *c, text);
        return false;
    }
    return true;
}

/* Without "->" the result has the letters that appear once, in their order. */
static void complete_result(sum *s) {
    for (char c = 'A'; !s->has_out && c <= 'z'; c++) {
        const char *first = is_letter(c) ? strchr(s->in, c) : NULL;
        if (first && !strchr(first + 1, c)) append(s->out, c);
    }
}

/* ---- sizes ---- */

static bool check_sizes(sum *s, int number, const operand *o) {
    for (int d = 0; d < o->x->ndim; d++) {
        const int letter = o->letters[d];
        const int64_t size = o->x->sizes[d];
        if (!s->array_of[letter]) s->array_of[letter] = number + 1, s->sizes[letter] = size;
        if (s->sizes[letter] == size) continue;
        (void)wb_fail(WB_ERROR_SHAPE,
                      "einsum: letter %c is %lld in array %d, so it must be %lld in array %d, got "
                      "%lld in %s",
                      letter, (long long)s->sizes[letter], s->array_of[letter] - 1,
                      (long long)s->sizes[letter], number, (long long)size, wb_text_of(o->x));
        return false;
    }
    return true;
}

/* The letters of an array, up to the next comma; returns the rest of the text. */
static const char *read_letters(const char *text, char *letters) {
    size_t count = 0;
    while (text[count] && text[count] != ',' && count < LETTERS - 1) count++;
    memcpy(letters, text, count);
    letters[count] = 0;
    return text + count + (text[count] == ',');
}

static bool read_operand(sum *s, int number, operand *o) {
    if (!wb_is_usable(o->x)) {
        (void)wb_refuse("einsum", o->x, "an array");
        return false;
    }
    if (strlen(o->letters) == o->x->ndim)
        return check_sizes(s, number, o) && (o->x = wb_widened(o->x));
    (void)wb_fail(WB_ERROR_SHAPE, "einsum: array %d is %s, so it needs %d letters, got \"%s\"",
                  number, wb_text_of(o->x), o->x->ndim, o->letters);
    return false;
}

static bool check_count(const char *in, int count, const char *text) {
    int named = 1;
    for (const char *c = in; *c; c++) named += *c == ',';
    if (named == count) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "einsum: \"%s\" names %d arrays, got %d", text, named, count);
    return false;
}

/* ---- one array ---- */

static int place_of(const operand *o, char letter) {
    return (int)(strchr(o->letters, letter) - o->letters);
}

/* Permutes the dimensions to the order of these letters, which are all that it has. */
static wb_array *permuted(const operand *o, const char *letters) {
    int64_t dims[WB_MAX_DIMS];
    const int ndim = (int)strlen(letters);
    for (int d = 0; d < ndim; d++) dims[d] = place_of(o, letters[d]);
    return strcmp(letters, o->letters) == 0 ? o->x : wb_permute_make(o->x, ndim, dims);
}

/* Dimensions p < q with one letter become their diagonal: steps of n + 1 in one dimension. */
static bool take_diagonal(operand *o, int p, int q) {
    int64_t dims[WB_MAX_DIMS] = {p, q}, sizes[WB_MAX_DIMS];
    const int64_t n = o->x->sizes[p];
    int ndim = 2;
    for (int d = 0; d < o->x->ndim; d++)
        if (d != p && d != q) dims[ndim++] = d;
    char letters[LETTERS] = {0};
    sizes[0] = n * n;
    for (int d = 1; d < ndim; d++) {
        append(letters, o->letters[dims[d == 1 ? 0 : d]]);
        if (d > 1) sizes[d - 1] = o->x->sizes[dims[d]];
    }
    wb_array *moved = wb_permute_make(o->x, ndim, dims);
    wb_array *flat = moved ? wb_reshape_make(moved, ndim - 1, sizes) : NULL;
    o->x = flat ? wb_slice(flat, 0, 0, n * n, n + 1) : NULL;
    memcpy(o->letters, letters, sizeof letters);
    return o->x != NULL;
}

static bool take_diagonals(operand *o) {
    for (int p = 0; o->letters[p]; p++) {
        const char *again = strchr(o->letters + p + 1, o->letters[p]);
        if (again && !take_diagonal(o, p, (int)(again - o->letters))) return false;
        if (again) p = -1;
    }
    return true;
}

/* Sums the dimensions whose letters are in none of the three lists. */
static bool sum_others(operand *o, const char *out, const char *rest, const char *other) {
    int64_t dims[WB_MAX_DIMS], sizes[WB_MAX_DIMS];
    char letters[LETTERS] = {0};
    int count = 0;
    for (int d = 0; d < o->x->ndim; d++) {
        const char c = o->letters[d];
        if (strchr(out, c) || strchr(rest, c) || strchr(other, c)) {
            sizes[strlen(letters)] = o->x->sizes[d];
            append(letters, c);
        } else
            dims[count++] = d;
    }
    if (count == 0) return true;
    wb_array *total = wb_sum_make(o->x, count, dims);
    o->x = total ? wb_reshape_make(total, (int)strlen(letters), sizes) : NULL;
    memcpy(o->letters, letters, sizeof letters);
    return o->x != NULL;
}

/* ---- two arrays ---- */

/* The letters in three groups: in one array only, in both and summed, in both and kept. */
typedef struct parts {
    char left[LETTERS], right[LETTERS], summed[LETTERS], batch[LETTERS];
} parts;

static parts sort_letters(const operand *a, const operand *b, const char *out, const char *rest) {
    parts p = {.left = {0}};
    for (const char *c = a->letters; *c; c++) {
        const bool is_kept = strchr(out, *c) || strchr(rest, *c);
        append(!strchr(b->letters, *c) ? p.left : is_kept ? p.batch : p.summed, *c);
    }
    for (const char *c = b->letters; *c; c++)
        if (!strchr(a->letters, *c)) append(p.right, *c);
    return p;
}

static int64_t count_of(const sum *s, const char *letters) {
    int64_t count = 1;
    for (; *letters; letters++) count *= s->sizes[(int)*letters];
    return count;
}

static wb_array *as_blocks(const operand *o, const char *first, const char *second,
                           const char *batch, int ndim, const int64_t *sizes) {
    char letters[3 * LETTERS] = {0};
    strcat(strcat(strcat(letters, first), second), batch);
    wb_array *x = permuted(o, letters);
    return x ? wb_reshape_make(x, ndim, sizes) : NULL;
}

/* (m, k, batch) by (k, n, batch); integers, which have no matrix product, as a sum. */
static wb_array *product(const sum *s, const operand *a, const operand *b, const parts *p) {
    const int64_t m = count_of(s, p->left), n = count_of(s, p->right), k = count_of(s, p->summed),
                  batch = count_of(s, p->batch);
    const wb_dtype dtype = wb_promote((wb_dtype)a->x->dtype, (wb_dtype)b->x->dtype);
    const int ndim = *p->batch ? 3 : 2;
    if (wb_dtype_is_float(dtype) && *p->summed)
        return wb_matmul(
            as_blocks(a, p->left, p->summed, p->batch, ndim, (const int64_t[]){m, k, batch}),
            as_blocks(b, p->summed, p->right, p->batch, ndim, (const int64_t[]){k, n, batch}));
    wb_array *x = as_blocks(a, p->left, p->summed, p->batch, 4, (const int64_t[]){m, k, 1, batch});
    wb_array *y = as_blocks(b, p->summed, p->right, p->batch, 4, (const int64_t[]){1, k, n, batch});
    return *p->summed ? wb_sum_dims(MUL(x, y), 1) : MUL(x, y);
}

static bool contract(const sum *s, operand *a, operand *b, const char *rest) {
    if (!sum_others(a, s->out, rest, b->letters) || !sum_others(b, s->out, rest, a->letters))
        return false;
    const parts p = sort_letters(a, b, s->out, rest);
    int64_t sizes[WB_MAX_DIMS];
    char letters[3 * LETTERS] = {0};
    strcat(strcat(strcat(letters, p.left), p.right), p.batch);
    const int ndim = (int)strlen(letters);
    if (ndim > WB_MAX_DIMS) {
        (void)wb_fail(WB_ERROR_SHAPE,
                      "einsum: a product of two arrays may have %d dimensions, got %d (%s)",
                      WB_MAX_DIMS, ndim, letters);
        return false;
    }
    for (int d = 0; d < ndim; d++) sizes[d] = s->sizes[(int)letters[d]];
    wb_array *x = product(s, a, b, &p);
    a->x = x ? wb_reshape_make(x, ndim, sizes) : NULL;
    memcpy(a->letters, letters, LETTERS);
    return a->x != NULL;
}

wb_array *wb_einsum_make(const char *text, int count, wb_array *const *arrays) {
    if (!text) return wb_fail_argument_null("einsum", "text");
    if (!wb_check_list("einsum", count, arrays)) return NULL;
    sum s = {.in = {0}};
    if (!read_text(&s, text) || !check_count(s.in, count, text)) return NULL;
    complete_result(&s);
    operand all = {.x = NULL};
    const char *rest = s.in;
    for (int i = 0; i < count; i++) {
        operand next = {.x = arrays[i]};
        rest = read_letters(rest, next.letters);
        if (!read_operand(&s, i, &next) || !take_diagonals(&next)) return NULL;
        if (i == 0) all = next;
        if (i > 0 && !contract(&s, &all, &next, rest)) return NULL;
    }
    return sum_others(&all, s.out, "", "") ? permuted(&all, s.out) : NULL;
}
