/* What descriptors are to cuDNN's stand-in: a kind, and attributes as they were set. */
#ifndef WB_TESTS_CUDA_DNN_OBJECT_H
#define WB_TESTS_CUDA_DNN_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include "nvidia/cudnn_api.h"

enum { MOST_ATTRIBUTES = 12, MOST_BYTES = 256 };

typedef struct object {
    dnn_kind kind;
    bool is_final;
    int engine; /* of configurations and engines */
    int count;
    struct {
        dnn_name name;
        dnn_type type;
        int64_t count;
        _Alignas(8) char bytes[MOST_BYTES];
    } attributes[MOST_ATTRIBUTES];
} object;

static const void *value(const object *o, dnn_name name) {
    for (int i = 0; i < o->count; i++)
        if (o->attributes[i].name == name) return o->attributes[i].bytes;
    return NULL;
}

static int64_t count_of(const object *o, dnn_name name) {
    for (int i = 0; i < o->count; i++)
        if (o->attributes[i].name == name) return o->attributes[i].count;
    return 0;
}

static const object *part(const object *o, dnn_name name) {
    return *(object *const *)value(o, name);
}

static int type_of(const object *tensor) { return *(const int *)value(tensor, DNN_TENSOR_TYPE); }

#endif
