/* PyTorch's files without a table: which array of a file goes to which place of a model, and what
 * is refused. That PyTorch's results come out: tests/formats/peers.py torch. */
#include "formats/trees.h"

#include "formats/flat.h"
#include "models/torch.h"

typedef struct row {
    const char *name;
    const char *model;
    const char *arrays; /* "0.weight 3 4, 0.bias 4": in the file's order, or without one */
    bool is_sorted;     /* the file does not keep it */
    const char *rename;
    const char *table; /* NULL: there is an error */
    const char *error;
} row;

#define TWO "Chain(Dense(4 => 4; bias=false), Dense(4 => 4; bias=false))"

static const row rows[] = {
    {"a Linear is transposed", "Dense(3 => 4)", "weight 3 4, bias 4", false, NULL,
     "weight -> weight transpose\nbias -> bias\n", NULL},
    {"modules come in order", "Chain(Dense(4 => 4), relu, Dense(4 => 4; bias=false))",
     "b.weight 4 4, b.bias 4, a.weight 4 4", false, NULL,
     "b.weight -> layers.1.weight transpose\nb.bias -> layers.1.bias\n"
     "a.weight -> layers.3.weight transpose\n",
     NULL},
    {"numbers are an order, by value",
     "Chain(Dense(4 => 4; bias=false), Dense(4 => 4; bias=false))",
     "fc10.weight 4 4, fc2.weight 4 4", true, NULL,
     "fc2.weight -> layers.1.weight transpose\nfc10.weight -> layers.2.weight transpose\n", NULL},
    {"words are none", TWO, "encoder.weight 4 4, decoder.weight 4 4", true, NULL, NULL,
     "Dense(4 => 4; bias=false), layers.1 could be decoder or encoder: their sizes are the same, "
     "nothing in their names says which, and this file does not keep the order of the modules; "
     "give layers the names of their modules, or the right row of a rename table (.rename): "
     "\"decoder.weight -> layers.1.weight transpose\" or \"encoder.weight -> layers.1.weight "
     "transpose\""},
    {"the order of a file does not tell words apart", TWO, "b.weight 4 4, a.weight 4 4", false,
     NULL, NULL,
     "layers.1 could be a or b: their sizes are the same, and nothing in their names says which; "
     "the order of the file is that in which a program makes modules, not that in which it uses "
     "them; give layers the names"},
    {"numbers and the order of a file agree", TWO, "fc1.weight 4 4, fc2.weight 4 4", false, NULL,
     "fc1.weight -> layers.1.weight transpose\nfc2.weight -> layers.2.weight transpose\n", NULL},
    {"or contradict each other", TWO, "fc2.weight 4 4, fc1.weight 4 4", false, NULL, NULL,
     "layers.1 could be fc2 or fc1: the first by the order of the file, the second by the names; "
     "give layers"},
    {"unless sizes tell", "Chain(Dense(4 => 5; bias=false), Dense(5 => 4; bias=false))",
     "fc2.weight 4 5, fc1.weight 5 4", false, NULL,
     "fc2.weight -> layers.1.weight transpose\nfc1.weight -> layers.2.weight transpose\n", NULL},
    {"or the model's names", "Chain(a = Dense(4 => 4; bias=false), b = Dense(4 => 4; bias=false))",
     "b.weight 4 4, a.weight 4 4", false, NULL,
     "a.weight -> layers.a.weight transpose\nb.weight -> layers.b.weight transpose\n", NULL},
    {"branches without names are as like as layers of a chain",
     "Parallel(+, Dense(4 => 4; bias=false), Dense(4 => 4; bias=false))",
     "mean.weight 4 4, scale.weight 4 4", false, NULL, NULL,
     "layers.1 could be mean or scale: their sizes are the same"},
    {"a module of modules comes first or last",
     "Chain(Dense(4 => 4; bias=false), Dense(4 => 4; bias=false), Dense(4 => 4; bias=false))",
     "body.0.weight 4 4, body.2.weight 4 4, head.weight 4 4", false, NULL, NULL,
     "layers.1 could be body.0 or head"},
    {"unless the model has such a layer of layers",
     "Chain(Chain(Dense(4 => 4; bias=false), Dense(4 => 4; bias=false)), "
     "Dense(4 => 4; bias=false))",
     "body.0.weight 4 4, body.2.weight 4 4, head.weight 4 4", false, NULL,
     "body.0.weight -> layers.1.layers.1.weight transpose\n"
     "body.2.weight -> layers.1.layers.2.weight transpose\n"
     "head.weight -> layers.2.weight transpose\n",
     NULL},
    {"a number goes on in its branch, not in a chain",
     "Chain(Dense(3 => 4; bias=false), Dense(4 => 4; bias=false), Dense(4 => 4; bias=false))",
     "fc1.weight 3 4, fc2.weight 4 4, mid.0.weight 4 4", true, NULL, NULL,
     "layers.2 could be fc2 or mid.0"},
    {"sizes tell words apart", "Chain(Dense(4 => 3; bias=false), Dense(3 => 4; bias=false))",
     "encoder.weight 4 3, decoder.weight 3 4", true, NULL,
     "encoder.weight -> layers.1.weight transpose\ndecoder.weight -> layers.2.weight transpose\n",
     NULL},
    {"names of the model tell words apart",
     "Chain(encoder = Dense(4 => 4; bias=false), decoder = Dense(4 => 4; bias=false))",
     "encoder.weight 4 4, decoder.weight 4 4", true, NULL,
     "encoder.weight -> layers.encoder.weight transpose\n"
     "decoder.weight -> layers.decoder.weight transpose\n",
     NULL},
    {"branches keep their names",
     "Parallel(+, a = Dense(4 => 4; bias=false), b = Dense(4 => 4; bias=false))",
     "b.weight 4 4, a.weight 4 4", false, NULL,
     "b.weight -> layers.b.weight transpose\na.weight -> layers.a.weight transpose\n", NULL},
    {"a row of the user comes first", "Chain(Dense(4 => 4; bias=false), Dense(4 => 4; bias=false))",
     "encoder.weight 4 4, decoder.weight 4 4", true, "decoder.weight -> layers.2.weight transpose",
     "decoder.weight -> layers.2.weight transpose\n"
     "encoder.weight -> layers.1.weight transpose\n",
     NULL},
    {"counts are left out",
     "Chain(Conv((3, 3), 2 => 4; bias=false), BatchNorm(4; track_stats=false))",
     "conv.weight 3 3 2 4, bn.weight 4, bn.bias 4, bn.num_batches_tracked", false, NULL,
     "bn.num_batches_tracked ->\nconv.weight -> layers.1.weight flip\n"
     "bn.bias -> layers.2.β\nbn.weight -> layers.2.γ\n",
     NULL},
    {"branches may come in another order",
     "Parallel(+, Dense(4 => 4; bias=false), Chain(Dense(4 => 5), Dense(5 => 4)))",
     "a.weight 4 5, a.bias 5, b.weight 5 4, b.bias 4, c.weight 4 4", false, NULL,
     "a.weight -> layers.2.layers.1.weight transpose\na.bias -> layers.2.layers.1.bias\n"
     "b.weight -> layers.2.layers.2.weight transpose\nb.bias -> layers.2.layers.2.bias\n"
     "c.weight -> layers.1.weight transpose\n",
     NULL},
    {"and layers of a chain, where sizes tell",
     "Chain(Dense(4 => 5; bias=false), Dense(5 => 4; bias=false))", "a.weight 5 4, b.weight 4 5",
     false, NULL, "b.weight -> layers.1.weight transpose\na.weight -> layers.2.weight transpose\n",
     NULL},
    {"a misfit is said by the order of the file",
     "Chain(Dense(4 => 5; bias=false), Dense(5 => 4; bias=false))", "a.weight 5 4, b.weight 4 6",
     false, NULL, NULL,
     "layer 1 of the model, Dense(4 => 5; bias=false), layers.1, needs weight (4, 5), but module 1 "
     "of the file, a, has weight (5, 4)"},
    {"sizes differ", "Chain(Dense(784 => 48), Dense(48 => 10))",
     "0.weight 784 48, 0.bias 48, classifier.weight 512 10, classifier.bias 10", false, NULL, NULL,
     "torch.pt: layer 2 of the model, Dense(48 => 10), layers.2, needs weight (48, 10), bias (10), "
     "but module 2 of the file, classifier, has weight (512, 10), bias (10)"},
    {"a bias too many", "Dense(3 => 4; bias=false)", "weight 3 4, bias 4", false, NULL, NULL,
     "needs weight (3, 4), but module 1 of the file, which has no name, has weight (3, 4), bias "
     "(4)"},
    {"a module too many", "Chain(Dense(3 => 4; bias=false))", "0.weight 3 4, 1.weight 4 4", false,
     NULL, NULL, "module 2 of the file, 1, has weight (4, 4), but the model has only 1 layer"},
    {"a layer too many", "Chain(Dense(3 => 4; bias=false), Dense(4 => 4; bias=false))",
     "0.weight 3 4", false, NULL, NULL,
     "layer 2 of the model, Dense(4 => 4; bias=false), layers.2, needs weight (4, 4), but the file "
     "has only 1 module"},
    {"both directions are one module",
     "Bidirectional(RNN(2 => 3; bias=false), RNN(2 => 3; bias=false))",
     "weight_ih_l0 2 3, weight_hh_l0 3 3, weight_ih_l0_reverse 2 3, weight_hh_l0_reverse 3 3", true,
     NULL,
     "weight_ih_l0 -> forward.cell.Wi transpose\nweight_hh_l0 -> forward.cell.Wh transpose\n"
     "weight_ih_l0_reverse -> backward.cell.Wi transpose\n"
     "weight_hh_l0_reverse -> backward.cell.Wh transpose\n",
     NULL},
    {"two layers are not two directions",
     "Bidirectional(RNN(3 => 3; bias=false), RNN(3 => 3; bias=false))",
     "weight_ih_l0 3 3, weight_hh_l0 3 3, weight_ih_l1 3 3, weight_hh_l1 3 3", false, NULL, NULL,
     "needs weight_ih_l_reverse (3, 3), weight_hh_l_reverse (3, 3), but module 2"},
    {"q, k and v need names", "MultiHeadAttention(4; nheads=2)",
     "0.weight 4 4, 1.weight 4 4, 2.weight 4 4, 3.weight 4 4", false, NULL, NULL,
     "needs in_proj_weight (4, 12), but module 2 of the file, 1, has weight (4, 4); queries, keys "
     "and "
     "values that are a module each need names that say so: q, query, to_q, q_proj"},
    {"a model's own arrays are like modules",
     "Chain(PatchEmbedding((2, 2), 1 => 4), ClassToken(4), PositionEmbedding(5 => 4), "
     "Scale(1, 4; bias=false))",
     "class_token 4 1 1, conv_proj.weight 2 2 1 4, conv_proj.bias 4, encoder.pos_embedding 4 5 1, "
     "encoder.layer_scale 1 4",
     false, NULL,
     "conv_proj.weight -> layers.1.weight\nconv_proj.bias -> layers.1.bias\n"
     "class_token -> layers.2.token squeeze 2\n"
     "encoder.pos_embedding -> layers.3.weight squeeze 1\n"
     "encoder.layer_scale -> layers.4.scale\n",
     NULL},
    {"by the names of timm, too",
     "Chain(PatchEmbedding((2, 2), 1 => 4), ClassToken(4), PositionEmbedding(5 => 4))",
     "cls_token 4 1 1, pos_embed 4 5 1, patch_embed.proj.weight 2 2 1 4, patch_embed.proj.bias 4",
     true, NULL,
     "patch_embed.proj.weight -> layers.1.weight\npatch_embed.proj.bias -> layers.1.bias\n"
     "cls_token -> layers.2.token squeeze 2\npos_embed -> layers.3.weight squeeze 1\n",
     NULL},
    {"positions of an image of another size", "Chain(ClassToken(4), PositionEmbedding(5 => 4))",
     "cls_token 4 1 1, pos_embed 4 10 1", true, NULL, NULL,
     "layer 2 of the model, PositionEmbedding(5 => 4), layers.2, needs weight (4, 5), but the "
     "file's module pos_embed has pos_embed (4, 10, 1)"},
    {"a misfit is where names led to, if the order of the file led nowhere",
     "Chain(PatchEmbedding((2, 2), 1 => 4), ClassToken(4), PositionEmbedding(5 => 4), "
     "LayerNorm(4))",
     "class_token 4 1 1, conv_proj.weight 2 2 1 4, conv_proj.bias 4, encoder.pos_embedding 4 10 1, "
     "encoder.ln.weight 4, encoder.ln.bias 4",
     false, NULL, NULL,
     "layer 3 of the model, PositionEmbedding(5 => 4), layers.3, needs weight (4, 5), but the "
     "file's module encoder.pos_embedding has pos_embedding (4, 10, 1)"},
    {"a tied array is once in the file",
     "Chain(Embedding(7 => 4), Dense(4 => 7; bias=false))\n"
     "layers.2.weight = transpose(layers.1.weight)",
     "wte.weight 4 7", true, NULL,
     "wte.weight -> layers.1.weight\nwte.weight -> layers.2.weight transpose\n", NULL},
    {"or in each place",
     "Chain(Embedding(7 => 4), Dense(4 => 7; bias=false))\n"
     "layers.2.weight = transpose(layers.1.weight)",
     "wte.weight 4 7, lm_head.weight 4 7", true, NULL,
     "wte.weight -> layers.1.weight\nlm_head.weight -> layers.2.weight transpose\n", NULL},
    {"a Conv1D of Hugging Face's is a Linear that is not transposed; a square one is told by "
     "others",
     "Chain(Dense(4 => 6; bias=false), Dense(6 => 6; bias=false))",
     "mlp.c_fc.weight 6 4, mlp.c_proj.weight 6 6", false, NULL,
     "mlp.c_fc.weight -> layers.1.weight\nmlp.c_proj.weight -> layers.2.weight\n", NULL},
    {"by such names alone Linears stay Linears",
     "Chain(Dense(4 => 6; bias=false), Dense(6 => 6; bias=false))",
     "mlp.c_fc.weight 4 6, mlp.c_proj.weight 6 6", false, NULL,
     "mlp.c_fc.weight -> layers.1.weight transpose\n"
     "mlp.c_proj.weight -> layers.2.weight transpose\n",
     NULL},
    {"other names are none of Conv1D", "Dense(4 => 6; bias=false)", "fc.weight 6 4", false, NULL,
     NULL, "needs weight (4, 6), but module 1 of the file, fc, has weight (6, 4)"},
    {"queries, keys and values of a Conv1D lie side by side",
     "MultiHeadAttention(4; nheads=2, bias=true)",
     "c_attn.weight 12 4, c_attn.bias 12, c_proj.weight 4 4, c_proj.bias 4", false, NULL,
     "c_attn.weight -> q_proj.weight part 1/3 along 0\nc_attn.bias -> q_proj.bias part 1/3\n"
     "c_attn.weight -> k_proj.weight part 2/3 along 0\nc_attn.bias -> k_proj.bias part 2/3\n"
     "c_attn.weight -> v_proj.weight part 3/3 along 0\nc_attn.bias -> v_proj.bias part 3/3\n"
     "c_proj.weight -> out_proj.weight\nc_proj.bias -> out_proj.bias\n",
     NULL},
    {"neither has arrays", "Chain(relu, flatten)", "", true, NULL, "", NULL},
    {"the file has none", "Dense(3 => 4)", "", true, NULL, NULL,
     "needs weight (3, 4), bias (4), but the file has only 0 modules with arrays"},
    {"the model has none", "Chain(relu, flatten)", "a.weight 3", true, NULL, NULL,
     "a has weight (3), but the model has only 0 layers with arrays"},
    {"names in quotes", "Dense(3 => 4; bias=false)", "a b*.weight 3 4", false, NULL,
     "\"a b*.weight\" -> weight transpose\n", NULL},
};

