/* Foundation: strings, arrays, addresses of files, errors. */
#include <stdlib.h>
#include <string.h>

#include "fake_metal.h"

/* ---- strings and addresses ---- */

static mtl_id string_of(fake_class_number number, const char *text) {
    fake_string *s = fake_new(number);
    if (s) s->text = strdup(text);
    return (mtl_id)fake_autorelease(s);
}

mtl_id fake_string_new(const char *text) { return string_of(FAKE_NSString, text); }

void fake_end_string(void *object) {
    fake_string *s = object;
    memset(s->text, '?', strlen(s->text)); /* who kept its address reads this */
    free(s->text);
}

const char *fake_text_of(mtl_id string) {
    return ((const fake_string *)(const void *)string)->text;
}

mtl_id send_string(mtl_id self, mtl_selector selector, mtl_text text) {
    FAKE_ENTER();
    (void)self;
    if (!text) fake_abort("stringWithUTF8String: NULL");
    return fake_fails(selector, NULL) ? NULL : fake_string_new(text);
}

mtl_text send_utf8(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    (void)selector;
    return fake_text_of(self);
}

mtl_id send_file_url(mtl_id self, mtl_selector selector, mtl_id path) {
    FAKE_ENTER();
    (void)self;
    path = fake_argument(path, FAKE_NSString, selector, false);
    return fake_fails(selector, NULL) ? NULL : string_of(FAKE_NSURL, fake_text_of(path));
}

/* ---- arrays ---- */

mtl_id fake_array_new(void *const *objects, long count) {
    fake_array *a = fake_new(FAKE_NSArray);
    if (!a) return NULL;
    a->objects = calloc((size_t)count + 1, sizeof *a->objects);
    if (!a->objects) abort();
    for (; a->count < count; a->count++) a->objects[a->count] = fake_keep(objects[a->count]);
    return &a->object;
}

void fake_end_array(void *object) {
    fake_array *a = object;
    while (a->count > 0) fake_drop(a->objects[--a->count]);
    free(a->objects);
}

mtl_id send_array_of(mtl_id self, mtl_selector selector, mtl_id object) {
    FAKE_ENTER();
    (void)self;
    void *one = fake_argument(object, FAKE_NSObject, selector, false);
    return fake_fails(selector, NULL) ? NULL : fake_autorelease(fake_array_new(&one, 1));
}

mtl_uint send_count(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    (void)selector;
    return (mtl_uint)((const fake_array *)(const void *)self)->count;
}

mtl_id send_object_at(mtl_id self, mtl_selector selector, mtl_uint index) {
    FAKE_ENTER();
    (void)selector;
    const fake_array *a = (const void *)self;
    if (index >= (mtl_uint)a->count)
        fake_abort("objectAtIndex: %lu of an array of %ld", index, a->count);
    return a->objects[index];
}

/* ---- errors ---- */

mtl_id fake_error_new(const char *domain, long code, const char *text) {
    fake_error *e = fake_new(FAKE_NSError);
    if (!e) return NULL;
    e->code = code;
    e->domain = strdup(domain), e->text = strdup(text);
    return (mtl_id)fake_autorelease(e);
}

bool fake_error_set(mtl_errors errors, const char *domain, long code, const char *text) {
    if (errors) *errors = fake_error_new(domain, code, text);
    return false;
}

void fake_end_error(void *object) {
    fake_error *e = object;
    free(e->domain);
    free(e->text);
}

mtl_int send_code(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    (void)selector;
    return ((const fake_error *)(const void *)self)->code;
}

mtl_id send_domain(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    (void)selector;
    return fake_string_new(((const fake_error *)(const void *)self)->domain);
}

mtl_id send_description(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    (void)selector;
    return fake_string_new(((const fake_error *)(const void *)self)->text);
}

/* ---- the process ---- */

mtl_id send_process_info(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    static mtl_id one;
    (void)self, (void)selector;
    if (!one) {
        one = fake_new(FAKE_NSProcessInfo);
        fake_count.objects--; /* it stays */
    }
    return one;
}

mtl_id send_system_version(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    (void)self, (void)selector;
    static const char *const versions[] = {"Version 15.5 (Build 24F74)",
                                           "Version 13.7 (Build 22H123)",
                                           "Version 12.7.6 (Build 21H1320)"};
    return fake_string_new(versions[fake_number("FAKE_METAL_OLD", 0)]);
}
