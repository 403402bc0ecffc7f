/* Objective-C: classes, selectors, methods, references, pools. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_metal.h"

/* ---- classes ---- */

struct fake_class {
    fake_object object;
    const char *name;
    const fake_class *parent;
    size_t bytes;
    void (*end)(void *object);
    bool is_class;
};

enum { CLASS = 1, PROTOCOL = 0, OBJECT = 0 };

static const fake_class classes[FAKE_CLASSES] = {
#define FAKE_CLASS(name, parent, content, end, scope)                                              \
    [FAKE_##name] = {{NULL, 1, NULL, NULL}, #name, FAKE_##name ? &classes[FAKE_##parent] : NULL,   \
                     sizeof(content),       end,   scope},
#include "backends/metal/fake_classes.def"
};

static bool is_class(const void *object) {
    const fake_class *c = object;
    return c >= classes && c < classes + FAKE_CLASSES;
}

const char *fake_class_name(const void *object) {
    const fake_class *c = is_class(object) ? object : ((const fake_object *)object)->isa;
    return c->name;
}

static bool is_below(const fake_class *c, const fake_class *above) {
    while (c && c != above) c = c->parent;
    return c;
}

FAKE_EXPORT mtl_id objc_getClass(const char *name) {
    const bool has_products = fake_number("FAKE_METAL_MPS", 1);
    for (int i = 0; i < FAKE_CLASSES; i++)
        if (classes[i].is_class && strcmp(classes[i].name, name) == 0 &&
            (has_products || strncmp(name, "MPS", 3) != 0))
            return (mtl_id)(uintptr_t)&classes[i];
    return NULL;
}

/* ---- selectors and methods ---- */

typedef struct method {
    fake_class_number receiver;
    int scope;
    const char *selector;
    void (*function)(void);
} method;

