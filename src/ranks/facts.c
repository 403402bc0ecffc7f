/* A fact is a line: name, tab, value. Ranks exchange their lists only after they have found a
 * difference; then the first facts that differ are printed, with the ranks that have each value. */
#include "ranks/facts.h"

#include <stdarg.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "ranks/ranks.h"
#include "ranks/told.h"
#include "ranks/transport.h"

enum { MOST_FACTS = 4, MOST_RANKS = 4, NAME_BYTES = 320, VALUE_BYTES = 160 };

/* A line: the name, a tab, the value. */
static void put_line_of(wb_text *facts, const char *text, char end) {
    for (; *text; text++) wb_text_byte(facts, *text == '\t' || *text == '\n' ? ' ' : *text);
    wb_text_byte(facts, end);
}

void wb_fact_add(wb_text *facts, const char *name, const char *value) {
    put_line_of(facts, name, '\t');
    put_line_of(facts, value, '\n');
}

/* ---- where lists differ ---- */

typedef struct writing {
    char *text;
    size_t size, used;
} writing;

__attribute__((format(printf, 2, 3))) static void put(writing *m, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(m->text + m->used, m->size - m->used, format, arguments);
    va_end(arguments);
    m->used += written > 0 ? (size_t)written : 0;
    if (m->used >= m->size) m->used = m->size - 1;
}

/* The name of the line with its tab; 0: the list ends here. */
static size_t name_at(const char *line) {
    const char *tab = strchr(line, '\t');
    return tab && strchr(tab, '\n') ? (size_t)(tab + 1 - line) : 0;
}

static const char *line_after(const char *line) { return strchr(line, '\n') + 1; }

/* What a list says of a name, with its tab; NULL: nothing. */
static const char *value_of(const char *list, const char *name, size_t length) {
    for (const char *line = list; name_at(line); line = line_after(line))
        if (strncmp(line, name, length) == 0) return line + length;
    return NULL;
}

static bool is_same(const char *a, const char *b) {
    if (!a || !b) return a == b;
    const size_t length = (size_t)(strchr(a, '\n') - a);
    return strncmp(a, b, length + 1) == 0;
}

/* "on rank 1", "on ranks 1, 2": those from `first` on with its value. */
static void put_ranks(writing *m, int ranks, const char *const *values, int first) {
    int count = 0;
    for (int r = first; r < ranks; r++) count += is_same(values[r], values[first]);
    put(m, " on %s", count == 1 ? "rank" : "ranks");
    for (int r = first, told = 0; r < ranks; r++) {
        if (!is_same(values[r], values[first])) continue;
        if (told == MOST_RANKS) {
            put(m, " and %d more", count - told);
            return;
        }
        put(m, "%s%d", told++ ? ", " : " ", r);
    }
}

static bool is_first_with_it(const char *const *values, int rank) {
    for (int r = 0; r < rank; r++)
        if (is_same(values[r], values[rank])) return false;
    return true;
}

static void put_fact(writing *m, int ranks, const char *const *values, const char *name) {
    int told = 0;
    put(m, "%s is", name);
    for (int r = 0; r < ranks && told < MOST_RANKS; r++) {
        if (!is_first_with_it(values, r)) continue;
        const char *value = values[r] ? values[r] : "missing\n";
        char text[VALUE_BYTES];
        wb_copy_told(text, sizeof text, value, (size_t)(strchr(value, '\n') - value));
        put(m, "%s %s", told++ ? "," : "", text);
        put_ranks(m, ranks, values, r);
    }
}

/* Writes the fact if ranks differ in it, and no earlier list has it. True: it was written. */
static bool tell_fact(writing *m, int ranks, const char *const *lists, int own, const char *line,
                      int *told) {
    const char *values[WB_MOST_RANKS];
    const size_t length = name_at(line);
    bool is_different = false;
    for (int r = 0; r < ranks; r++) {
        values[r] = value_of(lists[r], line, length);
        if (r < own && values[r]) return false;
        is_different = is_different || !is_same(values[0], values[r]);
    }
    if (!is_different || (*told)++ >= MOST_FACTS) return is_different;
    char name[NAME_BYTES];
    wb_copy_told(name, sizeof name, line, length - 1);
    put(m, "%s", *told > 1 ? "; " : "");
    put_fact(m, ranks, values, name);
    return true;
}

void wb_facts_tell(const char *title, int ranks, const char *const *lists, char *text,
                   size_t size) {
    writing m = {text, size, 0};
    int told = 0;
    put(&m, "%s, but ", title);
    for (int r = 0; r < ranks; r++)
        for (const char *line = lists[r]; name_at(line); line = line_after(line))
            (void)tell_fact(&m, ranks, lists, r, line, &told);
    if (told > MOST_FACTS) put(&m, "; and %d more", told - MOST_FACTS);
    if (told == 0) text[0] = 0;
}

/* ---- the lists of all ranks ---- */

/* The texts of all, one after another, `longest` bytes each; they need not end. */
static wb_status gather(const char *own, size_t bytes, size_t longest, char *to) {
    const void *all[WB_MOST_RANKS];
    const size_t most = wb_ranks_piece_bytes();
    char *padded = wb_alloc(longest + 1);
    wb_status status = padded ? WB_OK : WB_ERROR_MEMORY;
    if (status == WB_OK) memcpy(padded, own, bytes);
    for (size_t at = 0; status == WB_OK && at < longest; at += most) {
        const size_t n = longest - at < most ? longest - at : most;
        status = wb_ranks_exchange(padded + at, n, all);
        for (int r = 0; status == WB_OK && r < wb_ranks_count(); r++)
            memcpy(to + (size_t)r * (longest + 1) + at, all[r], n);
    }
    wb_release(padded);
    return status;
}

/* A byte more than the longest of all, which another rank may have sent wrong. */
static wb_status find_longest(size_t own, size_t *longest) {
    enum { MOST_BYTES = 16 << 20 };
    const void *all[WB_MOST_RANKS];
    int64_t bytes = (int64_t)own;
    const wb_status status = wb_ranks_exchange(&bytes, sizeof bytes, all);
    *longest = 0;
    for (int r = 0; status == WB_OK && r < wb_ranks_count(); r++) {
        memcpy(&bytes, all[r], sizeof bytes);
        if (bytes < 0 || bytes > MOST_BYTES)
            return wb_fail(WB_ERROR_LOST,
                           "distributed: rank %d sent an invalid message: its facts have %lld "
                           "bytes, expected 0 to %d",
                           r, (long long)bytes, MOST_BYTES);
        if ((size_t)bytes > *longest) *longest = (size_t)bytes;
    }
    return status;
}

static wb_status exchange(const char *own, size_t bytes, char **all, const char **lists) {
    size_t longest;
    wb_status status = find_longest(bytes, &longest);
    if (status != WB_OK) return status;
    *all = wb_alloc((longest + 1) * (size_t)wb_ranks_count()); /* zeros */
    status = *all ? gather(own, bytes, longest, *all) : WB_ERROR_MEMORY;
    for (int r = 0; status == WB_OK && r < wb_ranks_count(); r++)
        lists[r] = *all + (size_t)r * (longest + 1);
    return status;
}

wb_status wb_facts_exchange(const char *title, const wb_text *facts, char *message, size_t size) {
    const char *lists[WB_MOST_RANKS];
    char *all = NULL;
    message[0] = 0;
    const wb_status status = exchange(facts->data ? facts->data : "", facts->size, &all, lists);
    if (status == WB_OK) wb_facts_tell(title, wb_ranks_count(), lists, message, size);
    wb_release(all);
    return status;
}
