/* src/formats/pt.c, pickle.c: what pickles say, tensors over storages, what is refused, damage.
 * Files that PyTorch writes: the stage torch (tests/models). */
#include "formats/zip_maker.h"

#define PT "test.pt"

/* Bytes of a pickle with their number. */
#define P(text) text, sizeof text - 1

static const unsigned char numbers[] = {
    0, 0, 0,  0,  0, 0, 128, 63, 0, 0, 0,   64,
    0, 0, 64, 64, 0, 0, 128, 64, 0, 0, 160, 64}; /* f32: 0 .. 5 */

/* A file with this pickle, the storage 0 above, and the order of bytes. */
static void put_pt(zip *z, const char *pickle, size_t size) {
    const zip_entry entries[] = {
        {.name = "archive/data.pkl", .data = (const unsigned char *)pickle, .size = size},
        {.name = "archive/byteorder", .data = (const unsigned char *)"little", .size = 6},
        {.name = "archive/data/0", .data = numbers, .size = sizeof numbers}};
    put_zip(z, 3, entries);
}

static wb_file *open_pt(const char *pickle, size_t size) {
    static zip z;
    put_pt(&z, pickle, size);
    write_bytes(PT, z.bytes, z.count);
    return wb_open(test_path);
}

/* ---- values ---- */

#define STORAGE(type, count)                                                                       \
    "(X\7\0\0\0storagectorch\n" type "\nX\1\0\0\0"                                                 \
    "0X\3\0\0\0cpu" count "tQ"
#define TENSOR(storage, offset, sizes, strides)                                                    \
    "ctorch._utils\n_rebuild_tensor_v2\n(" storage offset sizes strides "\211ccollections\n"       \
    "OrderedDict\n)RtR"
#define FLOATS STORAGE("FloatStorage", "K\6")

static const struct {
    const char *name, *pickle;
    size_t size;
    const char *value;
} values[] = {
    {"an empty dictionary", P("\200\2}."), "()"},
    {"items one by one and many", P("\200\2}X\1\0\0\0aK\1s(X\1\0\0\0bK\2X\1\0\0\0cNu."),
     "(a=1 b=2 c=none)"},
    {"whole numbers",
     P("\200\2]q\0(K\377M\0\1J\377\377\377\377\212\0\212\2\030\374\212\1\200"
       "\213\2\0\0\0\377\177"
       "e."),
     "(255 256 -1 0 -1000 -128 32767)"},
    {"numbers that no type holds",
     P("\200\2](\212\011\0\0\0\0\0\0\0\0\1\212\011\377\377\377\377\377"
       "\377\377\377\376"
       "e."),
     "(1.84467e+19 -1.84467e+19)"},
    {"real numbers", P("\200\2](G\077\340\0\0\0\0\0\0G\300\0\0\0\0\0\0\0e."), "(0.5 -2)"},
    {"truth",
     P("\200\2](\210\211"
       "e."),
     "(true false)"},
    {"lines of protocol 0", P("(lp0\nI12\naI01\naI00\naL-7L\naF0.25\na."),
     "(12 true false -7 0.25)"},
    {"whole numbers at the end of i64",
     P("(lp0\nI9223372036854775807\naL9223372036854775808L\naF01\na."),
     "(9223372036854775807 9.22337e+18 1)"},
    {"tuples are lists", P("\200\2](K\1\205K\1K\2\206K\1K\2K\3\207)(K\4te."),
     "((1) (1 2) (1 2 3) () (4))"},
    {"short texts, frames, the memo", P("\200\4\225\0\0\0\0\0\0\0\0](\214\2ab\224h\0e."),
     "('ab' 'ab')"},
    {"keys are numbers", P("\200\2}K\3K\4s."), "(3=4)"},
    {"an ordered dictionary and its attributes",
     P("\200\2"
       "ccollections\nOrderedDict\n)RX\1\0\0\0aK\1s}X\1\0\0\0zK\2sb."),
     "(a=1)"},
    {"attributes of no name, as a state_dict's of the whole model",
     P("\200\2"
       "ccollections\nOrderedDict\n)RX\1\0\0\0aK\1s}X\0\0\0\0K\2sb."),
     "(a=1)"},
    {"sizes and devices",
     P("\200\2](ctorch\nSize\n(K\2K\3t\205Rctorch\ndevice\nX\3\0\0\0cpu\205R"
       "e."),
     "((2 3) 'cpu')"},
    {"a class that nobody calls", P("\200\2]ctorch\nfloat32\na."), "(torch.float32)"},
    {"a storage of no tensor", P("\200\2]" FLOATS "a."), "(torch.FloatStorage)"},
    {"a dictionary in dictionaries is a path",
     P("\200\2}X\1\0\0\0m}X\3\0\0\0b.cK\1sX\1\0\0\0dK\2ss."), "(m=(b=(c=1) d=2))"},
};

