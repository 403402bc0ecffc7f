/* src/formats/jld2*.c: what values become, what is refused, damage. Files that Julia wrote are not
 * in this repository; docs/files.md says which were compared. */
#include <zlib.h>

#include "formats/jld2_maker.h"

#define JLD2 "test.jld2"

/* Whose values are under the name x. */
static wb_file *open_jld2(jld2 *j, uint64_t x) {
    end_jld2(j, put_group(j, 1, &(entry){"x", x}));
    write_bytes(JLD2, j->bytes, j->count);
    return wb_open(test_path);
}

/* ---- numbers, texts ---- */

static uint64_t an_integer(jld2 *j) { return put_integer(j, -7); }

static uint64_t a_real(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_f32), DATA(0, 0, 0x20, 0xc1)});
}

static uint64_t a_double(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_f64), DATA(0, 0, 0, 0, 0, 0, 0xe0, 0x3f)});
}

static uint64_t a_bool(jld2 *j) { return put_dataset(j, (dataset){TYPE(t_bool), DATA(1)}); }

static uint64_t a_large_integer(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_u64), DATA(0, 0, 0, 0, 0, 0, 0, 0x80)});
}

static uint64_t a_big_endian_integer(jld2 *j) {
    static const unsigned char type[] = {0x30, 9, 0, 0, 2, 0, 0, 0, 0, 0, 16, 0};
    return put_dataset(j, (dataset){TYPE(type), DATA(0, 1)});
}

static uint64_t a_text(jld2 *j) {
    static const unsigned char type[] = {0x33, 0x11, 0, 0, 3, 0, 0, 0};
    return put_dataset(j, (dataset){TYPE(type), DATA('a', 0xcf, 0x83)});
}

static uint64_t an_empty_text(jld2 *j) {
    static const unsigned char type[] = {0x33, 0x11, 0, 0, 0, 0, 0, 0};
    return put_dataset(j, (dataset){TYPE(type)});
}

static uint64_t a_text_with_a_zero(jld2 *j) {
    static const unsigned char type[] = {0x33, 0x11, 0, 0, 3, 0, 0, 0};
    return put_dataset(j, (dataset){TYPE(type), DATA('a', 0, 'b')});
}

static uint64_t symbol_type(jld2 *j) {
    return commit(j, (committed){.name = "Core.Symbol"}, t_text, sizeof t_text);
}

static uint64_t put_symbol(jld2 *j, uint64_t type, const char *text) {
    chunk c = {.count = 0};
    add_text(j, &c, text);
    return put_dataset(j, (dataset){.shared = type, VALUE(c)});
}

static uint64_t a_symbol(jld2 *j) { return put_symbol(j, symbol_type(j), "abc"); }

static uint64_t an_old_bool(jld2 *j) {
    const uint64_t type = commit(j, (committed){.name = "Core.Core.Bool"}, t_empty, 8);
    return put_dataset(j, (dataset){.shared = type, DATA(1)});
}

static uint64_t a_character(jld2 *j) {
    static const unsigned char type[] = {0x35, 0, 0, 0, 4, 0, 0, 0};
    const uint64_t shared = commit(j, (committed){.name = "Core.Char"}, type, sizeof type);
    return put_dataset(j, (dataset){.shared = shared, DATA(0, 0, 0, 'a')});
}

/* ---- arrays ---- */

static const unsigned char six[] = {0, 0, 0,  0,  0, 0, 128, 63, 0, 0, 0,   64,
                                    0, 0, 64, 64, 0, 0, 128, 64, 0, 0, 160, 64}; /* f32: 0 .. 5 */

static uint64_t a_compact_array(jld2 *j) {
    return put_dataset(j,
                       (dataset){TYPE(t_f32), SIZES(3, 2), .data = six, .data_bytes = sizeof six});
}

static uint64_t a_contiguous_array(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_f32), SIZES(3, 2), .data = six, .data_bytes = sizeof six,
                                    .is_contiguous = true});
}

static uint64_t put_filtered(jld2 *j, const void *data, size_t bytes, const char *filters,
                             size_t filters_bytes) {
    return put_dataset(j, (dataset){TYPE(t_f32), SIZES(3, 2), .data = data, .data_bytes = bytes,
                                    .filters = filters, .filters_bytes = filters_bytes});
}

static uint64_t put_deflated(jld2 *j, const unsigned char *data, const char *filters,
                             size_t filters_bytes) {
    unsigned char out[200];
    uLongf size = sizeof out;
    assert_int_equal(compress(out, &size, data, sizeof six), Z_OK);
    return put_filtered(j, out, size, filters, filters_bytes);
}

#define FILTER_DEFLATE "\1\0\0\0\1\0\5\0\0\0"
#define FILTER_SHUFFLE "\2\0\0\0\1\0\4\0\0\0"

static uint64_t a_deflated_array(jld2 *j) {
    return put_deflated(j, six, BYTES_OF("\2\1" FILTER_DEFLATE));
}

static uint64_t a_shuffled_array(jld2 *j) {
    unsigned char shuffled[sizeof six];
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 4; k++) shuffled[k * 6 + i] = six[i * 4 + k];
    return put_deflated(j, shuffled, BYTES_OF("\2\2" FILTER_SHUFFLE FILTER_DEFLATE));
}

/* Elements of 2^32 - 1 bytes, of which there are none: no loop over them. */
static uint64_t an_array_shuffled_too_wide(jld2 *j) {
    return put_filtered(j, six, sizeof six, BYTES_OF("\2\1\2\0\0\0\1\0\377\377\377\377"));
}

static uint64_t an_array_by_zstd(jld2 *j) {
    return put_filtered(j, "abc", 3, BYTES_OF("\2\1\x0f\x7d\x08\0\0\0\1\0ZSTD\0\0\0\0\3\0\0\0"));
}

