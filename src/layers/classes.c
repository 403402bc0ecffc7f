/* The classes of layers by name: those of the library and those that a program registers. */
#include <string.h>

#include "base/memory.h"
#include "layers/layer.h"
#include "platform/locks.h"

static const wb_layer_class *const own[] = {
#define WB_LAYER(name) &name,
#include "layers/layers.def"
};
enum { OWN = sizeof own / sizeof *own };

typedef struct entry {
    wb_link link; /* first */
    const wb_layer_class *layer_class;
} entry;
static const wb_link *registered;

void wb_link_add(const wb_link **list, wb_link *link) {
    link->next = *list;
    __atomic_store_n(list, link, __ATOMIC_RELEASE);
}

const wb_layer_class *wb_class_at(int i) { return i >= 0 && i < OWN ? own[i] : NULL; }

const wb_layer_class *wb_class_named(const char *name) {
    for (int i = 0; i < OWN; i++)
        if (strcmp(own[i]->name, name) == 0 || (own[i]->former && !strcmp(own[i]->former, name)))
            return own[i];
    for (const wb_link *at = wb_link_first(&registered); at; at = at->next) {
        const entry *e = (const entry *)(const void *)at;
        if (strcmp(e->layer_class->name, name) == 0) return e->layer_class;
    }
    return NULL;
}

static wb_status register_layer(const wb_layer_class *k) {
    const wb_layer_class *known = wb_class_named(k->name);
    if (known == k) return WB_OK;
    if (known)
        return wb_fail(WB_ERROR_ARGUMENT, "wb_register_layer: another layer has the name %s",
                       k->name);
    entry *e = wb_alloc(sizeof *e);
    if (!e) return WB_ERROR_MEMORY;
    e->layer_class = k;
    wb_link_add(&registered, &e->link);
    return WB_OK;
}

wb_status wb_register_layer(const wb_layer_class *k) {
    if (!k || !k->name || !k->fields)
        return wb_fail(WB_ERROR_ARGUMENT, "wb_register_layer: the class is NULL or has no table");
    wb_lock_take(WB_LOCK_NAMES);
    const wb_status status = register_layer(k);
    wb_lock_give(WB_LOCK_NAMES);
    return status;
}
