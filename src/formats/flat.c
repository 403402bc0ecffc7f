/* A tree becomes a list by a walk with a stack of its own. A list becomes a tree by sorting the
 * paths and grouping them by their first name, numbers by value: layers.2 comes before layers.10. A
 * record in several places is listed once, and the other places refer to it. */
#include "formats/flat.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"

bool wb_flat_add(wb_flat *flat, wb_flat_entry entry) {
    if (!WB_GROW(flat->entries, flat->count, flat->capacity)) return false;
    flat->entries[flat->count++] = entry;
    return true;
}

void wb_flat_release(wb_flat *flat) {
    wb_release(flat->entries);
    wb_arena_release(&flat->arena);
    *flat = (wb_flat){.entries = NULL};
}

bool wb_record_is_container(const wb_record *r) {
    return r->kind == WB_RECORD_LIST || r->kind == WB_RECORD_MAP || r->kind == WB_RECORD_STRUCT ||
           (r->kind == WB_RECORD_OPAQUE && !r->data);
}

/* ---- names ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Compares two runs of digits by value, then by their leading zeros; moves both pointers past the
 * run. */
static int compare_numbers(const char **a, const char **b) {
    size_t zeros[2] = {0, 0}, digits[2] = {0, 0};
    const char *at[2] = {*a, *b};
    for (int i = 0; i < 2; i++) {
        while (at[i][zeros[i]] == '0') zeros[i]++;
        while (is_digit(at[i][zeros[i] + digits[i]])) digits[i]++;
    }
    *a += zeros[0] + digits[0], *b += zeros[1] + digits[1];
    if (digits[0] != digits[1]) return digits[0] < digits[1] ? -1 : 1;
    const int order = memcmp(at[0] + zeros[0], at[1] + zeros[1], digits[0]);
    return order ? order : (zeros[0] > zeros[1]) - (zeros[0] < zeros[1]);
}

/* The order of characters: the end of the text, the dot, all others. */
static int rank(char c) { return c == 0 ? 0 : c == '.' ? 1 : 2 + (unsigned char)c; }

int wb_path_compare(const char *a, const char *b) {
    for (;;) {
        if (is_digit(*a) && is_digit(*b)) {
            const int order = compare_numbers(&a, &b);
            if (order) return order;
        } else if (*a != *b || !*a) {
            return rank(*a) - rank(*b);
        } else {
            a++, b++;
        }
    }
}

/* What is wrong with a name for people, terminals and other readers; NULL: nothing. */
static const char *fault_of_name(const char *name) {
    if (wb_utf8_fault(name, strlen(name)) >= 0) return "is not UTF-8";
    for (; *name; name++)
        if ((unsigned char)*name < 0x20 || *name == 0x7F)
            return "must not have a control "
                   "character";
    return NULL;
}

/* ---- a tree as a list ---- */

typedef struct walk {
    wb_flat *flat;
    const char *file;
    int depth;
    struct {
        int64_t entry, next;
    } stack[WB_RECORD_DEPTH];
} walk;

/* "PARENT.NAME", or just the name below the root; *parent_bytes is where the name begins. NULL on
 * failure. */
static const char *join(walk *w, const char *parent, const char *name, size_t *parent_bytes) {
    const size_t before = *parent ? strlen(parent) + 1 : 0, length = strlen(name);
    char *path = wb_arena_take(&w->flat->arena, before + length + 1);
    if (!path) return NULL;
    if (before) {
        memcpy(path, parent, before - 1);
        path[before - 1] = '.';
    }
    memcpy(path + before, name, length);
    *parent_bytes = before;
    return path;
}

static wb_status enter(walk *w, wb_flat_entry entry) {
    const int64_t index = w->flat->count;
    if (!wb_flat_add(w->flat, entry)) return WB_ERROR_MEMORY;
    if (entry.same_as) return WB_OK;
    entry.record->number = index + 1;
    if (!wb_record_is_container(entry.record)) return WB_OK;
    if (w->depth == WB_RECORD_DEPTH)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "%s: at most %d levels of values may be nested, as in "
                       "\"%.80s...\"",
                       w->file, WB_RECORD_DEPTH, entry.path);
    w->stack[w->depth].entry = index;
    w->stack[w->depth++].next = 0;
    return WB_OK;
}

