/* Rename tables: names by rows and stars, trees under new names, arrays turned on the way. */
#include "models/torch_file.h"

#include "models/rename.h"
#include "models/rename_table.h"

/* ---- names ---- */

typedef struct name_row {
    const char *name, *table, *from, *to; /* to NULL: no row takes it; "": it is left out */
} name_row;

static const name_row name_rows[] = {
    {"a name without stars is itself", "a.b -> c", "a.b", "c"},
    {"and no other", "a.b -> c", "a.bb", NULL},
    {"a star is a part without dots", "*.weight -> x.*", "0.weight", "x.0"},
    {"which never crosses one", "*.weight -> x.*", "a.0.weight", NULL},
    {"a star is no nothing", "a*.w -> *", "a.w", NULL},
    {"two stars cross dots", "module.** -> **", "module.a.b.c", "a.b.c"},
    {"and are no nothing", "module.** -> **", "module.", NULL},
    {"two stars behind each other's dots", "**.x.** -> **/**", "a.b.x.x.c", "a.b/x.c"},
    {"stars within a part", "layer*_*.w -> *.*", "layer12_b.w", "12.b"},
    {"a star takes as little as it can", "*a* -> */*", "xaya", "x/ya"},
    {"and more where it has to", "*a.* -> */*", "xaya.b", "xay/b"},
    {"a star after two stars is tried anew", "**.*x -> **/*", "a.b.cx", "a.b/c"},
    {"a number and one more", "h.*.* -> layers.*+1.*", "h.9.w", "layers.10.w"},
    {"a number and some less", "h.* -> *-7", "h.9", "2"},
    {"no number below nothing", "h.* -> *-10", "h.9", NULL},
    {"one more than a name is nothing", "* -> *+1\n* -> b.*", "name", "b.name"},
    {"a plus that no digit follows stays", "* -> *+x", "a", "a+x"},
    {"the first row that takes it counts", "a -> b\n* -> c.*", "a", "b"},
    {"rows without a right side leave out", "*.num_batches_tracked ->", "1.num_batches_tracked",
     ""},
    {"quotes are taken letter by letter", "\"a *# b\" -> \"*\"", "a *# b", "*"},
    {"remarks and blank lines are passed over", "# x\n\n  a -> b # y\r\n", "a", "b"},
    {"Windows' ends of lines", "a -> b\r\nc -> d\r\n", "c", "d"},
};

static void a_name_becomes(void **state) {
    const name_row *row = *state;
    char to[WB_RENAME_BYTES];
    wb_rename_table table;
    assert_int_equal(wb_rename_parse(&table, row->table), WB_OK);
    const wb_rename_row *found = wb_rename_find(&table, NULL, row->from, to);
    assert_int_equal(found != NULL, row->to != NULL);
    if (row->to && *row->to) assert_string_equal(to, row->to);
    if (row->to && !*row->to) assert_null(found->to);
    wb_rename_release(&table);
}

typedef struct fault_row {
    const char *name, *table, *message;
} fault_row;