static uint64_t an_array_by_another_filter(jld2 *j) {
    return put_filtered(j, "abc", 3, BYTES_OF("\2\1\x10\x10\x08\0\0\0\0\0what\0\0\0\0"));
}

static uint64_t an_array_without_dimensions(jld2 *j) {
    return put_dataset(
        j, (dataset){TYPE(t_f32), .kind = SIMPLE, DATA(0, 0, 0x80, 0x3f), .dimensions = 1});
}

static uint64_t an_array_of_i16(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_i16), SIZES(2), DATA(1, 0, 2, 0)});
}

static uint64_t an_array_of_bools(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_bool), SIZES(3), DATA(1, 0, 1)});
}

static uint64_t an_array_of_bf16(jld2 *j) {
    static const unsigned char type[] = {0x35, 0, 0, 0, 2, 0, 0, 0};
    const uint64_t shared = commit(j, (committed){.name = "BFloat16s.BFloat16"}, type, sizeof type);
    return put_dataset(j, (dataset){.shared = shared, SIZES(2), DATA(0x80, 0x3f, 0, 0x40)});
}

static uint64_t an_array_of_nine_dimensions(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_bool), SIZES(1, 1, 1, 1, 1, 1, 1, 1, 1), DATA(1)});
}

static uint64_t complex_numbers(jld2 *j) {
    const member members[] = {{MEMBER("re", t_f32, 4)}, {MEMBER("im", t_f32, 4)}};
    chunk type = {.count = 0};
    add_compound(&type, 2, members);
    const uint64_t shared = commit(j, (committed){.name = "Base.Complex"}, type.bytes, type.count);
    return put_dataset(
        j, (dataset){.shared = shared, SIZES(3), .data = six, .data_bytes = sizeof six});
}

static uint64_t texts(jld2 *j) {
    chunk c = {.count = 0};
    add_text(j, &c, "a");
    add(&c, (unsigned char[16]){0}, 16);
    add_text(j, &c, "bc");
    return put_dataset(j, (dataset){TYPE(t_text), SIZES(3), VALUE(c)});
}

static uint64_t references(jld2 *j) {
    const uint64_t one = a_compact_array(j);
    return put_references(j, 3, (uint64_t[]){one, 0, put_integer(j, 1)});
}

static uint64_t missing_numbers(jld2 *j) {
    const uint64_t missing = commit_empty(j, "Base.Missing", 0, NULL);
    static const unsigned char u8[] = {0x30, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0};
    const member members[] = {{MEMBER("mask", u8, 1)}, {MEMBER("t2", t_i16, 2)}};
    chunk type = {.count = 0};
    add_compound(&type, 2, members);
    const uint64_t shared = commit(j,
                                   (committed){.name = "JLD2.InlineUnionEl",
                                               .fields = 3,
                                               .names = (const char *const[]){"mask", "t1", "t2"},
                                               .field_types = (uint64_t[]){0, missing, 0}},
                                   type.bytes, type.count);
    return put_dataset(j, (dataset){.shared = shared, SIZES(2), DATA(0, 0, 0, 255, 5, 0)});
}

static uint64_t nothings(jld2 *j) {
    const uint64_t type = commit_empty(j, "Core.Nothing", 0, NULL);
    return put_dataset(j, (dataset){.shared = type,
                                    .kind = NOTHING,
                                    .ndim = 0,
                                    .sizes = (const int64_t[]){3, 2},
                                    .dimensions = 3});
}

/* Sizes alone make no records. */
static uint64_t very_many_nothings(jld2 *j) {
    const uint64_t type = commit_empty(j, "Core.Nothing", 0, NULL);
    return put_dataset(j, (dataset){.shared = type,
                                    .kind = NOTHING,
                                    .sizes = (const int64_t[]){1 << 30, 1 << 30},
                                    .dimensions = 3});
}

/* ---- without data ---- */

static uint64_t put_nothing(jld2 *j, uint64_t type) {
    return put_dataset(j, (dataset){.shared = type, .kind = NOTHING});
}

static uint64_t a_nothing(jld2 *j) {
    return put_nothing(j, commit_empty(j, "Core.Nothing", 0, NULL));
}

static uint64_t a_missing(jld2 *j) {
    return put_nothing(j, commit_empty(j, "Base.Missing", 0, NULL));
}

static uint64_t an_empty_tuple(jld2 *j) {
    return put_nothing(j, commit_empty(j, "Tuple", 0, NULL));
}

static uint64_t a_function(jld2 *j) {
    return put_nothing(j, commit_empty(j, "NNlib.#relu", 0, NULL));
}

static uint64_t a_function_without_a_name(jld2 *j) {
    return put_nothing(j, commit_empty(j, "Main.#3#4", 0, NULL));
}

static uint64_t a_chain_of_functions(jld2 *j) {
    const uint64_t relu = put_julia(j, "NNlib.#relu", 0, NULL);
    const uint64_t tuple = put_julia(j, "Tuple", 1, &relu);
    return put_nothing(j, commit_empty(j, "Flux.Chain", 1, &tuple));
}

static uint64_t a_value_in_a_type(jld2 *j) {
    const uint64_t yes = a_bool(j);
    return put_nothing(j, commit_empty(j, "Base.Val", 1, &yes));
}

static uint64_t a_repeated_nothing(jld2 *j) {
    const uint64_t parameters[] = {put_integer(j, 2), put_julia(j, "Core.Nothing", 0, NULL)};
    return put_nothing(j, commit_empty(j, "NTuple", 2, parameters));
}

/* ---- structs ---- */

/* {weight: a reference, bias: Bool} */
static void add_dense(chunk *type) {
    const member members[] = {{MEMBER("weight", t_ref, 8)}, {MEMBER("bias", t_bool, 1)}};
    add_compound(type, 2, members);
}

