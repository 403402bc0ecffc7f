/* Files of JLD2 with one value each, under the name x, as Julia would have written them. Files that
 * Julia did write are not in this repository; docs/files.md says which were compared. */
#ifndef WB_TESTS_JLD2_VALUES_H
#define WB_TESTS_JLD2_VALUES_H

#include <zlib.h>

#include "formats/jld2_maker.h"

#define JLD2 "test.jld2"

/* Whose values are under the name x. */
static inline wb_file *open_jld2(jld2 *j, uint64_t x) {
    end_jld2(j, put_group(j, 1, &(entry){"x", x}));
    write_bytes(JLD2, j->bytes, j->count);
    return wb_open(test_path);
}

/* ---- numbers, texts ---- */

static inline uint64_t an_integer(jld2 *j) { return put_integer(j, -7); }

static inline uint64_t a_real(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_f32), DATA(0, 0, 0x20, 0xc1)});
}

static inline uint64_t a_double(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_f64), DATA(0, 0, 0, 0, 0, 0, 0xe0, 0x3f)});
}

static inline uint64_t a_bool(jld2 *j) { return put_dataset(j, (dataset){TYPE(t_bool), DATA(1)}); }

static inline uint64_t a_large_integer(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_u64), DATA(0, 0, 0, 0, 0, 0, 0, 0x80)});
}

static inline uint64_t a_big_endian_integer(jld2 *j) {
    static const unsigned char type[] = {0x30, 9, 0, 0, 2, 0, 0, 0, 0, 0, 16, 0};
    return put_dataset(j, (dataset){TYPE(type), DATA(0, 1)});
}

static inline uint64_t a_text(jld2 *j) {
    static const unsigned char type[] = {0x33, 0x11, 0, 0, 3, 0, 0, 0};
    return put_dataset(j, (dataset){TYPE(type), DATA('a', 0xcf, 0x83)});
}

static inline uint64_t an_empty_text(jld2 *j) {
    static const unsigned char type[] = {0x33, 0x11, 0, 0, 0, 0, 0, 0};
    return put_dataset(j, (dataset){TYPE(type)});
}

static inline uint64_t a_text_with_a_zero(jld2 *j) {
    static const unsigned char type[] = {0x33, 0x11, 0, 0, 3, 0, 0, 0};
    return put_dataset(j, (dataset){TYPE(type), DATA('a', 0, 'b')});
}

static inline uint64_t symbol_type(jld2 *j) {
    return commit(j, (committed){.name = "Core.Symbol"}, t_text, sizeof t_text);
}

static inline uint64_t put_symbol(jld2 *j, uint64_t type, const char *text) {
    chunk c = {.count = 0};
    add_text(j, &c, text);
    return put_dataset(j, (dataset){.shared = type, VALUE(c)});
}

static inline uint64_t a_symbol(jld2 *j) { return put_symbol(j, symbol_type(j), "abc"); }

static inline uint64_t an_old_bool(jld2 *j) {
    const uint64_t type = commit(j, (committed){.name = "Core.Core.Bool"}, t_empty, 8);
    return put_dataset(j, (dataset){.shared = type, DATA(1)});
}

static inline uint64_t a_character(jld2 *j) {
    static const unsigned char type[] = {0x35, 0, 0, 0, 4, 0, 0, 0};
    const uint64_t shared = commit(j, (committed){.name = "Core.Char"}, type, sizeof type);
    return put_dataset(j, (dataset){.shared = shared, DATA(0, 0, 0, 'a')});
}

/* ---- arrays ---- */

static const unsigned char six[] = {0, 0, 0,  0,  0, 0, 128, 63, 0, 0, 0,   64,
                                    0, 0, 64, 64, 0, 0, 128, 64, 0, 0, 160, 64}; /* f32: 0 .. 5 */

static inline uint64_t a_compact_array(jld2 *j) {
    return put_dataset(j,
                       (dataset){TYPE(t_f32), SIZES(3, 2), .data = six, .data_bytes = sizeof six});
}

static inline uint64_t a_contiguous_array(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_f32), SIZES(3, 2), .data = six, .data_bytes = sizeof six,
                                    .is_contiguous = true});
}

static inline uint64_t put_filtered(jld2 *j, const void *data, size_t bytes, const char *filters,
                                    size_t filters_bytes) {
    return put_dataset(j, (dataset){TYPE(t_f32), SIZES(3, 2), .data = data, .data_bytes = bytes,
                                    .filters = filters, .filters_bytes = filters_bytes});
}

