/* Apple's libraries, opened at run time, and the host. */
#ifndef WB_METAL_LIBRARY_H
#define WB_METAL_LIBRARY_H

#include <weber/plugin.h>

#include "objc.h"

/* Set once by weber_plugin, before anything else is called. */
extern const wb_host *wb_metal_host;

/* Opens the Objective-C runtime, Metal and what it needs, or the one file that
 * WEBER_METAL_LIBRARY names instead of them; once, from any thread. False with the reason. */
bool wb_metal_load(char *reason, size_t reason_bytes);

/* The same for MetalPerformanceShaders and WEBER_MPS_LIBRARY. */
bool wb_metal_load_mps(char *reason, size_t reason_bytes);

/* Autoreleased objects live until the pool of their thread ends: each entry of the table opens one,
 * which ends where its block does.
 *
 *     WB_METAL_POOL(pool); */
void wb_metal_pool_end(void **pool);
#define WB_METAL_POOL(name)                                                                        \
    __attribute__((cleanup(wb_metal_pool_end))) void *name = mtl.objc_autoreleasePoolPush();       \
    (void)name

/* A class; NULL: there is none of that name. */
mtl_id wb_metal_class(const char *name);

/* An NSString, autoreleased. */
static inline mtl_id wb_metal_string(const char *text) {
    return mtl_string(wb_metal_class("NSString"), text);
}

/* The text of an NSString, valid as long as that; "" for NULL. */
const char *wb_metal_text(mtl_id string);

/* What an NSError says; "no reason given" of NULL. Valid until the pool ends. */
const char *wb_metal_error_text(mtl_id error);

#endif
