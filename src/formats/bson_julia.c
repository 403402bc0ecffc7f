/* How BSON.jl encodes Julia's values: documents with a tag, types and back-references. Keys
 * are in the order of a hash table, so a whole document is read before it can be interpreted. */
#include <stddef.h>
#include <string.h>

#include "formats/bson.h"

/* ---- tagged documents ---- */

static const struct {
    const char *key;
    size_t at;
} fields[] = {
    {"tag", offsetof(wb_bson_fields, tag)},   {"type", offsetof(wb_bson_fields, type)},
    {"size", offsetof(wb_bson_fields, size)}, {"data", offsetof(wb_bson_fields, data)},
    {"name", offsetof(wb_bson_fields, name)}, {"params", offsetof(wb_bson_fields, params)},
    {"ref", offsetof(wb_bson_fields, ref)},   {"path", offsetof(wb_bson_fields, path)},
};
enum { FIELDS = sizeof fields / sizeof *fields };

static wb_bson_element *field_named(wb_bson_fields *found, const wb_bson_element *e) {
    for (int i = 0; i < FIELDS; i++)
        if (wb_bson_key_is(e, fields[i].key))
            return (wb_bson_element *)(void *)((char *)found + fields[i].at);
    return NULL;
}

static bool collect(wb_bson *b, const wb_bson_element *document, wb_bson_fields *found) {
    wb_bson_element e;
    *found = (wb_bson_fields){.tag = {.type = WB_BSON_NONE}};
    for (wb_bson_cursor c = wb_bson_enter(document); wb_bson_next(b, &c, &e);) {
        wb_bson_element *field = field_named(found, &e);
        if (field && field->type)
            wb_bson_fault(b, e.offset, "the key \"%.*s\" appears twice", (int)e.key_bytes, e.key);
        else if (field)
            *field = e;
    }
    if (b->status == WB_OK && found->tag.type == WB_BSON_STRING &&
        !wb_bson_is_plain(b, &found->tag))
        wb_bson_fault(b, found->tag.offset, "a tag must not contain a zero byte");
    return b->status == WB_OK;
}

bool wb_bson_has_tag(const wb_bson *b, const wb_bson_value *v, const char *tag) {
    return v->element.type == WB_BSON_DOCUMENT && wb_bson_text_is(b, &v->fields.tag, tag);
}

bool wb_bson_field(wb_bson *b, const wb_bson_value *owner, const wb_bson_element *field,
                   wb_bson_type type, wb_bson_element *found) {
    wb_bson_value v = {.element = {.type = WB_BSON_NONE}};
    if (field->type && !wb_bson_resolve(b, field, &v)) return false;
    *found = v.element;
    if (v.element.type == type) return true;
    wb_bson_fault(b, field->type ? field->offset : owner->element.offset,
                  "a value tagged \"%.*s\" lacks its %s", (int)owner->fields.tag.size_bytes,
                  (const char *)wb_bson_bytes(b, &owner->fields.tag),
                  type == WB_BSON_STRING   ? "text"
                  : type == WB_BSON_ARRAY  ? "list"
                  : type == WB_BSON_BINARY ? "data"
                                           : "document");
    return false;
}

/* ---- back-references ---- */

bool wb_bson_index(wb_bson *b, const wb_bson_element *top) {
    wb_bson_element list = {.type = WB_BSON_NONE}, e;
    for (wb_bson_cursor c = wb_bson_enter(top); wb_bson_next(b, &c, &e);)
        if (wb_bson_key_is(&e, "_backrefs")) list = e;
    if (!list.type) return b->status == WB_OK;
    if (list.type != WB_BSON_ARRAY) {
        wb_bson_fault(b, list.offset, "_backrefs must be a list");
        return false;
    }
    const int64_t count = wb_bson_count(b, &list);
    if (!wb_bson_may_take(b, count * (int64_t)sizeof *b->entries, list.offset)) return false;
    b->entries = wb_arena_list(&b->file->arena, count, sizeof *b->entries);
    if (!b->entries) b->status = WB_ERROR_MEMORY;
    wb_bson_cursor c = wb_bson_enter(&list);
    b->entries_end = c.end;
    while (b->nentries < count && wb_bson_next(b, &c, &e))
        b->entries[b->nentries++] = (wb_bson_entry){.offset = e.offset};
    return b->status == WB_OK;
}