static inline uint64_t put_deflated(jld2 *j, const unsigned char *data, const char *filters,
                                    size_t filters_bytes) {
    unsigned char out[200];
    uLongf size = sizeof out;
    assert_int_equal(compress(out, &size, data, sizeof six), Z_OK);
    return put_filtered(j, out, size, filters, filters_bytes);
}

#define FILTER_DEFLATE "\1\0\0\0\1\0\5\0\0\0"
#define FILTER_SHUFFLE "\2\0\0\0\1\0\4\0\0\0"

static inline uint64_t a_deflated_array(jld2 *j) {
    return put_deflated(j, six, BYTES_OF("\2\1" FILTER_DEFLATE));
}

static inline uint64_t a_shuffled_array(jld2 *j) {
    unsigned char shuffled[sizeof six];
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 4; k++) shuffled[k * 6 + i] = six[i * 4 + k];
    return put_deflated(j, shuffled, BYTES_OF("\2\2" FILTER_SHUFFLE FILTER_DEFLATE));
}

/* Elements of 2^32 - 1 bytes, of which there are none: no loop over them. */
static inline uint64_t an_array_shuffled_too_wide(jld2 *j) {
    return put_filtered(j, six, sizeof six, BYTES_OF("\2\1\2\0\0\0\1\0\377\377\377\377"));
}

static inline uint64_t an_array_by_zstd(jld2 *j) {
    return put_filtered(j, "abc", 3, BYTES_OF("\2\1\x0f\x7d\x08\0\0\0\1\0ZSTD\0\0\0\0\3\0\0\0"));
}

static inline uint64_t an_array_by_another_filter(jld2 *j) {
    return put_filtered(j, "abc", 3, BYTES_OF("\2\1\x10\x10\x08\0\0\0\0\0what\0\0\0\0"));
}

static inline uint64_t an_array_without_dimensions(jld2 *j) {
    return put_dataset(
        j, (dataset){TYPE(t_f32), .kind = SIMPLE, DATA(0, 0, 0x80, 0x3f), .dimensions = 1});
}

static inline uint64_t an_array_of_i16(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_i16), SIZES(2), DATA(1, 0, 2, 0)});
}

static inline uint64_t an_array_of_bools(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_bool), SIZES(3), DATA(1, 0, 1)});
}

static inline uint64_t an_array_of_bf16(jld2 *j) {
    static const unsigned char type[] = {0x35, 0, 0, 0, 2, 0, 0, 0};
    const uint64_t shared = commit(j, (committed){.name = "BFloat16s.BFloat16"}, type, sizeof type);
    return put_dataset(j, (dataset){.shared = shared, SIZES(2), DATA(0x80, 0x3f, 0, 0x40)});
}

static inline uint64_t an_array_of_nine_dimensions(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_bool), SIZES(1, 1, 1, 1, 1, 1, 1, 1, 1), DATA(1)});
}

static inline uint64_t complex_numbers(jld2 *j) {
    const member members[] = {{MEMBER("re", t_f32, 4)}, {MEMBER("im", t_f32, 4)}};
    chunk type = {.count = 0};
    add_compound(&type, 2, members);
    const uint64_t shared = commit(j, (committed){.name = "Base.Complex"}, type.bytes, type.count);
    return put_dataset(
        j, (dataset){.shared = shared, SIZES(3), .data = six, .data_bytes = sizeof six});
}

static inline uint64_t texts(jld2 *j) {
    chunk c = {.count = 0};
    add_text(j, &c, "a");
    add(&c, (unsigned char[16]){0}, 16);
    add_text(j, &c, "bc");
    return put_dataset(j, (dataset){TYPE(t_text), SIZES(3), VALUE(c)});
}

static inline uint64_t references(jld2 *j) {
    const uint64_t one = a_compact_array(j);
    return put_references(j, 3, (uint64_t[]){one, 0, put_integer(j, 1)});
}

