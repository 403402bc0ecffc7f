/* What a format cannot hold is taken out of a tree, so that one such value does not block the
 * rest. */
#include <string.h>

#include "base/error.h"
#include "formats/flat.h"
#include "formats/format.h"
#include "formats/julia.h"

enum { LOOKED_AT = 1, HAS_ARRAYS = 2, DONE = 4 }; /* what is known of a record: its number */

typedef struct walk {
    const wb_format *format;
    wb_arena *arena;
    wb_left_out *out;
    int structs; /* around the current value that became lists */
} walk;

static void note(const walk *w, const wb_branch *p, const char *what) {
    enum { LEAST_ROOM = 160 };
    char *text = w->out->text;
    const size_t used = strlen(text), size_bytes = sizeof w->out->text;
    if (w->out->count++ && used + LEAST_ROOM > size_bytes) return;
    char path[256];
    wb_branch_text(p, path, sizeof path);
    const char *why = wb_julia_is_device_array(what) ? ", saved on a GPU without cpu(model)" : "";
    (void)snprintf(text + used, size_bytes - used, "%s%.60s (%.60s%s)", used ? ", " : "", path,
                   what, why);
}

/* Recursive, as leave_out: no tree is deeper than WB_RECORD_DEPTH. */
static bool look_for_arrays(wb_record *r) {
    if (r->number) return r->number & HAS_ARRAYS;
    bool has = r->kind == WB_RECORD_ARRAY;
    r->number = LOOKED_AT;
    for (int64_t i = 0; i < r->count; i++) has = look_for_arrays(r->children[i]) || has;
    r->number |= has ? HAS_ARRAYS : 0;
    return has;
}

static bool leave_out(walk *w, wb_record *r, const wb_branch *outer);

/* A struct that is refused for its type becomes the list of its fields, so that its arrays stay;
 * the outermost one alone is noted. */
static bool take_fields(walk *w, wb_record *child, const wb_branch *p) {
    char what[64];
    (void)snprintf(what, sizeof what, "%.40s, but its fields stay", child->type);
    if (!w->structs) note(w, p, what);
    child->kind = WB_RECORD_LIST, child->names = NULL;
    w->structs++;
    const bool is_good = leave_out(w, child, p);
    w->structs--;
    return is_good;
}

/* Whether a child stays. Leaving out a `nothing` is not a loss. */
static bool stays(walk *w, wb_record *child, const wb_branch *p, bool *is_good) {
    const char *what = w->format->refuses(child);
    if (what && child->kind == WB_RECORD_STRUCT && (child->number & HAS_ARRAYS)) {
        *is_good = *is_good && take_fields(w, child, p);
        return true;
    }
    if (what && child->kind != WB_RECORD_NULL) note(w, p, what);
    if (what || !wb_record_is_container(child)) return !what;
    *is_good = *is_good && leave_out(w, child, p);
    return w->format->has_values || child->count > 0;
}

/* Names for all children, so that some may go. */
static bool give_names(const walk *w, wb_record *r) {
    r->names = wb_arena_list(w->arena, r->count + 1, sizeof *r->names);
    for (int64_t i = 0; r->names && i < r->count; i++) {
        char number[24];
        const int length = snprintf(number, sizeof number, "%lld", (long long)i + 1);
        if (!(r->names[i] = wb_arena_text(w->arena, number, (size_t)length))) return false;
    }
    r->kind = WB_RECORD_MAP;
    return r->names != NULL;
}

/* Without the children that are NULL. */
static bool close_gaps(const walk *w, wb_record *r) {
    int64_t count = 0;
    if (!r->names && !give_names(w, r)) return false;
    for (int64_t i = 0; i < r->count; i++) {
        if (!r->children[i]) continue;
        r->names[count] = r->names[i];
        r->children[count++] = r->children[i];
    }
    r->count = count;
    return true;
}

/* A shared record was handled already when it is met again. */
static bool leave_out(walk *w, wb_record *r, const wb_branch *outer) {
    bool is_good = true, has_gaps = false;
    if (r->number & DONE) return true;
    r->number |= DONE;
    for (int64_t i = 0; i < r->count; i++) {
        const wb_branch p = {outer, wb_record_name(r, i), i, 0};
        if (stays(w, r->children[i], &p, &is_good)) continue;
        const bool is_gap = r->names || !w->format->has_values;
        r->children[i] = is_gap ? NULL : wb_record_new(w->arena, WB_RECORD_NULL);
        has_gaps = has_gaps || is_gap;
        if (!is_gap && !r->children[i]) return false;
    }
    return is_good && (!has_gaps || close_gaps(w, r));
}

bool wb_leave_out(const wb_format *format, wb_arena *arena, wb_record *root, const char *key,
                  wb_left_out *left_out) {
    walk w = {.format = format, .arena = arena, .out = left_out};
    const wb_branch p = {.name = key};
    if (!wb_record_is_container(root)) return true;
    (void)look_for_arrays(root);
    const bool is_good = leave_out(&w, root, *key ? &p : NULL);
    wb_record_forget_numbers(root);
    return is_good;
}

void wb_warn_left_out(const wb_left_out *out, const wb_format *format, const char *path) {
    if (out->count)
        wb_log_line(WB_LOG_WARN, "%s: %s cannot hold %lld of the values, which were left out: %s%s",
                    path, format->name, (long long)out->count, out->text,
                    strlen(out->text) + 160 > sizeof out->text ? ", ..." : "");
}
