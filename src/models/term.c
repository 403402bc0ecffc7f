/* A parser without recursion: calls, tuples and pairs that are still open wait on a stack of fixed
 * size, so that no text can overflow the C stack. Errors name the character where they arose. */
#include "models/term.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"

/* A call, tuple or pair that is being read. */
typedef struct open_term {
    wb_term *term;
    wb_term **tail;
} open_term;

typedef struct parser {
    const char *at, *text, *where;
    wb_arena *arena;
    wb_term *result;
    int depth;
    open_term open[WB_TERM_DEPTH];
} parser;

/* ---- faults ---- */

static bool fault(const parser *p, const char *what) {
    if (!wb_failed())
        (void)wb_fail(WB_ERROR_FORMAT, "%s: character %lld of the structure: %s, at \"%.20s\"",
                      p->where, (long long)(p->at - p->text) + 1, what, p->at);
    return false;
}

/* ---- characters ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool begins_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool in_word(char c) { return begins_word(c) || is_digit(c) || c == '!'; }
static bool in_path(char c) { return in_word(c) || c == '.'; }

bool wb_is_word(const char *text) {
    if (!begins_word(*text) || strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return false;
    while (in_word(*text)) text++;
    return *text == 0;
}

static void skip_space(parser *p) { p->at += strspn(p->at, " \t\r\n"); }

static bool skip(parser *p, const char *what) {
    skip_space(p);
    const size_t length = strlen(what);
    if (strncmp(p->at, what, length) != 0) return false;
    p->at += length;
    return true;
}

static bool expect(parser *p, const char *what) {
    char text[40];
    if (skip(p, what)) return true;
    (void)snprintf(text, sizeof text, "\"%s\" is missing", what);
    return fault(p, text);
}

/* ---- words ---- */

/* var"any text", \ before " and \ itself. */
static const char *read_quoted(parser *p) {
    const char *begin = p->at;
    while (*p->at && *p->at != '"') p->at += p->at[0] == '\\' && p->at[1] ? 2 : 1;
    char *name = *p->at ? wb_arena_text(p->arena, begin, (size_t)(p->at - begin)) : NULL;
    if (!name) {
        (void)fault(p, "a quoted text has no closing quote");
        return NULL;
    }
    p->at++;
    char *to = name;
    for (const char *from = name; *from; from++) *to++ = *from == '\\' ? *++from : *from;
    *to = 0;
    return name;
}

/* A name with the letters that may be in it; NULL with the error recorded. */
static const char *read_name(parser *p, bool (*has)(char c)) {
    skip_space(p);
    if (strncmp(p->at, "var\"", 4) == 0) {
        p->at += 4;
        return read_quoted(p);
    }
    const char *begin = p->at;
    while (has(*p->at)) p->at++;
    if (p->at == begin) {
        (void)fault(p, "a name is expected");
        return NULL;
    }
    return wb_arena_text(p->arena, begin, (size_t)(p->at - begin));
}

static const char *without_modules(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* ---- numbers ---- */

enum { MOST_DIGITS = 40 };

static bool parse_integer(const char *digits, int64_t *integer) {
    const int sign = *digits == '-' ? -1 : 1;
    const char *at = digits + (sign < 0);
    int64_t n = 0;
    for (; is_digit(*at); at++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, sign * (*at - '0'), &n))
            return false;
    *integer = n;
    return at > digits && *at == 0 && is_digit(at[-1]);
}

/* 10, -1, 0.5, 1e-5, and 0.1f0, which is a Float32. */
static bool read_number(parser *p, wb_term *t) {
    char digits[MOST_DIGITS];
    size_t used = 0;
    bool is_single = false, is_real = false;
    for (char before = 0; is_digit(*p->at) || strchr("+-.ef", *p->at); before = *p->at++) {
        if (*p->at == 0 || used + 1 == sizeof digits) break;
        if (strchr("+-", *p->at) && used && !strchr("ef", before)) break;
        is_single |= *p->at == 'f';
        is_real |= !is_digit(*p->at) && !(used == 0 && *p->at == '-');
        digits[used++] = *p->at == 'f' ? 'e' : *p->at;
    }
    digits[used] = 0;
    t->kind = is_real ? WB_TERM_REAL : WB_TERM_INTEGER;
    if (!(is_real ? wb_read_decimal(digits, used, &t->real) : parse_integer(digits, &t->integer)))
        return fault(p, "a number is expected");
    if (is_single) t->real = (double)(float)t->real;
    return true;
}

/* ---- terms ---- */

