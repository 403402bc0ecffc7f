/* The superblock, object headers and global heaps of a JLD2 file.
 *
 *     superblock   89 "HDF" 0d 0a 1a 0a | version | 8 | 8 | flags | base | extension | end of file
 *                  | root group | checksum
 *     header       "OHDR" | 2 | flags | [times] | [limits] | size | messages | checksum
 *     message      type u8 | size u16 | flags u8 | [order u16] | body
 *     continued    "OCHK" | messages | checksum
 *     heap         "GCOL" | 1 | 0 0 0 | size u64 | objects
 *     object       index u16 | references u16 | 0 u32 | bytes u64 | data, padded to 8
 *
 * JLD2's size of a heap does not count the 16 bytes of its head, HDF5's does. */
#include <string.h>

#include "base/lookup3.h"
#include "base/memory.h"
#include "formats/jld2.h"

static const char signature[] = "\211HDF\r\n\032\n";
enum { SIGNATURE_BYTES = 8, SUPERBLOCK_BYTES = 48, MOST_CHUNKS = 64 };
enum { STEPS_PER_BYTE = 8, LEAST_STEPS = 1 << 16 };

/* ---- bytes ---- */

const unsigned char *wb_jld2_skip(wb_jld2 *r, wb_jld2_span *s, int64_t size_bytes) {
    if (r->status != WB_OK) return NULL;
    if (size_bytes < 0 || size_bytes > s->end - s->at) {
        wb_jld2_fault(r, s->at, "%lld bytes are expected, but %lld are there",
                      (long long)size_bytes, (long long)(s->end - s->at));
        return NULL;
    }
    s->at += size_bytes;
    return r->file->map.bytes + s->at - size_bytes;
}

uint64_t wb_jld2_take(wb_jld2 *r, wb_jld2_span *s, int size_bytes) {
    const unsigned char *bytes = wb_jld2_skip(r, s, size_bytes);
    return bytes ? wb_julia_bits(bytes, size_bytes) : 0;
}

int64_t wb_jld2_place(wb_jld2 *r, uint64_t address, int64_t size_bytes, int64_t from) {
    const uint64_t size = (uint64_t)r->file->map.size_bytes;
    const uint64_t room = size - (uint64_t)r->base;
    if (r->status != WB_OK) return -1;
    if (size_bytes >= 0 && address <= room && (uint64_t)size_bytes <= room - address)
        return r->base + (int64_t)address;
    wb_jld2_fault(r, from,
                  "%lld bytes at the address %llu are expected, but the file has %llu from its "
                  "superblock on",
                  (long long)size_bytes, (unsigned long long)address, (unsigned long long)room);
    return -1;
}

bool wb_jld2_spend(wb_jld2 *r, int64_t bytes, int64_t offset) {
    if (r->status == WB_OK && bytes > r->steps)
        wb_jld2_fault(r, offset, "parts of the file overlap, and are looked at too often");
    r->steps -= r->status == WB_OK ? bytes : 0;
    return r->status == WB_OK;
}

/* The checksum after the bytes from begin on. */
static bool check_sum(wb_jld2 *r, int64_t begin, int64_t size_bytes) {
    const unsigned char *bytes = r->file->map.bytes + begin;
    if (!wb_jld2_spend(r, size_bytes, begin)) return false;
    const uint32_t sum = wb_lookup3(bytes, (size_t)size_bytes),
                   told = (uint32_t)wb_julia_bits(bytes + size_bytes, 4);
    if (sum == told) return true;
    wb_jld2_fault(r, begin, "%lld bytes do not match their checksum: %08x, not %08x",
                  (long long)size_bytes, sum, told);
    return false;
}

/* ---- the superblock ---- */

int64_t wb_jld2_find(const wb_mapping *map) {
    static const int64_t places[] = {0, 512, 1024, 2048, 4096};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const int64_t at = places[i];
        if (map->size_bytes - at >= SIGNATURE_BYTES + 1 &&
            memcmp(map->bytes + at, signature, SIGNATURE_BYTES) == 0)
            return at;
    }
    return -1;
}

