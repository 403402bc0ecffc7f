/* JLD2 files (jld2.h): groups, and the file. Such files are only read. */
#include "formats/jld2.h"

#include <string.h>

/* ---- groups ---- */

/* The names of a group, in their order. */
typedef struct names {
    wb_jld2_link *list; /* NULL: they are only counted */
    int64_t count;
} names;

/* The committed datatypes, which are no part of what was saved. */
static bool is_hidden(const wb_jld2 *r, const wb_jld2_link *link) {
    static const char hidden[] = "_types";
    return r->depth == 0 && link->name_bytes == (int64_t)strlen(hidden) &&
           memcmp(link->name, hidden, strlen(hidden)) == 0;
}

static void note_link(wb_jld2 *r, const wb_jld2_link *link, void *context) {
    names *n = context;
    if (is_hidden(r, link)) return;
    if (n->list) n->list[n->count] = *link;
    n->count++;
    if (link->name_bytes && memchr(link->name, 0, (size_t)link->name_bytes))
        wb_jld2_fault(r, link->offset, "a name must not contain a zero byte");
}

static wb_record *read_link(wb_jld2 *r, const wb_jld2_link *link) {
    return link->is_hard ? wb_jld2_read(r, link->address, link->offset)
                         : wb_jld2_make_opaque(r, "", "link to another place", link->offset);
}

wb_record *wb_jld2_group(wb_jld2 *r, uint64_t address, int64_t from) {
    names n = {.count = 0};
    if (!wb_jld2_links(r, address, from, note_link, &n)) return NULL;
    n.list = wb_jld2_list(r, n.count, sizeof *n.list, from);
    n.count = 0;
    if (!n.list || !wb_jld2_links(r, address, from, note_link, &n)) return NULL;
    wb_record *map = wb_jld2_begin(r, WB_RECORD_MAP, n.count, true, r->base + (int64_t)address);
    for (int64_t i = 0; map && i < n.count; i++) {
        const wb_jld2_link *link = &n.list[i];
        map->names[i] = wb_jld2_copy(r, link->name, link->name_bytes, link->offset);
        if (!map->names[i] || !wb_jld2_put(r, map, i, read_link(r, link))) return NULL;
    }
    return wb_jld2_end(r, map);
}

/* ---- the file ---- */

static wb_record *read_root(wb_jld2 *r) {
    wb_jld2_object o;
    if (!wb_jld2_object_at(r, r->root, r->base, &o)) return NULL;
    if (o.is_group) return wb_jld2_read(r, r->root, r->base);
    wb_jld2_fault(r, o.offset, "the root must be a group");
    return NULL;
}

static wb_status read_file(wb_file *file) {
    wb_jld2 r;
    if (wb_jld2_open(&r, file)) file->root = read_root(&r);
    wb_jld2_close(&r);
    if (r.status != WB_OK) file->root = NULL;
    if (file->root) wb_record_forget_numbers(file->root);
    return r.status;
}

/* By the text in front of the superblock. */
static bool recognises(const wb_mapping *map) {
    enum { TEXT_BYTES = 512 };
    static const char *const texts[] = {"HDF5-based Julia Data Format, version ",
                                        "Julia data file (HDF5), version "};
    const int64_t at = wb_jld2_find(map);
    const int64_t place =
        at >= TEXT_BYTES ? at - TEXT_BYTES : 0; /* without one: perhaps cut short */
    for (int i = 0; i < 2; i++)
        if (map->size_bytes - place >= (int64_t)strlen(texts[i]) &&
            memcmp(map->bytes + place, texts[i], strlen(texts[i])) == 0)
            return true;
    return false;
}

const wb_format wb_format_jld2 = {.name = "JLD2",
                                  .extension = ".jld2",
                                  .recognises = recognises,
                                  .read = read_file,
                                  .has_values = true};