/* The file that the text describes. */
static const float numbers[1 << 16] = {0};

static wb_file *file_of(const row *row) {
    wb_file *file = wb_file_new("torch.pt");
    wb_flat flat = {.entries = NULL};
    char *text = wb_arena_text(&file->arena, row->arrays, strlen(row->arrays));
    file->order = wb_arena_list(&file->arena, 16, sizeof *file->order);
    for (char *save = NULL, *one = strtok_r(text, ",", &save); one;
         one = strtok_r(NULL, ",", &save)) {
        char *end = one + strlen(one);
        while (*one == ' ') one++;
        int64_t sizes[WB_MAX_DIMS];
        int ndim = 0;
        char *at = one;
        while (at < end && !(at[0] == ' ' && at[1] >= '0' && at[1] <= '9')) at++;
        for (char *next = at; next < end; ndim++) sizes[ndim] = strtoll(next, &next, 10);
        *at = 0;
        wb_record *r = data_of(&file->arena, WB_F32, ndim, sizes, numbers);
        assert_true(wb_flat_add(&flat, (wb_flat_entry){.path = one, .record = r}));
        if (!row->is_sorted) file->order[file->order_count++] = one;
    }
    file->root = wb_flat_nest(&flat, file);
    assert_non_null(file->root);
    wb_flat_release(&flat);
    return file;
}

