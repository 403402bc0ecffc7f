/* src/models/convert.c, src/formats/left_out.c: what a format cannot hold does not block the rest.
 * The files of Zygote and Tracker are as BSON.jl writes them. */
#include "formats/bson_memory.h"
#include "models/model_files.h"

#define TYPE(name)         "{tag: 'datatype', params: [], name: [" name "]}"
#define STRUCT(name, data) "{tag: 'struct', type: " TYPE(name) ", data: " data "}"
#define F32(size, bytes)   "{tag: 'array', type: $Float32, size: [" size "], data: <" bytes ">}"
#define REF(n)             "{tag: 'backref', ref: " n "}"
#define BOTH               "[" REF("1") ", " REF("2") "]"
#define NOTHINGS           "{tag: 'array', type: $Nothing, size: [2], data: <>}"
#define BUFFER             STRUCT("'Zygote', 'Buffer'", "[" BOTH ", false]")
#define ID_DICT            STRUCT("'Base', 'IdDict'", "[" BOTH ", " NOTHINGS "]")
#define ID_SET             STRUCT("'Base', 'IdSet'", "[" ID_DICT "]")
#define W                  F32("1, 2", "00 00 80 3f 00 00 00 40")
#define B                  F32("1", "00 00 40 40")
/* Flux.params(model) on a CPU. */
#define PARAMS                                                                                     \
    "{params: " STRUCT("'Zygote', 'Params'", "[" BUFFER ", " ID_SET "]") ", _backrefs: [" W ", " B \
                                                                         "]}"
#define X          F32("1", "00 00 80 3f")
#define CUDA(data) "{tag: 'struct', type: " TYPE("'CUDA', 'CuArray'") ", data: [" data "]}"

typedef struct row {
    const char *name, *bson, *to, *tree, *warning; /* NULL: there is none */
} row;

static const row rows[] = {
    {"the parameters of a model are a list of arrays in safetensors", PARAMS, "o.safetensors",
     "{params: [f32(1 2)=1 2, f32(1)=3]}", NULL},
    {"the parameters of a model are a list of arrays in npz", PARAMS, "o.npz",
     "{params: [f32(1 2)=1 2, f32(1)=3]}", NULL},
    {"the parameters of a model are a list of arrays in BSON", PARAMS, "o.bson",
     "{params: [f32(1 2)=1 2, f32(1)=3]}", NULL},
    {"tracked arrays are arrays",
     "{x: " STRUCT("'Tracker', 'TrackedArray'", "[null, " X ", null]") ", y: 1}", "o.bson",
     "{x: f32(1)=1, y: 1}", NULL},
    {"safetensors has no numbers and texts", "{a: 1, b: 'x', c: {d: 2.5, e: true}, x: " X "}",
     "o.safetensors", "{x: f32(1)=1}",
     "safetensors cannot hold 3 of the values, which were left out: a (an integer), c.d (a real), "
     "c.e (a bool)"},
    {"lists with gaps keep their numbers", "{l: [1, " X ", [], [" X "]]}", "o.safetensors",
     "{l: {2: f32(1)=1, 4: [f32(1)=1]}}",
     "safetensors cannot hold 1 of the values, which were left out: l.1 (an integer)"},
    {"nothing is no loss", "{a: null, x: " X "}", "o.safetensors", "{x: f32(1)=1}", NULL},
    {"a vector of tuples is left out",
     "{s: {tag: 'array', type: {tag: 'datatype', params: [$Int8, $Int8], name: ['Core', "
     "'Tuple']}, size: [1], data: <01 02>}, x: " X "}",
     "o.bson", "{x: f32(1)=1}",
     "BSON cannot hold 1 of the values, which were left out: s (Core.Tuple)"},
    {"a Char is left out", "{c: {tag: 'struct', type: $Char, data: <00 00 00 61>}, x: " X "}",
     "o.npz", "{x: f32(1)=1}",
     "npz cannot hold 1 of the values, which were left out: c (Core.Char)"},
    {"elements of lists become nothing",
     "{l: [{tag: 'struct', type: $Char, data: <00 00 00 61>}, 1], x: " X "}", "o.bson",
     "{l: [null, 1], x: f32(1)=1}",
     "BSON cannot hold 1 of the values, which were left out: l.1 (Core.Char)"},
    {"an array of a GPU is left out", "{w: " CUDA("1") ", x: " X "}", "o.npz", "{x: f32(1)=1}",
     "left out: w (CUDA.CuArray, saved on a GPU without cpu(model))"},
    {"structs keep their fields in npz", "{d: " STRUCT("'My', 'Layer'", "[" X ", 'a', null]") "}",
     "o.npz", "{d: My.Layer(f32(1)=1, 'a', null)}", NULL},
    {"structs have numbers for names in safetensors",
     "{d: " STRUCT("'My', 'Layer'", "[" X ", " X "]") "}", "o.safetensors",
     "{d: [f32(1)=1, f32(1)=1]}", NULL},
    {"a struct with arrays becomes the list of its fields in BSON",
     "{d: " STRUCT("'My', 'Layer'",
                   "[" X ", 'a', " STRUCT("'My', 'Inner'", "[" X "]") "]") ", n: 3}",
     "o.bson", "{d: [f32(1)=1, 'a', [f32(1)=1]], n: 3}",
     "BSON cannot hold 1 of the values, which were left out: d (My.Layer, but its fields stay)"},
    {"a struct without arrays is left out of BSON",
     "{d: " STRUCT("'My', 'Range'", "[1, 2]") ", x: " X "}", "o.bson", "{x: f32(1)=1}",
     "BSON cannot hold 1 of the values, which were left out: d (My.Range)"},
    {"one array is left for npy", "{n: 3, x: " X "}", "o.npy", "f32(1)=1",
     "npy cannot hold 1 of the values, which were left out: n (an integer)"},
};