static const fault_row fault_rows[] = {
    {"a row without an arrow", "a b", "line 1: -> must follow \"a\", got \"b\""},
    {"a name alone", "\na", "line 2: -> must follow \"a\", but the row ends there"},
    {"an unknown turn", "a -> b turned",
     "line 1: after the names, only transpose, permute, flip, squeeze, unsqueeze, part or into may "
     "follow"},
    {"no dimensions to squeeze", "a -> b squeeze",
     "line 1: squeeze and unsqueeze must be followed"},
    {"too many dimensions to add", "a -> b unsqueeze 8", "followed by how many dimensions, 1 to 7"},
    {"dimensions that are dropped and added", "a -> b unsqueeze 1 squeeze 1",
     "line 1: unexpected text after the row's end"},
    {"a part without a share", "a -> b part",
     "line 1: part and into must be followed by which of how many, such as 1/3"},
    {"part 4 of 3", "a -> b part 4/3", "line 1: part and into must be followed by which"},
    {"part 0", "a -> b part 0/3", "line 1: part and into must be followed by which"},
    {"one part", "a -> b part 1/1", "line 1: part and into must be followed by which"},
    {"too many parts", "a -> b into 1/65", "line 1: part and into must be followed by which"},
    {"a part of a part", "a -> b part 1/2 part 1/2", "line 1: unexpected text after the row's end"},
    {"a turn behind a part", "a -> b part 1/2 flip", "line 1: unexpected text after the row's end"},
    {"a dimension of no part", "a -> b along 1", "line 1: after the names, only transpose"},
    {"no dimension", "a -> b part 1/2 along x",
     "line 1: along must be followed by a dimension, from 0 to 7"},
    {"dimension 8", "a -> b part 1/2 along 8", "line 1: along must be followed by a dimension"},
    {"a dimension twice", "a -> b permute 0,0", "line 1: permute 0,0 names 2 dimensions"},
    {"a dimension too few", "a -> b permute 0,2", "line 1: permute 0,2 names 2 dimensions"},
    {"an order with a comma at its end", "a -> b permute 1,0,", "line 1: permute must be followed"},
    {"no order", "a -> b permute", "line 1: permute must be followed by the dimensions"},
    {"two orders", "a -> b transpose permute 1,0", "line 1: unexpected text after the row's end"},
    {"a turn twice", "a -> b flip flip", "line 1: unexpected text after the row's end"},
    {"a quoted name has no closing quote", "\"a -> b",
     "line 1: a quoted name has no closing "
     "quote"},
    {"an order that leaves one out", "a -> b permute 0,1,3",
     "line 1: permute 0,1,3 names 3 dimensions, so it must have each of 0 to 2 once"},
    {"an empty name", "\"\" -> b", "line 1: an empty name"},
    {"a star on the right alone", "a -> *", "line 1: the right side must have as many stars"},
    {"a star on the left alone", "a -> b\n* -> c",
     "line 2: the right side must have as many "
     "stars"},
    {"a star beside stars", "a*** -> b**", "line 1: two stars must have something between them"},
    {"nine stars", "*.*.*.*.*.*.*.*.* -> *.*.*.*.*.*.*.*.*",
     "line 1: a name may have at most "
     "eight stars"},
};

static void a_table_is_refused(void **state) {
    const fault_row *row = *state;
    wb_rename_table table;
    assert_int_equal(wb_rename_parse(&table, row->table), WB_ERROR_FORMAT);
    wb_rename_release(&table);
    assert_error(WB_ERROR_FORMAT, row->message);
}

static void names_have_an_end(void **state) {
    (void)state;
    static char name[WB_RENAME_BYTES + 1], table_text[2 * WB_RENAME_BYTES], to[WB_RENAME_BYTES];
    wb_rename_table table;
    memset(name, 'x', sizeof name - 1);
    (void)snprintf(table_text, sizeof table_text, "* -> *.%.*s", WB_RENAME_BYTES - 4, name);
    assert_int_equal(wb_rename_parse(&table, table_text), WB_OK);
    assert_non_null(wb_rename_find(&table, NULL, "a", to));
    assert_null(wb_rename_find(&table, NULL, "abc", to));
    assert_error(WB_ERROR_FORMAT, "line 1: the new name would have more than 4095 bytes");
    assert_null(wb_rename_find(&table, NULL, name, to));
    assert_error(WB_ERROR_FORMAT, "a name of 4096 bytes");
    wb_rename_release(&table);
}

/* ---- trees ---- */

static void a_tree_has_new_names(void **state) {
    (void)state;
    write_torch("torch.npz");
    wb_file *file = open_saved();
    const wb_record *root = wb_rename(file, wb_file_root(file), good_table);
    assert_non_null(root);
    assert_int_equal(wb_record_count(root), 1);
    assert_int_equal(wb_record_kind_of(wb_record_get(root, "layers")), WB_RECORD_LIST);
    assert_values(wb_record_array(file, wb_record_get(root, "layers.1.weight")), 0, 4, 3, 2, 1, 8,
                  7, 6, 5);
    assert_values(wb_record_array(file, wb_record_get(root, "layers.1.bias")), 0, 9);
    wb_array *w = wb_record_array(file, wb_record_get(root, "layers.2.weight"));
    assert_int_equal(wb_size(w, 0), 2);
    assert_int_equal(wb_size(w, 1), 3);
    assert_values(w, 0, 1, 4, 2, 5, 3, 6);
    wb_free(file);
}