static void add_dense_value(jld2 *j, chunk *value) {
    add_bits(value, a_compact_array(j), 8);
    add_bits(value, 0, 1);
}

static uint64_t a_struct(jld2 *j) {
    chunk type = {.count = 0}, value = {.count = 0};
    const uint64_t relu = commit_empty(j, "NNlib.#relu", 0, NULL);
    add_dense(&type);
    add_dense_value(j, &value);
    const uint64_t shared =
        commit(j,
               (committed){.name = "Flux.Dense",
                           .fields = 3,
                           .names = (const char *const[]){"weight", "bias", "σ"},
                           .field_types = (uint64_t[]){0, 0, relu}},
               type.bytes, type.count);
    return put_dataset(j, (dataset){.shared = shared, VALUE(value)});
}

static uint64_t old_dense_type(jld2 *j) {
    chunk type = {.count = 0};
    const uint64_t parameters[] = {put_julia(j, "NNlib.NNlib.#relu", 0, NULL),
                                   put_julia(j, "Core.Array", 0, NULL),
                                   put_julia(j, "Core.Bool", 0, NULL)};
    add_dense(&type);
    return commit(j, (committed){.name = "Flux.Flux.Dense", .count = 3, .parameters = parameters},
                  type.bytes, type.count);
}

static uint64_t an_old_struct(jld2 *j) {
    chunk value = {.count = 0};
    const uint64_t type = old_dense_type(j);
    add_dense_value(j, &value);
    return put_dataset(j, (dataset){.shared = type, VALUE(value)});
}

/* (1, nothing, 2), of which the file has two members. */
static uint64_t an_old_tuple(jld2 *j) {
    const member members[] = {{MEMBER("1", t_i64, 8)}, {MEMBER("3", t_i64, 8)}};
    chunk type = {.count = 0}, value = {.count = 0};
    const uint64_t integer = put_julia(j, "Core.Core.Int64", 0, NULL);
    const uint64_t parameters[] = {integer, put_julia(j, "Core.Core.Nothing", 0, NULL), integer};
    add_compound(&type, 2, members);
    add_bits(&value, 1, 8), add_bits(&value, 2, 8);
    const uint64_t shared =
        commit(j, (committed){.name = "Tuple", .count = 3, .parameters = parameters}, type.bytes,
               type.count);
    return put_dataset(j, (dataset){.shared = shared, VALUE(value)});
}

/* (:a, :b) */
static uint64_t put_names(jld2 *j, const char *a, const char *b) {
    const member members[] = {{MEMBER("1", t_text, 16)}, {MEMBER("2", t_text, 16)}};
    chunk type = {.count = 0}, value = {.count = 0};
    const uint64_t symbol = symbol_type(j);
    add_compound(&type, 2, members);
    add_text(j, &value, a), add_text(j, &value, b);
    const uint64_t parameters[] = {put_integer(j, 2), symbol};
    const uint64_t shared = commit(j,
                                   (committed){.name = "NTuple",
                                               .count = 2,
                                               .parameters = parameters,
                                               .fields = 2,
                                               .field_types = (uint64_t[]){symbol, symbol}},
                                   type.bytes, type.count);
    return put_dataset(j, (dataset){.shared = shared, VALUE(value)});
}

/* (a = 5, b = ()), of which the file has a. */
static uint64_t an_old_named_tuple(jld2 *j) {
    const member members[] = {{MEMBER("a", t_i64, 8)}};
    chunk type = {.count = 0}, value = {.count = 0};
    const uint64_t types[] = {put_julia(j, "Core.Int64", 0, NULL), put_julia(j, "Tuple", 0, NULL)};
    const uint64_t parameters[] = {put_names(j, "a", "b"), put_julia(j, "Tuple", 2, types)};
    add_compound(&type, 1, members);
    add_bits(&value, 5, 8);
    const uint64_t shared =
        commit(j, (committed){.name = "Core.NamedTuple", .count = 2, .parameters = parameters},
               type.bytes, type.count);
    return put_dataset(j, (dataset){.shared = shared, VALUE(value)});
}

static uint64_t an_empty_named_tuple(jld2 *j) {
    const uint64_t none = put_nothing(j, commit_empty(j, "Tuple", 0, NULL));
    const uint64_t parameters[] = {none, put_julia(j, "Tuple", 0, NULL)};
    return put_nothing(j, commit_empty(j, "Core.NamedTuple", 2, parameters));
}

/* Named tuples of an Upsample say its mode in the type. */
static uint64_t a_symbol_in_a_type(jld2 *j) {
    const member members[] = {{MEMBER("scale", t_i64, 8)}};
    chunk type = {.count = 0}, value = {.count = 0};
    const uint64_t mode = a_symbol(j);
    add_compound(&type, 1, members);
    add_bits(&value, 2, 8);
    const uint64_t shared =
        commit(j, (committed){.name = "Flux.Upsample", .count = 1, .parameters = &mode}, type.bytes,
               type.count);
    return put_dataset(j, (dataset){.shared = shared, VALUE(value)});
}

static uint64_t a_plain_compound(jld2 *j) {
    const member members[] = {{MEMBER("a", t_i64, 8)}, {MEMBER("b", t_bool, 1)}};
    chunk type = {.count = 0}, value = {.count = 0};
    add_compound(&type, 2, members);
    add_bits(&value, 3, 8), add_bits(&value, 1, 1);
    return put_dataset(j, (dataset){.type = type.bytes, .type_bytes = type.count, VALUE(value)});
}

static uint64_t an_array_of_a_gpu(jld2 *j) {
    const member members[] = {{MEMBER("rank", t_i64, 8)}};
    chunk type = {.count = 0};
    add_compound(&type, 1, members);
    const uint64_t shared = commit(j, (committed){.name = "CUDA.CuArray"}, type.bytes, type.count);
    return put_dataset(j, (dataset){.shared = shared, DATA(1, 0, 0, 0, 0, 0, 0, 0)});
}

