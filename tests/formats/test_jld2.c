/* src/formats/jld2*.c: what values become. */
#include "formats/jld2_values.h"

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
    };
    ADD_TESTS(&tests, all);
    return run_test_list("formats/test_jld2", &tests, make_folder, remove_folder);
}