static void what_no_row_takes_stays(void **state) {
    (void)state;
    write_torch("torch.npz");
    wb_file *file = open_saved();
    const wb_record *root = wb_rename(file, wb_file_root(file), "3.weight ->\n0.bias -> b\n");
    assert_values(wb_record_array(file, wb_record_get(root, "b")), 0, 9);
    assert_non_null(wb_record_get(root, "0.weight"));
    assert_int_equal(wb_record_count(root), 2);
    wb_free(file);
}

/* PyTorch's one array for queries, keys and values, and back. */
static void parts_come_apart_and_together(void **state) {
    (void)state;
    write_torch("torch.npz"); /* 3.weight is (3, 2): 1 2 3, 4 5 6 */
    wb_file *file = open_saved();
    const wb_record *root = wb_rename(file, wb_file_root(file),
                                      "3.weight -> q.w transpose part 1/2\n"
                                      "3.weight -> k.w part 2/2\n3.** -> never.**\n");
    if (!root) fail_msg("%s", wb_error_message());
    wb_array *q = wb_record_array(file, wb_record_get(root, "q.w"));
    assert_sizes(q, 1, 3);
    assert_values(q, 0, 1, 2, 3);
    assert_values(wb_record_array(file, wb_record_get(root, "k.w")), 0, 4, 5, 6);
    assert_null(wb_record_below(root, "never"));
    wb_free(file);
    file = open_saved();
    root = wb_rename(file, wb_file_root(file),
                     "3.weight -> w transpose into 2/2\n0.weight ->\n0.bias ->\n");
    assert_null(root);
    assert_error(WB_ERROR_ARGUMENT, "got 1 arrays");
    wb_free(file);
}

/* As GPT-2 has queries, keys and values: (3 width, width), the parts along the first dimension. */
static void parts_lie_along_any_dimension(void **state) {
    (void)state;
    write_torch("torch.npz"); /* 3.weight is (3, 2): 1 2 3, 4 5 6 */
    wb_file *file = open_saved();
    const wb_record *root = wb_rename(file, wb_file_root(file),
                                      "3.weight -> q part 1/3 along 0\n"
                                      "3.weight -> k transpose part 2/3 along 0\n"
                                      "3.weight -> v part 2/2 along 1\n"
                                      "0.weight -> w part 2/2 along 2\n");
    if (!root) fail_msg("%s", wb_error_message());
    assert_int_equal(wb_record_bytes(wb_record_get(root, "q")), 8);
    wb_array *q = wb_record_array(file, wb_record_get(root, "q"));
    assert_sizes(q, 1, 2);
    assert_values(q, 0, 1, 4);
    wb_array *k = wb_record_array(file, wb_record_get(root, "k"));
    assert_sizes(k, 2, 1);
    assert_values(k, 0, 2, 5);
    assert_values(wb_record_array(file, wb_record_get(root, "v")), 0, 4, 5, 6);
    wb_array *w = wb_record_array(file, wb_record_get(root, "w"));
    assert_sizes(w, 2, 2, 1, 1);
    assert_values(w, 0, 5, 6, 7, 8);
    wb_free(file);
}

/* TensorFlow's kernels (kh, kw, in, out) are sizes (out, in, kw, kh) here. */
static void dimensions_are_permuted_then_flipped(void **state) {
    (void)state;
    write_torch("torch.npz"); /* 0.weight is (2, 2, 2, 1) */
    wb_file *file = open_saved();
    const wb_record *root = wb_rename(file, wb_file_root(file),
                                      "0.weight -> a permute 2,3,1,0\n"
                                      "0.weight -> b permute 2,3,1,0 flip\n"
                                      "3.weight -> c permute 1,0\n");
    if (!root) fail_msg("%s", wb_error_message());
    wb_array *a = wb_record_array(file, wb_record_get(root, "a"));
    wb_array *b = wb_record_array(file, wb_record_get(root, "b"));
    assert_sizes(a, 2, 1, 2, 2);
    assert_values(a, 0, 1, 5, 3, 7, 2, 6, 4, 8);
    assert_sizes(b, 2, 1, 2, 2);
    assert_values(b, 0, 5, 1, 7, 3, 6, 2, 8, 4);
    assert_values(wb_record_array(file, wb_record_get(root, "c")), 0, 1, 4, 2, 5, 3, 6);
    wb_free(file);
}