static char warning[2048];
static void keep_warning(void *context, wb_log_level level, const char *line) {
    (void)context;
    if (level == WB_LOG_WARN) snprintf(warning, sizeof warning, "%s", line);
}

static void what_can_be_held_is_written(void **state) {
    const row *r = *state;
    shown s = {.used = 0};
    *warning = 0;
    wb_log_to(keep_warning, NULL);
    const wb_status status = wb_convert(write_bson(r->bson), path_of(r->to));
    wb_log_to(NULL, NULL);
    if (status != WB_OK) fail_msg("%s", wb_error_message());
    wb_file *file = wb_open(path_of(r->to));
    show_record(&s, wb_file_root(file));
    wb_free(file);
    assert_string_equal(s.text, r->tree);
    if (!r->warning)
        assert_string_equal(warning, "");
    else if (!strstr(warning, r->warning))
        fail_msg("\"%s\" does not say \"%s\"", warning, r->warning);
}

static void nothing_at_all_is_an_error(void **state) {
    (void)state;
    const char *from = write_bson("{a: 1, b: {c: 'x'}}");
    assert_int_equal(wb_convert(from, path_of("o.safetensors")), WB_ERROR_UNSUPPORTED);
    assert_error(WB_ERROR_UNSUPPORTED, "o.safetensors: none of the file's values can be written as "
                                       "safetensors: a (an integer), b.c (a text)");
}

static void a_lone_array_gets_the_name_of_numpy_savez(void **state) {
    (void)state;
    static const char *const names[] = {"lone.npz", "lone.safetensors", "lone.bson"};
    const float values[] = {1, 2, 3};
    assert_int_equal(wb_save(path_of("lone.npy"), wb_from(WB_F32, values, 3)), WB_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wb_convert(path_of("lone.npy"), path_of(names[i])), WB_OK);
        wb_file *file = wb_open(path_of(names[i]));
        wb_array *x = wb_file_array(file, "arr_0");
        assert_true(wb_at(x, 2) == 3);
        wb_free(file);
    }
}

static void no_array_left_is_an_error(void **state) {
    (void)state;
    const char *from = write_bson("{n: 3, w: {m: " X "}}");
    assert_int_equal(wb_convert(from, path_of("o.npz"), .rename = "w.** ->"), WB_ERROR_UNSUPPORTED);
    assert_error(WB_ERROR_UNSUPPORTED,
                 "o.npz: no array is left; the rename table leaves all of them out");
    assert_int_not_equal(access(path_of("o.npz"), F_OK), 0);
}

static void bf16_becomes_f32_in_bson(void **state) {
    (void)state;
    assert_int_equal(wb_save_named(path_of("b.safetensors"),
                                   {"x", wb_cast(wb_vector(1.5, -2), WB_BF16)},
                                   {"y", wb_vector(3)}),
                     WB_OK);
    *warning = 0;
    wb_log_to(keep_warning, NULL);
    assert_int_equal(wb_convert(path_of("b.safetensors"), path_of("b.bson")), WB_OK);
    wb_log_to(NULL, NULL);
    assert_non_null(strstr(warning, "b.bson: BSON has no bf16: 1 arrays became f32"));
    wb_file *file = wb_open(path_of("b.bson"));
    wb_array *x = wb_record_array(file, wb_record_get(wb_file_root(file), "x"));
    assert_int_equal(wb_dtype_of(x), WB_F32);
    assert_values(x, 0, 1.5, -2);
    wb_free(file);
}

