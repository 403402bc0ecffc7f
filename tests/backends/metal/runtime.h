/* The stand-in for Apple's runtime without Weber: messages by the functions of
 * backends/metal/objc.h. */
#ifndef WB_TESTS_METAL_RUNTIME_H
#define WB_TESTS_METAL_RUNTIME_H

#include "../backends/metal/objc.h"

#include "backends/metal/stand_in.h"

mtl_functions mtl;
mtl_selectors mtl_selector_of;

static inline void open_runtime(void) {
#define X(name, result, parameters) *(void **)&mtl.name = find_fake(#name);
    OBJC_FUNCTION_LIST(X)
    METAL_FUNCTION_LIST(X)
    MPS_FUNCTION_LIST(X)
#undef X
#define OBJC_VALUE(receiver, scope, ownership, result, name, selector, arity, types)               \
    mtl_selector_of.name = mtl.sel_registerName(selector);
#define OBJC_VOID(receiver, name, selector, arity, types)                                          \
    mtl_selector_of.name = mtl.sel_registerName(selector);
#include "../backends/metal/objc.def"
    find_fakes();
}

#endif