static void dimensions_of_size_1_are_dropped_and_added(void **state) {
    (void)state;
    write_torch("torch.npz"); /* 0.weight is (2, 2, 2, 1), 3.weight (3, 2) */
    wb_file *file = open_saved();
    const wb_record *root = wb_rename(file, wb_file_root(file),
                                      "0.weight -> a squeeze 1\n"
                                      "0.weight -> b permute 2,3,1,0 flip unsqueeze 2\n"
                                      "3.weight -> c transpose unsqueeze 1 part 2/3 along 0\n");
    if (!root) fail_msg("%s", wb_error_message());
    wb_array *a = wb_record_array(file, wb_record_get(root, "a"));
    wb_array *b = wb_record_array(file, wb_record_get(root, "b"));
    wb_array *c = wb_record_array(file, wb_record_get(root, "c"));
    assert_sizes(a, 2, 2, 2);
    assert_values(a, 0, 1, 2, 3, 4, 5, 6, 7, 8);
    assert_sizes(b, 2, 1, 2, 2, 1, 1);
    assert_values(b, 0, 5, 1, 7, 3, 6, 2, 8, 4);
    assert_sizes(c, 2, 1, 1);
    assert_values(c, 0, 2, 5);
    wb_free(file);
}

/* The rows with the first one's left side count, too; stars and quotes are another one. */
static void an_array_goes_to_several_places(void **state) {
    (void)state;
    write_torch("torch.npz");
    wb_file *file = open_saved();
    const wb_record *root = wb_rename(file, wb_file_root(file),
                                      "*.bias -> b.*\n3.weight -> head.weight transpose\n"
                                      "*.weight -> w.*\n*.bias -> also.*\n3.weight -> embedding\n"
                                      "\"*.bias\" -> never\n0.* -> never.*\n");
    assert_null(root); /* the quoted name is not there */
    wb_clear_error();
    root = wb_rename(file, wb_file_root(file),
                     "*.bias -> b.*\n3.weight -> head.weight transpose\n*.weight -> w.*\n"
                     "*.bias -> also.*\n3.weight -> embedding\n0.* -> never.*\n");
    if (!root) fail_msg("%s", wb_error_message());
    assert_int_equal(wb_record_count(root), 5); /* b, head, also, embedding, w */
    assert_values(wb_record_array(file, wb_record_get(root, "b.0")), 0, 9);
    assert_ptr_equal(wb_record_get(root, "b.0"), wb_record_get(root, "also.0"));
    assert_values(wb_record_array(file, wb_record_get(root, "embedding")), 0, 1, 2, 3, 4, 5, 6);
    assert_values(wb_record_array(file, wb_record_get(root, "head.weight")), 0, 1, 4, 2, 5, 3, 6);
    wb_free(file);
}