/* ---- dictionaries, other conversions ---- */

/* Pair{Any, Any}: two references. */
static uint64_t put_pair(jld2 *j, uint64_t first, uint64_t second) {
    const member members[] = {{MEMBER("first", t_ref, 8)}, {MEMBER("second", t_ref, 8)}};
    chunk type = {.count = 0}, value = {.count = 0};
    add_compound(&type, 2, members);
    const uint64_t shared = commit(j, (committed){.name = "Base.Pair"}, type.bytes, type.count);
    add_bits(&value, first, 8), add_bits(&value, second, 8);
    return put_dataset(j, (dataset){.shared = shared, VALUE(value)});
}

static uint64_t put_dictionary(jld2 *j, uint64_t pairs) {
    const member members[] = {{MEMBER("kvvec", t_ref, 8)}};
    chunk type = {.count = 0}, value = {.count = 0};
    add_compound(&type, 1, members);
    const uint64_t shared =
        commit(j, (committed){.name = "Base.Dict", .written = "JLD2.SerializedDict"}, type.bytes,
               type.count);
    add_bits(&value, pairs, 8);
    return put_dataset(j, (dataset){.shared = shared, VALUE(value)});
}

static uint64_t a_dictionary(jld2 *j) {
    const uint64_t pairs[] = {put_pair(j, a_text(j), put_integer(j, 1)),
                              put_pair(j, a_symbol(j), a_compact_array(j))};
    return put_dictionary(j, put_references(j, 2, pairs));
}

static uint64_t a_dictionary_by_numbers(jld2 *j) {
    const uint64_t pairs[] = {put_pair(j, put_integer(j, 5), a_text(j))};
    return put_dictionary(j, put_references(j, 1, pairs));
}

static uint64_t an_old_dictionary(jld2 *j) {
    const uint64_t pairs[] = {put_pair(j, a_text(j), put_integer(j, 1))};
    chunk value = {.count = 0};
    const uint64_t shared =
        commit(j, (committed){.name = "Base.Dict", .written = "Core.Array"}, t_ref, sizeof t_ref);
    add_bits(&value, put_references(j, 1, pairs), 8);
    return put_dataset(j, (dataset){.shared = shared, VALUE(value)});
}

static uint64_t a_module(jld2 *j) {
    chunk value = {.count = 0};
    const uint64_t shared = commit(j, (committed){.name = "Core.Module", .written = "Core.String"},
                                   t_text, sizeof t_text);
    add_text(j, &value, "Flux");
    return put_dataset(j, (dataset){.shared = shared, VALUE(value)});
}

static uint64_t a_datatype(jld2 *j) { return put_julia(j, "Core.Float32", 0, NULL); }

static uint64_t a_committed_datatype(jld2 *j) { return symbol_type(j); }

/* ---- groups ---- */

static uint64_t groups_in_groups(jld2 *j) {
    const uint64_t one = put_integer(j, 1);
    const entry entries[] = {{"b", one}, {"a", put_group(j, 1, &(entry){"c", one})}};
    return put_group(j, 2, entries);
}

static uint64_t an_empty_group(jld2 *j) { return put_group(j, 0, NULL); }

/* A list that is in itself. */
static uint64_t a_cycle(jld2 *j) {
    chunk c = {.count = 0};
    add_bits(&c, 0, 8);
    const uint64_t list = put_dataset(j, (dataset){TYPE(t_ref), SIZES(1), VALUE(c)});
    /* its bytes are before the 20 bytes of the message for later */
    const size_t end = j->count - 4, at = end - 20 - 8;
    store_bits(j->bytes + at, list, 8);
    sum_up(j, list + JLD2_BASE, end);
    return list;
}