static void pickles_are_values(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[512] = "";
        wb_file *file = open_pt(values[i].pickle, values[i].size);
        if (!file) fail_msg("%s: %s", values[i].name, wb_error_message());
        say(wb_file_root(file), text, sizeof text);
        (void)touch(wb_file_root(file));
        if (strcmp(text, values[i].value) != 0)
            fail_msg("%s: %s, not %s", values[i].name, text, values[i].value);
        wb_free(file);
    }
}

/* ---- tensors ---- */

#define ONE(tensor) "\200\2}X\1\0\0\0x" tensor "s."

static const struct {
    const char *name, *pickle;
    size_t size;
    int count;
    double values[6];
} tensors[] = {
    {"all of a storage",
     P("\200\2}X\1\0\0\0x" TENSOR(FLOATS, "K\0", "K\2K\3\206", "K\3K\1\206") "s."),
     6,
     {0, 1, 2, 3, 4, 5}},
    {"transposed",
     P("\200\2}X\1\0\0\0x" TENSOR(FLOATS, "K\0", "K\3K\2\206", "K\1K\3\206") "s."),
     6,
     {0, 3, 1, 4, 2, 5}},
    {"a part", P("\200\2}X\1\0\0\0x" TENSOR(FLOATS, "K\1", "K\2\205", "K\2\205") "s."), 2, {1, 3}},
    {"one number many times",
     P("\200\2}X\1\0\0\0x" TENSOR(FLOATS, "K\4", "K\3\205", "K\0\205") "s."),
     3,
     {4, 4, 4}},
    {"without dimensions", P("\200\2}X\1\0\0\0x" TENSOR(FLOATS, "K\5", ")", ")") "s."), 1, {5}},
    {"beyond a dimension of one element",
     P(ONE(TENSOR(FLOATS, "K\1", "K\1K\2\206", "\212\010\377\377\377\377\377\377\377\177K\2\206"))),
     2,
     {1, 3}},
    {"without elements, far away",
     P(ONE(TENSOR(FLOATS, "\212\010\5\0\0\0\0\0\0\040", "K\0\205", "K\1\205"))),
     0,
     {0}},
    {"without elements",
     P("\200\2}X\1\0\0\0x" TENSOR(FLOATS, "K\0", "K\0K\3\206", "K\3K\1\206") "s."),
     0,
     {0}},
    {"whole numbers of two bytes",
     P("\200\2}X\1\0\0\0x" TENSOR(STORAGE("ShortStorage", "K\014"), "K\2", "K\2\205",
                                  "K\1\205") "s."),
     2,
     {0, 16256}},
    {"a parameter",
     P("\200\2}X\1\0\0\0x"
       "ctorch._utils\n_rebuild_parameter\n" TENSOR(FLOATS, "K\0", "K\2\205",
                                                    "K\1\205") "\210)\207Rs."),
     2,
     {0, 1}},
};

static void tensors_lie_in_storages(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        wb_file *file = open_pt(tensors[i].pickle, tensors[i].size);
        if (!file) fail_msg("%s: %s", tensors[i].name, wb_error_message());
        wb_array *x = wb_record_array(file, wb_record_get(wb_file_root(file), "x"));
        assert_non_null(x);
        if (wb_count(x) != tensors[i].count)
            fail_msg("%s: the number of elements", tensors[i].name);
        double have[6];
        x = wb_cast(x, WB_F64);
        if (tensors[i].count)
            assert_int_equal(wb_read(x, have, sizeof *have * (size_t)wb_count(x)), WB_OK);
        for (int k = 0; k < tensors[i].count; k++)
            if (have[k] != tensors[i].values[k])
                fail_msg("%s: %g at %d", tensors[i].name, have[k], k);
        wb_free(file);
    }
}

static void the_same_tensor_is_one_record(void **state) {
    (void)state;
    wb_file *file = open_pt(
        P("\200\2}X\1\0\0\0x" TENSOR(FLOATS, "K\0", "K\6\205", "K\1\205") "sX\1\0\0\0y" TENSOR(
            FLOATS, "K\0", "K\6\205", "K\1\205") "sX\1\0\0\0z" TENSOR(FLOATS, "K\0", "K\5\205",
                                                                      "K\1\205") "s."));
    assert_non_null(file);
    const wb_record *root = wb_file_root(file);
    assert_ptr_equal(wb_record_get(root, "x"), wb_record_get(root, "y"));
    assert_ptr_not_equal(wb_record_get(root, "x"), wb_record_get(root, "z"));
    wb_free(file);
}