/* a and b (3, 2), transposed (2, 3), one after the other (2, 6). */
static void two_become_one(void **state) {
    (void)state;
    const char *const names[] = {"a", "b", "c", "d"};
    wb_arena arena = {.blocks = NULL};
    wb_record *arrays[] = {data_of(&arena, WB_F32, 2, (const int64_t[]){3, 2}, numbers),
                           data_of(&arena, WB_F32, 2, (const int64_t[]){3, 2}, numbers + 6),
                           data_of(&arena, WB_F32, 1, (const int64_t[]){2}, numbers),
                           data_of(&arena, WB_F32, 1, (const int64_t[]){2}, numbers + 4)};
    assert_int_equal(save_record(&wb_format_npz, "two.npz", map_of(&arena, 4, names, arrays), NULL),
                     WB_OK);
    wb_arena_release(&arena);
    wb_file *file = NULL;
    const wb_record *root = NULL;
    for (int64_t n = 1; !root; n++) { /* every allocation may fail */
        wb_free(file);
        file = open_saved();
        (void)wb_fail_allocation(n);
        root = wb_rename(file, wb_file_root(file),
                         "b -> w transpose into 2/2\na -> w transpose into 1/2\n"
                         "d -> v into 1/2\nc -> v into 2/2\n");
        (void)wb_fail_allocation(0);
        if (!root) assert_error(WB_ERROR_MEMORY, "");
        assert_true(n < 100);
    }
    if (!root) fail_msg("%s", wb_error_message());
    wb_array *w = wb_record_array(file, wb_record_get(root, "w"));
    assert_sizes(w, 2, 6);
    assert_values(w, 0, 1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12);
    assert_values(wb_record_array(file, wb_record_get(root, "v")), 0, 5, 6, 1, 2);
    wb_free(file);
    file = open_saved();
    root = wb_rename(file, wb_file_root(file),
                     "a -> w into 1/2 along 0\nb -> w into 2/2 along 0\nc ->\nd ->\n");
    w = wb_record_array(file, wb_record_get(root, "w"));
    assert_sizes(w, 6, 2);
    assert_values(w, 0, 1, 2, 3, 7, 8, 9, 4, 5, 6, 10, 11, 12);
    wb_free(file);
}

typedef struct tree_row {
    const char *name, *table;
    wb_status status;
    const char *message;
} tree_row;

static const tree_row tree_rows[] = {
    {"a name that is not there", "0.weight -> a\n\n5.weight -> b", WB_ERROR_ARGUMENT,
     "torch.npz: rename table, line 3: there is no \"5.weight\" in the file; there is "
     "0.weight, 3.weight, 0.bias"},
    {"a row that comes too late", "*.bias -> b.*\n0.bias -> c", WB_ERROR_ARGUMENT,
     "torch.npz: rename table, line 2: this row is never used, since an earlier row matches "
     "\"0.bias\""},
    {"two names that become one", "*.weight -> w.*\n0.bias -> w.0", WB_ERROR_ARGUMENT,
     "torch.npz: two arrays cannot have one name, but \"0."},
    {"a name that is taken", "0.bias -> 3.weight", WB_ERROR_ARGUMENT, "would both be \"3.weight\""},
    {"a convolution transposed", "0.weight -> w transpose", WB_ERROR_SHAPE,
     "line 1: 0.weight is (2, 2, 2, 1), and transpose needs two dimensions"},
    {"a matrix flipped", "*.weight -> *.w flip", WB_ERROR_SHAPE,
     "line 1: 3.weight is (3, 2), and flip needs three or more"},
    {"halves of three", "3.weight -> a part 1/2\n3.weight -> b part 2/3", WB_ERROR_SHAPE,
     "line 2: 3.weight is (3, 2), and its size along dimension 1 must be a multiple of 3"},
    {"a half alone", "0.bias -> b into 1/2", WB_ERROR_ARGUMENT,
     "line 1: \"b\" needs 2 arrays of one type and size, parts 1/2, 2/2, ..., each once, along "
     "one dimension, got 1 arrays"},
    {"a half twice", "0.bias -> b into 1/2\n3.weight -> b into 1/2", WB_ERROR_ARGUMENT,
     "\"b\" needs 2 arrays"},
    {"halves along different dimensions", "0.bias -> b into 1/2 along 0\n3.weight -> b into 2/2",
     WB_ERROR_ARGUMENT,
     "\"b\" needs 2 arrays of one type and size, parts 1/2, 2/2, ..., each once, along one"},
    {"a dimension that is not there", "0.bias -> b part 1/2 along 1", WB_ERROR_SHAPE,
     "line 1: 0.bias is (1), and has no dimension 1"},
    {"a dimension dropped that is not 1", "0.weight -> b squeeze 2", WB_ERROR_SHAPE,
     "line 1: 0.weight is (2, 2, 2, 1), and squeeze 2 needs as many last dimensions of size 1"},
    {"more dimensions dropped than there are", "0.bias -> b squeeze 2", WB_ERROR_SHAPE,
     "line 1: 0.bias is (1), and squeeze 2 needs as many last dimensions of size 1"},
    {"too many dimensions", "0.weight -> b unsqueeze 5", WB_ERROR_SHAPE,
     "line 1: 0.weight is (2, 2, 2, 1), and unsqueeze 5 makes too many dimensions"},
    {"an order of other dimensions", "3.weight -> b permute 0,2,1", WB_ERROR_SHAPE,
     "line 1: 3.weight is (3, 2), and permute names 3 dimensions"},
    {"two places of one name", "3.weight -> b\n3.weight -> b", WB_ERROR_ARGUMENT,
     "torch.npz: the rename table gives \"3.weight\" the name \"b\" twice; one row is enough"},
    {"halves of different sizes", "0.bias -> b into 1/2\n3.weight -> b into 2/2", WB_ERROR_ARGUMENT,
     "\"b\" needs 2 arrays of one type and size"},
    {"a fault in the table", "a", WB_ERROR_FORMAT, "rename table, line 1: -> must follow \"a\""},
};