static bool check_superblock(wb_jld2 *r, int version, wb_jld2_span *s) {
    const int64_t at = r->base + SIGNATURE_BYTES;
    if (version != 2 && version != 3)
        wb_jld2_fault(r, at,
                      "a superblock of version 2 or 3 is expected, but this has %d, as files of "
                      "JLD.jl and of HDF5's own library; in Julia, load it with JLD and save it "
                      "with JLD2",
                      version);
    const uint64_t sizes = wb_jld2_take(r, s, 2);
    if (r->status == WB_OK && sizes != 0x0808)
        wb_jld2_fault(r, at + 1, "offsets and lengths of 8 bytes are expected, not of %d and %d",
                      (int)(sizes & 255), (int)(sizes >> 8));
    return r->status == WB_OK && check_sum(r, r->base, SUPERBLOCK_BYTES - 4);
}

static void read_superblock(wb_jld2 *r) {
    wb_jld2_span s = {r->base + SIGNATURE_BYTES, r->file->map.size_bytes};
    if (s.end - r->base < SUPERBLOCK_BYTES) {
        wb_jld2_fault(r, s.end, "the file is cut short in its superblock");
        return;
    }
    if (!check_superblock(r, (int)wb_jld2_take(r, &s, 1), &s)) return;
    (void)wb_jld2_take(r, &s, 1);
    const uint64_t base = wb_jld2_take(r, &s, 8);
    (void)wb_jld2_take(r, &s, 8);
    const uint64_t end = wb_jld2_take(r, &s, 8);
    r->root = wb_jld2_take(r, &s, 8);
    if (base != (uint64_t)r->base)
        wb_jld2_fault(r, r->base, "addresses should count from here, but count from %llu",
                      (unsigned long long)base);
    else if (end == 0 || r->root == 0)
        wb_jld2_fault(r, r->base, "the file was not closed by the program that wrote it");
    else if (end > (uint64_t)s.end)
        wb_jld2_fault(r, s.end, "the file is cut short: it should have %llu bytes",
                      (unsigned long long)end);
}

/* Whether its text is one of JLD2 before 0.5. */
static bool is_old(const unsigned char *text, int64_t size_bytes) {
    static const char *const old[] = {"Julia data file (HDF5), version ",
                                      "HDF5-based Julia Data Format, version 0.1"};
    for (int i = 0; i < 2; i++)
        if (size_bytes >= 64 && memcmp(text, old[i], strlen(old[i])) == 0) return true;
    return false;
}

bool wb_jld2_open(wb_jld2 *r, wb_file *file) {
    enum { TEXT_BYTES = 512 };
    *r = (wb_jld2){.file = file, .base = wb_jld2_find(&file->map)};
    r->steps = file->map.size_bytes * STEPS_PER_BYTE + LEAST_STEPS;
    if (r->base < 0)
        wb_jld2_fault(r, 0, "it has no superblock of HDF5");
    else
        read_superblock(r);
    if (r->base >= TEXT_BYTES) r->is_old = is_old(file->map.bytes + r->base - TEXT_BYTES, r->base);
    return r->status == WB_OK;
}

void wb_jld2_close(wb_jld2 *r) {
    wb_table_release(&r->addresses);
    wb_release(r->entries);
}

wb_jld2_entry *wb_jld2_entry_of(wb_jld2 *r, uint64_t address) {
    if (r->status != WB_OK) return NULL;
    const int64_t found = wb_table_find(&r->addresses, address), count = r->addresses.count;
    if (found >= 0) return &r->entries[found];
    if (!WB_GROW(r->entries, count, r->entries_room) || !wb_table_add(&r->addresses, address)) {
        r->status = WB_ERROR_MEMORY;
        return NULL;
    }
    r->entries[count] = (wb_jld2_entry){.record = NULL};
    return &r->entries[count];
}

/* ---- object headers ---- */