static void one_storage_may_have_two_types(void **state) {
    (void)state;
    wb_file *file = open_pt(P("\200\2}X\1\0\0\0x" TENSOR(
        STORAGE("CharStorage", "K\30"), "K\6", "K\2\205",
        "K\1\205") "sX\1\0\0\0y" TENSOR(STORAGE("ShortStorage", "K\14"), "K\6", "K\2\205",
                                        "K\1\205") "s."));
    assert_non_null(file);
    const wb_record *root = wb_file_root(file);
    assert_values(wb_record_array(file, wb_record_get(root, "x")), 0, -128, 63);
    assert_values(wb_record_array(file, wb_record_get(root, "y")), 0, 0, 16448);
    wb_free(file);
}

/* Each is a byte or two of the file. */
static void there_may_be_many_small_values(void **state) {
    (void)state;
    enum { COUNT = 9000 };
    static char pickle[COUNT + 8] = "\200\2](";
    memset(pickle + 4, 0x88, COUNT);
    memcpy(pickle + 4 + COUNT, "e.", 2);
    static zip z;
    put_pt(&z, pickle, COUNT + 6);
    write_bytes(PT, z.bytes, z.count);
    wb_file *file = wb_open(test_path);
    if (!file) fail_msg("%s", wb_error_message());
    assert_int_equal(wb_file_root(file)->count, COUNT);
    wb_free(file);
}

/* ---- what is refused ---- */

