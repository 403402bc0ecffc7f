/* src/models/gguf_model.c: what is refused, and one model from bytes; others in peers_gguf.py. */
#include "formats/gguf_maker.h"
#include "formats/trees.h"

#define NAME "model.gguf"

enum { U32 = 4, BOOL = 7, TEXT = 8 };

/* A key, and the value of one type. */
typedef struct pair {
    const char *key;
    uint32_t type;
    uint32_t number;
    const char *text;
} pair;

static void put_pairs(builder *b, const pair *pairs, int count) {
    for (int i = 0; i < count; i++) {
        put_pair(b, pairs[i].key, pairs[i].type);
        if (pairs[i].type == TEXT)
            put_text(b, pairs[i].text);
        else
            put(b, &pairs[i].number, pairs[i].type == BOOL ? 1 : 4);
    }
}

static void put_head(builder *b, uint64_t tensors, uint64_t pairs) {
    put(b, "GGUF", 4);
    put_u32(b, 3);
    put_u64(b, tensors);
    put_u64(b, pairs);
}

/* ---- what is refused ---- */

enum { PAIRS = 6 };
typedef struct fault_row {
    const char *name;
    pair pairs[PAIRS];
    const char *message;
} fault_row;

#define ARCHITECTURE(name)                                                                         \
    { "general.architecture", TEXT, 0, name }
#define SIZES                                                                                      \
    {"llama.embedding_length", U32, 8, NULL}, { "llama.attention.head_count", U32, 2, NULL }

static const fault_row fault_rows[] = {
    {"no architecture",
     {{"a", U32, 1, NULL}},
     "model.gguf, offset 0: general.architecture must be a text, but is nothing"},
    {"an architecture that is a number",
     {{"general.architecture", U32, 1, NULL}},
     "offset 56: general.architecture must be a text, but is an integer"},
    {"another architecture",
     {ARCHITECTURE("falcon")},
     "the architecture must be one of gpt2, llama, qwen2, bert, but is falcon"},
    {"a part of a model",
     {ARCHITECTURE("llama"), {"split.count", U32, 3, NULL}},
     "the model is in 3 files, which are not read together"},
    {"a setting that is a text",
     {ARCHITECTURE("llama"), {"llama.block_count", TEXT, 0, "two"}},
     "block_count must be an integer, but is a text"},
    {"experts",
     {ARCHITECTURE("llama"), {"llama.expert_count", U32, 8, NULL}},
     "models with expert_count cannot be made"},
    {"rotary positions of a part of a head",
     {ARCHITECTURE("llama"), SIZES, {"llama.rope.dimension_count", U32, 2, NULL}},
     "a rope.dimension_count other than the size of heads"},
    {"another scaling",
     {ARCHITECTURE("llama"), SIZES, {"llama.rope.scaling.type", TEXT, 0, "yarn"}},
     "another rope.scaling.type than none and linear"},
    {"a scaling without its factor",
     {ARCHITECTURE("llama"), SIZES, {"llama.rope.scaling.type", TEXT, 0, "linear"}},
     "rope.scaling.factor is missing"},
    {"a causal BERT",
     {ARCHITECTURE("bert"), {"bert.attention.causal", BOOL, 1, NULL}},
     "models with attention.causal cannot be made"},
    {"no arrays", {ARCHITECTURE("llama"), SIZES}, "a llama must have the array token_embd.weight"},
};

static void is_refused(void **state) {
    const fault_row *row = *state;
    builder b = {.size = 0};
    int count = 0;
    while (count < PAIRS && row->pairs[count].key) count++;
    put_head(&b, 0, (uint64_t)count);
    put_pairs(&b, row->pairs, count);
    write_bytes(NAME, b.bytes, b.size);
    assert_null(wb_load_model(test_path, NULL));
    assert_true(strstr(wb_error_message(), row->message) != NULL);
    wb_clear_error();
}

/* ---- one block ---- */

static const pair settings[] = {
    ARCHITECTURE("llama"),
    {"llama.block_count", U32, 1, NULL},
    {"llama.embedding_length", U32, 4, NULL},
    {"llama.feed_forward_length", U32, 2, NULL},
    {"llama.attention.head_count", U32, 1, NULL},
    {"tokenizer.ggml.eos_token_id", U32, 2, NULL},
};
enum { SETTINGS = sizeof settings / sizeof *settings, TENSORS = 11 };

static void put_floats(builder *b, const char *name, uint64_t columns, uint64_t rows) {
    const uint64_t sizes[] = {columns, rows};
    const size_t begin = b->data_size, count = (size_t)(columns * (rows ? rows : 1));
    put_tensor(b, name, rows ? 2 : 1, sizes, 0, 4 * count);
    for (size_t i = 0; i < count; i++) {
        const float value = (float)i;
        memcpy(b->data + begin + 4 * i, &value, 4);
    }
}

