#include "device/toml.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { NAME_BYTES = 64, DEPTH = 64 };

/* ---- the scanner: one item at a time, each a line or several ---- */

typedef enum kind { END, BLANK, TABLE, ENTRY, BROKEN } kind;

typedef struct item {
    kind kind;
    const char *begin, *end;             /* with its newline */
    char name[NAME_BYTES];               /* of the table or key; parts joined by dots */
    bool is_list;                        /* TABLE: in double brackets */
    const char *value_begin, *value_end; /* ENTRY */
    const char *fault;                   /* BROKEN */
} item;

typedef struct scan {
    const char *at, *end;
    const char *fault;
} scan;

static bool fault(scan *s, const char *what) {
    s->fault = what;
    return false;
}

static char peek(const scan *s) { return s->at < s->end ? *s->at : '\0'; }
static bool at_end(const scan *s) { return s->at == s->end; }

static void skip_spaces(scan *s) {
    while (peek(s) == ' ' || peek(s) == '\t') s->at++;
}

static void skip_to_newline(scan *s) {
    while (!at_end(s) && *s->at != '\n') s->at++;
}

/* Spaces, a comment and the newline; false if something else stands there. */
static bool finish_line(scan *s) {
    skip_spaces(s);
    if (peek(s) == '#') skip_to_newline(s);
    if (peek(s) == '\r') s->at++;
    if (at_end(s)) return true;
    if (*s->at != '\n') return fault(s, "something stands behind the value");
    s->at++;
    return true;
}

static bool begins_with(const scan *s, const char *text) {
    const size_t length = strlen(text);
    return (size_t)(s->end - s->at) >= length && memcmp(s->at, text, length) == 0;
}

/* A string in one or three quotes of either kind. */
static bool skip_string(scan *s) {
    const char quote = *s->at;
    const char three[] = {quote, quote, quote, 0}, one[] = {quote, 0};
    const bool is_long = begins_with(s, three);
    const char *close = is_long ? three : one;
    s->at += strlen(close);
    while (!at_end(s) && !begins_with(s, close)) {
        if (*s->at == '\n' && !is_long) break;
        if (*s->at == '\\' && quote == '"') s->at++;
        if (!at_end(s)) s->at++;
    }
    if (!begins_with(s, close)) return fault(s, "a string does not end");
    s->at += strlen(close);
    while (is_long && peek(s) == quote) s->at++; /* quotes before the closing ones */
    return true;
}

