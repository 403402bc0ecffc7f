/* src/formats/pt*.c, pickle.c: what pickles say, tensors over storages, what is refused, damage.
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

/* ---- the form before PyTorch 1.6 ---- */

#define MAGIC    "\200\2\212\12\154\374\234\106\371\040\152\250\120\031."
#define PROTOCOL "\200\2M\351\3."
#define SYSTEM   "\200\2}X\15\0\0\0little_endian\210s."
#define OLD      MAGIC PROTOCOL SYSTEM
#define KEYS                                                                                       \
    "\200\2]X\1\0\0\0"                                                                             \
    "0a."
#define COUNT   "\6\0\0\0\0\0\0\0"
#define NUMBERS "\0\0\0\0\0\0\200\77\0\0\0\100\0\0\100\100\0\0\200\100\0\0\240\100" /* 0 .. 5 */
#define ALL     TENSOR(FLOATS, "K\0", "K\2K\3\206", "K\3K\1\206")
/* elements 1 to 4 of the storage, of which the tensor has the last two */
#define VIEW                                                                                       \
    "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"                                             \
    "0X\3\0\0\0cpuK\6(X\1\0\0\0"                                                                   \
    "1K\1K\4ttQ"

static wb_file *open_old(const char *bytes, size_t size) {
    write_bytes(PT, (const unsigned char *)bytes, size);
    return wb_open(test_path);
}

static void assert_old(const char *bytes, size_t size, int count, const double *values) {
    wb_file *file = open_old(bytes, size);
    if (!file) fail_msg("%s", wb_error_message());
    double have[6];
    wb_array *x = wb_record_array(file, wb_record_get(wb_file_root(file), "x"));
    assert_non_null(x);
    assert_int_equal(wb_count(x), count);
    assert_int_equal(wb_read(wb_cast(x, WB_F64), have, sizeof *have * (size_t)count), WB_OK);
    for (int i = 0; i < count; i++) assert_true(have[i] == values[i]);
    wb_free(file);
}

static void files_before_the_zip_are_read(void **state) {
    (void)state;
    assert_old(P(OLD ONE(ALL) KEYS COUNT NUMBERS), 6, (double[]){0, 1, 2, 3, 4, 5});
    assert_old(P(OLD ONE(TENSOR(VIEW, "K\2", "K\2\205", "K\1\205")) KEYS COUNT NUMBERS), 2,
               (double[]){3, 4});
    assert_old(P(OLD ONE("ctorch._utils\n_rebuild_tensor\n(" FLOATS "K\4K\2\205K\1\205tR")
                     KEYS COUNT NUMBERS),
               2, (double[]){4, 5});
    assert_old(P(OLD "\200\2ccollections\nOrderedDict\n]U\1x" ALL "\206a\205R." KEYS COUNT NUMBERS),
               6, (double[]){0, 1, 2, 3, 4, 5});
}

static void faults_of_the_old_form_are_errors(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *message;
    } rows[] = {
        {P(MAGIC "\200\2M\352\3." SYSTEM), "its protocol is not 1001"},
        {P(MAGIC PROTOCOL "\200\2}."), "does not say the order of its bytes"},
        {P(MAGIC PROTOCOL "\200\2}X\15\0\0\0little_endian\211s."), "little-endian processors"},
        {P(MAGIC "\200\2cposix\nsystem\n)R."), "posix.system is called, where a plain value"},
        {P(MAGIC PROTOCOL SYSTEM "\200\2cposix\nsystem\n)R."), "posix.system is called, which"},
        {P(MAGIC PROTOCOL "\200\2K\1Q."), "something outside of the pickle"},
        {P(OLD ONE(ALL) "\200\2}."), "the keys of the storages must be a list"},
        {P(OLD ONE(ALL) "\200\2]."), "the file has no storage \"0\""},
        {P(OLD ONE(ALL) "\200\2]K\0a."), "the value has no storage of this key"},
        {P(OLD ONE(ALL) "\200\2]X\1\0\0\0"
                        "1a." COUNT NUMBERS),
         "no storage of this key"},
        {P(OLD ONE(ALL) "\200\2](X\1\0\0\0"
                        "0X\1\0\0\0"
                        "0e." COUNT NUMBERS COUNT NUMBERS),
         "storage \"0\" comes twice"},
        {P(OLD ONE(ALL) KEYS COUNT), "needs 6 elements of 4 bytes, but the file has 0 bytes left"},
        {P(OLD ONE(ALL) KEYS "\7\0\0\0\0\0\0\0" NUMBERS), "storage \"0\" has 7 elements, not 6"},
        {P(OLD "\200\2](" FLOATS STORAGE("FloatStorage", "K\5") "e." KEYS COUNT NUMBERS),
         "storage \"0\" has two types or sizes"},
        {P(OLD "\200\2](" FLOATS STORAGE("IntStorage", "K\6") "e." KEYS COUNT NUMBERS),
         "storage \"0\" has two types or sizes"},
        {P(OLD ONE(TENSOR(FLOATS, "K\1", "K\6\205", "K\1\205")) KEYS COUNT NUMBERS),
         "reaches beyond the 6 elements of 0"},
        {P(OLD ONE(TENSOR(VIEW, "K\3", "K\2\205", "K\1\205")) KEYS COUNT NUMBERS),
         "reaches beyond the 4 elements"},
        {P(OLD "\200\2(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
               "0X\3\0\0\0cpuK\6(X\1\0\0\0"
               "1K\3K\4ttQ." KEYS COUNT NUMBERS),
         "the view of storage \"0\" is not within its 6 elements"},
        {P(OLD "\200\2" STORAGE("FloatStorage", "J\377\377\377\377") "." KEYS COUNT NUMBERS),
         "needs -1 elements"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_bytes(PT, (const unsigned char *)rows[i].bytes, rows[i].size);
        assert_refused(rows[i].message);
    }
}

