/* Reads a text of TOML entry by entry, noting where each begins and ends. A change replaces the
 * bytes of one value; all other bytes stay. */
#include "device/toml.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* ---- the scan: one entry after the other, each a line or several ---- */

/* A table's name, or a key and its value. */
typedef struct entry {
    const char *begin, *end; /* with its newline */
    const char *name, *name_end;
    const char *value, *value_end;
    bool is_table, is_blank;
} entry;

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static const char *skip_spaces(const char *at, const char *end) {
    while (at < end && is_space(*at)) at++;
    return at;
}

/* The place after a string in one or three quotes of either kind; NULL: it does not end. */
static const char *skip_string(const char *at, const char *end) {
    const char quote = *at;
    const bool is_long = end - at >= 3 && at[1] == quote && at[2] == quote;
    for (at += is_long ? 3 : 1; at < end && (is_long || *at != '\n'); at++) {
        if (*at == '\\' && quote == '"' && at + 1 < end) {
            at++;
        } else if (*at == quote && !is_long) {
            return at + 1;
        } else if (*at == quote && end - at >= 3 && at[1] == quote && at[2] == quote) {
            while (at < end && *at == quote) at++;
            return at;
        }
    }
    return NULL;
}

/* The place after the newline that ends the entry that begins here, outside of strings and
 * brackets; *last is where the entry itself ends. NULL: it does not end. */
static const char *skip_entry(const char *at, const char *end, const char **last) {
    int depth = 0;
    *last = at;
    while (at < end && (depth > 0 || *at != '\n')) {
        const char c = *at;
        if (c == '#') {
            while (at < end && *at != '\n') at++;
            continue;
        }
        depth += (c == '[' || c == '{') - (c == ']' || c == '}');
        at = c == '"' || c == '\'' ? skip_string(at, end) : at + 1;
        if (!at) return NULL;
        if (!is_space(c) && c != '\n') *last = at;
    }
    return depth > 0 ? NULL : at < end ? at + 1 : at;
}

/* Without spaces and quotes around it. */
static void set_name(entry *e, const char *begin, const char *end) {
    begin = skip_spaces(begin, end);
    while (end > begin && is_space(end[-1])) end--;
    const bool is_quoted = end - begin >= 2 && (*begin == '"' || *begin == '\'');
    e->name = begin + is_quoted, e->name_end = end - is_quoted;
}

/* Reads the entry that begins here. Returns NULL, or what is wrong with it. */
static const char *read_entry(const char *at, const char *end, entry *e) {
    const char *last, *begin = skip_spaces(at, end);
    *e = (entry){.begin = at, .end = skip_entry(begin, end, &last)};
    if (!e->end) return "a string or a bracket is not closed";
    e->is_blank = last == begin;
    e->is_table = !e->is_blank && *begin == '[';
    if (e->is_blank) return NULL;
    if (e->is_table && last[-1] != ']') return "unexpected text after the table's name";
    if (e->is_table) return set_name(e, begin + 1, last - 1), NULL;
    const bool is_quoted = *begin == '"' || *begin == '\'';
    const char *from = is_quoted ? skip_string(begin, last) : begin;
    const char *equals = from ? memchr(from, '=', (size_t)(last - from)) : NULL;
    if (!equals || equals == begin) return "a table or name = value is expected";
    set_name(e, begin, equals);
    e->value = skip_spaces(equals + 1, last), e->value_end = last;
    return e->value < last ? NULL : "a value is expected";
}

static const char *first_of(const wb_toml *toml) {
    static const char mark[] = "\xEF\xBB\xBF"; /* some editors begin UTF-8 so */
    const size_t length = sizeof mark - 1;
    const bool has_mark = toml->size_bytes >= length && memcmp(toml->text, mark, length) == 0;
    return toml->text + (has_mark ? length : 0);
}

static const char *end_of(const wb_toml *toml) { return toml->text + toml->size_bytes; }

static bool broken(wb_toml *toml, const char *at, const char *what) {
    toml->broken_line = 1;
    for (const char *c = toml->text; c < at; c++) toml->broken_line += *c == '\n';
    toml->fault = what;
    return false;
}

bool wb_toml_check(wb_toml *toml) {
    const char *zero = memchr(toml->text, 0, toml->size_bytes);
    if (zero) return broken(toml, zero, "this is not a text");
    entry e;
    for (const char *at = first_of(toml); at < end_of(toml); at = e.end) {
        const char *fault = read_entry(at, end_of(toml), &e);
        if (fault) return broken(toml, at, fault);
    }
    return true;
}

/* ---- where things are ---- */

/* Where the text has one table and one of its keys. */
typedef struct found {
    bool has_table, has_key;
    const char *table_end; /* after the table's last entry, or its name */
    entry key;
} found;

static bool is_called(const entry *e, const char *name) {
    const size_t length = (size_t)(e->name_end - e->name);
    return strlen(name) == length && memcmp(e->name, name, length) == 0;
}

static found find(const wb_toml *toml, const char *table, const char *key) {
    found p = {.has_table = false};
    bool inside = false;
    entry e;
    for (const char *at = first_of(toml); at < end_of(toml); at = e.end) {
        if (read_entry(at, end_of(toml), &e)) break;
        if (e.is_table) inside = is_called(&e, table);
        if (!inside || e.is_blank) continue;
        p.has_table = true;
        p.table_end = e.end;
        if (!e.is_table && key && is_called(&e, key)) p.has_key = true, p.key = e;
    }
    return p;
}

bool wb_toml_has_table(const wb_toml *toml, const char *table) {
    return find(toml, table, NULL).has_table;
}

/* ---- values ---- */

/* What the letter after a backslash stands for; 0: it is not one of those that are read here. */
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
    const found p = find(toml, table, key);
    text[0] = 0;
    if (!p.has_key) return WB_TOML_ABSENT;
    const char *begin = p.key.value, *end = p.key.value_end;
    const bool is_quoted = *begin == '"' || *begin == '\'';
    const bool is_long = end - begin >= 6 && begin[1] == *begin && begin[2] == *begin;
    if (is_quoted && !is_long && skip_string(begin, end) == end)
        return copy_string(begin, end, text, size_bytes) ? WB_TOML_STRING : WB_TOML_OTHER;
    (void)snprintf(text, size_bytes, "%.*s", (int)(end - begin), begin);
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
    char text[80];
    (void)snprintf(text, sizeof text, "%s%s[%s]%s", ends_line(toml, end) ? "" : newline,
                   toml->size_bytes ? newline : "", table, newline);
    return replace(toml, end, end, text);
}

bool wb_toml_set(wb_toml *toml, const char *table, const char *key, const char *value,
                 bool is_bool) {
    char text[1024], line[1200];
    write_value(value, is_bool, text, sizeof text);
    found p = find(toml, table, key);
    if (p.has_key) return replace(toml, p.key.value, p.key.value_end, text);
    if (!wb_toml_add_table(toml, table)) return false;
    p = find(toml, table, key);
    const char *newline = newline_of(toml);
    (void)snprintf(line, sizeof line, "%s%s = %s%s", ends_line(toml, p.table_end) ? "" : newline,
                   key, text, newline);
    return replace(toml, p.table_end, p.table_end, line);
}

bool wb_toml_remove(wb_toml *toml, const char *table, const char *key) {
    const found p = find(toml, table, key);
    return !p.has_key || replace(toml, p.key.begin, p.key.end, "");
}