/* ---- keys ---- */

/* As `.key` of what has been converted, or is renamed on the way. */
static void parameters_are_loaded_in_order(void **state) {
    (void)state;
    static const char *const to[] = {"p.safetensors", "p.npz", "p.bson"};
    char from[300];
    snprintf(from, sizeof from, "%s", write_bson(PARAMS));
    wb_layer *model = wb_dense(2, 1);
    for (int i = 0; i < 5; i++) {
        const char *path = i < 3 ? path_of(to[i]) : from;
        assert_int_equal(wb_set(model, "weight", wb_zeros(WB_F32, 1, 2)), WB_OK);
        assert_int_equal(wb_set(model, "bias", wb_zeros(WB_F32, 1)), WB_OK);
        if (i < 3) assert_int_equal(wb_convert(from, path), WB_OK);
        const char *table = i == 4 ? "none* -> *" : NULL;
        assert_int_equal(wb_load(path, model, .key = "params", .rename = table), WB_OK);
        assert_values(wb_get(model, "weight"), 0, 1, 2);
        assert_values(wb_get(model, "bias"), 0, 3);
    }
    wb_free(model);
}

#define IDENTITY STRUCT("'Base', '#identity'", "[]")
#define DENSE(w) STRUCT("'Flux', 'Dense'", "[" w ", " X ", " IDENTITY "]")
#define NET(w)   "{net: " STRUCT("'Flux', 'Chain'", "[[" DENSE(w) "]]") "}"

/* Flux's rule of a bias that is false there, where a file cannot say false. */
static void a_bias_that_a_file_of_arrays_lacks_is_zeros(void **state) {
    (void)state;
    wb_layer *without = wb_dense(2, 1, .bias = false), *with = wb_dense(2, 1);
    assert_int_equal(wb_set(with, "bias", wb_ones(WB_F32, 1)), WB_OK);
    assert_int_equal(wb_save(path_of("w.safetensors"), without), WB_OK);
    assert_int_equal(wb_load(path_of("w.safetensors"), with), WB_OK);
    assert_values(wb_get(with, "bias"), 0, 0);
    wb_free(without), wb_free(with);
}

/* The place that a message names is a key of the same file. */
static void places_in_messages_are_keys(void **state) {
    (void)state;
    assert_null(wb_load_model(write_bson(NET(CUDA("1"))), "net"));
    assert_error(WB_ERROR_UNSUPPORTED, "net.layers.1: the file does not have the values of a "
                                       "CUDA.CuArray");
    static const char *const keys[] = {"net.layers.1", "net.1.1"};
    for (int i = 0; i < 2; i++) {
        wb_layer *layer = wb_load_model(write_bson(NET(F32("1, 1", "00 00 00 40"))), keys[i]);
        if (!layer) fail_msg("%s: %s", keys[i], wb_error_message());
        assert_values(wb_get(layer, "weight"), 0, 2);
        wb_free(layer);
    }
    assert_null(wb_load_model(write_bson(NET(X)), "net.layers.2"));
    assert_error(WB_ERROR_ARGUMENT, "there is no \"net.layers.2\"; ");
}

/* ---- files that are something else ---- */

typedef struct stranger_row {
    const char *name, *file, *bytes;
    size_t size;
    const char *message;
} stranger_row;

#define BYTES(text) text, sizeof text - 1