static bool is_open(const walk *w, int64_t entry) {
    for (int i = 0; i < w->depth; i++)
        if (w->stack[i].entry == entry) return true;
    return false;
}

/* The entry of a child; one that was reached before refers to its first place. */
static wb_status visit(walk *w, wb_record *child, const char *parent, const char *name) {
    wb_flat_entry entry = {.record = child};
    const char *fault = *name ? fault_of_name(name) : "is empty";
    if (fault)
        return wb_fail(WB_ERROR_ARGUMENT, "%s: a name in \"%.80s\" %s", w->file, parent, fault);
    entry.path = join(w, parent, name, &entry.parent_bytes);
    if (!entry.path) return WB_ERROR_MEMORY;
    if (!child) return wb_fail(WB_ERROR_ARGUMENT, "%s: \"%.200s\" is missing", w->file, entry.path);
    if (child->number) {
        if (is_open(w, child->number - 1))
            return wb_fail(WB_ERROR_ARGUMENT, "%s: \"%.200s\" contains itself", w->file,
                           entry.path);
        entry.same_as = w->flat->entries[child->number - 1].path;
    }
    return enter(w, entry);
}

static wb_status walk_on(walk *w) {
    const int top = w->depth - 1;
    const wb_flat_entry entry = w->flat->entries[w->stack[top].entry];
    const int64_t i = w->stack[top].next++;
    if (i >= entry.record->count) {
        w->depth--;
        return WB_OK;
    }
    char number[24];
    (void)snprintf(number, sizeof number, "%lld", (long long)i + 1);
    const char *name = wb_record_name(entry.record, i);
    return visit(w, entry.record->children[i], entry.path, name ? name : number);
}

static int by_path(const void *a, const void *b) {
    const wb_flat_entry *left = a, *right = b;
    return wb_path_compare(left->path, right->path);
}

static int by_place(const void *a, const void *b) {
    const wb_flat_entry *left = a, *right = b;
    return (left->offset > right->offset) - (left->offset < right->offset);
}

/* A name with dots must not look like the path of a part of a sibling. */
static wb_status check_dots(wb_flat *flat, const wb_flat_entry *entry, const char *file) {
    if (!strchr(entry->path + entry->parent_bytes, '.')) return WB_OK;
    char *part = wb_arena_text(&flat->arena, entry->path, strlen(entry->path));
    if (!part) return WB_ERROR_MEMORY;
    for (char *dot; (dot = strrchr(part + entry->parent_bytes, '.'));) {
        *dot = 0;
        const wb_flat_entry key = {.path = part};
        if (bsearch(&key, flat->entries, (size_t)flat->count, sizeof key, by_path))
            return wb_fail(WB_ERROR_ARGUMENT,
                           "%s: the name \"%.200s\" would be read as a part of \"%.200s\"", file,
                           entry->path + entry->parent_bytes, part);
    }
    return WB_OK;
}

/* Sorts, checks, and sorts back: offset keeps the place of each entry. */
static wb_status check_paths(wb_flat *flat, const char *file) {
    wb_status status = WB_OK;
    for (int64_t i = 0; i < flat->count; i++) flat->entries[i].offset = i;
    qsort(flat->entries, (size_t)flat->count, sizeof *flat->entries, by_path);
    for (int64_t i = 0; i < flat->count && status == WB_OK; i++) {
        const wb_flat_entry *entry = &flat->entries[i];
        if (i && strcmp(entry->path, entry[-1].path) == 0)
            status = wb_fail(WB_ERROR_ARGUMENT,
                             "%s: two values cannot have one name, but both "
                             "would be \"%.200s\"",
                             file, entry->path);
        else
            status = check_dots(flat, entry, file);
    }
    qsort(flat->entries, (size_t)flat->count, sizeof *flat->entries, by_place);
    return status;
}

wb_status wb_flat_make(wb_flat *flat, const wb_record *root, const char *file) {
    union {
        const wb_record *from;
        wb_record *to; /* only its number, which is for walks */
    } start = {.from = root};
    if (!wb_record_is_container(root))
        return wb_fail(WB_ERROR_ARGUMENT,
                       "%s: this format holds values by name, but the value has none; .npy takes "
                       "one array without a name",
                       file);
    walk w = {.flat = flat, .file = file};
    wb_status status = enter(&w, (wb_flat_entry){.path = "", .record = start.to});
    while (status == WB_OK && w.depth) status = walk_on(&w);
    for (int64_t i = 0; i < flat->count; i++) flat->entries[i].record->number = 0;
    return status == WB_OK ? check_paths(flat, file) : status;
}