static void a_file_is_matched(void **state) {
    const row *row = *state;
    wb_layer *model = wb_parse(.text = row->model);
    if (!model) fail_msg("%s", wb_error_message());
    wb_file *file = file_of(row);
    const char *table = wb_torch_rows(file, file->root, model, row->rename, NULL);
    if (row->table && !table) fail_msg("%s", wb_error_message());
    if (row->table) assert_string_equal(table, row->table);
    if (!row->table) {
        assert_null(table);
        const bool could_be = strstr(row->error, " could be ") != NULL;
        assert_error(could_be ? WB_ERROR_ARGUMENT : WB_ERROR_SHAPE, row->error);
    }
    wb_free(file), wb_free(model);
}

static void allocations_that_fail_are_errors(void **state) {
    (void)state;
    wb_layer *model = wb_parse(.text = "Chain(MultiHeadAttention(4; nheads=2), BatchNorm(4))");
    wb_file *file = file_of(&(row){.arrays = "a.in_proj_weight 4 12, a.out_proj.weight 4 4, "
                                             "b.weight 4, b.bias 4, b.running_mean 4, "
                                             "b.running_var 4, b.num_batches_tracked"});
    bool is_done = false;
    for (int64_t n = 1; !is_done && n < 10000; n++) {
        (void)wb_fail_allocation(n);
        is_done = wb_torch_rows(file, file->root, model, "c -> d", NULL) != NULL;
        (void)wb_fail_allocation(0);
        if (!is_done) assert_error(WB_ERROR_MEMORY, "");
    }
    assert_true(is_done);
    wb_free(file), wb_free(model);
}