static const stranger_row strangers[] = {
    {"a pointer of git LFS", "a.bson",
     BYTES("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
     "is a pointer of git LFS instead of the file itself; `git lfs pull` gets the file"},
    {"Julia's Serialization", "a.bson", BYTES("7JL\x0e\x04\0\0\0\x34"),
     "is a file of Julia's Serialization; in Julia, save it with BSON.@save"},
    {"HDF5", "a.h5", BYTES("\x89HDF\r\n\x1a\n\0\0"), "is an HDF5 file"},
    {"a pickle", "a.pt", BYTES("\x80\x02}q\0."), "is a pickle of Python's"},
    {"a pickle by another name", "a.npz", BYTES("\x80\x04}\x94."), "is a pickle of Python's"},
    {"torch.export", "a.npz", BYTES("PK\3\4 exp/data/weights/weight_0 exp/archive_format"),
     "is a program of torch.export"},
    {"Keras", "m.keras", BYTES("PK\3\4 metadata.json config.json model.weights.h5"),
     "is a Keras file"},
    {"ONNX", "m.onnx", BYTES("\x08\x0e:y\n\x11\n\1x\x12\1W"), "is an ONNX file"},
    {"a pickle of protocol 0", "a.pkl", BYTES("(dp0\nVw\np1\nI1\ns."), "is a pickle of Python's"},
    {"a page of XHTML", "a.npz", BYTES("<?xml version=\"1.0\"?>\n<html>Not found</html>"),
     "is an HTML page, not a model; perhaps a download failed"},
    {"an XML file", "a.bson", BYTES("<?xml version=\"1.0\"?>\n<Error>no access</Error>"),
     "is an XML file, which has no arrays"},
    {"an HTML page", "a.safetensors", BYTES("\n<!DOCTYPE html><html>Not found</html>"),
     "is an HTML page, not a model; perhaps a download failed"},
    {"a tokenizer", "tokenizer.json", BYTES("{\"added_tokens\": [], \"model\": {\"vocab\": {}}}"),
     "is a tokenizer"},
    {"another JSON file", "config.json", BYTES("{\"layers\": 3}"), "is a JSON file"},
    {"what gzip made", "x.npy.gz", BYTES("\x1f\x8b\x08\0\0\0\0\0"),
     "is compressed by gzip; unpack it by gunzip first"},
    {"nothing known", "a.xyz", BYTES("hello"), "the name must end in .bson"},
};

static void a_stranger_has_a_name(void **state) {
    const stranger_row *r = *state;
    write_file(path_of(r->file), r->bytes, r->size);
    assert_null(wb_open(path_of(r->file)));
    assert_error(WB_ERROR_FORMAT, r->message);
}

/* Of 8 bits, as quantised models have. */
static void types_that_weber_lacks_are_named(void **state) {
    (void)state;
    static const char header[] =
        "{\"weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,2],\"data_offsets\":[0,2]},"
        "\"bias\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[2,3]}}";
    char bytes[300] = {(char)(sizeof header - 1)};
    memcpy(bytes + 8, header, sizeof header - 1);
    write_file(path_of("f8.safetensors"), bytes, 8 + sizeof header - 1 + 3);
    wb_layer *model = wb_dense(2, 1);
    assert_int_equal(wb_load(path_of("f8.safetensors"), model), WB_ERROR_UNSUPPORTED);
    assert_error(WB_ERROR_UNSUPPORTED,
                 "weight must be an array of a type that Weber has, but is F8_E4M3 in the file");
    assert_int_equal(wb_load(path_of("f8.safetensors"), model, .rename = "weight -> w transpose"),
                     WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "line 1: weight is of a type that Weber does not have, F8_E4M3");
    wb_free(model);
    assert_int_equal(wb_convert(path_of("f8.safetensors"), path_of("f8.npz")),
                     WB_ERROR_UNSUPPORTED);
    assert_error(WB_ERROR_UNSUPPORTED, "none of the file's values can be written as npz: ");
}

static void sizes_that_are_turned_name_transpose(void **state) {
    (void)state;
    assert_int_equal(wb_save_named(path_of("t.safetensors"),
                                   {"weight", wb_reshape(wb_vector(1, 2, 3, 4, 5, 6), 3, 2)},
                                   {"bias", wb_vector(1, 2)}),
                     WB_OK);
    wb_layer *model = wb_dense(3, 2);
    assert_int_equal(wb_load(path_of("t.safetensors"), model), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "weight is (3, 2) in the file, (2, 3) in the model, which is its "
                                 "transpose: `transpose` in a rename table (.rename) turns it");
    wb_free(model);
}

/* Names of PyTorch's, a part of which begins with "model.": a file read whole. */
static void a_file_with_model_beside_others_is_read_whole(void **state) {
    (void)state;
    const char *path = path_of("whole.safetensors");
    assert_int_equal(wb_save_named(path, {"model.0.weight", wb_reshape(wb_vector(1, 2), 2, 1)},
                                   {"model.0.bias", wb_vector(3)}, {"head.bias", wb_vector(4)},
                                   {"head.weight", wb_reshape(wb_vector(5), 1, 1)}),
                     WB_OK);
    wb_layer *model = wb_chain(wb_dense(2, 1), wb_dense(1, 1)), *body = wb_dense(2, 1);
    assert_int_equal(wb_load(path, model,
                             .rename = "model.0.weight -> layers.1.weight transpose\n"
                                       "model.0.bias -> layers.1.bias\n"
                                       "head.* -> layers.2.*"),
                     WB_OK);
    assert_values(wb_get(model, "layers.1.weight"), 0, 1, 2);
    assert_values(wb_get(model, "layers.2.bias"), 0, 4);
    assert_int_equal(wb_load(path, body, .rename = "0.weight -> weight transpose\n0.* -> *"),
                     WB_OK);
    assert_values(wb_get(body, "bias"), 0, 3);
    assert_int_equal(wb_load(path, model), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, ".key = \"\" reads the whole file");
    wb_free(model), wb_free(body);
}

static void a_prefix_of_all_names_is_told(void **state) {
    (void)state;
    const char *path = path_of("prefix.safetensors");
    assert_int_equal(wb_save_named(path, {"module.weight", wb_reshape(wb_vector(1, 2), 1, 2)},
                                   {"module.bias", wb_vector(3)}),
                     WB_OK);
    wb_layer *model = wb_dense(2, 1);
    assert_int_equal(wb_load(path, model), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "there is \"module.weight\": the row module.** -> ** in a "
                                    "rename table (.rename) removes the prefix");
    assert_int_equal(wb_load(path, model, .rename = "module.** -> **"), WB_OK);
    wb_free(model);
}

/* The hint says what finds the names out, and is silent where a table was given. */
static void names_of_pytorch_are_told(void **state) {
    (void)state;
    const char *path = path_of("torch.npz"), *deep = path_of("deep.npz");
    wb_array *w = wb_reshape(wb_vector(1, 2, 3, 4, 5, 6), 3, 2), *b = wb_vector(7, 8);
    wb_layer *model = wb_chain(wb_dense(3, 2), wb_dropout(.p = 0.5));
    assert_int_equal(wb_save_named(path, {"0.weight", w}, {"0.bias", b}), WB_OK);
    assert_int_equal(wb_save_named(deep, {"body.0.conv.kernel", w}, {"body.2.bias", b}), WB_OK);
    assert_int_equal(wb_load(path, model), WB_ERROR_ARGUMENT);
    assert_error(
        WB_ERROR_ARGUMENT,
        "there is no \"layers.1.weight\"; it has 0; the names look like PyTorch's: .from = "
        "\"torch\" finds out which is which (docs/files.md)");
    assert_int_equal(wb_load(path, model, .from = "torch"), WB_OK);
    assert_int_equal(wb_load(path, model, .rename = "0.** -> lay.1.**"), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "it has lay; these are the names after the rename table");
    assert_null(strstr(wb_error_message(), "PyTorch"));
    assert_int_equal(wb_load(path, model,
                             .rename = "0.weight -> layers.1.weight transpose\n"
                                       "*.bias -> layers.*+1.bias"),
                     WB_OK);
    assert_int_equal(wb_load(deep, model), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "the names look like PyTorch's: .from = \"torch\"");
    assert_null(wb_load_model_as(path, NULL, "Chain(Dense(3 => 2))"));
    assert_error(WB_ERROR_FORMAT,
                 "the names look like PyTorch's: make the model by wb_parse, and load it by");
    assert_int_equal(wb_save_named(path, {"layers.1.w", w}), WB_OK);
    assert_int_equal(wb_load(path, model), WB_ERROR_ARGUMENT);
    assert_null(strstr(wb_error_message(), "PyTorch"));
    wb_clear_error();
    wb_free(model);
}

/* A user block of 1024 bytes, as MATLAB and others have one of 512. */
static void hdf5_may_have_a_user_block(void **state) {
    (void)state;
    unsigned char bytes[2048] = {0};
    memcpy(bytes + 1024, "\211HDF\r\n\032\n", 8);
    write_file(path_of("w.mat"), (const char *)bytes, sizeof bytes);
    assert_null(wb_open(path_of("w.mat")));
    assert_error(WB_ERROR_FORMAT, "is an HDF5 file");
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(nothing_at_all_is_an_error),
        TEST(types_that_weber_lacks_are_named),
        TEST(sizes_that_are_turned_name_transpose),
        TEST(a_file_with_model_beside_others_is_read_whole),
        TEST(a_prefix_of_all_names_is_told),
        TEST(names_of_pytorch_are_told),
        TEST(hdf5_may_have_a_user_block),
        TEST(a_lone_array_gets_the_name_of_numpy_savez),
        TEST(no_array_left_is_an_error),
        TEST(bf16_becomes_f32_in_bson),
        TEST(parameters_are_loaded_in_order),
        TEST(a_bias_that_a_file_of_arrays_lacks_is_zeros),
        TEST(places_in_messages_are_keys),
    };
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, rows, what_can_be_held_is_written);
    ADD_ROWS(&tests, strangers, a_stranger_has_a_name);
    return run_test_list("models/test_convert", &tests, make_folder, drop_folder);
}