static void write_llama(int tensors) {
    static const struct {
        const char *name;
        uint64_t columns, rows;
    } rows[TENSORS] = {{"token_embd.weight", 4, 3},      {"output_norm.weight", 4, 0},
                       {"blk.0.attn_norm.weight", 4, 0}, {"blk.0.ffn_norm.weight", 4, 0},
                       {"blk.0.attn_q.weight", 4, 4},    {"blk.0.attn_k.weight", 4, 4},
                       {"blk.0.attn_v.weight", 4, 4},    {"blk.0.attn_output.weight", 4, 4},
                       {"blk.0.ffn_gate.weight", 4, 2},  {"blk.0.ffn_up.weight", 4, 2},
                       {"blk.0.ffn_down.weight", 2, 4}};
    builder b = {.size = 0};
    put_head(&b, (uint64_t)tensors, SETTINGS);
    put_pairs(&b, settings, SETTINGS);
    for (int i = 0; i < tensors; i++) put_floats(&b, rows[i].name, rows[i].columns, rows[i].rows);
    put_data(&b, 0);
    write_bytes(NAME, b.bytes, b.size);
}

/* Row i of the file, which has 4 i, 4 i + 1, ..., is row order[i] of the model. */
static void assert_rows(const wb_file *state, const char *path, const int64_t *order) {
    wb_array *x = wb_record_array(state, wb_record_get(wb_file_root(state), path));
    assert_non_null(x);
    for (int64_t row = 0; row < 4; row++)
        for (int64_t column = 0; column < 4; column++)
            assert_float_equal(wb_at(x, row, column), (double)(4 * order[row] + column), 0);
}

static void rows_of_queries_and_keys_are_in_halves(void **state) {
    (void)state;
    write_llama(TENSORS);
    wb_layer *model = wb_load_model(test_path, NULL);
    if (!model) fail_msg("not made: %s", wb_error_message());
    wb_scope_open();
    wb_file *tree = wb_state(model);
    assert_rows(tree, "layers.2.attention.q_proj.weight", (const int64_t[]){0, 2, 1, 3});
    assert_rows(tree, "layers.2.attention.k_proj.weight", (const int64_t[]){0, 2, 1, 3});
    assert_rows(tree, "layers.2.attention.v_proj.weight", (const int64_t[]){0, 1, 2, 3});
    wb_scope_close();
    wb_free(tree), wb_free(model);
    assert_int_equal(wb_end_token(test_path), 2);
}

static void an_open_file_gives_two_models(void **state) {
    (void)state;
    write_llama(TENSORS);
    wb_file *file = open_saved();
    wb_layer *a = wb_file_model(file, NULL, NULL), *b = wb_file_model(file, "model", NULL);
    assert_non_null(b);
    wb_scope_open();
    wb_file *tree = wb_state(b);
    assert_rows(tree, "layers.2.attention.q_proj.weight", (const int64_t[]){0, 2, 1, 3});
    wb_scope_close();
    wb_free(tree), wb_free(a), wb_free(b), wb_free(file);
}

static void an_array_that_is_missing_is_an_error(void **state) {
    (void)state;
    write_llama(TENSORS - 1);
    assert_null(wb_load_model(test_path, NULL));
    assert_error(WB_ERROR_ARGUMENT, "model.gguf");
}

static void allocations_that_fail_are_errors(void **state) {
    (void)state;
    write_llama(TENSORS);
    wb_layer *model = NULL;
    for (int64_t n = 1; !model; n++) {
        (void)wb_fail_allocation(n);
        model = wb_load_model(test_path, NULL);
        (void)wb_fail_allocation(0);
        if (!model) assert_error(WB_ERROR_MEMORY, "");
        assert_true(n < 10000);
    }
    wb_free(model);
}

int main(void) {
    enum { FAULTS = sizeof fault_rows / sizeof *fault_rows };
    struct CMUnitTest faults[FAULTS];
    const struct CMUnitTest tests[] = {
        TEST(rows_of_queries_and_keys_are_in_halves),
        TEST(an_open_file_gives_two_models),
        TEST(an_array_that_is_missing_is_an_error),
        TEST(allocations_that_fail_are_errors),
    };
    if (make_folder(NULL)) return 1;
    for (int i = 0; i < FAULTS; i++) faults[i] = TEST_ROW(&fault_rows[i], is_refused);
    const int failed = cmocka_run_group_tests_name("what is refused", faults, NULL, NULL) +
                       cmocka_run_group_tests_name("models of GGUF", tests, NULL, NULL);
    return remove_folder(NULL) || failed;
}
