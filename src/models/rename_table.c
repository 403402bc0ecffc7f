/* Parses rename tables and matches names against their rows. Matching goes back to the last * and
 * the last ** only, which finds every match in time bounded by the square of the name's length. */
#include "models/rename_table.h"

#include <string.h>

#include "base/memory.h"

/* ---- text to rows ---- */

typedef struct parser {
    wb_rename_table *table;
    const char *at;
    int line;
} parser;

static wb_status fault(const parser *p, const char *what) {
    return wb_fail(WB_ERROR_FORMAT, "rename table, line %d: %s", p->line, what);
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static bool is_line_end(const parser *p) { return !*p->at || *p->at == '\n' || *p->at == '#'; }

static void skip_blanks(parser *p) {
    while (is_blank(*p->at)) p->at++;
}

typedef struct word {
    const char *text;
    size_t length;
    bool is_quoted;
} word;

/* "in quotes" or up to a blank; false: quotes without end. */
static bool take_word(parser *p, word *w) {
    *w = (word){.text = p->at, .is_quoted = *p->at == '"'};
    if (!w->is_quoted) {
        while (*p->at && *p->at != '\n' && !is_blank(*p->at)) p->at++;
        w->length = (size_t)(p->at - w->text);
        return true;
    }
    w->text = ++p->at;
    p->at += strcspn(p->at, "\"\n");
    w->length = (size_t)(p->at - w->text);
    return *p->at == '"' && p->at++;
}

static bool word_is(const word *w, const char *text) {
    return !w->is_quoted && w->length == strlen(text) && memcmp(w->text, text, w->length) == 0;
}

/* Bytes of the star or stars here; 0: another character. */
static size_t star_bytes(const char *at) { return *at != '*' ? 0 : at[1] == '*' ? 2 : 1; }

/* -1: two are side by side, so that it is unclear which one takes what. */
static int count_stars(const char *pattern) {
    int count = 0;
    for (size_t bytes; *pattern; pattern += bytes ? bytes : 1) {
        bytes = star_bytes(pattern);
        count += bytes > 0;
        if (bytes && pattern[bytes] == '*') return -1;
    }
    return count;
}

static wb_status take_name(parser *p, const char **name, bool *is_quoted) {
    word w;
    if (!take_word(p, &w)) return fault(p, "a quoted name has no closing quote");
    if (!w.length) return fault(p, "an empty name");
    if (w.length >= WB_RENAME_BYTES) return fault(p, "the name is too long");
    *is_quoted = w.is_quoted;
    *name = wb_arena_text(&p->table->arena, w.text, w.length);
    return *name ? WB_OK : wb_error_status();
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

enum { MOST_DIGITS = 9 };

/* The digits at text, at most nine; -1: there are none, or more. */
static int64_t number_of(const char *text, size_t length) {
    int64_t value = 0;
    if (length == 0 || length > MOST_DIGITS) return -1;
    for (size_t i = 0; i < length; i++) {
        if (!is_digit(text[i])) return -1;
        value = 10 * value + text[i] - '0';
    }
    return value;
}

/* Whether this word comes next, and then it is passed over. */
static bool takes_word(parser *p, const char *text) {
    word w;
    skip_blanks(p);
    const char *before = p->at;
    if (!is_line_end(p) && take_word(p, &w) && word_is(&w, text)) return true;
    p->at = before;
    return false;
}

/* "2/3" */
static wb_status take_share(parser *p, wb_rename_row *row) {
    word w;
    skip_blanks(p);
    const char *slash = take_word(p, &w) && !w.is_quoted ? memchr(w.text, '/', w.length) : NULL;
    const size_t before = slash ? (size_t)(slash - w.text) : 0;
    const int64_t part = slash ? number_of(w.text, before) : -1;
    const int64_t parts = slash ? number_of(slash + 1, w.length - before - 1) : -1;
    if (parts < 2 || parts > WB_TURN_PARTS || part < 1 || part > parts)
        return fault(p, "part and into must be followed by which of how many, such as 1/3, of at "
                        "most 64");
    row->part = (uint8_t)part, row->parts = (uint8_t)parts;
    return WB_OK;
}

/* "0" */
static wb_status take_along(parser *p, wb_rename_row *row) {
    word w;
    skip_blanks(p);
    const int64_t along = take_word(p, &w) && !w.is_quoted ? number_of(w.text, w.length) : -1;
    if (along < 0 || along >= WB_MAX_DIMS)
        return fault(p, "along must be followed by a dimension, from 0 to 7");
    row->along = (int8_t)along;
    return WB_OK;
}

/* "2,3,1,0": each dimension once. */
static wb_status take_order(parser *p, wb_rename_row *row) {
    word w;
    unsigned met = 0;
    skip_blanks(p);
    bool is_good = take_word(p, &w) && w.length % 2 == 1 && w.length < 2 * WB_MAX_DIMS;
    for (size_t i = 0; is_good && i < w.length; i++) {
        const int digit = w.text[i] - '0';
        is_good = i % 2 ? w.text[i] == ',' : digit >= 0 && digit < WB_MAX_DIMS;
        if (is_good && i % 2 == 0) row->order[i / 2] = (uint8_t)digit, met |= 1U << digit;
    }
    row->order_count = (uint8_t)(w.length / 2 + 1);
    if (is_good && met + 1 == 1U << row->order_count) return WB_OK;
    if (is_good)
        return wb_fail(WB_ERROR_FORMAT,
                       "rename table, line %d: permute %.*s names %d dimensions, so it must have "
                       "each of 0 to %d once",
                       p->line, (int)w.length, w.text, row->order_count, row->order_count - 1);
    return fault(p,
                 "permute must be followed by the dimensions in their new order, each once, such "
                 "as 1,0,2");
}

/* "2" */
static wb_status take_ones(parser *p, wb_rename_row *row, int sign) {
    word w;
    skip_blanks(p);
    const int64_t count = take_word(p, &w) && !w.is_quoted ? number_of(w.text, w.length) : -1;
    if (count < 1 || count >= WB_MAX_DIMS)
        return fault(p, "squeeze and unsqueeze must be followed by how many dimensions, 1 to 7");
    row->ones = (int8_t)(sign * (int)count);
    return WB_OK;
}

/* [transpose | permute 1,0,2] [flip] [squeeze 1 | unsqueeze 1] [part 1/3 | into 1/3] [along 0] */
static wb_status take_options(parser *p, wb_rename_row *row) {
    wb_status status = WB_OK;
    skip_blanks(p);
    const char *begin = p->at;
    row->along = WB_RENAME_LAST;
    if (takes_word(p, "transpose"))
        row->order_count = 2, row->order[0] = 1;
    else if (takes_word(p, "permute"))
        status = take_order(p, row);
    row->is_flipped = takes_word(p, "flip");
    if (status == WB_OK && takes_word(p, "squeeze")) status = take_ones(p, row, -1);
    if (status == WB_OK && takes_word(p, "unsqueeze")) status = take_ones(p, row, 1);
    row->is_joined = takes_word(p, "into");
    if (status == WB_OK && (row->is_joined || takes_word(p, "part"))) status = take_share(p, row);
    if (status == WB_OK && row->parts && takes_word(p, "along")) status = take_along(p, row);
    skip_blanks(p);
    if (status != WB_OK || is_line_end(p)) return status;
    return fault(p, p->at == begin ? "after the names, only transpose, permute, flip, squeeze, "
                                     "unsqueeze, part or into may follow"
                                   : "unexpected text after the row's end");
}

static wb_status check_stars(const parser *p, const wb_rename_row *row) {
    const int from = row->is_pattern ? count_stars(row->from) : 0;
    const int to = row->to && !row->is_literal ? count_stars(row->to) : 0;
    if (from < 0 || to < 0) return fault(p, "two stars must have something between them");
    if (from > WB_RENAME_STARS) return fault(p, "a name may have at most eight stars");
    if (to > from || (row->to && !row->is_literal && to < from))
        return fault(p, "the right side must have as many stars as the left");
    return WB_OK;
}

static wb_status take_arrow(parser *p, const char *from) {
    word w;
    skip_blanks(p);
    if (is_line_end(p))
        return wb_fail(WB_ERROR_FORMAT,
                       "rename table, line %d: -> must follow \"%.80s\", but the row ends there",
                       p->line, from);
    if (take_word(p, &w) && word_is(&w, "->")) return WB_OK;
    return wb_fail(WB_ERROR_FORMAT, "rename table, line %d: -> must follow \"%.80s\", got \"%.*s\"",
                   p->line, from, (int)(w.length < 80 ? w.length : 80), w.text);
}

/* FROM -> [TO [OPTIONS]] */
static wb_status take_row(parser *p) {
    wb_rename_row row = {.line = p->line};
    bool is_quoted = false;
    wb_status status = take_name(p, &row.from, &is_quoted);
    if (status != WB_OK) return status;
    row.is_pattern = !is_quoted && strchr(row.from, '*');
    status = take_arrow(p, row.from);
    if (status != WB_OK) return status;
    skip_blanks(p);
    if (!is_line_end(p)) status = take_name(p, &row.to, &row.is_literal);
    if (status == WB_OK) status = take_options(p, &row);
    if (status == WB_OK) status = check_stars(p, &row);
    if (status != WB_OK) return status;
    wb_rename_table *t = p->table;
    if (!WB_GROW(t->rows, t->count, t->capacity)) return WB_ERROR_MEMORY;
    t->rows[t->count++] = row;
    return WB_OK;
}

wb_status wb_rename_parse(wb_rename_table *table, const char *text) {
    *table = (wb_rename_table){.rows = NULL};
    parser p = {.table = table, .at = text, .line = 1};
    for (;; p.line++) {
        skip_blanks(&p);
        const wb_status status = is_line_end(&p) ? WB_OK : take_row(&p);
        if (status != WB_OK) return status;
        p.at += strcspn(p.at, "\n"); /* a remark */
        if (!*p.at++) return WB_OK;
    }
}

void wb_rename_release(wb_rename_table *table) {
    wb_release(table->rows);
    wb_arena_release(&table->arena);
    *table = (wb_rename_table){.rows = NULL};
}

/* ---- names to names ---- */

/* What a star stands for: at least one character. */
typedef struct capture {
    const char *begin;
    size_t length;
} capture;

/* A star that may take more characters; pattern is what follows it. NULL: there is none. */
typedef struct retry {
    const char *pattern;
    int star;
} retry;

/* Lets one star take one character more: the last *, unless that character is a dot, else the last
 * **. False: neither can. */
static bool grow(retry *one, retry *many, capture *captures, const char **pattern, const char **at,
                 int *star) {
    const capture *last = &captures[one->star];
    const char next = one->pattern ? last->begin[last->length] : 0;
    if (!next || next == '.') one->pattern = NULL;
    retry *which = one->pattern ? one : many;
    if (!which->pattern || !captures[which->star].begin[captures[which->star].length]) return false;
    capture *c = &captures[which->star];
    c->length++;
    *pattern = which->pattern, *at = c->begin + c->length, *star = which->star + 1;
    return true;
}

/* Stars take as little as they can. Going back to the last * and the last ** finds a match wherever
 * there is one: a * ends before the next dot, and what an earlier ** could take, the last one can;
 * so the work is bounded by the square of the name's length. */
static bool match(const char *pattern, const char *name, capture captures[WB_RENAME_STARS]) {
    retry one = {NULL, 0}, many = {NULL, 0};
    int star = 0;
    const char *at = name;
    while (*pattern || *at) {
        const size_t bytes = star_bytes(pattern);
        if (bytes && *at && (bytes == 2 || *at != '.')) {
            pattern += bytes;
            captures[star] = (capture){at++, 1};
            *(bytes == 2 ? &many : &one) = (retry){pattern, star++};
            if (bytes == 2) one.pattern = NULL;
        } else if (!bytes && *pattern && *pattern == *at) {
            pattern++, at++;
        } else if (!grow(&one, &many, captures, &pattern, &at, &star)) {
            return false;
        }
    }
    return true;
}

typedef struct output {
    char *text;
    size_t used;
    bool is_full;
} output;

static void put(output *out, const char *text, size_t length) {
    out->is_full = out->is_full || length >= WB_RENAME_BYTES - out->used;
    if (out->is_full) return;
    memcpy(out->text + out->used, text, length);
    out->used += length;
}

/* Adds the "+1" or "-1" at sign to the captured number. False: the text is not a number, or the
 * result would be negative. */
static bool put_sum(output *out, const capture *c, const char *sign, size_t digits) {
    char text[24];
    const int64_t value = number_of(c->begin, c->length), step = number_of(sign + 1, digits);
    const int64_t sum = *sign == '+' ? value + step : value - step;
    if (value < 0 || step < 0 || sum < 0) return false;
    put(out, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)sum));
    return true;
}