static char told[600];

static void keep_line(void *context, wb_log_level level, const char *line) {
    (void)context, (void)level;
    (void)snprintf(told, sizeof told, "%s", line);
}

/* It is no error, and a row that leaves out, or comes too late, is not told. */
static void a_pattern_that_takes_nothing_is_told(void **state) {
    (void)state;
    write_torch("torch.npz");
    wb_file *file = open_saved();
    assert_non_null(wb_rename(file, wb_file_root(file), "*.bias -> b.*\n*.num ->\n0.bi* -> *"));
    assert_null(file->rename_note);
    wb_free(file);
    wb_log_to(keep_line, NULL);
    char out[200];
    (void)snprintf(out, sizeof out, "%s/out.npz", test_folder);
    assert_int_equal(wb_convert(test_path, out, .rename = "0.* -> a.*\nfc.** -> b.**"), WB_OK);
    wb_log_to(NULL, NULL);
    assert_non_null(strstr(told, "torch.npz: rename table, line 2: \"fc.**\" matches no name of "
                                 "the file; there is 0.bias, 0.weight, 3.weight"));
    wb_layer *model = wb_dense(2, 2);
    assert_int_equal(wb_load(test_path, model, .rename = "fc.** -> **"), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "rename table, line 1: \"fc.**\" matches no name of the file");
    wb_free(model);
}

static void a_renaming_is_refused(void **state) {
    const tree_row *row = *state;
    write_torch("torch.npz");
    wb_file *file = open_saved();
    assert_null(wb_rename(file, wb_file_root(file), row->table));
    assert_error(row->status, row->message);
    wb_free(file);
}

static void allocations_that_fail_are_errors(void **state) {
    (void)state;
    write_torch("torch.npz");
    const wb_record *root = NULL;
    for (int64_t n = 1; !root; n++) {
        wb_file *file = open_saved();
        (void)wb_fail_allocation(n);
        root = wb_rename(file, wb_file_root(file), good_table);
        (void)wb_fail_allocation(0);
        if (!root) assert_error(WB_ERROR_MEMORY, "");
        wb_free(file);
        assert_true(n < 100);
    }
}

/* Two references to two references to ...: a short file that is long for who walks it. */
static void what_is_shared_over_and_over_is_refused(void **state) {
    (void)state;
    wb_arena arena = {.blocks = NULL};
    const char *const name = "a";
    const int64_t one = 1;
    wb_record *r = data_of(&arena, WB_F32, 1, &one, numbers);
    for (int i = 0; i < 20; i++) {
        wb_record *pair = record_of(&arena, WB_RECORD_LIST);
        assert_true(wb_record_room(&arena, pair, 2, false));
        pair->children[0] = pair->children[1] = r;
        r = pair;
    }
    assert_int_equal(save_record(&wb_format_bson, "twice.bson", map_of(&arena, 1, &name, &r), NULL),
                     WB_OK);
    wb_arena_release(&arena);
    wb_file *file = open_saved();
    assert_null(wb_rename(file, wb_file_root(file), ""));
    assert_error(WB_ERROR_FORMAT, "its sizes need more data than the file has");
    wb_free(file);
}

/* ---- models ---- */

