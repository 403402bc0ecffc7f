/* Messages to Apple's objects from C: one typed function for each row of objc.def.
 *
 *     mtl_id buffer = mtl_new_buffer(device, 4096, MTL_SHARED); sends newBufferWithLength:options:
 *
 * objc_msgSend has no type of its own: it is called through the exact type of each method, never as
 * a variadic function, since arm64 passes variadic arguments elsewhere. No method here returns a
 * struct, which would need objc_msgSend_stret on x86-64. A message to NULL does nothing and gives
 * 0. */
#ifndef WB_METAL_OBJC_H
#define WB_METAL_OBJC_H

#include <stdbool.h>
#include <stdint.h>

typedef struct objc_object *mtl_id;         /* an object, or a class */
typedef struct objc_selector *mtl_selector; /* SEL */
typedef unsigned long mtl_uint;             /* NSUInteger */
typedef long mtl_int;                       /* NSInteger */
typedef const char *mtl_text;               /* UTF-8, of the string it came from */
typedef const void *mtl_bytes;
typedef void *mtl_address;
typedef mtl_id *mtl_errors; /* NSError **: set on failure, autoreleased; also by warnings */

/* MTLSize: passed by value. */
typedef struct mtl_size {
    mtl_uint width, height, depth;
} mtl_size;

/* Apple's numbers, by the names of its headers. */
enum {
    MTL_STORAGE_SHARED = 0,   /* MTLResourceStorageModeShared */
    MTL_STORAGE_PRIVATE = 32, /* MTLResourceStorageModePrivate */
    MTL_LANGUAGE_2_4 = 0x20004,
    MTL_MATH_SAFE = 0,
    MTL_FUNCTIONS_PRECISE = 1,
    MTL_FAMILY_APPLE7 = 1007,
    MTL_FAMILY_MAC2 = 2002,
    MTL_FAMILY_METAL3 = 5001,
    MTL_STATUS_COMPLETED = 4, /* MTLCommandBufferStatus */
    MTL_STATUS_ERROR = 5,
    MTL_ERROR_OUT_OF_MEMORY = 8, /* MTLCommandBufferError */
    MPS_FLOAT32 = 0x10000020,    /* MPSDataType */
    MPS_FLOAT16 = 0x10000010,
};

/* Functions of C, by their names in the libraries: X(name, result, parameters). */
#define OBJC_FUNCTION_LIST(X)                                                                      \
    X(objc_getClass, mtl_id, (const char *))                                                       \
    X(sel_registerName, mtl_selector, (const char *))                                              \
    X(class_respondsToSelector, bool, (mtl_id, mtl_selector)) /* of its objects */                 \
    X(objc_msgSend, void, (void))                                                                  \
    X(objc_autoreleasePoolPush, void *, (void))                                                    \
    X(objc_autoreleasePoolPop, void, (void *))
#define METAL_FUNCTION_LIST(X) X(MTLCopyAllDevices, mtl_id, (void)) /* OWNED: an NSArray */
#define MPS_FUNCTION_LIST(X)   X(MPSSupportsMTLDevice, bool, (mtl_id))

/* ---- what follows is made of the rows ---- */

typedef struct mtl_functions {
#define X(name, result, parameters) result(*name) parameters;
    OBJC_FUNCTION_LIST(X)
    METAL_FUNCTION_LIST(X)
    MPS_FUNCTION_LIST(X)
#undef X
} mtl_functions;

typedef struct mtl_selectors {
#define OBJC_VALUE(receiver, scope, ownership, result, name, selector, arity, types)               \
    mtl_selector name;
#define OBJC_VOID(receiver, name, selector, arity, types) mtl_selector name;
#include "objc.def"
} mtl_selectors;

/* Set by wb_metal_load; those of MetalPerformanceShaders where it is there. */
extern mtl_functions mtl;
extern mtl_selectors mtl_selector_of;

#define OBJC_TYPES_0()                       mtl_id, mtl_selector
#define OBJC_TYPES_1(A)                      OBJC_TYPES_0(), A
#define OBJC_TYPES_2(A, B)                   OBJC_TYPES_1(A), B
#define OBJC_TYPES_3(A, B, C)                OBJC_TYPES_2(A, B), C
#define OBJC_TYPES_4(A, B, C, D)             OBJC_TYPES_3(A, B, C), D
#define OBJC_TYPES_5(A, B, C, D, E)          OBJC_TYPES_4(A, B, C, D), E
#define OBJC_TYPES_6(A, B, C, D, E, F)       OBJC_TYPES_5(A, B, C, D, E), F
#define OBJC_TYPES_8(A, B, C, D, E, F, G, H) OBJC_TYPES_6(A, B, C, D, E, F), G, H

#define OBJC_NAMES_0()                       mtl_id to
#define OBJC_NAMES_1(A)                      OBJC_NAMES_0(), A a
#define OBJC_NAMES_2(A, B)                   OBJC_NAMES_1(A), B b
#define OBJC_NAMES_3(A, B, C)                OBJC_NAMES_2(A, B), C c
#define OBJC_NAMES_4(A, B, C, D)             OBJC_NAMES_3(A, B, C), D d
#define OBJC_NAMES_5(A, B, C, D, E)          OBJC_NAMES_4(A, B, C, D), E e
#define OBJC_NAMES_6(A, B, C, D, E, F)       OBJC_NAMES_5(A, B, C, D, E), F f
#define OBJC_NAMES_8(A, B, C, D, E, F, G, H) OBJC_NAMES_6(A, B, C, D, E, F), G g, H h

#define OBJC_PASS_0
#define OBJC_PASS_1 , a
#define OBJC_PASS_2 , a, b
#define OBJC_PASS_3 , a, b, c
#define OBJC_PASS_4 , a, b, c, d
#define OBJC_PASS_5 , a, b, c, d, e
#define OBJC_PASS_6 , a, b, c, d, e, f
#define OBJC_PASS_8 , a, b, c, d, e, f, g, h

#define OBJC_SEND(result, name, arity, types)                                                      \
    ((result(*)(OBJC_TYPES_##arity types))mtl.objc_msgSend)(                                       \
        to, mtl_selector_of.name OBJC_PASS_##arity)

#define OBJC_VALUE(receiver, scope, ownership, result, name, selector, arity, types)               \
    static inline result mtl_##name(OBJC_NAMES_##arity types) {                                    \
        return OBJC_SEND(result, name, arity, types);                                              \
    }
#define OBJC_VOID(receiver, name, selector, arity, types)                                          \
    static inline void mtl_##name(OBJC_NAMES_##arity types) { OBJC_SEND(void, name, arity, types); }
#include "objc.def"

#endif