/* Behind the number by which they are recognised. */
static void damaged_old_files_are_errors_or_trees(void **state) {
    (void)state;
    enum { RECOGNISED = 25, NUMBER = sizeof MAGIC - 1 };
    static char bytes[] = OLD ONE(ALL) KEYS COUNT NUMBERS;
    static const unsigned char flips[] = {0x01, 0x02, 0x10, 0x20, 0x80, 0xFF};
    unsigned char *at = (unsigned char *)bytes;
    const size_t size = sizeof bytes - 1;
    for (size_t cut = RECOGNISED; cut < size; cut++) assert_false(open_damaged(PT, at, cut));
    assert_true(open_damaged(PT, at, size));
    for (size_t i = NUMBER; i < size; i++)
        for (size_t k = 0; k < sizeof flips; k++) {
            at[i] ^= flips[k];
            (void)open_damaged(PT, at, size);
            at[i] ^= flips[k];
        }
    every_allocation_may_fail(PT, bytes, size);
}

/* ---- TorchScript ---- */

#define OBJECT(name) "c__torch__.m\n" name "\n)\201"
#define MODULE(name) OBJECT(name) "}"

static wb_file *open_script(const char *data, size_t size, const char *constants,
                            size_t constants_size) {
    static zip z;
    const zip_entry entries[] = {
        {.name = "s/data.pkl", .data = (const unsigned char *)data, .size = size},
        {.name = "s/constants.pkl",
         .data = (const unsigned char *)constants,
         .size = constants_size},
        {.name = "s/code/m.py",
         .data = (const unsigned char *)"\3\0",
         .size = 0,
         .stored = 2,
         .method = 8},
        {.name = "s/data/0", .data = numbers, .size = sizeof numbers},
        {.name = "s/constants/0", .data = numbers, .size = sizeof numbers}};
    put_zip(&z, 5, entries);
    write_bytes(PT, z.bytes, z.count);
    return wb_open(test_path);
}

static void programs_are_their_arrays(void **state) {
    (void)state;
    char text[512] = "";
    wb_file *file = open_script(
        P("\200\2" MODULE("Net") "(X\10\0\0\0training\210X\2\0\0\0fc" MODULE(
            "Linear") "X\6\0\0\0weight" ALL "sbX\1\0\0\0nctorch.jit._pickle\nbuild_intlist\n(lK\1"
                      "a\205Rub."),
        P("\200\2)."));
    if (!file) fail_msg("%s", wb_error_message());
    say(wb_file_root(file), text, sizeof text);
    assert_string_equal(text, "(fc=(weight=f32 (3, 2)) n=(1) training=true)");
    wb_free(file);
}

static void constants_are_the_arrays_of_a_frozen_program(void **state) {
    (void)state;
    wb_file *file =
        open_script(P("\200\2" MODULE("Net") "X\10\0\0\0training\211sb."), P("\200\2" ALL "\205."));
    if (!file) fail_msg("%s", wb_error_message());
    assert_values(wb_record_array(file, wb_record_get(wb_file_root(file), "constants.1")), 0, 0, 1,
                  2, 3, 4, 5);
    wb_free(file);
}

static void objects_of_programs_are_modules_alone(void **state) {
    (void)state;
    (void)open_script(P("\200\2"
                        "cposix\nthing\n)\201}b."),
                      P("\200\2)."));
    assert_refused("an object of posix.thing is not read");
    assert_null(open_script(P("\200\2" OBJECT("Net") "K\1b."), P("\200\2).")));
    wb_clear_error();
    assert_refused("an object's attributes (__torch__.m.Net) are not read");
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
        TEST(files_before_the_zip_are_read),
        TEST(faults_of_the_old_form_are_errors),
        TEST(damaged_old_files_are_errors_or_trees),
        TEST(programs_are_their_arrays),
        TEST(constants_are_the_arrays_of_a_frozen_program),
        TEST(objects_of_programs_are_modules_alone),
    };
    ADD_TESTS(&tests, all);
    return run_test_list("formats/test_pt", &tests, make_folder, remove_folder);
}