static void a_model_is_loaded_by_a_table(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_conv({2, 2}, 2, 1), wb_dense(3, 2, .bias = false));
    write_torch("torch.npz");
    assert_int_equal(wb_load(test_path, model, .rename = good_table), WB_OK);
    assert_values(wb_get(model, "layers.1.weight"), 0, 4, 3, 2, 1, 8, 7, 6, 5);
    assert_values(wb_get(model, "layers.1.bias"), 0, 9);
    assert_values(wb_get(model, "layers.2.weight"), 0, 1, 4, 2, 5, 3, 6);
    wb_free(model);
}

/* GPT-2's weights are (in, out) as Dense wants them, its queries, keys and values lie side by side,
 * and the head is the embedding's transpose. */
static const char gpt2_table[] =
    "wte.weight -> layers.1.weight\n"
    "wte.weight -> layers.3.weight transpose\n"
    "h.*.attn.c_attn.weight -> layers.*+2.q_proj.weight part 1/3 along 0\n"
    "h.*.attn.c_attn.weight -> layers.*+2.k_proj.weight part 2/3 along 0\n"
    "h.*.attn.c_attn.weight -> layers.*+2.v_proj.weight part 3/3 along 0\n"
    "h.*.attn.c_attn.bias -> layers.*+2.q_proj.bias part 1/3\n"
    "h.*.attn.c_attn.bias -> layers.*+2.k_proj.bias part 2/3\n"
    "h.*.attn.c_attn.bias -> layers.*+2.v_proj.bias part 3/3\n"
    "h.*.attn.c_proj.** -> layers.*+2.out_proj.**\n";

static void a_model_like_gpt2_is_loaded_in_one_pass(void **state) {
    (void)state;
    static const char *const names[] = {"wte.weight", "h.0.attn.c_attn.weight",
                                        "h.0.attn.c_attn.bias", "h.0.attn.c_proj.weight",
                                        "h.0.attn.c_proj.bias"};
    wb_arena arena = {.blocks = NULL};
    wb_record *arrays[] = {data_of(&arena, WB_F32, 2, (const int64_t[]){2, 3}, numbers),
                           data_of(&arena, WB_F32, 2, (const int64_t[]){6, 2}, numbers),
                           data_of(&arena, WB_F32, 1, (const int64_t[]){6}, numbers + 4),
                           data_of(&arena, WB_F32, 2, (const int64_t[]){2, 2}, numbers + 10),
                           data_of(&arena, WB_F32, 1, (const int64_t[]){2}, numbers + 14)};
    assert_int_equal(
        save_record(&wb_format_npz, "gpt2.npz", map_of(&arena, 5, names, arrays), NULL), WB_OK);
    wb_arena_release(&arena);
    wb_layer *model =
        wb_chain(wb_embedding(3, 2), wb_multi_head_attention(2, .heads = 1, .bias = true),
                 wb_dense(2, 3, .bias = false));
    assert_int_equal(wb_load(test_path, model, .rename = gpt2_table), WB_OK);
    assert_values(wb_get(model, "layers.2.q_proj.weight"), 0, 1, 2, 7, 8);
    assert_values(wb_get(model, "layers.2.k_proj.weight"), 0, 3, 4, 9, 10);
    assert_values(wb_get(model, "layers.2.v_proj.weight"), 0, 5, 6, 11, 12);
    assert_values(wb_get(model, "layers.2.v_proj.bias"), 0, 9, 10);
    assert_values(wb_get(model, "layers.2.out_proj.weight"), 0, 11, 12, 13, 14);
    assert_values(wb_get(model, "layers.1.weight"), 0, 1, 2, 3, 4, 5, 6);
    assert_values(wb_get(model, "layers.3.weight"), 0, 1, 3, 5, 2, 4, 6);
    wb_free(model);
    model = wb_dense(2, 3, .bias = false);
    assert_int_equal(wb_load(test_path, model,
                             .rename = "h.0.attn.c_attn.weight -> weight part 1/2\nh.** ->\n"
                                       "wte.weight ->"),
                     WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE,
                 "h.0.attn.c_attn.weight, a part of it renamed weight, is (6, 1) in the file, (3, "
                 "2) in the model, which are as many numbers: perhaps the part");
    wb_free(model);
}