/* The entry that a back-reference names. */
static wb_bson_entry *entry_of(wb_bson *b, const wb_bson_value *v) {
    const wb_bson_element *ref = &v->fields.ref;
    const int64_t number = wb_bson_is_integer(ref) ? wb_bson_integer(b, ref) : 0;
    if (number >= 1 && number <= b->nentries) return &b->entries[number - 1];
    wb_bson_fault(b, ref->type ? ref->offset : v->element.offset,
                  "a back-reference names entry %lld, but there are %lld", (long long)number,
                  (long long)b->nentries);
    return NULL;
}

bool wb_bson_resolve(wb_bson *b, const wb_bson_element *element, wb_bson_value *v) {
    enum { MOST = 16 }; /* a reference to a reference: Julia reads it, but never writes it */
    v->element = *element;
    v->entry = NULL;
    for (int i = 0; i < MOST; i++) {
        if (v->element.type != WB_BSON_DOCUMENT) return true;
        if (!collect(b, &v->element, &v->fields)) return false;
        if (!wb_bson_text_is(b, &v->fields.tag, "backref")) return true;
        v->entry = entry_of(b, v);
        if (!v->entry) return false;
        wb_bson_cursor c = {v->entry->offset, b->entries_end};
        if (!wb_bson_next(b, &c, &v->element)) return false;
    }
    wb_bson_fault(b, element->offset,
                  "a back-reference must lead to a value, but leads to "
                  "back-references only");
    return false;
}

/* ---- types ---- */

bool wb_bson_path(wb_bson *b, const wb_bson_element *list, wb_bson_typename *name) {
    size_t used = 0;
    wb_bson_element part;
    for (wb_bson_cursor c = wb_bson_enter(list); wb_bson_next(b, &c, &part);) {
        if (!wb_bson_is_plain(b, &part))
            wb_bson_fault(b, part.offset, "each part of a name must be a text");
        else if (used + (used > 0) + (size_t)part.size_bytes >= sizeof name->buffer)
            wb_bson_fault(b, part.offset, "a name may have at most %d bytes",
                          WB_BSON_NAME_BYTES - 1);
        else {
            if (used) name->buffer[used++] = '.';
            memcpy(name->buffer + used, wb_bson_bytes(b, &part), (size_t)part.size_bytes);
            used += (size_t)part.size_bytes;
        }
    }
    name->buffer[used] = 0;
    name->text = name->buffer;
    if (strncmp(name->text, "Main.", 5) == 0 && name->text[5]) name->text += 5;
    return b->status == WB_OK;
}

static bool copy_tag(wb_bson *b, const wb_bson_element *tag, wb_bson_typename *name) {
    const size_t most = sizeof name->buffer - 1;
    const size_t size = (size_t)tag->size_bytes < most ? (size_t)tag->size_bytes : most;
    memcpy(name->buffer, wb_bson_bytes(b, tag), size);
    name->buffer[size] = 0;
    name->text = name->buffer;
    return true;
}

bool wb_bson_type_of(wb_bson *b, const wb_bson_value *owner, wb_bson_typename *name) {
    wb_bson_value type;
    name->is_plain = false;
    name->params = (wb_bson_element){.type = WB_BSON_NONE};
    if (!wb_bson_resolve(b, &owner->fields.type, &type)) return false;
    if (type.element.type != WB_BSON_DOCUMENT || type.fields.tag.type != WB_BSON_STRING) {
        wb_bson_fault(b, owner->element.offset, "its type is not known");
        return false;
    }
    if (!wb_bson_has_tag(b, &type, "datatype")) return copy_tag(b, &type.fields.tag, name);
    wb_bson_element list;
    name->is_plain = true;
    name->params = type.fields.params;
    return wb_bson_field(b, &type, &type.fields.name, WB_BSON_ARRAY, &list) &&
           wb_bson_path(b, &list, name);
}

void wb_bson_check_tagged(wb_bson *b, const wb_bson_element *document) {
    wb_bson_fields found;
    wb_bson_typename name;
    if (!collect(b, document, &found)) return;
    if (wb_bson_text_is(b, &found.tag, "datatype") && found.name.type == WB_BSON_ARRAY)
        (void)wb_bson_path(b, &found.name, &name);
}

bool wb_bson_symbol(wb_bson *b, const wb_bson_element *element, wb_bson_element *text) {
    wb_bson_value v;
    if (!wb_bson_resolve(b, element, &v)) return false;
    *text = wb_bson_has_tag(b, &v, "symbol") ? v.fields.name : v.element;
    return wb_bson_is_plain(b, text);
}