enum {
    MESSAGE_NIL = 0x00,
    MESSAGE_SPACE = 0x01,
    MESSAGE_LINK_INFO = 0x02,
    MESSAGE_TYPE = 0x03,
    MESSAGE_LINK = 0x06,
    MESSAGE_LAYOUT = 0x08,
    MESSAGE_GROUP_INFO = 0x0a,
    MESSAGE_FILTERS = 0x0b,
    MESSAGE_ATTRIBUTE = 0x0c,
    MESSAGE_CONTINUED = 0x10,
    MESSAGE_TABLE = 0x11,
    MESSAGE_KNOWN = 0x18, /* types of messages that HDF5 has */
    IS_SHARED = 2,
    MUST_BE_KNOWN = 8,
    HAS_TIMES = 32,
    HAS_LIMITS = 16,
    HAS_ORDER = 4
};

typedef struct message {
    int type, flags;
    wb_jld2_span body;
} message;

typedef void on_message(wb_jld2 *r, const message *m, void *context);

/* The parts of a header that are known so far. */
typedef struct header {
    wb_jld2_span chunks[MOST_CHUNKS];
    int count, flags;
} header;

static void add_chunk(wb_jld2 *r, header *h, const message *m) {
    wb_jld2_span s = m->body;
    const uint64_t address = wb_jld2_take(r, &s, 8), size = wb_jld2_take(r, &s, 8);
    const int64_t bytes = size <= INT64_MAX ? (int64_t)size : -1;
    const int64_t at = wb_jld2_place(r, address, bytes, m->body.at);
    if (at < 0) return;
    if (h->count == MOST_CHUNKS || bytes < 8 || memcmp(r->file->map.bytes + at, "OCHK", 4) != 0)
        wb_jld2_fault(r, at, "a header's continuation should be here, one of at most %d",
                      MOST_CHUNKS - 1);
    else if (check_sum(r, at, bytes - 4))
        h->chunks[h->count++] = (wb_jld2_span){at + 4, at + bytes - 4};
}

static void read_messages(wb_jld2 *r, header *h, wb_jld2_span s, on_message *visit, void *context) {
    const int head_bytes = h->flags & HAS_ORDER ? 6 : 4;
    while (r->status == WB_OK && s.end - s.at >= head_bytes) {
        message m = {.type = (int)wb_jld2_take(r, &s, 1)};
        const int64_t size = (int64_t)wb_jld2_take(r, &s, 2);
        m.flags = (int)wb_jld2_take(r, &s, 1);
        if (h->flags & HAS_ORDER) (void)wb_jld2_take(r, &s, 2);
        m.body.at = s.at;
        if (!wb_jld2_skip(r, &s, size)) return;
        m.body.end = s.at;
        if (m.type == MESSAGE_CONTINUED)
            add_chunk(r, h, &m);
        else if (m.type != MESSAGE_NIL)
            visit(r, &m, context);
    }
}

static void walk(wb_jld2 *r, uint64_t address, int64_t from, on_message *visit, void *context) {
    enum { LEAST_BYTES = 4 + 1 + 1 + 1 + 4 };
    const int64_t at = wb_jld2_place(r, address, LEAST_BYTES, from);
    if (at < 0) return;
    wb_jld2_span s = {at, r->file->map.size_bytes};
    const unsigned char *mark = wb_jld2_skip(r, &s, 5);
    if (memcmp(mark, "OHDR\2", 5) != 0) {
        wb_jld2_fault(r, at, "an object header of version 2 is expected");
        return;
    }
    header h = {.flags = (int)wb_jld2_take(r, &s, 1)};
    (void)wb_jld2_skip(r, &s, (h.flags & HAS_TIMES ? 16 : 0) + (h.flags & HAS_LIMITS ? 4 : 0));
    const uint64_t size = wb_jld2_take(r, &s, 1 << (h.flags & 3));
    if (r->status == WB_OK && (s.end - s.at < 4 || size > (uint64_t)(s.end - s.at - 4)))
        wb_jld2_fault(r, at, "the header should have %llu bytes of messages, but %lld follow",
                      (unsigned long long)size, (long long)(s.end - s.at));
    if (r->status != WB_OK || !check_sum(r, at, s.at - at + (int64_t)size)) return;
    h.chunks[h.count++] = (wb_jld2_span){s.at, s.at + (int64_t)size};
    for (int i = 0; i < h.count && r->status == WB_OK; i++)
        read_messages(r, &h, h.chunks[i], visit, context);
}