static const struct {
    const char *name;
    uint64_t (*make)(jld2 *j);
    const char *value;
    bool is_old;
} values[] = {
    {"an integer", an_integer, "-7", false},
    {"a real number", a_real, "-10", false},
    {"a real number of 8 bytes", a_double, "0.5", false},
    {"a bool", a_bool, "true", false},
    {"a number beyond i64", a_large_integer, "Core.UInt64", false},
    {"a number of another order", a_big_endian_integer, "a datatype of HDF5 that is not read",
     false},
    {"a text", a_text, "'aσ'", false},
    {"an empty text", an_empty_text, "''", false},
    {"a text with a zero byte", a_text_with_a_zero, "Core.String", false},
    {"a symbol", a_symbol, "'abc'", false},
    {"a bool of JLD2 0.1", an_old_bool, "true", true},
    {"a character", a_character, "Core.Char", false},
    {"an array in its header", a_compact_array, "f32 (3, 2)", false},
    {"an array elsewhere", a_contiguous_array, "f32 (3, 2)", false},
    {"a deflated array", a_deflated_array, "f32 (3, 2)", false},
    {"a shuffled array", a_shuffled_array, "f32 (3, 2)", false},
    {"an array shuffled too wide", an_array_shuffled_too_wide, "f32 (3, 2)", false},
    {"an array by zstd", an_array_by_zstd,
     "array compressed by zstd (filter 32015), which is not read", false},
    {"an array by another filter", an_array_by_another_filter,
     "array compressed by a filter that is not known", false},
    {"an array without dimensions", an_array_without_dimensions, "f32 ()", false},
    {"an array of a type that Weber lacks", an_array_of_i16, "Core.Int16", false},
    {"an array of bools", an_array_of_bools, "bool (3)", false},
    {"an array of bf16", an_array_of_bf16, "bf16 (2)", false},
    {"an array of nine dimensions", an_array_of_nine_dimensions, "Core.Bool", false},
    {"complex numbers", complex_numbers, "Base.Complex", false},
    {"texts, one of them missing", texts, "('a' none 'bc')", false},
    {"references", references, "(f32 (3, 2) none 1)", false},
    {"numbers, some of them missing", missing_numbers, "(Base.Missing() 5)", false},
    {"an array without data", nothings, "(none none none none none none)", false},
    {"an array without data, very large", very_many_nothings, "Core.Nothing", false},
    {"nothing", a_nothing, "none", false},
    {"missing", a_missing, "Base.Missing()", false},
    {"an empty tuple", an_empty_tuple, "()", false},
    {"an empty named tuple", an_empty_named_tuple, "()", false},
    {"a function", a_function, "NNlib.#relu()", false},
    {"a function without a name", a_function_without_a_name, "anonymous function #3#4", false},
    {"a struct of functions", a_chain_of_functions, "Flux.Chain({1}=(NNlib.#relu()))", false},
    {"a value in a type", a_value_in_a_type, "Base.Val()", false},
    {"a tuple of nothing", a_repeated_nothing, "(none none)", false},
    {"a struct", a_struct, "Flux.Dense(weight=f32 (3, 2) bias=false σ=NNlib.#relu())", false},
    {"a struct of an old file", an_old_struct,
     "Flux.Dense(weight=f32 (3, 2) bias=false {1}=NNlib.#relu())", true},
    {"a tuple of an old file", an_old_tuple, "(1 none 2)", true},
    {"a named tuple of an old file", an_old_named_tuple, "(a=5 b=())", true},
    {"a symbol in a type", a_symbol_in_a_type, "Flux.Upsample(scale=2)", false},
    {"a compound without a Julia type", a_plain_compound, "(a=3 b=true)", false},
    {"an array of a GPU", an_array_of_a_gpu, "CUDA.CuArray(rank=1)", false},
    {"a dictionary", a_dictionary, "(aσ=1 abc=f32 (3, 2))", false},
    {"a dictionary by numbers", a_dictionary_by_numbers, "Base.Dict((5) ('aσ'))", false},
    {"a dictionary of an old file", an_old_dictionary, "(aσ=1)", true},
    {"a module", a_module, "ref Flux", false},
    {"a datatype", a_datatype, "datatype Core.Float32", false},
    {"a committed datatype", a_committed_datatype, "datatype Core.Symbol", false},
    {"groups in groups", groups_in_groups, "(b=1 a=(c=1))", false},
    {"an empty group", an_empty_group, "()", false},
    {"a cycle", a_cycle, "(cycle)", false},
};

static void values_are_records(void **state) {
    (void)state;
    static jld2 j;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[512] = "";
        begin_jld2(&j, values[i].is_old ? JLD2_OLD : JLD2_NEW);
        wb_file *file = open_jld2(&j, values[i].make(&j));
        if (!file) fail_msg("%s: %s", values[i].name, wb_error_message());
        say(wb_record_get(wb_file_root(file), "x"), text, sizeof text);
        (void)touch(wb_file_root(file));
        if (strcmp(text, values[i].value) != 0)
            fail_msg("%s: %s, not %s", values[i].name, text, values[i].value);
        wb_free(file);
    }
}

static void arrays_have_their_numbers(void **state) {
    (void)state;
    static jld2 j;
    uint64_t (*const make[])(jld2 *) = {a_compact_array, a_contiguous_array, a_deflated_array,
                                        a_shuffled_array};
    for (size_t i = 0; i < sizeof make / sizeof *make; i++) {
        begin_jld2(&j, JLD2_NEW);
        wb_file *file = open_jld2(&j, make[i](&j));
        assert_non_null(file);
        assert_values(wb_record_array(file, wb_record_get(wb_file_root(file), "x")), 0, 0, 1, 2, 3,
                      4, 5);
        wb_free(file);
    }
}

static void an_object_in_two_places_is_one_record(void **state) {
    (void)state;
    static jld2 j;
    begin_jld2(&j, JLD2_NEW);
    const uint64_t array = a_compact_array(&j);
    wb_file *file = open_jld2(&j, put_references(&j, 2, (uint64_t[]){array, array}));
    assert_non_null(file);
    const wb_record *list = wb_record_get(wb_file_root(file), "x");
    assert_ptr_equal(list->children[0], list->children[1]);
    wb_free(file);
}

static void types_say_what_structs_need(void **state) {
    (void)state;
    static jld2 j;
    begin_jld2(&j, JLD2_NEW);
    wb_file *file = open_jld2(&j, a_symbol_in_a_type(&j));
    assert_string_equal(wb_record_get(wb_file_root(file), "x")->text, "abc");
    wb_free(file);
    begin_jld2(&j, JLD2_NEW);
    file = open_jld2(&j, a_value_in_a_type(&j));
    assert_true(wb_record_get(wb_file_root(file), "x")->boolean);
    wb_free(file);
}

/* relu(W x), without a bias: in an old file relu is only a parameter of the struct's type. */
static void structs_of_flux_become_layers(void **state) {
    (void)state;
    static jld2 j;
    for (int old = 0; old < 2; old++) {
        begin_jld2(&j, old ? JLD2_OLD : JLD2_NEW);
        wb_file *file = open_jld2(&j, old ? an_old_struct(&j) : a_struct(&j));
        wb_layer *model = wb_file_model(file, "x", NULL);
        if (!model) fail_msg("%s", wb_error_message());
        assert_values(wb_apply(model, wb_from(WB_F32, ((float[]){1, 1}), 2)), 0, 3, 5, 7);
        assert_values(wb_apply(model, wb_from(WB_F32, ((float[]){-1, 0}), 2)), 0, 0, 0, 0);
        wb_free(model);
        wb_free(file);
    }
}