/* Layers that have no arrays are not in the file: its numbers have gaps. */
static void numbers_may_have_gaps(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_conv({2, 2}, 2, 1), wb_flatten(), wb_dense(3, 2, .bias = false));
    write_torch("torch.npz");
    assert_int_equal(wb_load(test_path, model,
                             .rename = "0.weight -> layers.1.weight\n0.bias -> layers.1.bias\n"
                                       "3.weight -> layers.3.weight transpose"),
                     WB_OK);
    assert_values(wb_get(model, "layers.3.weight"), 0, 1, 4, 2, 5, 3, 6);
    wb_free(model);
}

static void a_misfit_has_both_names(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_conv({2, 2}, 2, 1), wb_dense(4, 2, .bias = false));
    wb_layer *before = wb_clone(model);
    write_torch("torch.npz");
    assert_int_equal(wb_load(test_path, model, .rename = good_table), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "torch.npz: 3.weight, renamed layers.2.weight and transposed, is "
                                 "(2, 3) in the file, (2, 4) in the model");
    assert_same_bits(wb_get(model, "layers.1.weight"), wb_get(before, "layers.1.weight"), "before");
    wb_free(model), wb_free(before);
}

/* Below "model", where it applies, not in the whole file, where it does not. */
static void a_table_is_told_of_where_it_applies(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(4, 8), wb_dense(8, 2));
    write_torch("m.bson"); /* its path */
    assert_int_equal(wb_save(test_path, model), WB_OK);
    static const char *const rows[][2] = {
        {"layers.1.weight -> layers.1.wieght", "\"layers.1\" has bias, wieght"},
        {"layers.1.weight -> layers.1.weight transpose",
         "layers.1.weight, renamed layers.1.weight and transposed, is (4, 8) in the file"},
        {"layers.9.weight -> layers.1.weight", "there is no \"layers.9.weight\" in the file"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_not_equal(wb_load(test_path, model, .rename = rows[i][0]), WB_OK);
        const char *said = wb_error_message();
        if (!strstr(said, rows[i][1])) fail_msg("\"%s\" does not say %s", said, rows[i][1]);
        wb_clear_error();
    }
    assert_int_equal(wb_load(test_path, model, .rename = "model.** -> **"), WB_OK);
    wb_free(model);
}

int main(void) {
    enum {
        NAMES = sizeof name_rows / sizeof *name_rows,
        FAULTS = sizeof fault_rows / sizeof *fault_rows,
        TREES = sizeof tree_rows / sizeof *tree_rows
    };
    static struct CMUnitTest rows[NAMES + FAULTS + TREES];
    const struct CMUnitTest tests[] = {
        TEST(names_have_an_end),
        TEST(a_pattern_that_takes_nothing_is_told),
        TEST(a_table_is_told_of_where_it_applies),
        TEST(a_tree_has_new_names),
        TEST(what_no_row_takes_stays),
        TEST(parts_come_apart_and_together),
        TEST(parts_lie_along_any_dimension),
        TEST(dimensions_are_permuted_then_flipped),
        TEST(dimensions_of_size_1_are_dropped_and_added),
        TEST(an_array_goes_to_several_places),
        TEST(a_model_like_gpt2_is_loaded_in_one_pass),
        TEST(two_become_one),
        TEST(what_is_shared_over_and_over_is_refused),
        TEST(allocations_that_fail_are_errors),
        TEST(a_model_is_loaded_by_a_table),
        TEST(numbers_may_have_gaps),
        TEST(a_misfit_has_both_names),
    };
    if (make_folder(NULL)) return 1;
    for (int i = 0; i < NAMES; i++) rows[i] = TEST_ROW(&name_rows[i], a_name_becomes);
    for (int i = 0; i < FAULTS; i++) rows[NAMES + i] = TEST_ROW(&fault_rows[i], a_table_is_refused);
    for (int i = 0; i < TREES; i++)
        rows[NAMES + FAULTS + i] = TEST_ROW(&tree_rows[i], a_renaming_is_refused);
    const int failed = cmocka_run_group_tests_name("rows", rows, NULL, NULL) +
                       cmocka_run_group_tests_name("renaming", tests, NULL, NULL);
    return remove_folder(NULL) || failed;
}