/* ---- attributes ---- */

static const char *const attribute_names[] = {[WB_JLD2_JULIA_TYPE] = "julia_type",
                                              [WB_JLD2_WRITTEN_TYPE] = "written_type",
                                              [WB_JLD2_EMPTY] = "empty",
                                              [WB_JLD2_FIELD_NAMES] = "field_names",
                                              [WB_JLD2_FIELD_TYPES] = "field_types",
                                              [WB_JLD2_FIELD_DATATYPES] = "field_datatypes",
                                              [WB_JLD2_DIMENSIONS] = "dimensions"};

/* The parts of the message, and its name. */
static wb_jld2_attribute parse_attribute(wb_jld2 *r, wb_jld2_span s, wb_jld2_span *name) {
    const int64_t at = s.at;
    const int version = (int)wb_jld2_take(r, &s, 1), flags = (int)wb_jld2_take(r, &s, 1);
    const int64_t name_bytes = (int64_t)wb_jld2_take(r, &s, 2),
                  type_bytes = (int64_t)wb_jld2_take(r, &s, 2),
                  space_bytes = (int64_t)wb_jld2_take(r, &s, 2);
    if (r->status == WB_OK && ((version != 2 && version != 3) || flags > 1))
        wb_jld2_fault(r, at, "an attribute of version 2 or 3 is expected, not %d (flags %d)",
                      version, flags);
    if (version == 3) (void)wb_jld2_take(r, &s, 1);
    wb_jld2_attribute a = {.is_shared = flags & 1};
    *name = (wb_jld2_span){s.at, s.at + (name_bytes ? name_bytes - 1 : 0)};
    (void)wb_jld2_skip(r, &s, name_bytes);
    a.type = (wb_jld2_span){s.at, s.at + type_bytes};
    (void)wb_jld2_skip(r, &s, type_bytes);
    a.space = (wb_jld2_span){s.at, s.at + space_bytes};
    (void)wb_jld2_skip(r, &s, space_bytes);
    a.data = s;
    return a;
}

static void note_attribute(wb_jld2 *r, const message *m, wb_jld2_object *object) {
    wb_jld2_span name;
    (void)parse_attribute(r, m->body, &name);
    for (int i = 0; i < WB_JLD2_ATTRIBUTES && r->status == WB_OK; i++)
        if ((size_t)(name.end - name.at) == strlen(attribute_names[i]) &&
            memcmp(r->file->map.bytes + name.at, attribute_names[i],
                   (size_t)(name.end - name.at)) == 0)
            object->attributes[i] = m->body;
}

bool wb_jld2_attribute_of(wb_jld2 *r, const wb_jld2_object *object, wb_jld2_attribute_name name,
                          wb_jld2_attribute *attribute) {
    wb_jld2_span unused;
    if (r->status != WB_OK || !object->attributes[name].at) return false;
    *attribute = parse_attribute(r, object->attributes[name], &unused);
    return r->status == WB_OK;
}

/* ---- objects ---- */