static bool is_bare(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* Inside brackets newlines and comments are space. */
static void skip_between(scan *s, int depth) {
    skip_spaces(s);
    while (depth > 0 && !at_end(s) && strchr("\r\n#", *s->at)) {
        if (*s->at == '#')
            skip_to_newline(s);
        else
            s->at++;
        skip_spaces(s);
    }
}

static bool skip_word(scan *s) {
    const char *begin = s->at;
    while (!at_end(s) && !strchr(" \t\r\n,[]{}#=\"'", *s->at)) s->at++;
    return s->at > begin || fault(s, "there is no value");
}

/* Any value; of what stands in brackets only the brackets are looked at. */
static bool skip_value(scan *s) {
    char open[DEPTH];
    int depth = 0;
    do {
        skip_between(s, depth);
        const char c = peek(s);
        if (at_end(s)) return fault(s, depth ? "a bracket is not closed" : "there is no value");
        if (c == '[' || c == '{') {
            if (depth == DEPTH) return fault(s, "too many brackets");
            open[depth++] = c, s->at++;
        } else if (depth && (c == ']' || c == '}')) {
            if (open[--depth] != (c == ']' ? '[' : '{')) return fault(s, "brackets do not match");
            s->at++;
        } else if (depth && (c == ',' || c == '=')) {
            s->at++;
        } else if (!(c == '"' || c == '\'' ? skip_string(s) : skip_word(s))) {
            return false;
        }
    } while (depth > 0);
    return true;
}

/* One part of a key, bare or quoted, at the end of name. */
static bool scan_part(scan *s, char *name, size_t *used) {
    const char *begin = s->at;
    bool is_quoted = peek(s) == '"' || peek(s) == '\'';
    if (is_quoted) {
        if (!skip_string(s)) return false;
    } else {
        while (is_bare(peek(s))) s->at++;
    }
    if (s->at == begin) return fault(s, "neither a table nor name = value");
    for (const char *c = begin + is_quoted; c < s->at - is_quoted; c++)
        if (*used + 1 < NAME_BYTES) name[(*used)++] = *c == '.' ? '\1' : *c; /* no part's end */
    return true;
}

static bool scan_name(scan *s, char *name) {
    size_t used = 0;
    for (;;) {
        skip_spaces(s);
        if (!scan_part(s, name, &used)) return false;
        skip_spaces(s);
        if (peek(s) != '.') break;
        s->at++;
        if (used + 1 < NAME_BYTES) name[used++] = '.';
    }
    name[used] = 0;
    return true;
}

static bool scan_table(scan *s, item *i) {
    i->is_list = begins_with(s, "[[");
    s->at += i->is_list ? 2 : 1;
    if (!scan_name(s, i->name)) return false;
    if (!begins_with(s, i->is_list ? "]]" : "]")) return fault(s, "a table's name does not end");
    s->at += i->is_list ? 2 : 1;
    return finish_line(s);
}

static bool scan_entry(scan *s, item *i) {
    if (!scan_name(s, i->name)) return false;
    if (peek(s) != '=') return fault(s, "neither a table nor name = value");
    s->at++;
    skip_spaces(s);
    i->value_begin = s->at;
    if (!skip_value(s)) return false;
    i->value_end = s->at;
    return finish_line(s);
}

static kind next_item(scan *s, item *i) {
    *i = (item){.begin = s->at};
    if (at_end(s)) return i->kind = END;
    skip_spaces(s);
    const char c = peek(s);
    bool ok = true;
    if (at_end(s) || c == '#' || c == '\r' || c == '\n')
        i->kind = BLANK, ok = finish_line(s);
    else if (c == '[')
        i->kind = TABLE, ok = scan_table(s, i);
    else
        i->kind = ENTRY, ok = scan_entry(s, i);
    i->end = s->at;
    if (ok) return i->kind;
    i->fault = s->fault;
    return i->kind = BROKEN;
}

static scan begin_scan(const wb_toml *toml) {
    static const char mark[] = "\xEF\xBB\xBF"; /* some editors begin UTF-8 so */
    scan s = {toml->text, toml->text + toml->size_bytes, NULL};
    if (begins_with(&s, mark)) s.at += sizeof mark - 1;
    return s;
}

/* ---- where things are ---- */

/* What the text has of one table and one of its keys. */
typedef struct place {
    bool has_table, has_key;
    const char *table_end; /* behind the table's last entry, or its name */
    item key;
} place;

static place find(const wb_toml *toml, const char *table, const char *key) {
    place p = {.has_table = false};
    bool inside = false;
    item i;
    for (scan s = begin_scan(toml); next_item(&s, &i) != END && i.kind != BROKEN;) {
        if (i.kind == TABLE) inside = strcmp(i.name, table) == 0;
        if (!inside || i.kind == BLANK) continue;
        p.has_table = true;
        p.table_end = i.end;
        if (i.kind == ENTRY && key && strcmp(i.name, key) == 0) p.has_key = true, p.key = i;
    }
    return p;
}

static int line_of(const wb_toml *toml, const char *at) {
    int line = 1;
    for (const char *c = toml->text; c < at; c++) line += *c == '\n';
    return line;
}

static bool broken(wb_toml *toml, const char *at, const char *what) {
    toml->broken_line = line_of(toml, at);
    toml->fault = what;
    return false;
}

/* What TOML allows, or forbids, and edits by lines could not stand. */
static const char *odd_form(const wb_toml *toml, const char *table, const item *i, bool inside) {
    const size_t length = strlen(table);
    if (i->kind == TABLE && strcmp(i->name, table) == 0)
        return i->is_list ? "the table is a list" : NULL;
    if (i->kind != ENTRY) return NULL;
    if (inside)
        return find(toml, table, i->name).key.begin != i->begin ? "the name stands twice" : NULL;
    const bool is_table =
        strncmp(i->name, table, length) == 0 && (i->name[length] == 0 || i->name[length] == '.');
    return is_table ? "the table is not written as a table" : NULL;
}

bool wb_toml_check(wb_toml *toml, const char *table) {
    const char *zero = memchr(toml->text, 0, toml->size_bytes);
    if (zero) return broken(toml, zero, "this is no text");
    bool inside = false, at_root = true;
    int tables = 0;
    item i;
    for (scan s = begin_scan(toml); next_item(&s, &i) != END;) {
        if (i.kind == BROKEN) return broken(toml, s.at, i.fault);
        if (i.kind == TABLE) at_root = false, inside = strcmp(i.name, table) == 0, tables += inside;
        if (tables > 1) return broken(toml, i.begin, "the table stands twice");
        const char *odd = inside || at_root ? odd_form(toml, table, &i, inside) : NULL;
        if (odd) return broken(toml, i.begin, odd);
    }
    return true;
}

bool wb_toml_has_table(const wb_toml *toml, const char *table) {
    return find(toml, table, NULL).has_table;
}

/* ---- values ---- */

/* The letter behind a backslash; 0: not of those that are read here. */
static char escaped(char c) {
    static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
    const char *at = c ? strchr(from, c) : NULL;
    return at ? to[at - from] : '\0';
}

static bool copy_string(const char *begin, const char *end, char *text, size_t size_bytes) {
    const bool is_basic = *begin == '"';
    bool ok = true;
    size_t used = 0;
    for (const char *c = begin + 1; c < end - 1 && used + 1 < size_bytes; c++) {
        const bool is_escape = is_basic && *c == '\\';
        if (is_escape) ok = ok && escaped(*++c);
        text[used++] = is_escape ? escaped(*c) : *c;
    }
    text[used] = 0;
    return ok;
}

wb_toml_kind wb_toml_get(const wb_toml *toml, const char *table, const char *key, char *text,
                         size_t size_bytes) {
    const place p = find(toml, table, key);
    text[0] = 0;
    if (!p.has_key) return WB_TOML_ABSENT;
    const char *begin = p.key.value_begin, *end = p.key.value_end;
    const size_t length = (size_t)(end - begin);
    const bool is_long =
        length >= 6 && (memcmp(begin, "\"\"\"", 3) == 0 || memcmp(begin, "'''", 3) == 0);
    if ((*begin == '"' || *begin == '\'') && !is_long) {
        return copy_string(begin, end, text, size_bytes) ? WB_TOML_STRING : WB_TOML_OTHER;
    }
    (void)snprintf(text, size_bytes, "%.*s", (int)length, begin);
    const bool is_bool = strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
    return is_bool ? WB_TOML_BOOL : WB_TOML_OTHER;
}

/* ---- edits ---- */

/* Puts text in the place of begin .. end. */
static bool replace(wb_toml *toml, const char *begin, const char *end, const char *text) {
    const size_t before = (size_t)(begin - toml->text), length = strlen(text);
    const size_t after = toml->size_bytes - (size_t)(end - toml->text);
    char *edited = wb_alloc(before + length + after + 1);
    if (!edited) return false;
    memcpy(edited, toml->text, before);
    memcpy(edited + before, text, length);
    memcpy(edited + before + length, end, after);
    wb_release(toml->text);
    toml->text = edited;
    toml->size_bytes = before + length + after;
    return true;
}

/* As the file has it. */
static const char *newline_of(const wb_toml *toml) {
    const char *first = memchr(toml->text, '\n', toml->size_bytes);
    return first && first > toml->text && first[-1] == '\r' ? "\r\n" : "\n";
}

static const char *end_of(const wb_toml *toml) { return toml->text + toml->size_bytes; }

static bool ends_line(const wb_toml *toml, const char *at) {
    return at == toml->text || at[-1] == '\n';
}

/* A quoted string, or the bool's word. */
static void write_value(const char *value, bool is_bool, char *text, size_t size_bytes) {
    size_t used = 0;
    const char *quote = is_bool ? "" : "\"";
    used += (size_t)snprintf(text, size_bytes, "%s", quote);
    for (const char *c = value; *c && used + 4 < size_bytes; c++) {
        if (*c == '"' || *c == '\\') text[used++] = '\\';
        text[used++] = *c;
    }
    (void)snprintf(text + used, size_bytes - used, "%s", quote);
}

bool wb_toml_add_table(wb_toml *toml, const char *table) {
    if (wb_toml_has_table(toml, table)) return true;
    const char *newline = newline_of(toml), *end = end_of(toml);
    char text[NAME_BYTES + 16];
    (void)snprintf(text, sizeof text, "%s%s[%s]%s", ends_line(toml, end) ? "" : newline,
                   toml->size_bytes ? newline : "", table, newline);
    return replace(toml, end, end, text);
}

bool wb_toml_set(wb_toml *toml, const char *table, const char *key, const char *value,
                 bool is_bool) {
    char text[1024], line[1200];
    write_value(value, is_bool, text, sizeof text);
    place p = find(toml, table, key);
    if (p.has_key) return replace(toml, p.key.value_begin, p.key.value_end, text);
    if (!wb_toml_add_table(toml, table)) return false;
    p = find(toml, table, key);
    const char *newline = newline_of(toml);
    (void)snprintf(line, sizeof line, "%s%s = %s%s", ends_line(toml, p.table_end) ? "" : newline,
                   key, text, newline);
    return replace(toml, p.table_end, p.table_end, line);
}

bool wb_toml_remove(wb_toml *toml, const char *table, const char *key) {
    const place p = find(toml, table, key);
    return !p.has_key || replace(toml, p.key.begin, p.key.end, "");
}