static void a_state_needs_no_key(void **state) {
    (void)state;
    static jld2 j;
    begin_jld2(&j, JLD2_NEW);
    const uint64_t dense = put_group(&j, 1, &(entry){"weight", a_compact_array(&j)});
    end_jld2(&j, put_group(&j, 1, &(entry){"model_state", dense}));
    write_bytes(JLD2, j.bytes, j.count);
    wb_layer *model = wb_dense(2, 3, .bias = false);
    if (wb_load(test_path, model) != WB_OK) fail_msg("%s", wb_error_message());
    assert_values(wb_apply(model, wb_from(WB_F32, ((float[]){1, 1}), 2)), 0, 3, 5, 7);
    wb_free(model);
}

static void a_chain_of_functions_is_a_model(void **state) {
    (void)state;
    static jld2 j;
    begin_jld2(&j, JLD2_NEW);
    wb_file *file = open_jld2(&j, a_chain_of_functions(&j));
    wb_layer *model = wb_file_model(file, "x", NULL);
    if (!model) fail_msg("%s", wb_error_message());
    assert_values(wb_apply(model, wb_from(WB_F32, ((float[]){1, -1}), 2)), 0, 1, 0);
    wb_free(model);
    wb_free(file);
}

/* ---- what is refused ---- */

static uint64_t a_missing_object(jld2 *j) { return put_references(j, 1, &(uint64_t){7000}); }

static uint64_t no_object(jld2 *j) { return put_references(j, 1, &(uint64_t){24}); }

static uint64_t far_away(jld2 *j) { return put_references(j, 1, &(uint64_t){UINT64_MAX - 3}); }

static uint64_t too_few_bytes(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_f32), SIZES(3, 2), DATA(1, 2, 3, 4)});
}

static uint64_t sizes_that_overflow(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_f32), SIZES(INT64_MAX, 2), DATA(1, 2, 3, 4)});
}

static uint64_t bytes_that_overflow(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_f32), SIZES(INT64_MAX / 2), DATA(1, 2, 3, 4)});
}

static uint64_t a_bool_of_two(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_bool), SIZES(2), DATA(1, 2)});
}

static uint64_t damaged_deflate(jld2 *j) {
    return put_filtered(j, "abc", 3, BYTES_OF("\2\1" FILTER_DEFLATE));
}

static uint64_t shuffled_by_nothing(jld2 *j) {
    return put_filtered(j, six, sizeof six, BYTES_OF("\2\1\2\0\0\0\0\0"));
}

static uint64_t another_class(jld2 *j) {
    static const unsigned char type[] = {0x3b, 0, 0, 0, 1, 0, 0, 0};
    return put_dataset(j, (dataset){TYPE(type), DATA(1)});
}

static uint64_t another_version(jld2 *j) {
    static const unsigned char type[] = {0x70, 0, 0, 0, 1, 0, 0, 0};
    return put_dataset(j, (dataset){TYPE(type), DATA(1)});
}

static uint64_t deep_datatypes(jld2 *j) {
    chunk type = {.count = 0};
    for (int i = 0; i < 40; i++) add(&type, "\x39\0\0\0\20\0\0\0", 8);
    return put_dataset(j, (dataset){.type = type.bytes, .type_bytes = type.count, DATA(1)});
}

static uint64_t a_member_beyond_its_struct(jld2 *j) {
    static const unsigned char type[] = {0x36, 1, 0, 0, 4, 0, 0, 0, 'a', 0,  0, 0x30,
                                         8,    0, 0, 8, 0, 0, 0, 0, 0,   64, 0};
    return put_dataset(j, (dataset){TYPE(type), DATA(1, 2, 3, 4)});
}

static uint64_t more_members_than_bytes(jld2 *j) {
    static const unsigned char type[] = {0x36, 255, 255, 0, 4, 0, 0, 0};
    return put_dataset(j, (dataset){TYPE(type), DATA(1, 2, 3, 4)});
}

static uint64_t a_name_of_no_member(jld2 *j) {
    const member members[] = {{MEMBER("a", t_i64, 8)}};
    chunk type = {.count = 0};
    add_compound(&type, 1, members);
    const uint64_t shared = commit(j,
                                   (committed){.name = "Main.T",
                                               .fields = 1,
                                               .names = (const char *const[]){"b"},
                                               .field_types = (uint64_t[]){0}},
                                   type.bytes, type.count);
    return put_dataset(j, (dataset){.shared = shared, DATA(1, 2, 3, 4, 5, 6, 7, 8)});
}

static uint64_t a_field_without_a_type(jld2 *j) {
    const member members[] = {{MEMBER("a", t_i64, 8)}};
    chunk type = {.count = 0};
    add_compound(&type, 1, members);
    const uint64_t shared = commit(j,
                                   (committed){.name = "Main.T",
                                               .fields = 2,
                                               .names = (const char *const[]){"a", "b"},
                                               .field_types = (uint64_t[]){0, 0}},
                                   type.bytes, type.count);
    return put_dataset(j, (dataset){.shared = shared, DATA(1, 2, 3, 4, 5, 6, 7, 8)});
}

static uint64_t a_type_of_another_size(jld2 *j) {
    const member members[] = {{MEMBER("a", t_i64, 8)}};
    chunk type = {.count = 0};
    const uint64_t symbol = symbol_type(j);
    add_compound(&type, 1, members);
    const uint64_t shared =
        commit(j, (committed){.name = "Main.T", .fields = 1, .field_types = (uint64_t[]){symbol}},
               type.bytes, type.count);
    return put_dataset(j, (dataset){.shared = shared, DATA(1, 2, 3, 4, 5, 6, 7, 8)});
}

static uint64_t a_dataset_as_datatype(jld2 *j) {
    return put_dataset(j, (dataset){.shared = a_bool(j), DATA(1)});
}