static const struct {
    const char *pickle;
    size_t size;
    const char *message;
} faults[] = {
    {P(""), "cut short"},
    {P("\200\6"), "newer than 5"},
    {P("\200\2}"), "cut short"},
    {P("\200\2."), "missing on the pickle's stack"},
    {P("\200\2K\1e."), "a mark is missing"},
    {P("\200\2(K\1u."), "items need a dictionary"},
    {P("\200\2}(K\1u."), "last key has no value"},
    {P("\200\2}]K\1s."), "must be a text or a whole number, but is a list"},
    {P("\200\2h\5."), "nothing was kept as number 5"},
    {P("\200\2Nr\377\377\377\177."), "no place of number 2147483647"},
    {P("\200\2X\2\0\0\0a\0."), "a zero byte"},
    {P("\200\2X\377\377\377\377"
       "a."),
     "cut short"},
    {P("\200\2]q\0h\0a."), "contains itself"},
    {P("cposix\nsystem\nX\2\0\0\0ls\205R."), "posix.system is called, which is not done"},
    {P("\200\2"
       "ctorch.nn.modules.linear\nLinear\n)\201}b."),
     "an object of torch.nn.modules.linear.Linear is not read; in Python, save its state_dict()"},
    {P("I1e3\n."), "a whole number is expected"},
    {P("Fx\n."), "a number is expected"},
    {P("Np-1\n."), "no place of number -1"},
    {P("\200\2}X\0\0\0\0Ns."), "is an empty text"},
    {P(ONE(TENSOR(FLOATS, "K\0", "\212\010\0\0\0\0\0\0\0\040K\0\206", "K\1K\1\206"))),
     "reaches beyond the 6 elements"},
    {P("(I1\nimodule\nname\n."), "operation 0x69 of a pickle is not supported"},
    {P(ONE(TENSOR(FLOATS, "K\0", "K\7\205", "K\1\205"))), "reaches beyond the 6 elements"},
    {P(ONE(TENSOR(FLOATS, "K\3", "K\2K\2\206", "K\2K\1\206"))), "reaches beyond the 6 elements"},
    {P(ONE(TENSOR(FLOATS, "K\0", "K\2\205", "J\377\377\377\377\205"))),
     "a storage, an offset, sizes and strides"},
    {P(ONE(TENSOR(FLOATS, "K\0", "K\2\205", ")"))), "a storage, an offset, sizes and strides"},
    {P(ONE(
         TENSOR(FLOATS, "K\0", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t"))),
     "a tensor has 9 dimensions; at most 8 are read"},
    {P(ONE(TENSOR(FLOATS, "K\0", "\212\6\377\377\377\377\377\0\205", "K\0\205"))),
     "those that repeat or skip elements have more than"},
    {P(ONE(TENSOR(STORAGE("FloatStorage", "K\7"), "K\0", "K\1\205", "K\1\205"))),
     "too few for 7 elements of torch.FloatStorage"},
    {P(ONE(TENSOR(STORAGE("QInt8Storage", "K\6"), "K\0", "K\1\205", "K\1\205"))),
     "torch.QInt8Storage is not read"},
};

static void assert_refused(const char *message) {
    assert_null(wb_open(test_path));
    if (wb_error_status() != WB_ERROR_FORMAT || !strstr(wb_error_message(), message) ||
        !strstr(wb_error_message(), PT))
        fail_msg("\"%s\", not \"%s\"", wb_error_message(), message);
    wb_clear_error();
}

static void other_pickles_are_refused(void **state) {
    (void)state;
    static zip z;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        put_pt(&z, faults[i].pickle, faults[i].size);
        write_bytes(PT, z.bytes, z.count);
        assert_refused(faults[i].message);
    }
}

/* Each level refers twice to the one below: 2^40 values of a few bytes. */
static void values_that_repeat_themselves_end(void **state) {
    (void)state;
    char pickle[1024] = "\200\2K\1q";
    size_t size = 5;
    pickle[size++] = 0;
    for (int i = 0; i < 40; i++) {
        const unsigned char level[] = {'h', (unsigned char)i,      'h', (unsigned char)i, 0x86,
                                       'q', (unsigned char)(i + 1)};
        memcpy(pickle + size, level, sizeof level);
        size += sizeof level;
    }
    pickle[size++] = '.';
    static zip z;
    put_pt(&z, pickle, size);
    write_bytes(PT, z.bytes, z.count);
    assert_refused("values are repeated too often");
}

static void nesting_has_an_end(void **state) {
    (void)state;
    static char pickle[4096] = "\200\2)";
    size_t size = 3;
    while (size < 3 + 300) pickle[size++] = (char)0x85;
    pickle[size++] = '.';
    static zip z;
    put_pt(&z, pickle, size);
    write_bytes(PT, z.bytes, z.count);
    assert_refused("nested deeper than 256");
}

static void zips_of_another_kind_are_refused(void **state) {
    (void)state;
    static zip z;
    static const unsigned char empty[] = "\200\2}.";
    const zip_entry good = {.name = "a/data.pkl", .data = empty, .size = 4};
    const struct {
        zip_entry other;
        const char *message;
    } rows[] = {
        {{.name = "a/byteorder", .data = (const unsigned char *)"big", .size = 3},
         "not in the order of little-endian processors"},
        {{.name = "b/data/0", .data = empty, .size = 4}, "is in another folder than a/data.pkl"},
        {{.name = "a/data.pkl", .data = empty, .size = 4}, "appears twice"},
        {{.name = "a/data/0",
          .data = (const unsigned char *)"\3\0",
          .size = 0,
          .stored = 2,
          .method = 8},
         "is compressed, which torch.save does not do"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_zip(&z, 2, (zip_entry[]){good, rows[i].other});
        write_bytes(PT, z.bytes, z.count);
        assert_refused(rows[i].message);
    }
    put_zip(&z, 1, &(zip_entry){.name = "a/b/data.pkl", .data = empty, .size = 4});
    write_bytes(PT, z.bytes, z.count);
    assert_refused("it has no data.pkl");
}

static void other_names_are_recognised(void **state) {
    (void)state;
    static zip z;
    put_pt(&z, P("\200\2}X\1\0\0\0aK\1s."));
    static const char *const names[] = {"model.pth", "pytorch_model.bin", "x.npz", "nothing"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_bytes(names[i], z.bytes, z.count);
        wb_file *file = wb_open(test_path);
        if (!file) fail_msg("%s: %s", names[i], wb_error_message());
        assert_int_equal(wb_record_get(wb_file_root(file), "a")->integer, 1);
        wb_free(file);
    }
    wb_layer *layer = wb_dense(1, 1);
    assert_int_equal(wb_save("x.pt", layer), WB_ERROR_FORMAT);
    assert_error(WB_ERROR_FORMAT, "files of PyTorch are read, and not written");
    wb_free(layer);
}

static size_t small_pt(unsigned char *bytes) {
    static zip z;
    put_pt(&z, P("\200\2}X\1\0\0\0x" TENSOR(
                   FLOATS, "K\0", "K\3K\2\206",
                   "K\1K\3\206") "sX\1\0\0\0y](K\1\210G\077\340\0\0\0\0\0\0X\1\0\0\0te"
                                 "s."));
    memcpy(bytes, z.bytes, z.count);
    return z.count;
}

static void damaged_files_are_errors_or_trees(void **state) {
    (void)state;
    unsigned char bytes[4096];
    const size_t size = small_pt(bytes);
    every_prefix(PT, bytes, size);
    (void)every_flipped_byte(PT, bytes, size);
    every_allocation_may_fail(PT, bytes, size);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest all[] = {
        TEST(pickles_are_values),
        TEST(tensors_lie_in_storages),
        TEST(the_same_tensor_is_one_record),
        TEST(one_storage_may_have_two_types),
        TEST(there_may_be_many_small_values),
        TEST(other_pickles_are_refused),
        TEST(values_that_repeat_themselves_end),
        TEST(nesting_has_an_end),
        TEST(zips_of_another_kind_are_refused),
        TEST(other_names_are_recognised),
        TEST(damaged_files_are_errors_or_trees),
    };
    ADD_TESTS(&tests, all);
    return run_test_list("formats/test_pt", &tests, make_folder, remove_folder);
}