static inline uint64_t missing_numbers(jld2 *j) {
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

static inline uint64_t nothings(jld2 *j) {
    const uint64_t type = commit_empty(j, "Core.Nothing", 0, NULL);
    return put_dataset(j, (dataset){.shared = type,
                                    .kind = NOTHING,
                                    .ndim = 0,
                                    .sizes = (const int64_t[]){3, 2},
                                    .dimensions = 3});
}

/* Sizes alone make no records. */
static inline uint64_t very_many_nothings(jld2 *j) {
    const uint64_t type = commit_empty(j, "Core.Nothing", 0, NULL);
    return put_dataset(j, (dataset){.shared = type,
                                    .kind = NOTHING,
                                    .sizes = (const int64_t[]){1 << 30, 1 << 30},
                                    .dimensions = 3});
}

/* ---- without data ---- */

static inline uint64_t put_nothing(jld2 *j, uint64_t type) {
    return put_dataset(j, (dataset){.shared = type, .kind = NOTHING});
}

static inline uint64_t a_nothing(jld2 *j) {
    return put_nothing(j, commit_empty(j, "Core.Nothing", 0, NULL));
}

static inline uint64_t a_missing(jld2 *j) {
    return put_nothing(j, commit_empty(j, "Base.Missing", 0, NULL));
}

static inline uint64_t an_empty_tuple(jld2 *j) {
    return put_nothing(j, commit_empty(j, "Tuple", 0, NULL));
}

static inline uint64_t a_function(jld2 *j) {
    return put_nothing(j, commit_empty(j, "NNlib.#relu", 0, NULL));
}

static inline uint64_t a_function_without_a_name(jld2 *j) {
    return put_nothing(j, commit_empty(j, "Main.#3#4", 0, NULL));
}

static inline uint64_t a_chain_of_functions(jld2 *j) {
    const uint64_t relu = put_julia(j, "NNlib.#relu", 0, NULL);
    const uint64_t tuple = put_julia(j, "Tuple", 1, &relu);
    return put_nothing(j, commit_empty(j, "Flux.Chain", 1, &tuple));
}

static inline uint64_t a_value_in_a_type(jld2 *j) {
    const uint64_t yes = a_bool(j);
    return put_nothing(j, commit_empty(j, "Base.Val", 1, &yes));
}

static inline uint64_t a_repeated_nothing(jld2 *j) {
    const uint64_t parameters[] = {put_integer(j, 2), put_julia(j, "Core.Nothing", 0, NULL)};
    return put_nothing(j, commit_empty(j, "NTuple", 2, parameters));
}

/* ---- structs ---- */

/* {weight: a reference, bias: Bool} */
static inline void add_dense(chunk *type) {
    const member members[] = {{MEMBER("weight", t_ref, 8)}, {MEMBER("bias", t_bool, 1)}};
    add_compound(type, 2, members);
}

static inline void add_dense_value(jld2 *j, chunk *value) {
    add_bits(value, a_compact_array(j), 8);
    add_bits(value, 0, 1);
}

static inline uint64_t a_struct(jld2 *j) {
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

static inline uint64_t old_dense_type(jld2 *j) {
    chunk type = {.count = 0};
    const uint64_t parameters[] = {put_julia(j, "NNlib.NNlib.#relu", 0, NULL),
                                   put_julia(j, "Core.Array", 0, NULL),
                                   put_julia(j, "Core.Bool", 0, NULL)};
    add_dense(&type);
    return commit(j, (committed){.name = "Flux.Flux.Dense", .count = 3, .parameters = parameters},
                  type.bytes, type.count);
}

static inline uint64_t an_old_struct(jld2 *j) {
    chunk value = {.count = 0};
    const uint64_t type = old_dense_type(j);
    add_dense_value(j, &value);
    return put_dataset(j, (dataset){.shared = type, VALUE(value)});
}

/* (1, nothing, 2), of which the file has two members. */
static inline uint64_t an_old_tuple(jld2 *j) {
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
static inline uint64_t put_names(jld2 *j, const char *a, const char *b) {
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
static inline uint64_t an_old_named_tuple(jld2 *j) {
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

static inline uint64_t an_empty_named_tuple(jld2 *j) {
    const uint64_t none = put_nothing(j, commit_empty(j, "Tuple", 0, NULL));
    const uint64_t parameters[] = {none, put_julia(j, "Tuple", 0, NULL)};
    return put_nothing(j, commit_empty(j, "Core.NamedTuple", 2, parameters));
}

/* Named tuples of an Upsample say its mode in the type. */
static inline uint64_t a_symbol_in_a_type(jld2 *j) {
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

static inline uint64_t a_plain_compound(jld2 *j) {
    const member members[] = {{MEMBER("a", t_i64, 8)}, {MEMBER("b", t_bool, 1)}};
    chunk type = {.count = 0}, value = {.count = 0};
    add_compound(&type, 2, members);
    add_bits(&value, 3, 8), add_bits(&value, 1, 1);
    return put_dataset(j, (dataset){.type = type.bytes, .type_bytes = type.count, VALUE(value)});
}

static inline uint64_t an_array_of_a_gpu(jld2 *j) {
    const member members[] = {{MEMBER("rank", t_i64, 8)}};
    chunk type = {.count = 0};
    add_compound(&type, 1, members);
    const uint64_t shared = commit(j, (committed){.name = "CUDA.CuArray"}, type.bytes, type.count);
    return put_dataset(j, (dataset){.shared = shared, DATA(1, 0, 0, 0, 0, 0, 0, 0)});
}

/* ---- dictionaries, other conversions ---- */

/* Pair{Any, Any}: two references. */
static inline uint64_t put_pair(jld2 *j, uint64_t first, uint64_t second) {
    const member members[] = {{MEMBER("first", t_ref, 8)}, {MEMBER("second", t_ref, 8)}};
    chunk type = {.count = 0}, value = {.count = 0};
    add_compound(&type, 2, members);
    const uint64_t shared = commit(j, (committed){.name = "Base.Pair"}, type.bytes, type.count);
    add_bits(&value, first, 8), add_bits(&value, second, 8);
    return put_dataset(j, (dataset){.shared = shared, VALUE(value)});
}

static inline uint64_t put_dictionary(jld2 *j, uint64_t pairs) {
    const member members[] = {{MEMBER("kvvec", t_ref, 8)}};
    chunk type = {.count = 0}, value = {.count = 0};
    add_compound(&type, 1, members);
    const uint64_t shared =
        commit(j, (committed){.name = "Base.Dict", .written = "JLD2.SerializedDict"}, type.bytes,
               type.count);
    add_bits(&value, pairs, 8);
    return put_dataset(j, (dataset){.shared = shared, VALUE(value)});
}

static inline uint64_t a_dictionary(jld2 *j) {
    const uint64_t pairs[] = {put_pair(j, a_text(j), put_integer(j, 1)),
                              put_pair(j, a_symbol(j), a_compact_array(j))};
    return put_dictionary(j, put_references(j, 2, pairs));
}

static inline uint64_t a_dictionary_by_numbers(jld2 *j) {
    const uint64_t pairs[] = {put_pair(j, put_integer(j, 5), a_text(j))};
    return put_dictionary(j, put_references(j, 1, pairs));
}

static inline uint64_t an_old_dictionary(jld2 *j) {
    const uint64_t pairs[] = {put_pair(j, a_text(j), put_integer(j, 1))};
    chunk value = {.count = 0};
    const uint64_t shared =
        commit(j, (committed){.name = "Base.Dict", .written = "Core.Array"}, t_ref, sizeof t_ref);
    add_bits(&value, put_references(j, 1, pairs), 8);
    return put_dataset(j, (dataset){.shared = shared, VALUE(value)});
}

static inline uint64_t a_module(jld2 *j) {
    chunk value = {.count = 0};
    const uint64_t shared = commit(j, (committed){.name = "Core.Module", .written = "Core.String"},
                                   t_text, sizeof t_text);
    add_text(j, &value, "Flux");
    return put_dataset(j, (dataset){.shared = shared, VALUE(value)});
}

static inline uint64_t a_datatype(jld2 *j) { return put_julia(j, "Core.Float32", 0, NULL); }

static inline uint64_t a_committed_datatype(jld2 *j) { return symbol_type(j); }

/* ---- groups ---- */

static inline uint64_t groups_in_groups(jld2 *j) {
    const uint64_t one = put_integer(j, 1);
    const entry entries[] = {{"b", one}, {"a", put_group(j, 1, &(entry){"c", one})}};
    return put_group(j, 2, entries);
}

static inline uint64_t an_empty_group(jld2 *j) { return put_group(j, 0, NULL); }

/* A list that is in itself. */
static inline uint64_t a_cycle(jld2 *j) {
    chunk c = {.count = 0};
    add_bits(&c, 0, 8);
    const uint64_t list = put_dataset(j, (dataset){TYPE(t_ref), SIZES(1), VALUE(c)});
    /* its bytes are before the 20 bytes of the message for later */
    const size_t end = j->count - 4, at = end - 20 - 8;
    store_bits(j->bytes + at, list, 8);
    sum_up(j, list + JLD2_BASE, end);
    return list;
}

#endif