static uint64_t no_object_in_the_heap(jld2 *j) {
    chunk c = {.count = 0};
    add_text(j, &c, "a");
    store_bits(c.bytes + 12, 2, 4);
    return put_dataset(j, (dataset){TYPE(t_text), VALUE(c)});
}

static uint64_t a_text_of_another_length(jld2 *j) {
    chunk c = {.count = 0};
    add_text(j, &c, "a");
    store_bits(c.bytes, 2, 4);
    return put_dataset(j, (dataset){TYPE(t_text), VALUE(c)});
}

static uint64_t no_heap(jld2 *j) {
    chunk c = {.count = 0};
    add_bits(&c, 1, 4), add_bits(&c, 8, 8), add_bits(&c, 1, 4);
    return put_dataset(j, (dataset){TYPE(t_text), VALUE(c)});
}

static uint64_t a_very_long_tuple(jld2 *j) {
    const uint64_t parameters[] = {put_integer(j, 1 << 30), put_julia(j, "Core.Nothing", 0, NULL)};
    return put_nothing(j, commit_empty(j, "NTuple", 2, parameters));
}

/* Each list refers twice to the one before: 2^40 values. */
static uint64_t values_that_repeat_themselves(jld2 *j) {
    uint64_t list = put_integer(j, 1);
    for (int i = 0; i < 40; i++) list = put_references(j, 2, (uint64_t[]){list, list});
    return list;
}

static uint64_t deep_values(jld2 *j) {
    uint64_t list = put_integer(j, 1);
    for (int i = 0; i < 257; i++) list = put_references(j, 1, &list);
    return list;
}

/* The same, the innermost part read first. */
static uint64_t deep_values_in_parts(jld2 *j) {
    uint64_t list = put_integer(j, 1);
    for (int i = 0; i < 200; i++) list = put_references(j, 1, &list);
    const uint64_t inner = list;
    for (int i = 0; i < 100; i++) list = put_references(j, 1, &list);
    return put_references(j, 2, (uint64_t[]){inner, list});
}

/* A type whose parameter is itself. */
static uint64_t a_type_in_itself(jld2 *j) {
    chunk c = {.count = 0};
    add_text(j, &c, "Tuple");
    const size_t before = j->count;
    add_in_heap(j, &c, &(uint64_t){0}, 1, 8);
    const uint64_t type = put_dataset(j, (dataset){.shared = j->types, VALUE(c)});
    store_bits(j->bytes + before + 32, type, 8);
    return put_nothing(j, commit_empty(j, "Tuple", 1, &type));
}

static const struct {
    uint64_t (*make)(jld2 *j);
    const char *message;
} faults[] = {
    {a_missing_object, "bytes at the address 7000 are expected"},
    {no_object, "an object header of version 2 is expected"},
    {far_away, "bytes at the address 18446744073709551612 are expected"},
    {too_few_bytes, "6 elements of 4 bytes are expected, but the data has 4 bytes"},
    {sizes_that_overflow, "the product of the sizes of an array is too large"},
    {bytes_that_overflow, "4611686018427387903 elements of 4 bytes are too many"},
    {a_bool_of_two, "an array of Bool must hold only 0 and 1"},
    {damaged_deflate, "3 bytes cannot be inflated to 24"},
    {shuffled_by_nothing, "24 bytes cannot be shuffled back to 24"},
    {another_class, "a datatype of class 11 is not known"},
    {another_version, "a datatype of version 0 to 5 is expected, not 7"},
    {deep_datatypes, "datatypes may be nested at most 32 deep"},
    {a_member_beyond_its_struct, "member a has 8 bytes at 0 of a datatype of 4 bytes"},
    {more_members_than_bytes, "a datatype should have 65535 members"},
    {a_name_of_no_member, "member a of a datatype is none of its fields"},
    {a_field_without_a_type, "field b has neither data nor a type"},
    {a_type_of_another_size, "field a has 8 bytes, but its type has 16"},
    {a_dataset_as_datatype, "a committed datatype is expected"},
    {no_object_in_the_heap, "object 2 of the heap"},
    {a_text_of_another_length, "2 elements of 1 bytes are expected in the heap"},
    {no_heap, "a heap is expected"},
    {a_very_long_tuple, "a tuple without data should have 1073741824 elements"},
    {values_that_repeat_themselves, "references repeat what is here"},
    {deep_values, "values may be nested at most 256 deep"},
    {deep_values_in_parts, "values may be nested at most 256 deep"},
    {a_type_in_itself, "values may be nested at most 256 deep"},
};

static void assert_refused(const char *message) {
    wb_file *file = wb_open(test_path);
    if (file) fail_msg("opened, without \"%s\"", message);
    if (wb_error_status() != WB_ERROR_FORMAT || !strstr(wb_error_message(), message) ||
        !strstr(wb_error_message(), ", offset "))
        fail_msg("\"%s\", not \"%s\"", wb_error_message(), message);
    wb_clear_error();
}

static void other_objects_are_refused(void **state) {
    (void)state;
    static jld2 j;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        begin_jld2(&j, JLD2_NEW);
        end_jld2(&j, put_group(&j, 1, &(entry){"x", faults[i].make(&j)}));
        write_bytes(JLD2, j.bytes, j.count);
        assert_refused(faults[i].message);
    }
}