static void note_message(wb_jld2 *r, const message *m, void *context) {
    wb_jld2_object *o = context;
    const bool is_shared = m->flags & IS_SHARED;
    if (is_shared && m->type != MESSAGE_TYPE)
        wb_jld2_fault(r, m->body.at, "a message of type 0x%02x is shared, which is not read",
                      m->type);
    switch (m->type) {
    case MESSAGE_SPACE:
        o->space = m->body;
        return;
    case MESSAGE_TYPE:
        o->type = m->body, o->is_shared = is_shared;
        return;
    case MESSAGE_LAYOUT:
        o->layout = m->body;
        return;
    case MESSAGE_FILTERS:
        o->filters = m->body;
        return;
    case MESSAGE_ATTRIBUTE:
        note_attribute(r, m, o);
        return;
    case MESSAGE_LINK:
    case MESSAGE_LINK_INFO:
    case MESSAGE_GROUP_INFO:
    case MESSAGE_TABLE:
        o->is_group = true;
        return;
    default:
        if (m->type > MESSAGE_KNOWN && (m->flags & MUST_BE_KNOWN))
            wb_jld2_fault(r, m->body.at, "a message of type 0x%02x is not known", m->type);
    }
}

bool wb_jld2_object_at(wb_jld2 *r, uint64_t address, int64_t from, wb_jld2_object *object) {
    *object = (wb_jld2_object){.offset = from};
    walk(r, address, from, note_message, object);
    if (r->status == WB_OK) object->offset = r->base + (int64_t)address;
    return r->status == WB_OK;
}

/* ---- links ---- */

typedef struct links {
    wb_jld2_visit *visit;
    void *context;
} links;

static void read_link(wb_jld2 *r, const message *m, const links *l) {
    enum { HAS_TYPE = 8, HAS_CREATION = 4, HAS_CHARSET = 16 };
    wb_jld2_span s = m->body;
    wb_jld2_link link = {.offset = s.at};
    const int version = (int)wb_jld2_take(r, &s, 1), flags = (int)wb_jld2_take(r, &s, 1);
    link.is_hard = !(flags & HAS_TYPE) || wb_jld2_take(r, &s, 1) == 0;
    if (flags & HAS_CREATION) (void)wb_jld2_take(r, &s, 8);
    if (flags & HAS_CHARSET) (void)wb_jld2_take(r, &s, 1);
    const uint64_t size = wb_jld2_take(r, &s, 1 << (flags & 3));
    link.name_bytes = size <= INT64_MAX ? (int64_t)size : -1;
    link.name = (const char *)wb_jld2_skip(r, &s, link.name_bytes);
    if (link.is_hard) link.address = wb_jld2_take(r, &s, 8);
    if (r->status == WB_OK && version != 1)
        wb_jld2_fault(r, link.offset, "a link of version 1 is expected, not %d", version);
    if (r->status == WB_OK) l->visit(r, &link, l->context);
}

static void on_link(wb_jld2 *r, const message *m, void *context) {
    if (m->type == MESSAGE_LINK) read_link(r, m, context);
    if (m->type == MESSAGE_TABLE)
        wb_jld2_fault(r, m->body.at,
                      "a group with a symbol table, which HDF5's own library wrote, is not read");
    if (m->type != MESSAGE_LINK_INFO) return;
    wb_jld2_span s = m->body;
    (void)wb_jld2_take(r, &s, 1);
    if (wb_jld2_take(r, &s, 1) & 1) (void)wb_jld2_take(r, &s, 8);
    if ((int64_t)wb_jld2_take(r, &s, 8) != WB_JLD2_UNDEFINED && r->status == WB_OK)
        wb_jld2_fault(r, m->body.at,
                      "a group with its links in a heap, which HDF5's own library wrote, is not "
                      "read");
}

bool wb_jld2_links(wb_jld2 *r, uint64_t address, int64_t from, wb_jld2_visit *visit,
                   void *context) {
    links l = {visit, context};
    walk(r, address, from, on_link, &l);
    return r->status == WB_OK;
}

/* ---- heaps ---- */

enum { HEAP_HEAD = 16, OBJECT_HEAD = 16 };

