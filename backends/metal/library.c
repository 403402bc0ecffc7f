/* Opens the Objective-C runtime and Apple's frameworks by dlopen and registers the messages of
 * objc.def, so that the plugin can be built without Apple's headers and libraries. */
#include "library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#include "../common/library.h"

const wb_host *wb_metal_host;
mtl_functions mtl;
mtl_selectors mtl_selector_of;

#define MISSING "needs an Apple computer with macOS"
#define FRAMEWORK(name)                                                                            \
    "/System/Library/Frameworks/" name ".framework/" name,                                         \
        "/System/Library/Frameworks/" name ".framework/Versions/A/" name

/* ---- which libraries ---- */

/* None of them is a file since macOS 11: only opening tells whether they are there. */
static const char *const objc_names[] = {"/usr/lib/libobjc.A.dylib", NULL};
static const char *const foundation_names[] = {FRAMEWORK("Foundation"), NULL};
/* without it the process of a command-line program sees no device */
static const char *const graphics_names[] = {FRAMEWORK("CoreGraphics"), NULL};
static const char *const metal_names[] = {FRAMEWORK("Metal"), NULL};
static const char *const mps_names[] = {FRAMEWORK("MetalPerformanceShaders"), NULL};

#define X(name, result, parameters) {#name, offsetof(mtl_functions, name)},
static const wb_symbol objc_symbols[] = {OBJC_FUNCTION_LIST(X)};
static const wb_symbol metal_symbols[] = {METAL_FUNCTION_LIST(X)};
static const wb_symbol mps_symbols[] = {MPS_FUNCTION_LIST(X)};
#undef X

/* One library: its names, and the functions that are needed. */
typedef struct wanted {
    const char *name, *variable, *missing;
    const char *const *names;
    const wb_symbol *symbols;
    size_t count;
} wanted;

#define SYMBOLS(list) list, sizeof list / sizeof *list
static const wanted needed[] = {
    {"libobjc", "WEBER_METAL_LIBRARY", MISSING, objc_names, SYMBOLS(objc_symbols)},
    {"Foundation", "WEBER_METAL_LIBRARY", MISSING, foundation_names, NULL, 0},
    {"CoreGraphics", "WEBER_METAL_LIBRARY", MISSING, graphics_names, NULL, 0},
    {"Metal", "WEBER_METAL_LIBRARY", MISSING, metal_names, SYMBOLS(metal_symbols)},
};
static const wanted mps = {"MetalPerformanceShaders", "WEBER_MPS_LIBRARY",
                           "MetalPerformanceShaders.framework cannot be opened", mps_names,
                           SYMBOLS(mps_symbols)};

/* ---- opening ---- */

/* They stay open: the runtime cannot be closed. */
static bool open_one(const wanted *w, char *reason, size_t reason_bytes) {
    const wb_library library = {.variable = w->variable, .names = w->names, .missing = w->missing};
    const char *missing = NULL;
    void *handle = wb_library_open(&library, reason, reason_bytes);
    if (!handle) return false;
    if (wb_library_find(handle, w->symbols, w->count, &mtl, &missing)) return true;
    (void)snprintf(reason, reason_bytes, "%s has no %s: macOS 12 or later is needed", w->name,
                   missing);
    return false;
}

static void register_selectors(void) {
#define OBJC_VALUE(receiver, scope, ownership, result, name, selector, arity, types)               \
    mtl_selector_of.name = mtl.sel_registerName(selector);
#define OBJC_VOID(receiver, name, selector, arity, types)                                          \
    mtl_selector_of.name = mtl.sel_registerName(selector);
#include "objc.def"
}

static bool open_all(char *reason, size_t reason_bytes) {
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!open_one(&needed[i], reason, reason_bytes)) return false;
    register_selectors();
    return true;
}

bool wb_metal_load(char *reason, size_t reason_bytes) {
    static wb_opened opened = WB_NOT_OPENED;
    return wb_library_open_once(&opened, open_all, reason, reason_bytes);
}

static bool open_products(char *reason, size_t reason_bytes) {
    return wb_metal_load(reason, reason_bytes) && open_one(&mps, reason, reason_bytes);
}

bool wb_metal_load_mps(char *reason, size_t reason_bytes) {
    static wb_opened opened = WB_NOT_OPENED;
    return wb_library_open_once(&opened, open_products, reason, reason_bytes);
}

/* ---- pools, classes, texts ---- */

void wb_metal_pool_end(void **pool) { mtl.objc_autoreleasePoolPop(*pool); }

mtl_id wb_metal_class(const char *name) { return mtl.objc_getClass(name); }

const char *wb_metal_text(mtl_id string) {
    const char *text = mtl_utf8(string);
    return text ? text : "";
}

const char *wb_metal_error_text(mtl_id error) {
    return error ? wb_metal_text(mtl_description(error)) : "no reason given";
}
