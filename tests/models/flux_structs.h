/* Flux's structs as its versions saved them, by hand, and the layers that they become. */
#ifndef WB_TESTS_MODELS_FLUX_STRUCTS_H
#define WB_TESTS_MODELS_FLUX_STRUCTS_H

#include "models/model_files.h"

#define TYPE(module, name)         "{tag: 'datatype', params: [], name: ['" module "', '" name "']}"
#define STRUCT(module, name, data) "{tag: 'struct', type: " TYPE(module, name) ", data: [" data "]}"
#define FUNCTION(module, name)     STRUCT(module, "#" name, "")
#define TUPLE(data)                "{tag: 'tuple', data: [" data "]}"
#define ARRAY(type, size, data)                                                                    \
    "{tag: 'array', type: $" type ", size: [" size "], data: <" data ">}"
#define REF(n)         "{tag: 'backref', ref: " n "}"
#define ONE            "00 00 80 3f"
#define TWO            "00 00 00 40"
#define W              ARRAY("Float32", "2, 1", ONE " " TWO) /* 1 => 2 */
#define B              ARRAY("Float32", "2", TWO " " TWO)
#define KERNEL         ARRAY("Float32", "2, 1, 1, 1", ONE " " TWO)
#define B1             ARRAY("Float32", "1", ONE)
#define W1             ARRAY("Float32", "2", ONE " " TWO)
#define F32_TENTH      "{tag: 'struct', type: $Float32, data: <cd cc cc 3d>}"
#define IDENTITY       FUNCTION("Base", "identity")
#define RELU           FUNCTION("NNlib", "relu")
#define DENSE(w, b, f) STRUCT("Flux", "Dense", w ", " b ", " f)
#define CHAIN(layers)  STRUCT("Flux", "Chain", TUPLE(layers))
#define NAMES(a, b)                                                                                \
    "{tag: 'tuple', data: [{tag: 'symbol', name: '" a "'}, {tag: 'symbol', name: '" b "'}]}"
#define NAMED(a, b, data)                                                                          \
    "{tag: 'struct', type: {tag: 'datatype', name: ['Core', 'NamedTuple'], params: [" NAMES(       \
        a, b) ", $Tuple]}, data: [" data "]}"
#define MODEL(x) "{model: " x "}"

/* What the file holds, the text of its structure, and the path of an array that is 1, 2; NULL: any.
 * clang-format 14 falls over such texts between braces. */
typedef struct flux_row {
    const char *name, *bson, *structure;
    const char *path;
} flux_row;
#define FLUX(name, bson, structure, path)                                                          \
    { name, bson, structure, path }

static inline void assert_one_and_two(wb_array *x) {
    const float numbers[2] = {1, 2};
    float got[2];
    assert_int_equal(wb_read_f32(x, got, 2), WB_OK);
    assert_memory_equal(got, numbers, sizeof got);
}

static inline void flux_is_understood(void **state) {
    const flux_row *r = *state;
    wb_layer *model = wb_load_model(write_bson(r->bson), "model");
    if (!model) fail_msg("%s", wb_error_message());
    assert_structure(model, r->structure);
    if (r->path) assert_one_and_two(wb_get(model, r->path));
    wb_free(model);
}

#endif
