/* For tests of models in files. */
#ifndef WB_TESTS_MODELS_MODEL_FILES_H
#define WB_TESTS_MODELS_MODEL_FILES_H

#include "formats/bson_maker.h"
#include "models/structure.h"
#include "support/files.h"
#include "support/support.h"

/* The path of a file with the BSON that the text describes. */
static inline const char *write_bson(const char *text) {
    static bson_maker maker;
    const char *path = path_of("made.bson");
    make_bson(&maker, text);
    write_file(path, maker.bytes, maker.used);
    return path;
}

static inline void assert_structure(wb_layer *model, const char *text) {
    wb_arena arena = {.blocks = NULL};
    const char *structure = wb_structure_text(model, &arena);
    assert_non_null(structure);
    assert_string_equal(structure, text);
    wb_arena_release(&arena);
}

#endif