static wb_term *new_term(parser *p, wb_term_kind kind) {
    wb_term *t = wb_arena_take(p->arena, sizeof *t);
    if (!t) return NULL;
    t->kind = kind;
    t->text = p->at;
    return t;
}

static bool open_group(parser *p, wb_term *t) {
    if (p->depth == WB_TERM_DEPTH) return fault(p, "nested too deep");
    p->open[p->depth++] = (open_term){t, &t->first};
    return true;
}

static void attach(parser *p, wb_term *t) {
    t->text_bytes = p->at - t->text;
    if (p->depth == 0) {
        p->result = t;
        return;
    }
    open_term *o = &p->open[p->depth - 1];
    *o->tail = t;
    o->tail = &t->next;
    o->term->count++;
}

/* t has ended; it may be the left of a pair, or end one. */
static bool finish(parser *p, wb_term *t) {
    const char *end = p->at;
    if (skip(p, "=>")) {
        wb_term *pair = new_term(p, WB_TERM_PAIR);
        if (!pair) return false;
        pair->text = t->text, pair->key = t->key;
        t->key = NULL;
        if (!open_group(p, pair)) return false;
        attach(p, t);
        return true;
    }
    p->at = end;
    attach(p, t);
    while (p->depth && p->open[p->depth - 1].term->kind == WB_TERM_PAIR &&
           p->open[p->depth - 1].term->count == 2) {
        wb_term *pair = p->open[--p->depth].term;
        attach(p, pair);
    }
    return true;
}

static bool read_word(parser *p, const char *key) {
    wb_term *t = new_term(p, WB_TERM_NAME);
    const char *name = t ? read_name(p, in_path) : NULL;
    if (!name) return false;
    t->key = key, t->name = without_modules(name);
    const bool is_true = strcmp(name, "true") == 0;
    if (is_true || strcmp(name, "false") == 0) {
        t->kind = WB_TERM_BOOL, t->name = NULL, t->integer = is_true;
        return finish(p, t);
    }
    if (*p->at != '(') return finish(p, t);
    p->at++;
    t->kind = WB_TERM_CALL;
    return open_group(p, t);
}

/* :nearest, a symbol: a name. */
static bool read_symbol(parser *p, const char *key) {
    wb_term *t = new_term(p, WB_TERM_NAME);
    p->at++;
    if (!t || !(t->name = read_name(p, in_path))) return false;
    t->key = key;
    return finish(p, t);
}

/* + and *, which are names of functions. */
static bool read_operator(parser *p, const char *key) {
    wb_term *t = new_term(p, WB_TERM_NAME);
    if (!t) return false;
    t->key = key, t->name = *p->at == '+' ? "+" : "*";
    p->at++;
    return finish(p, t);
}

/* The name before a single "=", if the text continues with these. */
static bool read_key(parser *p, const char **key) {
    const char *begin = p->at;
    *key = NULL;
    if (!begins_word(*begin)) return true;
    const char *name = read_name(p, in_word);
    if (!name) return false;
    skip_space(p);
    if (p->at[0] == '=' && p->at[1] != '>') {
        p->at++;
        *key = name;
        skip_space(p);
    } else {
        p->at = begin;
    }
    return true;
}

/* One value, or the beginning of a group. */
static bool read_value(parser *p) {
    const char *key;
    skip_space(p);
    if (!read_key(p, &key)) return false;
    if (begins_word(*p->at)) return read_word(p, key);
    if (*p->at == '+' || *p->at == '*') return read_operator(p, key);
    if (*p->at == ':') return read_symbol(p, key);
    wb_term *t = new_term(p, WB_TERM_TUPLE);
    if (!t) return false;
    t->key = key;
    if (*p->at == '(') {
        p->at++;
        return open_group(p, t);
    }
    if (*p->at != '-' && !is_digit(*p->at)) return fault(p, "a value is expected");
    return read_number(p, t) && finish(p, t);
}

/* "(x)" is x, as in Julia. */
static bool close_group(parser *p, bool after_comma) {
    wb_term *t = p->open[--p->depth].term;
    if (t->kind != WB_TERM_TUPLE || t->count != 1 || after_comma || t->first->key)
        return finish(p, t);
    wb_term *only = t->first;
    only->key = t->key;
    return finish(p, only);
}

