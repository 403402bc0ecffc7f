/* What the files of the stand-in share. */
#ifndef WB_TESTS_METAL_FAKE_METAL_H
#define WB_TESTS_METAL_FAKE_METAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/metal/objc.h"
#include "support/metal_cpp.h"

#include "backends/metal/fake.h"

#define FAKE_EXPORT __attribute__((visibility("default")))

/* ---- functions of C; methods: one function for each row ---- */

#define X(name, result, parameters) result name parameters;
OBJC_FUNCTION_LIST(X)
METAL_FUNCTION_LIST(X)
MPS_FUNCTION_LIST(X)
#undef X

#define OBJC_VALUE(receiver, scope, ownership, result, name, selector, arity, types)               \
    result send_##name(OBJC_TYPES_##arity types);
#define OBJC_VOID(receiver, name, selector, arity, types)                                          \
    void send_##name(OBJC_TYPES_##arity types);
#include "backends/metal/objc.def"

/* ---- classes ---- */

typedef enum fake_class_number {
#define FAKE_CLASS(name, parent, content, end, scope) FAKE_##name,
#include "backends/metal/fake_classes.def"
    FAKE_CLASSES
} fake_class_number;

typedef struct fake_class fake_class;

/* Every object begins so. A class is one, too: its own. */
struct objc_object {
    const fake_class *isa;
    long references; /* 0: released */
    mtl_id older, newer;
};
typedef struct objc_object fake_object;

/* ---- objects ---- */

/* With one reference; its content is zero. NULL: no memory. */
void *fake_new(fake_class_number number);
void *fake_keep(void *object); /* gives the object; NULL: NULL */
void fake_drop(void *object);
/* The object, whose reference the thread's pool takes over. */
void *fake_autorelease(void *object);
bool fake_is(const void *object,
             fake_class_number number); /* of this class or one below it; alive */
const char *fake_class_name(const void *object);

/* The object as the argument of a message, which has to be of this class; NULL where it is nil and
 * may be. Otherwise the process ends. */
void *fake_argument(void *object, fake_class_number number, mtl_selector selector, bool may_be_nil);
const char *fake_selector_name(mtl_selector selector);

mtl_id fake_string_new(const char *text); /* autoreleased */
const char *fake_text_of(mtl_id string);
mtl_id fake_array_new(void *const *objects, long count); /* one reference */
/* Sets *errors, where errors is given; false. */
bool fake_error_set(mtl_errors errors, const char *domain, long code, const char *text);
/* autoreleased */
mtl_id fake_error_new(const char *domain, long code, const char *text);

void fake_end_nothing(void *object);
#define FAKE_CLASS(name, parent, content, end, scope) void end(void *object);
#include "backends/metal/fake_classes.def"

/* ---- errors, counts, lock ---- */

extern fake_counts fake_count;

