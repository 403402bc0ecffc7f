/* Compares names without case, finds the name that was probably meant, and keeps lists of names. A
 * list that was handed out stays valid for ever: a change makes a new list. */
#include "device/names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

enum { LONGEST = 63 };

bool wb_same_name(const char *a, const char *b) { return strcasecmp(a, b) == 0; }

static int least(int a, int b) { return a < b ? a : b; }

/* Letters to change, insert, remove or swap with a neighbour until a is b, in any case (Damerau
 * 1964, restricted). */
static int distance(const char *a, const char *b) {
    int rows[3][LONGEST + 1];
    int *before = rows[0], *last = rows[1], *row = rows[2];
    const int a_length = (int)strlen(a), b_length = (int)strlen(b);
    for (int j = 0; j <= b_length; j++) last[j] = j;
    for (int i = 1; i <= a_length; i++) {
        row[0] = i;
        for (int j = 1; j <= b_length; j++) {
            const int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (x != y));
            const bool is_swap = i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                                 y == tolower((unsigned char)a[i - 2]);
            if (is_swap) row[j] = least(row[j], before[j - 2] + 1);
        }
        int *const oldest = before;
        before = last, last = row, row = oldest;
    }
    return last[b_length];
}

const char *wb_nearest_name(const char *name, const char *const *names) {
    const size_t length = strlen(name);
    if (length == 0 || length > LONGEST) return NULL;
    const char *nearest = NULL;
    int smallest = (int)length / 2 + 1; /* half the letters are wrong: another word */
    for (; *names; names++) {
        if (strlen(*names) > LONGEST) continue;
        const bool begins_so = length >= 2 && strncasecmp(name, *names, length) == 0;
        const int d = begins_so ? 0 : distance(name, *names);
        if (d < smallest) smallest = d, nearest = *names;
    }
    return nearest;
}

void wb_join_names(char *text, size_t size_bytes, const char *const *names) {
    size_t used = 0;
    text[0] = 0;
    for (const char *const *name = names; *name && used < size_bytes; name++)
        used += (size_t)snprintf(text + used, size_bytes - used, "%s%s", name == names ? "" : ", ",
                                 *name);
}

/* ---- lists ---- */

struct wb_names {
    wb_names *older;
    int count;
    const char *texts[];
};

static const char *const no_texts[] = {NULL};

const char *const *wb_names_texts(const wb_names *names) { return names ? names->texts : no_texts; }

static wb_names *kept; /* each text is kept once, however often lists change */

static wb_names *names_new(wb_names *older, int count) {
    wb_names *names = wb_alloc(sizeof *names + (size_t)(count + 1) * sizeof *names->texts);
    if (!names) return NULL;
    names->older = older;
    names->count = count;
    return names;
}

static const char *find(const wb_names *names, const char *text) {
    for (const char *const *t = wb_names_texts(names); *t; t++)
        if (strcmp(*t, text) == 0) return *t;
    return NULL;
}

static void append(wb_names **names, const char *text) {
    const int count = *names ? (*names)->count : 0;
    wb_names *longer = names_new(*names, count + 1);
    if (!longer) return;
    for (int i = 0; i < count; i++) longer->texts[i] = (*names)->texts[i];
    longer->texts[count] = text;
    *names = longer;
}

static const char *keep(const char *text) {
    const char *known = find(kept, text);
    if (known) return known;
    const char *copy = wb_copy_text(text);
    if (copy) append(&kept, copy);
    return copy;
}

static bool is_same(const wb_names *names, int count, const char *const *texts) {
    if ((names ? names->count : 0) != count) return false;
    for (int i = 0; i < count; i++)
        if (strcmp(names->texts[i], texts[i]) != 0) return false;
    return true;
}

void wb_names_set(wb_names **names, int count, const char *const *texts) {
    if (is_same(*names, count, texts)) return;
    wb_names *fresh = names_new(*names, count);
    if (!fresh) return;
    for (int i = 0; i < count; i++) {
        fresh->texts[i] = keep(texts[i]);
        if (fresh->texts[i]) continue;
        wb_release(fresh); /* the old list stays */
        return;
    }
    *names = fresh;
}

void wb_names_add(wb_names **names, const char *text) {
    if (find(*names, text)) return;
    const char *copy = keep(text);
    if (copy) append(names, copy);
}