static bool read_term(parser *p) {
    bool has_value = false, after_comma = false; /* since the group's last comma */
    while (!p->result) {
        const bool in_pair = p->depth && p->open[p->depth - 1].term->kind == WB_TERM_PAIR;
        if (p->depth && !in_pair && skip(p, ")")) {
            if (!close_group(p, after_comma)) return false;
            has_value = true, after_comma = false;
        } else if (has_value && !in_pair) {
            if (!skip(p, ",") && !skip(p, ";")) return fault(p, "\",\" or \")\" is missing");
            has_value = false, after_comma = true;
        } else {
            const int depth = p->depth;
            if (!read_value(p)) return false;
            const bool is_group =
                p->depth > depth && p->open[p->depth - 1].term->kind != WB_TERM_PAIR;
            has_value = !is_group, after_comma = false;
        }
    }
    return true;
}

/* ---- ties ---- */

static bool read_dims(parser *p, wb_term_tie *tie) {
    bool seen[WB_MAX_DIMS] = {false};
    if (!expect(p, "(")) return false;
    while (!skip(p, ")")) {
        wb_term number = {.count = 0};
        skip_space(p);
        if (!is_digit(*p->at) || !read_number(p, &number)) return fault(p, "a number is expected");
        const int64_t dim = number.kind == WB_TERM_INTEGER ? number.integer - 1 : -1;
        if (dim < 0 || dim >= WB_MAX_DIMS || seen[dim] || tie->ndim == WB_MAX_DIMS)
            return fault(p, "dimensions are expected, as in (3, 2)");
        seen[dim] = true;
        tie->dims[tie->ndim++] = dim;
        (void)skip(p, ",");
    }
    for (int i = 0; i < tie->ndim; i++)
        if (!seen[i]) return fault(p, "dimensions are expected, as in (3, 2)");
    return true;
}

static bool read_tie(parser *p, wb_term_tie *tie) {
    if (!(tie->to = read_name(p, in_path)) || !expect(p, "=")) return false;
    const char *function = read_name(p, in_word);
    if (!function || !expect(p, "(") || !(tie->from = read_name(p, in_path))) return false;
    if (strcmp(function, "transpose") == 0) {
        tie->ndim = 2, tie->dims[0] = 1, tie->dims[1] = 0;
    } else if (strcmp(function, "permutedims") != 0) {
        return fault(p, "transpose or permutedims is expected");
    } else if (!expect(p, ",") || !read_dims(p, tie)) {
        return false;
    }
    return expect(p, ")");
}

static bool read_ties(parser *p, const wb_term_tie **list) {
    wb_term_tie *last = NULL;
    for (skip_space(p); *p->at; skip_space(p)) {
        wb_term_tie *tie = wb_arena_take(p->arena, sizeof *tie);
        if (!tie || !read_tie(p, tie)) return false;
        if (last)
            last->next = tie;
        else
            *list = tie;
        last = tie;
    }
    return true;
}

/* ---- all ---- */

wb_status wb_structure_read(wb_structure *s, const char *text, const char *where, wb_arena *arena) {
    parser p = {.at = text, .text = text, .where = where, .arena = arena};
    *s = (wb_structure){.model = NULL};
    if (!read_term(&p) || !read_ties(&p, &s->ties)) return wb_error_status();
    s->model = p.result;
    return WB_OK;
}

const wb_term *wb_term_at(const wb_term *term, int64_t i) {
    const wb_term *t = term->first;
    for (; t; t = t->next)
        if (!t->key && i-- == 0) break;
    return t;
}

const wb_term *wb_term_keyed(const wb_term *term, const char *key) {
    const wb_term *t = term->first;
    while (t && !(t->key && strcmp(t->key, key) == 0)) t = t->next;
    return t;
}

/* ---- numbers, written ---- */

static void put_point(char *text) {
    const char *point = localeconv()->decimal_point;
    char *at = strstr(text, point);
    if (!at || strcmp(point, ".") == 0) return;
    *at = '.';
    memmove(at + 1, at + strlen(point), strlen(at + strlen(point)) + 1);
}

void wb_real_text(double value, char *text, size_t size) {
    const bool is_single = (double)(float)value == value;
    bool is_same = false;
    for (int digits = 1; digits <= 17 && !is_same; digits++) {
        (void)snprintf(text, size, "%.*g", digits, value);
        const double back = strtod(text, NULL);
        is_same = back == value || (is_single && (double)(float)back == value);
    }
    const bool is_exact = strtod(text, NULL) == value;
    put_point(text);
    if (is_exact) return;
    char *exponent = strchr(text, 'e');
    if (exponent)
        *exponent = 'f';
    else
        (void)snprintf(text + strlen(text), size - strlen(text), "f0");
}