/* Changes in the superblock, with its checksum made right. */
static void other_superblocks_are_refused(void **state) {
    (void)state;
    static jld2 j;
    static const struct {
        size_t at;
        int bytes;
        uint64_t value;
        const char *message;
    } rows[] = {
        {8, 1, 0, "a superblock of version 2 or 3 is expected, but this has 0"},
        {9, 1, 4, "offsets and lengths of 8 bytes are expected, not of 4 and 8"},
        {12, 8, 0, "addresses should count from here, but count from 0"},
        {28, 8, 0, "the file was not closed"},
        {28, 8, 1 << 20, "the file is cut short: it should have 1048576 bytes"},
        {36, 8, 48, "the root must be a group"},
        {44, 4, 1, "do not match their checksum"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin_jld2(&j, JLD2_NEW);
        const uint64_t x = put_integer(&j, 1);
        end_jld2(&j, put_group(&j, 1, &(entry){"x", x}));
        store_bits(j.bytes + JLD2_BASE + rows[i].at, rows[i].at == 36 ? x : rows[i].value,
                   rows[i].bytes);
        if (rows[i].at < 44) sum_up(&j, JLD2_BASE, JLD2_BASE + 44);
        write_bytes(JLD2, j.bytes, j.count);
        assert_refused(rows[i].message);
    }
}

static void the_name_says_nothing(void **state) {
    (void)state;
    static jld2 j;
    static const char *const names[] = {"x.jld", "x.h5", "x.bson", "x.npz", "nothing"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        begin_jld2(&j, i % 2 ? JLD2_NEW : "Julia data file (HDF5), version 0.2.0");
        end_jld2(&j, put_group(&j, 1, &(entry){"a", put_integer(&j, 3)}));
        write_bytes(names[i], j.bytes, j.count);
        wb_file *file = wb_open(test_path);
        if (!file) fail_msg("%s: %s", names[i], wb_error_message());
        assert_string_equal(wb_file_format(file), "JLD2");
        assert_int_equal(wb_record_get(wb_file_root(file), "a")->integer, 3);
        wb_free(file);
    }
    wb_layer *layer = wb_dense(1, 1);
    assert_int_equal(wb_save("x.jld2", layer), WB_ERROR_FORMAT);
    assert_error(WB_ERROR_FORMAT, "files of JLD2 are read, and not written; .bson can be read");
    wb_free(layer);
}

/* A header may go on elsewhere, as after a second jldopen. */
static void headers_are_continued(void **state) {
    (void)state;
    static jld2 j;
    begin_jld2(&j, JLD2_NEW);
    const uint64_t x = put_integer(&j, 4);
    chunk link = {.count = 0}, messages = {.count = 0}, group = {.count = 0}, place = {.count = 0};
    add(&link, "\1\x10\1\1x", 5);
    add_bits(&link, x, 8);
    message(&messages, 0x06, 0, link.bytes, link.count);
    const size_t from = j.count;
    (void)put(&j, "OCHK", 4);
    (void)put(&j, messages.bytes, messages.count);
    const size_t to = j.count;
    (void)put(&j, "\0\0\0\0", 4);
    note_sum(&j, from, to);
    add_bits(&place, from - JLD2_BASE, 8);
    add_bits(&place, j.count - from, 8);
    message(&group, 0x02, 0, "\0\0\377\377\377\377\377\377\377\377\0\0\0\0\0\0\0\0", 18);
    message(&group, 0x10, 0, place.bytes, place.count);
    end_jld2(&j, put_header(&j, &group));
    write_bytes(JLD2, j.bytes, j.count);
    wb_file *file = wb_open(test_path);
    if (!file) fail_msg("%s", wb_error_message());
    assert_int_equal(wb_record_get(wb_file_root(file), "x")->integer, 4);
    wb_free(file);
}

/* ---- damage ---- */

/* A little of everything. */
static void make_small(jld2 *j, bool is_old) {
    begin_jld2(j, is_old ? JLD2_OLD : JLD2_NEW);
    if (is_old) {
        const entry entries[] = {{"s", an_old_struct(j)}, {"n", an_old_named_tuple(j)}};
        end_jld2(j, put_group(j, 2, entries));
        return;
    }
    const entry entries[] = {
        {"s", a_struct(j)}, {"d", a_dictionary(j)}, {"z", a_deflated_array(j)}};
    end_jld2(j, put_group(j, 3, entries));
}

static void sum_all_up(jld2 *j) {
    for (int i = 0; i < j->sum_count; i++) sum_up(j, j->sums[i][0], j->sums[i][1]);
}

/* Each byte behind the text in front changed, with the checksums made right. */
static void flip_with_right_sums(jld2 *j) {
    static const unsigned char flips[] = {0x01, 0x02, 0x10, 0x20, 0x80, 0xFF};
    for (size_t i = JLD2_BASE; i < j->count; i++)
        for (size_t k = 0; k < sizeof flips; k++) {
            j->bytes[i] ^= flips[k];
            sum_all_up(j);
            (void)open_damaged(JLD2, j->bytes, j->count);
            j->bytes[i] ^= flips[k];
        }
    sum_all_up(j);
}

static void damaged_files_are_errors_or_trees(void **state) {
    (void)state;
    static jld2 j;
    for (int old = 0; old < 2; old++) {
        make_small(&j, old);
        every_prefix(JLD2, j.bytes, j.count);
        (void)every_flipped_byte(JLD2, j.bytes, j.count);
        flip_with_right_sums(&j);
        every_allocation_may_fail(JLD2, j.bytes, j.count);
    }
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest all[] = {
        TEST(values_are_records),
        TEST(arrays_have_their_numbers),
        TEST(an_object_in_two_places_is_one_record),
        TEST(types_say_what_structs_need),
        TEST(structs_of_flux_become_layers),
        TEST(a_chain_of_functions_is_a_model),
        TEST(a_state_needs_no_key),
        TEST(other_objects_are_refused),
        TEST(other_superblocks_are_refused),
        TEST(the_name_says_nothing),
        TEST(headers_are_continued),
        TEST(damaged_files_are_errors_or_trees),
    };
    ADD_TESTS(&tests, all);
    return run_test_list("formats/test_jld2", &tests, make_folder, remove_folder);
}