/* The right side with what the stars stand for. False: a sum of something that is not a number. */
static bool expand(const wb_rename_row *row, const capture *captures, output *out) {
    int star = 0;
    for (const char *at = row->to; *at;) {
        const size_t bytes = row->is_literal ? 0 : star_bytes(at);
        if (!bytes) {
            put(out, at++, 1);
            continue;
        }
        at += bytes;
        const capture *c = &captures[star++];
        size_t digits = 0;
        while ((*at == '+' || *at == '-') && is_digit(at[1 + digits])) digits++;
        if (!digits)
            put(out, c->begin, c->length);
        else if (!put_sum(out, c, at, digits))
            return false;
        at += digits ? 1 + digits : 0;
    }
    return true;
}

bool wb_rename_row_takes(const wb_rename_row *row, const char *name) {
    capture captures[WB_RENAME_STARS] = {{NULL, 0}};
    return row->is_pattern ? match(row->from, name, captures) : strcmp(row->from, name) == 0;
}

static bool takes(const wb_rename_row *row, const char *name, output *out) {
    capture captures[WB_RENAME_STARS] = {{NULL, 0}};
    if (!row->is_pattern && strcmp(row->from, name) != 0) return false;
    if (row->is_pattern && !match(row->from, name, captures)) return false;
    out->used = 0;
    return !row->to || expand(row, captures, out);
}

static bool same_left_side(const wb_rename_row *a, const wb_rename_row *b) {
    return a->is_pattern == b->is_pattern && strcmp(a->from, b->from) == 0;
}

wb_rename_row *wb_rename_find(wb_rename_table *table, const wb_rename_row *last, const char *name,
                              char to[WB_RENAME_BYTES]) {
    if (strlen(name) >= WB_RENAME_BYTES)
        return wb_fail_null(WB_ERROR_FORMAT, "a name of %zu bytes, \"%.80s...\"; %d are possible",
                            strlen(name), name, WB_RENAME_BYTES - 1);
    for (int64_t i = last ? last - table->rows + 1 : 0; i < table->count; i++) {
        output out = {.text = to};
        if (last && !same_left_side(last, &table->rows[i])) continue;
        if (!takes(&table->rows[i], name, &out)) continue;
        if (out.is_full)
            return wb_fail_null(WB_ERROR_FORMAT,
                                "rename table, line %d: the new name would have more than %d bytes",
                                table->rows[i].line, WB_RENAME_BYTES - 1);
        to[out.used] = 0;
        table->rows[i].is_used = true;
        return &table->rows[i];
    }
    return NULL;
}