static void a_table_leads_back(void **state) {
    (void)state;
    wb_layer *model = wb_parse(.text = "Chain(MultiHeadAttention(4; nheads=2), BatchNorm(4))");
    wb_file *file = file_of(&(row){.arrays = "a.in_proj_weight 4 12, a.out_proj.weight 4 4, "
                                             "b.weight 4, b.bias 4, b.running_mean 4, "
                                             "b.running_var 4, b.num_batches_tracked"});
    assert_string_equal(wb_torch_rows(file, file->root, model, NULL, "model"),
                        "model.layers.1.q_proj.weight -> a.in_proj_weight transpose into 1/3\n"
                        "model.layers.1.k_proj.weight -> a.in_proj_weight transpose into 2/3\n"
                        "model.layers.1.v_proj.weight -> a.in_proj_weight transpose into 3/3\n"
                        "model.layers.1.out_proj.weight -> a.out_proj.weight transpose\n"
                        "model.layers.2.β -> b.bias\n"
                        "model.layers.2.γ -> b.weight\n"
                        "model.layers.2.μ -> b.running_mean\n"
                        "model.layers.2.σ² -> b.running_var\n");
    wb_free(file), wb_free(model);
}

static void an_unknown_library_is_refused(void **state) {
    (void)state;
    wb_layer *model = wb_dense(3, 4);
    assert_int_equal(wb_load("x.pt", model, .from = "keras"), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_load: .from must be \"torch\", got \"keras\"");
    wb_free(model);
}

int main(void) {
    enum { ROWS = sizeof rows / sizeof *rows };
    static struct CMUnitTest matches[ROWS];
    const struct CMUnitTest tests[] = {
        TEST(allocations_that_fail_are_errors),
        TEST(a_table_leads_back),
        TEST(an_unknown_library_is_refused),
    };
    for (int i = 0; i < ROWS; i++) matches[i] = TEST_ROW(&rows[i], a_file_is_matched);
    return cmocka_run_group_tests_name("rows", matches, NULL, NULL) +
           cmocka_run_group_tests_name("PyTorch without a table", tests, NULL, NULL);
}