/* ---- a list as a tree ---- */

/* A container whose children are entries low .. high - 1, with prefix bytes of their paths in
 * common. */
typedef struct job {
    wb_record *record;
    int64_t low, high;
    size_t prefix;
    int depth;
} job;

typedef struct nest {
    wb_file *file;
    wb_flat *flat;
    job *jobs;
    int64_t count, capacity, next;
} nest;

/* Entries with the same next component. */
typedef struct group {
    int64_t end;
    size_t length; /* of the component */
    bool is_value; /* the first one ends with the component */
} group;

static size_t component_length(const char *at) { return strcspn(at, "."); }

static group group_at(const nest *n, const job *j, int64_t i) {
    const wb_flat_entry *entries = n->flat->entries;
    const char *first = entries[i].path + j->prefix;
    group g = {.end = i + 1, .length = component_length(first)};
    while (g.end < j->high) {
        const char *other = entries[g.end].path + j->prefix;
        if (component_length(other) != g.length || memcmp(first, other, g.length) != 0) break;
        g.end++;
    }
    g.is_value = !first[g.length];
    return g;
}

static bool add_job(nest *n, job j) {
    if (!WB_GROW(n->jobs, n->count, n->capacity)) return false;
    n->jobs[n->count++] = j;
    return true;
}

static bool put(nest *n, wb_record *parent, wb_record *child, const char *name, size_t length) {
    char *key = wb_arena_text(&n->file->arena, name, length);
    if (!key) return false;
    parent->names[parent->count] = key;
    parent->children[parent->count++] = child;
    if (!child->name) child->name = key;
    return true;
}

/* A value, and the entries below its path, which keep the rest of their paths as names. */
static wb_status put_values(nest *n, const job *j, int64_t low, int64_t high) {
    for (int64_t i = low; i < high; i++) {
        const char *name = n->flat->entries[i].path + j->prefix;
        if (!put(n, j->record, n->flat->entries[i].record, name, strlen(name)))
            return wb_error_status();
    }
    return WB_OK;
}

/* Adds the values here; a component that several paths share becomes a map, which a later job
 * fills. */
static wb_status put_group(nest *n, const job *j, int64_t i, group g) {
    const wb_flat_entry *entries = n->flat->entries;
    const char *name = entries[i].path + j->prefix;
    if (g.is_value) return put_values(n, j, i, g.end);
    if (j->depth == WB_RECORD_DEPTH)
        return wb_file_fault(n->file, entries[i].offset,
                             "values may be nested at most %d deep, "
                             "but \"%.80s...\" is deeper",
                             WB_RECORD_DEPTH, entries[i].path);
    wb_record *map = wb_record_new(&n->file->arena, WB_RECORD_MAP);
    const job below = {.record = map,
                       .low = i,
                       .high = g.end,
                       .prefix = j->prefix + g.length + 1,
                       .depth = j->depth + 1};
    return map && put(n, j->record, map, name, g.length) && add_job(n, below) ? WB_OK
                                                                              : wb_error_status();
}

static wb_status fill(nest *n, job j) {
    int64_t room = 0;
    for (int64_t i = j.low; i < j.high;) {
        const group g = group_at(n, &j, i);
        room += g.is_value ? g.end - i : 1;
        i = g.end;
    }
    if (!wb_record_room(&n->file->arena, j.record, room, true)) return wb_error_status();
    j.record->count = 0;
    for (int64_t i = j.low; i < j.high;) {
        const group g = group_at(n, &j, i);
        const wb_status status = put_group(n, &j, i, g);
        if (status != WB_OK) return status;
        i = g.end;
    }
    return WB_OK;
}

/* ---- values in several places ---- */

