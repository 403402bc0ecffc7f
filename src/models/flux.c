#include "models/flux.h"

#include <string.h>

#include "formats/bson.h"

/* A struct that stands for one of its fields; at < 0: for its first array. */
static const struct {
    const char *name;
    int at;
} wrappers[] = {
    {"TrackedArray", 1}, /* tracker, data, gradient: Flux 0.4 to 0.9 */
    {"Param", -1},
    {"Params", 0}, /* order, params: Tracker and Zygote */
    {"Buffer", 0}, /* data, freeze: Zygote */
};
enum { WRAPPERS = sizeof wrappers / sizeof *wrappers, MOST_WRAPPED = 16 };

const char *wb_flux_last(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static const wb_record *first_array(const wb_record *r) {
    for (int64_t i = 0; i < r->count; i++)
        if (r->children[i]->kind == WB_RECORD_ARRAY) return r->children[i];
    return NULL;
}

static const wb_record *wrapped(const wb_record *r) {
    if (r->kind != WB_RECORD_STRUCT) return NULL;
    for (int i = 0; i < WRAPPERS; i++) {
        if (!wb_bson_last_is(r->type, wrappers[i].name)) continue;
        if (wrappers[i].at < 0) return first_array(r);
        return wrappers[i].at < r->count ? r->children[wrappers[i].at] : NULL;
    }
    return NULL;
}

const wb_record *wb_flux_look(const wb_record *r) {
    for (int i = 0; r && i < MOST_WRAPPED; i++) {
        const wb_record *inner = wrapped(r);
        if (!inner) break;
        r = inner;
    }
    return r;
}

bool wb_flux_is_on_device(const wb_record *r) {
    return r->kind == WB_RECORD_OPAQUE && r->type && wb_bson_is_device_array(r->type);
}