static const method methods[] = {
#define OBJC_VALUE(receiver, scope, ownership, result, name, selector, arity, types)               \
    {FAKE_##receiver, scope, selector, (void (*)(void))send_##name},
#define OBJC_VOID(receiver, name, selector, arity, types)                                          \
    {FAKE_##receiver, OBJECT, selector, (void (*)(void))send_##name},
#include "backends/metal/objc.def"
};
enum { METHODS = sizeof methods / sizeof *methods };

struct objc_selector {
    char name[120];
    const method *methods[8]; /* all of this name */
    mtl_selector next;
};

static mtl_selector selectors;

static mtl_selector selector_of(const char *name) {
    mtl_selector s = selectors;
    while (s && strcmp(s->name, name) != 0) s = s->next;
    if (s) return s;
    s = calloc(1, sizeof *s);
    if (!s) abort();
    (void)snprintf(s->name, sizeof s->name, "%s", name);
    int count = 0;
    for (int i = 0; i < METHODS && count < 8; i++)
        if (strcmp(methods[i].selector, name) == 0) s->methods[count++] = &methods[i];
    s->next = selectors;
    return selectors = s;
}

FAKE_EXPORT mtl_selector sel_registerName(const char *name) {
    FAKE_ENTER();
    return selector_of(name);
}

const char *fake_selector_name(mtl_selector selector) { return selector->name; }

/* Since macOS 15, since 13. */
static bool is_missing(const method *m) {
    const long age = fake_number("FAKE_METAL_OLD", 0);
    if (m->receiver == FAKE_MTLCompileOptions && strncmp(m->selector, "setMath", 7) == 0)
        return age >= 1;
    return m->receiver == FAKE_MPSMatrix && age >= 2;
}

static const method *find_method(const fake_class *c, bool to_class, mtl_selector selector) {
    for (int i = 0; i < 8 && selector->methods[i]; i++) {
        const method *m = selector->methods[i];
        if (m->scope == to_class && is_below(c, &classes[m->receiver]) && !is_missing(m)) return m;
    }
    return NULL;
}

static const method *method_of(const void *object, mtl_selector selector) {
    const bool to_class = is_class(object);
    return find_method(to_class ? object : ((const fake_object *)object)->isa, to_class, selector);
}

FAKE_EXPORT bool class_respondsToSelector(mtl_id class, mtl_selector selector) {
    FAKE_ENTER();
    return find_method((const void *)class, false, selector);
}

/* The object is there, and one of ours. */
static void check_alive(const void *object, const char *what) {
    if (is_class(object)) return;
    const fake_object *o = object;
    if (!is_class(o->isa)) fake_abort("%s to %p, which is no object", what, object);
    if (o->references <= 0) fake_abort("%s to a released %s", what, o->isa->name);
}

/* For objc_msgSend (fake_send.c). */
void (*fake_find_method(mtl_id self, mtl_selector selector))(void);
void (*fake_find_method(mtl_id self, mtl_selector selector))(void) {
    FAKE_ENTER();
    fake_count.messages++;
    check_alive(self, selector->name);
    const method *m = method_of(self, selector);
    if (!m)
        fake_abort("%c[%s %s]: unrecognized selector", is_class(self) ? '+' : '-',
                   fake_class_name(self), selector->name);
    return m->function;
}

bool send_responds_to(mtl_id self, mtl_selector selector, mtl_selector asked) {
    FAKE_ENTER();
    (void)selector;
    return method_of(self, asked);
}

bool fake_is(const void *object, fake_class_number number) {
    return object && !is_class(object) &&
           is_below(((const fake_object *)object)->isa, &classes[number]);
}

void *fake_argument(void *object, fake_class_number number, mtl_selector selector,
                    bool may_be_nil) {
    if (!object && may_be_nil) return NULL;
    if (!object) fake_abort("%s: nil instead of %s", selector->name, classes[number].name);
    check_alive(object, selector->name);
    if (!fake_is(object, number))
        fake_abort("%s: %s instead of %s", selector->name, fake_class_name(object),
                   classes[number].name);
    return object;
}

/* ---- references ---- */

static mtl_id newest;

void *fake_new(fake_class_number number) {
    mtl_id object = calloc(1, classes[number].bytes);
    if (!object) return NULL;
    object->isa = &classes[number];
    object->references = 1;
    object->older = newest;
    if (newest) newest->newer = object;
    newest = object;
    fake_count.objects += number != FAKE_MTLDevice;
    return object;
}

/* Released objects stay for a while, so that later messages are noticed. */
static void bury(mtl_id object) {
    enum { GRAVES = 1 << 14 };
    static mtl_id graves[GRAVES];
    static unsigned next;
    const fake_class *c = object->isa;
    if (object->newer)
        object->newer->older = object->older;
    else
        newest = object->older;
    if (object->older) object->older->newer = object->newer;
    memset((char *)object + sizeof *object, 0xff, c->bytes - sizeof *object);
    free(graves[next % GRAVES]);
    graves[next++ % GRAVES] = object;
    fake_count.objects--;
}

void *fake_keep(void *object) {
    mtl_id o = object;
    if (!o || is_class(o)) return o;
    check_alive(o, "retain");
    o->references++;
    fake_count.references += fake_is(o, FAKE_MTLDevice);
    return o;
}

void fake_drop(void *object) {
    mtl_id o = object;
    if (!o || is_class(o)) return;
    check_alive(o, "release");
    if (fake_is(o, FAKE_MTLDevice)) {
        if (o->references == 1) fake_abort("release of a device that has no reference left");
        fake_count.references--;
    }
    if (--o->references > 0) return;
    o->references = 1; /* while it ends */
    o->isa->end(o);
    o->references = 0;
    bury(o);
}

void fake_end_nothing(void *object) { (void)object; }

mtl_id send_retain(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    (void)selector;
    return fake_keep(self);
}

void send_release(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    (void)selector;
    fake_drop(self);
}

static mtl_id make(mtl_id class, mtl_selector selector) {
    return fake_fails(selector, NULL)
               ? NULL
               : fake_new((fake_class_number)((const fake_class *)class - classes));
}

mtl_id send_new(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    return make(self, selector);
}

mtl_id send_alloc(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    return make(self, selector);
}

/* ---- pools ---- */

/* Of a thread: objects, and NULL where a pool begins. */
static _Thread_local struct {
    void **entries;
    size_t count, capacity;
    long pools;
} pool;

static void add_entry(void *entry) {
    if (pool.count == pool.capacity) {
        pool.capacity = pool.capacity ? 2 * pool.capacity : 64;
        pool.entries = realloc(pool.entries, pool.capacity * sizeof *pool.entries);
        if (!pool.entries) abort();
    }
    pool.entries[pool.count++] = entry;
}

void *fake_autorelease(void *object) {
    if (!object) return NULL;
    if (pool.pools == 0)
        fake_complain("an autoreleased %s without a pool: it leaks", fake_class_name(object));
    else
        add_entry(object);
    return object;
}

FAKE_EXPORT void *objc_autoreleasePoolPush(void) {
    FAKE_ENTER();
    add_entry(NULL);
    pool.pools++;
    fake_count.pools++;
    return (void *)(uintptr_t)pool.count;
}

static void end_pool(void) {
    while (pool.entries[pool.count - 1]) fake_drop(pool.entries[--pool.count]);
    pool.count--;
    fake_count.pools--;
    if (--pool.pools > 0) return;
    free(pool.entries);
    pool.entries = NULL, pool.count = pool.capacity = 0;
}

FAKE_EXPORT void objc_autoreleasePoolPop(void *token) {
    FAKE_ENTER();
    const size_t place = (uintptr_t)token;
    if (place == 0 || place > pool.count || pool.entries[place - 1])
        fake_abort("objc_autoreleasePoolPop of a pool that this thread does not have");
    for (size_t i = place; i < pool.count; i++)
        if (!pool.entries[i]) fake_complain("a pool ends before one that was opened later");
    while (pool.count >= place) end_pool();
}

/* ---- what tests ask ---- */

FAKE_EXPORT fake_print_fn fake_print_objects;

void fake_print_objects(void) {
    FAKE_ENTER();
    for (mtl_id o = newest; o; o = o->older)
        if (!fake_is(o, FAKE_MTLDevice) && !fake_is(o, FAKE_NSProcessInfo))
            (void)fprintf(stderr, "fake metal: %s, %ld references\n", o->isa->name, o->references);
}