/* A stand-in is a record with a number, whose one child is the record meant. */
static wb_status add_stand_ins(nest *n) {
    for (int64_t i = 0; i < n->flat->count; i++) {
        wb_flat_entry *entry = &n->flat->entries[i];
        const char *fault = fault_of_name(entry->path);
        if (fault) return wb_file_fault(n->file, entry->offset, "a name %s", fault);
        if (!entry->same_as) continue;
        entry->record = wb_record_new(&n->file->arena, WB_RECORD_NULL);
        if (!entry->record || !wb_record_room(&n->file->arena, entry->record, 1, false))
            return wb_error_status();
        entry->record->number = 1;
    }
    return WB_OK;
}

static wb_status check_twice(const nest *n) {
    for (int64_t i = 1; i < n->flat->count; i++) {
        const wb_flat_entry *entry = &n->flat->entries[i];
        if (strcmp(entry->path, entry[-1].path) == 0)
            return wb_file_fault(n->file, entry->offset, "the name \"%.200s\" appears twice",
                                 entry->path);
    }
    return WB_OK;
}

/* The beginning of an entry's path, or all of it, and the value there. */
typedef struct place {
    const char *path;
    size_t length;
    wb_record *record;
} place;

static int by_place_path(const void *a, const void *b) {
    const place *left = a, *right = b;
    const size_t length = left->length < right->length ? left->length : right->length;
    const int order = memcmp(left->path, right->path, length);
    return order ? order : (left->length > right->length) - (left->length < right->length);
}

/* All values and maps below the root, sorted; to be released. */
static place *list_places(const nest *n, int64_t *count) {
    place *places = wb_alloc_list(n->flat->count + n->count + 1, sizeof *places);
    *count = 0;
    for (int64_t i = 0; places && i < n->flat->count; i++) {
        const wb_flat_entry *entry = &n->flat->entries[i];
        places[(*count)++] = (place){entry->path, strlen(entry->path), entry->record};
    }
    for (int64_t i = 1; places && i < n->count; i++)
        places[(*count)++] = (place){n->flat->entries[n->jobs[i].low].path, n->jobs[i].prefix - 1,
                                     n->jobs[i].record};
    if (*count) qsort(places, (size_t)*count, sizeof *places, by_place_path);
    return places;
}

static bool has_stand_ins(const nest *n) {
    for (int64_t i = 0; i < n->flat->count; i++)
        if (n->flat->entries[i].same_as) return true;
    return false;
}

static wb_status resolve_stand_ins(const nest *n) {
    int64_t count;
    if (!has_stand_ins(n)) return WB_OK;
    place *places = list_places(n, &count);
    wb_status status = places ? WB_OK : WB_ERROR_MEMORY;
    for (int64_t i = 0; i < n->flat->count && status == WB_OK; i++) {
        const wb_flat_entry *entry = &n->flat->entries[i];
        if (!entry->same_as) continue;
        const place key = {entry->same_as, strlen(entry->same_as), NULL};
        const place *target = bsearch(&key, places, (size_t)count, sizeof key, by_place_path);
        if (target && !target->record->number)
            entry->record->children[0] = target->record;
        else
            status = wb_file_fault(n->file, entry->offset,
                                   "\"%.80s\" should be the same as \"%.80s\", which is missing",
                                   entry->path, entry->same_as);
    }
    wb_release(places);
    return status;
}

/* Puts the records meant in the place of their stand-ins and finds depths. Nothing can contain
 * itself: that would be deep. A depth of -1 says that the record is being walked. */
static wb_status finish(nest *n, wb_record *root) {
    struct {
        wb_record *record;
        int64_t next;
    } stack[WB_RECORD_DEPTH + 1];
    int top = 0;
    stack[0].record = root, stack[0].next = 0;
    root->depth = -1;
    while (top >= 0) {
        wb_record *r = stack[top].record;
        if (stack[top].next == r->count) {
            r->depth = 0;
            for (int64_t i = 0; i < r->count; i++)
                if (r->children[i]->depth >= r->depth) r->depth = r->children[i]->depth + 1;
            top--;
            continue;
        }
        wb_record **child = &r->children[stack[top].next++];
        if ((*child)->number) *child = (*child)->children[0];
        if ((*child)->depth < 0)
            return wb_file_fault(n->file, 0, "\"%.80s\" contains itself",
                                 (*child)->name ? (*child)->name : "");
        if ((*child)->depth || !(*child)->count) continue;
        if (top == WB_RECORD_DEPTH)
            return wb_file_fault(n->file, 0, "its values may be nested at most %d deep",
                                 WB_RECORD_DEPTH);
        (*child)->depth = -1;
        stack[++top].record = *child, stack[top].next = 0;
    }
    return root->depth > WB_RECORD_DEPTH
               ? wb_file_fault(n->file, 0, "its values may be nested at most %d deep",
                               WB_RECORD_DEPTH)
               : WB_OK;
}