void fake_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* As an exception that nobody catches does. */
void fake_abort(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
long fake_number(const char *variable, long otherwise);

/* True once for the call that has to fail; its code in *code. */
bool fake_has_to_fail(const char *name, long *code);
/* The same for a message, with its error set. */
bool fake_fails(mtl_selector selector, mtl_errors errors);
bool fake_is_removed(void);

int fake_enter(void);
void fake_leave(const int *entered);
void fake_pause(void); /* lets other threads in for a moment */
/* For the rest of the block. */
#define FAKE_ENTER() const int entered_ __attribute__((cleanup(fake_leave), unused)) = fake_enter()

/* ---- Foundation ---- */

typedef struct fake_string { /* NSURL, too: of a file */
    fake_object object;
    char *text;
} fake_string;

typedef struct fake_array {
    fake_object object;
    void **objects; /* kept */
    long count;
} fake_array;

typedef struct fake_error {
    fake_object object;
    long code;
    char *domain, *text;
} fake_error;

/* ---- devices, memory ---- */

typedef struct fake_device {
    fake_object object;
    int ordinal;
    size_t limit, used;
} fake_device;

typedef struct fake_buffer {
    fake_object object;
    fake_device *device;
    char *mapped, *memory;
    size_t mapped_bytes, bytes;
    bool is_private;
} fake_buffer;

/* ---- texts and pipelines ---- */

typedef struct fake_options {
    fake_object object;
    mtl_uint language;
    bool is_exact, has_exact_functions;
} fake_options;

typedef struct fake_library {
    fake_object object;
    void *handle;
    uint64_t hash; /* of the text */
} fake_library;

typedef struct fake_function {
    fake_object object;
    fake_library *library;
    const metal_cpp_entry *entry;
} fake_function;

typedef struct fake_recipe {
    fake_object object;
    fake_function *function;
    mtl_id archives;
} fake_recipe;

typedef struct fake_pipeline {
    fake_object object;
    fake_function *function;
} fake_pipeline;

typedef struct fake_place {
    fake_object object;
    mtl_id url;
} fake_place;

enum { FAKE_ARCHIVED = 16 };

typedef struct fake_archive {
    fake_object object;
    uint64_t pipelines[FAKE_ARCHIVED]; /* by text, kernel and device */
    int count;
} fake_archive;

/* ---- products ---- */

typedef struct fake_matrix_shape {
    fake_object object;
    size_t rows, columns, matrices, row_bytes, matrix_bytes;
    uint32_t type;
} fake_matrix_shape;

typedef struct fake_matrix {
    fake_object object;
    fake_buffer *buffer;
    size_t offset;
    fake_matrix_shape shape;
} fake_matrix;

typedef struct fake_product {
    fake_object object;
    bool transpose_left, transpose_right;
    size_t rows, columns, inner;
    double alpha, beta;
} fake_product;

/* ---- queues ---- */

typedef struct fake_event {
    fake_object object;
    uint64_t value;
    long asked; /* how often, since it was made */
} fake_event;

typedef enum fake_op_kind { FAKE_LAUNCH, FAKE_PRODUCT, FAKE_SIGNAL, FAKE_WAIT } fake_op_kind;

/* MTLCommandBufferStatus and MTLCommandBufferError, beside those of objc.h. */
enum { FAKE_COMMITTED = 2, FAKE_INTERNAL = 1, FAKE_PAGE_FAULT = 3, FAKE_REMOVED = 11 };

/* Questions about something that is not done, of which the last lets it get on. */
enum { FAKE_PATIENCE = 100 };

typedef struct fake_bound {
    fake_buffer *buffer;
    size_t offset;
    void *bytes; /* instead of a buffer */
    size_t length;
} fake_bound;

typedef struct fake_launch {
    fake_pipeline *pipeline;
    fake_bound bound[31];
    uint32_t groups[3], threads[3];
} fake_launch;

typedef struct fake_multiply {
    fake_product *product;
    fake_matrix *left, *right, *result;
} fake_multiply;

/* Which of the members: by kind. Objects are kept until it is released. */
typedef struct fake_op {
    fake_op_kind kind;
    fake_launch *launch;
    fake_multiply multiply;
    fake_event *event;
    uint64_t value;
    struct fake_op *next;
} fake_op;

typedef struct fake_queue {
    fake_object object;
    fake_device *device;
    long most, unfinished;              /* command buffers */
    struct fake_commands *first, *last; /* committed, not done; kept */
    struct fake_queue *older;
} fake_queue;

typedef struct fake_commands {
    fake_object object;
    fake_queue *queue;
    mtl_uint status;
    mtl_id error;
    struct fake_encoder *open; /* not kept */
    fake_op *first, *last;
    long failure; /* the code it is to end with; 0: none */
    long asked;   /* for its status */
    struct fake_commands *next;
} fake_commands;

typedef struct fake_encoder {
    fake_object object;
    fake_commands *commands; /* kept; NULL: it has ended */
    fake_pipeline *pipeline;
    fake_bound bound[31];
} fake_encoder;

void fake_op_release(fake_op *op);
void fake_check_product(const fake_multiply *multiply);
void fake_run_product(const fake_multiply *multiply);

/* fake_run.c */
void fake_queue_add(fake_queue *queue);
void fake_queue_commit(fake_commands *commands);
bool fake_run_some(fake_queue *queue); /* true: it got on */
void fake_run_until_done(fake_commands *commands);

#endif