/* The objects of a heap by index, from 1 on: counts them, or, with a list, notes their offsets. */
static int64_t list_objects(wb_jld2 *r, wb_jld2_span s, int64_t *list) {
    int64_t last = 0;
    while (r->status == WB_OK && s.end - s.at >= OBJECT_HEAD) {
        const int64_t at = s.at, index = (int64_t)wb_jld2_take(r, &s, 2);
        (void)wb_jld2_take(r, &s, 6);
        const uint64_t bytes = wb_jld2_take(r, &s, 8);
        if (!index) break;
        if (index <= last || bytes > (uint64_t)(s.end - s.at)) {
            wb_jld2_fault(r, at, "object %lld of a heap has %llu bytes, and follows object %lld",
                          (long long)index, (unsigned long long)bytes, (long long)last);
            break;
        }
        if (list) list[index] = at;
        last = index;
        const int64_t padded = ((int64_t)bytes + 7) & ~(int64_t)7;
        s.at = padded > s.end - s.at ? s.end : s.at + padded;
    }
    return last;
}

static bool index_heap(wb_jld2 *r, uint64_t address, int64_t from, wb_jld2_entry *found) {
    const int64_t at = wb_jld2_place(r, address, HEAP_HEAD, from);
    if (at < 0) return false;
    wb_jld2_span s = {at, r->file->map.size_bytes};
    const unsigned char *head = wb_jld2_skip(r, &s, 8);
    const uint64_t size = wb_jld2_take(r, &s, 8);
    if (memcmp(head, "GCOL\1", 5) != 0)
        wb_jld2_fault(r, at, "a heap is expected");
    else if (size > (uint64_t)(r->file->map.size_bytes - at))
        wb_jld2_fault(r, at, "the heap should have %llu bytes, but %lld follow",
                      (unsigned long long)size, (long long)(r->file->map.size_bytes - at));
    if (r->status != WB_OK || !wb_jld2_spend(r, 2 * (int64_t)size, at)) return false;
    if ((int64_t)size < s.end - s.at) s.end = s.at + (int64_t)size;
    found->heap_count = list_objects(r, s, NULL) + 1;
    int64_t *list = wb_jld2_list(r, found->heap_count, sizeof *list, at);
    if (list && r->status == WB_OK) (void)list_objects(r, s, list);
    found->heap = list;
    return list != NULL && r->status == WB_OK;
}

/* The object of a heap. */
static wb_jld2_span object_in(wb_jld2 *r, uint64_t address, int64_t index, int64_t from) {
    wb_jld2_span s = {0, 0};
    wb_jld2_entry found = {.record = NULL}, *entry = wb_jld2_entry_of(r, address);
    if (!entry || (!entry->heap && !index_heap(r, address, from, &found))) return s;
    if (!entry->heap) entry->heap = found.heap, entry->heap_count = found.heap_count;
    const int64_t at = index < entry->heap_count ? entry->heap[index] : 0;
    if (!at) {
        wb_jld2_fault(r, from, "object %lld of the heap at the address %llu does not exist",
                      (long long)index, (unsigned long long)address);
        return s;
    }
    s.at = at + OBJECT_HEAD;
    s.end = s.at + (int64_t)wb_julia_bits(r->file->map.bytes + at + 8, 8);
    return s;
}

const unsigned char *wb_jld2_heap(wb_jld2 *r, const unsigned char *bytes, int64_t element_bytes,
                                  int64_t offset, int64_t *count) {
    const uint64_t elements = wb_julia_bits(bytes, 4), address = wb_julia_bits(bytes + 4, 8);
    const int64_t index = (int64_t)wb_julia_bits(bytes + 12, 4);
    *count = 0;
    if (address == 0 && index == 0) return NULL;
    const wb_jld2_span s = object_in(r, address, index, offset);
    if (r->status != WB_OK) return NULL;
    if (elements * (uint64_t)element_bytes != (uint64_t)(s.end - s.at)) { /* both below 2^32 */
        wb_jld2_fault(r, offset,
                      "%llu elements of %lld bytes are expected in the heap, which has "
                      "%lld bytes for them",
                      (unsigned long long)elements, (long long)element_bytes,
                      (long long)(s.end - s.at));
        return NULL;
    }
    *count = (int64_t)elements;
    return r->file->map.bytes + s.at;
}