/* Recursive: no tree is deeper than WB_RECORD_DEPTH. */
void wb_flat_make_lists(wb_record *r, bool is_root) {
    bool is_numbered = !is_root && r->kind == WB_RECORD_MAP && r->count > 0 && r->names;
    for (int64_t i = 0; i < r->count; i++) {
        char number[24];
        (void)snprintf(number, sizeof number, "%lld", (long long)i + 1);
        is_numbered = is_numbered && strcmp(number, r->names[i]) == 0;
        if (r->children[i]->kind == WB_RECORD_MAP) wb_flat_make_lists(r->children[i], false);
    }
    if (is_numbered) r->kind = WB_RECORD_LIST, r->names = NULL;
}

wb_record *wb_flat_nest(wb_flat *flat, wb_file *file) {
    nest n = {.file = file, .flat = flat};
    wb_status status = add_stand_ins(&n);
    if (status == WB_OK && flat->count)
        qsort(flat->entries, (size_t)flat->count, sizeof *flat->entries, by_path);
    if (status == WB_OK) status = check_twice(&n);
    wb_record *root = wb_record_new(&file->arena, WB_RECORD_MAP);
    if (!root ||
        (status == WB_OK && !add_job(&n, (job){.record = root, .high = flat->count, .depth = 1})))
        status = wb_error_status();
    while (status == WB_OK && n.next < n.count) status = fill(&n, n.jobs[n.next++]);
    if (status == WB_OK) wb_flat_make_lists(root, true);
    if (status == WB_OK) status = resolve_stand_ins(&n);
    if (status == WB_OK) status = finish(&n, root);
    wb_release(n.jobs);
    return status == WB_OK ? root : NULL;
}

/* ---- arrays on their way out ---- */

wb_flat_array wb_flat_array_of(const wb_record *r) {
    const wb_array *x = r->array;
    wb_flat_array a = {.dtype = (wb_dtype)(x ? x->dtype : r->dtype),
                       .ndim = x ? x->ndim : r->ndim,
                       .sizes = x ? x->sizes : r->sizes};
    a.data_bytes =
        x ? wb_count_sizes(a.ndim, a.sizes) * (int64_t)wb_dtype_size(a.dtype) : r->data_bytes;
    return a;
}

static void *unpacked(const wb_record *r) {
    void *elements = wb_alloc_aligned(wb_bytes(r->data_bytes));
    const wb_packed *packed = r->packed;
    if (elements) packed->unpack(packed->bytes, wb_count_sizes(r->ndim, r->sizes), elements);
    return elements;
}

const void *wb_flat_data_begin(const wb_record *r) {
    return r->array ? wb_read_begin(r->array) : r->packed ? unpacked(r) : r->data;
}

void wb_flat_data_end(const wb_record *r, const void *data) {
    union {
        const void *from;
        void *to;
    } made = {.from = data};
    if (r->array)
        wb_read_end(r->array);
    else if (r->packed)
        wb_release_aligned(made.to);
}

wb_status wb_flat_write_data(const wb_record *r, wb_text *out) {
    const int64_t size_bytes = wb_flat_array_of(r).data_bytes;
    if (size_bytes == 0) return wb_text_status(out);
    const void *data = wb_flat_data_begin(r);
    if (!data) return wb_error_status();
    wb_text_bytes(out, data, (size_t)size_bytes);
    wb_flat_data_end(r, data);
    return wb_text_status(out);
}

const char *wb_flat_refuses(const wb_record *r) {
    if (wb_record_is_container(r) && r->kind != WB_RECORD_OPAQUE)
        return r->kind == WB_RECORD_STRUCT && !r->count ? r->type : NULL;
    return r->type ? r->type : wb_record_noun(r);
}

bool wb_record_has_data(const wb_record *r) {
    return r->kind == WB_RECORD_ARRAY || (r->kind == WB_RECORD_OPAQUE && r->data);
}
