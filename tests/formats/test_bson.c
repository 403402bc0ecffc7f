/* Reading Julia's BSON, src/formats/bson*.c: the files that Julia wrote, and every tag by hand. */
#include "formats/bson.h"
#include "formats/bson_maker.h"
#include "formats/bson_memory.h"

static const char fixtures[] = WB_TESTS_DIR "/formats/fixtures/bson";

/* ---- by hand ---- */

typedef struct document_row {
    const char *name, *bson, *records;
} document_row;

#define DENSE            "{tag: 'datatype', params: [$Int64], name: ['Flux', 'Dense']}"
#define SYMBOL(name)     "{tag: 'symbol', name: '" name "'}"
#define NAMES(list)      "{tag: 'tuple', data: [" list "]}"
#define WEIGHT_AND_SIGMA SYMBOL("weight") ", " SYMBOL("σ")

#define NAMED(names) "{tag: 'datatype', params: [" names ", $Tuple], name: ['Core', 'NamedTuple']}"
#define DICT         "{tag: 'datatype', params: [$String, $Any], name: ['Main', 'Base', 'Dict']}"

#define F32(size, data) "{tag: 'array', type: $Float32, size: [" size "], data: <" data ">}"
#define REF(n)          "{tag: 'backref', ref: " n "}"

static const document_row documents[] = {
    {"plain values are themselves", "{a: 1, b: -2i, c: 1.5, d: 'text', e: true, f: null}",
     "{a: 1, b: -2, c: 1.5~, d: 'text', e: true, f: null}"},
    {"an empty document is an empty map", "{}", "{}"},
    {"plain arrays are lists", "{a: [1, [], 'x', [[false]]]}", "{a: [1, [], 'x', [[false]]]}"},
    {"plain documents are maps", "{a: {b: {c: 1}, d: {}}}", "{a: {b: {c: 1}, d: {}}}"},
    {"binaries are arrays of bytes", "{a: <01 02 ff>, b: <>}", "{a: u8(3)=1 2 255, b: u8(0)}"},
    {"a matrix lies first dimension fastest",
     "{a: {tag: 'array', type: $Int32, size: [2, 1], data: <01 00 00 00 02 00 00 00>}}",
     "{a: i32(2 1)=1 2}"},
    {"keys stand in any order, sizes are of 32 bits too",
     "{a: {data: <00 00 80 3f>, size: [1i], type: $Float32, tag: 'array'}}", "{a: f32(1)=1}"},
    {"type names may begin with Main",
     "{a: {tag: 'array', type: {name: ['Main', 'Core', 'Bool'], tag: 'datatype', params: []}, "
     "size: [2], data: <01 00>}}",
     "{a: bool(2)=1 0}"},
    {"arrays may have no dimensions, or no elements",
     "{a: " F32("", "00 00 80 3f") ", b: " F32("0, 3", "") "}", "{a: f32()=1, b: f32(0 3)}"},
    {"all of Weber's types are arrays",
     "{a: {tag: 'array', type: $Float64, size: [1], data: <00 00 00 00 00 00 f8 3f>}, "
     "b: {tag: 'array', type: $Float16, size: [1], data: <00 3c>}, "
     "c: {tag: 'array', type: $Int64, size: [1], data: <ff ff ff ff ff ff ff ff>}, "
     "d: {tag: 'array', type: $UInt8, size: [1, 1], data: <07>}}",
     "{a: f64(1)=1.5, b: f16(1)=15360, c: i64(1)=-1, d: u8(1 1)=7}"},
    {"arrays of other bits stay bytes",
     "{a: {tag: 'array', type: $Int8, size: [3], data: <01 02 03>}, b: {tag: 'array', type: "
     "{tag: 'datatype', name: ['Base', 'Complex'], params: [$Int32]}, size: [1], data: <01 02 03 "
     "04 05 06 07 08>}}",
     "{a: ?Core.Int8<3 bytes>, b: ?Base.Complex<8 bytes>}"},
    {"arrays of more dimensions than Weber has are opaque",
     "{a: " F32("1, 1, 1, 1, 1, 1, 1, 1, 1", "00 00 80 3f") "}", "{a: ?Core.Array}"},
    {"arrays of no bits are lists",
     "{a: {tag: 'array', type: $Any, size: [2, 2], data: [1, 'b', null, []]}}",
     "{a: [1, 'b', null, []]}"},
    {"tuples are lists", "{a: {tag: 'tuple', data: [1, {data: [], tag: 'tuple'}]}}",
     "{a: [1, []]}"},
    {"named tuples are maps",
     "{a: {tag: 'struct', type: " NAMED(NAMES(WEIGHT_AND_SIGMA)) ", data: [1, 2.5]}}",
     "{a: {weight: 1, σ: 2.5~}}"},
    {"structs have their fields in order",
     "{a: {tag: 'struct', type: " DENSE ", data: [" F32("1", "00 00 80 3f") ", false]}}",
     "{a: Flux.Dense(f32(1)=1, false)}"},
    {"wrappers of other packages are structs",
     "{a: {tag: 'struct', type: {tag: 'datatype', params: [], name: ['Main', 'Tracker', "
     "'TrackedArray']}, data: [null, " F32("1", "00 00 80 3f") ", " REF("1") "]}, _backrefs: [<>]}",
     "{a: Tracker.TrackedArray(null, f32(1)=1, u8(0))}"},
    {"functions are structs without fields",
     "{a: {data: [], tag: 'struct', type: {tag: 'datatype', name: ['Main', 'Base', '#tanh'], "
     "params: []}}, b: {tag: 'struct', type: {tag: 'datatype', name: ['Main', '#3#4'], params: "
     "[]}, "
     "data: []}}",
     "{a: Base.#tanh(), b: #3#4()}"},
    {"a type called Main keeps its name",
     "{a: {tag: 'struct', type: {tag: 'datatype', name: ['Main'], params: []}, data: []}}",
     "{a: Main()}"},
    {"numbers that BSON lacks are numbers",
     "{a: {tag: 'struct', type: $Float32, data: <00 00 c0 3f>}, "
     "b: {tag: 'struct', type: $Float16, data: <00 c0>}, "
     "c: {tag: 'struct', type: $Int8, data: <ff>}, d: {tag: 'struct', type: $UInt8, data: <ff>}, "
     "e: {tag: 'struct', type: $UInt64, data: <ff ff ff ff ff ff ff 7f>}, "
     "f: {tag: 'struct', type: $Int16, data: <00 80>}, g: {tag: 'struct', type: $UInt32, data: <ff "
     "ff ff ff>}, h: {tag: 'struct', type: $Bool, data: <01>}}",
     "{a: 1.5~, b: -2~, c: -1, d: 255, e: 9223372036854775807, f: -32768, g: 4294967295, h: true}"},
    {"what C has no number for stays bytes",
     "{a: {tag: 'struct', type: $UInt64, data: <ff ff ff ff ff ff ff ff>}, "
     "b: {tag: 'struct', type: $Char, data: <00 00 00 61>}, "
     "c: {tag: 'struct', type: $Int128, data: <01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00>}}",
     "{a: ?Core.UInt64<8 bytes>, b: ?Core.Char<4 bytes>, c: ?Core.Int128<16 bytes>}"},
    {"dictionaries with keys that are names are maps",
     "{a: {tag: 'struct', type: " DICT ", data: [['x', " SYMBOL("y") "], [1, [2]]]}}",
     "{a: {x: 1, y: [2]}}"},
    {"their values may be a typed array",
     "{a: {tag: 'struct', type: " DICT ", data: [['x', 'y'], {tag: 'array', type: $Float32, size: "
     "[2], data: <00 00 80 3f 00 00 00 40>}]}, b: {tag: 'struct', type: " DICT
     ", data: [['z'], <07>]}}",
     "{a: {x: 1~, y: 2~}, b: {z: 7}}"},
    {"dictionaries with other keys are structs",
     "{a: {tag: 'struct', type: " DICT
     ", data: [[1, 2], ['x', 'y']]}, b: {tag: 'struct', type: " DICT ", data: [<01>, ['x']]}}",
     "{a: Base.Dict([1, 2], ['x', 'y']), b: Base.Dict(u8(1)=1, ['x'])}"},
    {"symbols are texts", "{a: " SYMBOL("relu") "}", "{a: 'relu'}"},
    {"types, modules and closures are opaque",
     "{a: $Float32, b: {tag: 'ref', path: ['Main', 'Flux', 'relu']}, c: {tag: 'unionall', body: "
     "$Int64, var: 1}, d: {tag: 'jl_bottom_type'}, e: {tag: 'svec', data: [1]}, f: {tag: 'struct', "
     "type: {tag: 'jl_anonymous', typename: {}, params: []}, data: [2]}}",
     "{a: ?datatype Core.Float32, b: ?ref Flux.relu, c: ?unionall, d: ?jl_bottom_type, e: "
     "?svec(1), f: ?jl_anonymous(2)}"},
    {"tags that are not known are opaque", "{a: {tag: 'of a package', data: [1]}, b: 2}",
     "{a: ?of a package, b: 2}"},
    {"a tag that is no text is a key", "{a: {tag: 1, data: 2}}", "{a: {tag: 1, data: 2}}"},
    {"arrays of devices are opaque",
     "{a: {tag: 'struct', type: {tag: 'datatype', name: ['CUDA', 'CuArray'], params: []}, data: "
     "[1]}}",
     "{a: ?CUDA.CuArray(1)}"},
    {"a tagged top is its value", "{tag: 'struct', type: " DICT ", data: [['name'], [[1]]]}",
     "{name: [1]}"},
    {"back-references are what they refer to",
     "{a: " REF("1") ", _backrefs: [" F32("1",
                                          "00 00 80 3f") ", [" REF("1") "]], b: [" REF("2") "]}",
     "{a: f32(1)=1, b: [[f32(1)=1]]}"},
    {"types and data may be back-references",
     "{_backrefs: [$Float32, <00 00 80 3f>, [1], " DENSE "], a: {tag: 'array', type: " REF(
         "1") ", "
              "data: " REF("2") ", size: " REF("3") "}, b: {tag: 'struct', type: " REF(
                  "4") ", data: " REF("3") "}}",
     "{a: f32(1)=1, b: Flux.Dense(1)}"},
    {"entries that nothing refers to do not matter", "{_backrefs: [{tag: 'tuple'}], a: 1}",
     "{a: 1}"},
    {"only the top has back-references", "{a: {_backrefs: [1]}}", "{a: {_backrefs: [1]}}"},
    {"a reference within what it refers to is a cycle",
     "{_backrefs: [[1, " REF("1") "]], a: " REF("1") "}", "{a: [1, ?cycle]}"},
    {"cycles go through several entries",
     "{_backrefs: [[" REF("2") "], {x: " REF("1") "}], a: [" REF("1") ", " REF("2") "]}",
     "{a: [[{x: ?cycle}], {x: ?cycle}]}"},
    {"undefined fields are structs without fields",
     "{a: {tag: 'struct', type: {tag: 'datatype', name: ['BSON', 'Undef'], params: []}, data: []}}",
     "{a: BSON.Undef()}"},
};

static void documents_are_read(void **state) {
    const document_row *row = *state;
    static bson_maker maker;
    static shown s;
    memory_file m;
    make_bson(&maker, row->bson);
    memory_open(&m, maker.bytes, maker.used);
    assert_int_equal(m.status, WB_OK);
    s.used = 0;
    show_record(&s, m.file.root);
    assert_string_equal(s.text, row->records);
    memory_close(&m);
}

static const document_row faulty[] = {
    {"unknown types of values are refused", "{a: !07}",
     "offset 4: a value that Julia does not write (type 07)"},
    {"data must have the array's size", "{a: " F32("2", "00 00 80 3f") "}",
     "the array has 4 bytes, which do not fit 2 elements of type Core.Float32"},
    {"sizes are not negative", "{a: " F32("-1", "") "}", "size is -1"},
    {"sizes do not overflow", "{a: " F32("4611686018427387904, 4, 0", "") "}", "size is 4"},
    {"sizes in bytes do not overflow", "{a: " F32("4611686018427387904", "") "}",
     "the array has 0 bytes, which do not fit 46"},
    {"sizes are integers", "{a: " F32("'x'", "") "}", "size is -1"},
    {"opaque elements are whole", "{a: {tag: 'array', type: $UInt16, size: [2], data: <00 00 00>}}",
     "the array has 3 bytes, which do not fit 2"},
    {"elements are as many as the sizes say",
     "{a: {tag: 'array', type: $Any, size: [3], data: [1]}}",
     "the array should have 3 elements, but has 1"},
    {"an array has a size", "{a: {tag: 'array', type: $Float32, data: <>}}",
     "offset 4: a value tagged \"array\" lacks its list"},
    {"an array has data", "{a: {tag: 'array', type: $Float32, size: []}}", "lacks its data"},
    {"an array has a type", "{a: {tag: 'array', size: [0], data: <>}}",
     "offset 4: its type is not known"},
    {"bools are 0 and 1", "{a: {tag: 'array', type: $Bool, size: [2], data: <00 02>}}",
     "array of Bool must hold only 0 and 1"},
    {"a number has its bytes", "{a: {tag: 'struct', type: $Float32, data: <00 00>}}",
     "a Core.Float32 of 2 bytes"},
    {"a struct has data", "{a: {tag: 'struct', type: " DENSE "}}", "\"struct\" lacks its list"},
    {"a tuple has data", "{a: {tag: 'tuple', data: 5}}", "\"tuple\" lacks its list"},
    {"a symbol has a name", "{a: {tag: 'symbol', name: 5}}", "\"symbol\" lacks its text"},
    {"named tuples have as many names as values",
     "{a: {tag: 'struct', type: " NAMED(NAMES(SYMBOL("x"))) ", data: [1, 2]}}",
     "there are 2 values, but 1 names"},
    {"dictionaries have as many keys as values",
     "{a: {tag: 'struct', type: " DICT ", data: [['x', 'y', 'z'], [1]]}}",
     "there are 1 values, but 3 names"},
    {"back-references are in range", "{_backrefs: [1], a: " REF("2") "}",
     "entry 2, but there are 1"},
    {"back-references are not 0", "{_backrefs: [1], a: " REF("0") "}", "entry 0, but there are 1"},
    {"back-references are integers", "{_backrefs: [1], a: {tag: 'backref', ref: 'x'}}", "entry 0"},
    {"back-references need entries", "{a: " REF("1") "}", "entry 1, but there are 0"},
    {"entries are a list", "{_backrefs: {a: 1}}", "_backrefs must be a list"},
    {"references to references end", "{_backrefs: [" REF("2") ", " REF("1") "], a: " REF("1") "}",
     "back-references only"},
    {"a type that is itself is none",
     "{_backrefs: [" REF("1") "], a: {tag: 'struct', type: " REF("1") ", data: []}}",
     "back-references only"},
    {"a key stands once", "{a: {tag: 'tuple', data: [], data: [1]}}",
     "the key \"data\" appears twice"},
};

static void faults_are_found(void **state) {
    const document_row *row = *state;
    static bson_maker maker;
    memory_file m;
    make_bson(&maker, row->bson);
    memory_open(&m, maker.bytes, maker.used);
    assert_int_equal(m.status, WB_ERROR_FORMAT);
    assert_non_null(strstr(wb_error_message(), "memory, offset "));
    assert_error(WB_ERROR_FORMAT, row->records);
    memory_close(&m);
}

/* ---- sharing ---- */

static void what_is_shared_is_one_record(void **state) {
    (void)state;
    static bson_maker maker;
    memory_file m;
    make_bson(&maker, "{a: " REF("1") ", b: [" REF("1") ", " REF(
                          "2") "], _backrefs: [<01>, {c: " REF("1") "}], d: " REF("2") "}");
    memory_open(&m, maker.bytes, maker.used);
    assert_int_equal(m.status, WB_OK);
    const wb_record *root = m.file.root, *b = wb_record_get(root, "b");
    assert_ptr_equal(wb_record_get(root, "a"), wb_record_at(b, 0));
    assert_ptr_equal(wb_record_get(root, "d"), wb_record_at(b, 1));
    assert_ptr_equal(wb_record_get(root, "d.c"), wb_record_at(b, 0));
    assert_string_equal(wb_record_get(root, "a")->name, "a");
    assert_int_equal(root->depth, 3);
    assert_int_equal(wb_record_get(root, "a")->number, 0);
    memory_close(&m);
}

static void texts_with_zero_bytes_are_not_cut(void **state) {
    (void)state;
    static bson_maker maker;
    memory_file m;
    make_bson(&maker, "{a: 'x?y', b: {tag: 'struct', type: " DICT ", data: [['k?'], [1]]}}");
    for (size_t i = 0; i < maker.used; i++)
        if (maker.bytes[i] == '?') maker.bytes[i] = 0;
    memory_open(&m, maker.bytes, maker.used);
    assert_int_equal(m.status, WB_OK);
    assert_string_equal(wb_record_type(wb_record_get(m.file.root, "a")), "Core.String");
    assert_int_equal(wb_record_get(m.file.root, "a")->data_bytes, 3);
    assert_int_equal(wb_record_kind_of(wb_record_get(m.file.root, "b")), WB_RECORD_STRUCT);
    memory_close(&m);
}

/* ---- limits ---- */

/* head, then each depth times, then tail, closed depth times */
static char *nested(const char *each, const char *closing, int depth) {
    char *text = calloc(1, (strlen(each) + strlen(closing)) * (size_t)depth + 16);
    strcat(text, "{a: ");
    char *at = text + strlen(text);
    for (int i = 0; i < depth; i++) at = stpcpy(at, each);
    at = stpcpy(at, "1");
    for (int i = 0; i < depth; i++) at = stpcpy(at, closing);
    strcpy(at, "}");
    return text;
}

static wb_status status_of(const char *text) {
    static bson_maker maker;
    memory_file m;
    make_bson(&maker, text);
    memory_open(&m, maker.bytes, maker.used);
    memory_close(&m);
    return m.status;
}

static void nesting_is_limited(void **state) {
    (void)state;
    const struct {
        const char *each, *closing;
        int most;
    } rows[] = {{"[", "]", WB_RECORD_DEPTH - 1},
                {"{x: ", "}", WB_RECORD_DEPTH - 1},
                {"{tag: 'tuple', data: [", "]}", WB_RECORD_DEPTH - 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = nested(rows[i].each, rows[i].closing, rows[i].most);
        assert_int_equal(status_of(text), WB_OK);
        free(text);
        text = nested(rows[i].each, rows[i].closing, rows[i].most + 1);
        assert_int_equal(status_of(text), WB_ERROR_FORMAT);
        assert_error(WB_ERROR_FORMAT, "nested at most 256 deep");
        free(text);
    }
    for (int depth = WB_BSON_DEPTH - 1; depth <= WB_BSON_DEPTH;
         depth++) { /* the file is one more */
        char *text = nested("{tag: 'unknown', x: ", "}", depth);
        const bool fits = depth < WB_BSON_DEPTH;
        assert_int_equal(status_of(text), fits ? WB_OK : WB_ERROR_FORMAT);
        if (!fits) assert_error(WB_ERROR_FORMAT, "nested at most 1024 deep");
        free(text);
    }
}

static void names_of_types_are_limited(void **state) {
    (void)state;
    for (int more = 0; more < 2; more++) { /* 4 + 1 + 1018 bytes and the zero byte are 1024 */
        char *text = calloc(1, 2048), *at = stpcpy(text, "{a: {tag: 'struct', data: [], type: ");
        at = stpcpy(at, "{tag: 'datatype', name: ['Core', '");
        for (int i = 0; i < 1018 + more; i++) *at++ = 'x';
        strcpy(at, "']}}}");
        assert_int_equal(status_of(text), more ? WB_ERROR_FORMAT : WB_OK);
        if (more) assert_error(WB_ERROR_FORMAT, "a name may have at most 1023 bytes");
        free(text);
    }
}

/* Each entry is a list of the next one twice: 2 to the 40 values. */
static void lists_of_references_do_not_explode(void **state) {
    (void)state;
    static char text[1 << 13];
    char *at = stpcpy(text, "{a: " REF("1") ", _backrefs: [");
    for (int i = 2; i <= 41; i++) at += sprintf(at, "[" REF("%d") ", " REF("%d") "], ", i, i);
    strcpy(at, "1]}");
    assert_int_equal(status_of(text), WB_ERROR_FORMAT);
    assert_error(WB_ERROR_FORMAT, "back-references repeat");
}

/* Entries nested in one another are deep although the file is flat. */
static void references_do_not_hide_depth(void **state) {
    (void)state;
    static char text[1 << 15];
    for (int depth = 250; depth < 320; depth += 35) {
        char *at = stpcpy(text, "{a: " REF("1") ", _backrefs: [");
        for (int i = 2; i <= depth; i++) at += sprintf(at, "[" REF("%d") "], ", i);
        strcpy(at, "1]}");
        assert_int_equal(status_of(text), depth < 256 ? WB_OK : WB_ERROR_FORMAT);
        if (depth >= 256) assert_error(WB_ERROR_FORMAT, "nested at most 256 deep");
    }
    char *at = stpcpy(text, "{z: " REF("100") ", a: " REF("1") ", _backrefs: [");
    for (int i = 2; i <= 300; i++) at += sprintf(at, "[" REF("%d") "], ", i > 290 ? 300 : i);
    strcpy(at, "1]}");
    assert_int_equal(status_of(text), WB_ERROR_FORMAT);
    assert_error(WB_ERROR_FORMAT, "nested at most 256 deep");
}

/* Hundreds of references to a document of thousands of keys: short, but long to go over again and
 * again. */
static void the_same_bytes_are_not_gone_over_forever(void **state) {
    (void)state;
    static char text[1 << 17];
    char *at = stpcpy(text, "{_backrefs: [{tag: 'datatype', name: ['A'], ");
    for (int i = 0; i < 3000; i++) at += sprintf(at, "%x: null, ", i + 0x1000);
    at = stpcpy(at, "}], a: [");
    for (int i = 0; i < 400; i++)
        at = stpcpy(at, "{tag: 'struct', type: " REF("1") ", data: []}, ");
    strcpy(at, "]}");
    assert_int_equal(status_of(text), WB_ERROR_FORMAT);
    assert_error(WB_ERROR_FORMAT, "too many back-references lead here");
}

/* ---- files that Julia wrote ---- */

static wb_file *fixture(const char *name) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", fixtures, name);
    wb_file *file = wb_open(path);
    if (!file) fail_msg("%s", wb_error_message());
    return file;
}

static const document_row written[] = {
    {"bsonjl_matrix_float32 is ones", "bsonjl_matrix_float32.bson", "{a: f32(2 2)=1 1 1 1}"},
    {"bsonjl_complex_and_string has both", "bsonjl_complex_and_string.bson",
     "{a: ?Base.Complex<32 bytes>, b: 'Hello, World!'}"},
    {"bsonjl_dict_64bit is a dictionary", "bsonjl_dict_64bit.bson", "{obj: {name: u8(2)=1 2}}"},
    {"bsonjl_dict_32bit is the same", "bsonjl_dict_32bit.bson", "{obj: {name: u8(2)=1 2}}"},
    {"bsonjl_dataframe shows its arrays", "bsonjl_dataframe.bson",
     "{d: DataFrames.DataFrame([i64(10)=1 2 3 4 5 6 7 8 ..., i64(10)=5 6 7 8 9 10 11 12 ...], "
     "DataFrames.Index({a: 1, b: 2}, ['a', 'b']))}"},
    {"flux_docs_mymodel is a Chain", "flux_docs_mymodel.bson",
     "{model: Flux.Chain([Flux.Dense(f32(5 10)=-0.201295 -0.484116 -0.392534 -0.269563 0.350365 "
     "0.488851 0.178344 -0.147905 ..., f32(5)=0 0 0 0 0, NNlib.#relu()), Flux.Dense(f32(2 "
     "5)=0.26759 0.921238 0.139273 -0.207772 0.253746 0.806149 0.885718 0.565696 ..., f32(2)=0 0, "
     "Base.#identity()), NNlib.#softmax()])}"},
    {"flux_docs_checkpoint is a state with names", "flux_docs_checkpoint.bson",
     "{model_state: {layers: [{weight: f64(2 1)=1 1, bias: f64(2)=0 0, σ: Base.Missing()}, "
     "{weight: f64(1 2)=1 1, bias: f64(1)=0, σ: Base.Missing()}]}}"},
};

static void fixtures_hold_what_julia_wrote(void **state) { /* L7 */
    const document_row *row = *state;
    static shown s;
    wb_file *file = fixture(row->bson);
    s.used = 0;
    show_record(&s, wb_file_root(file));
    wb_free(file);
    assert_string_equal(s.text, row->records);
}

static const wb_record *get(const wb_file *file, const char *path) {
    const wb_record *r = wb_record_get(wb_file_root(file), path);
    if (!r) fail_msg("%s", wb_error_message());
    return r;
}

/* ---- a trained network, by its logits ---- */

/* An array of the file, where the tests compute. */
static wb_array *array_of_record(const wb_file *file, const wb_record *r) {
    return wb_to(wb_default_device(), wb_record_array(file, r), .eltype = WB_ELTYPE_PRESERVE);
}

static wb_array *array_at(const wb_file *file, const char *path) {
    return array_of_record(file, get(file, path));
}

static wb_array *conv_block(const wb_file *file, int layer, wb_array *x) {
    char path[64];
    (void)snprintf(path, sizeof path, "model.1.%d", layer);
    const wb_record *conv = get(file, path);
    assert_string_equal(wb_record_type(conv), "Flux.Conv");
    assert_string_equal(wb_record_type(wb_record_at(conv, 0)), "NNlib.#relu");
    wb_array *w = array_of_record(file, wb_record_at(conv, 1));
    wb_array *b = array_of_record(file, wb_record_at(conv, 2));
    wb_array *y = wb_conv_op(x, w, .pad = {1, 1});
    y = wb_relu(wb_add(y, wb_reshape(b, 1, 1, wb_count(b))));
    return wb_maxpool_op(y, .kernel = {2, 2});
}

static void a_trained_network_gives_its_logits(void **state) {
    (void)state;
    static const float wanted[] = {-8.386890f, -10.821486f, -8.183759f,  -2.621297f, -20.367081f,
                                   -4.207835f, -6.955294f,  -12.214521f, -1.001847f, -17.396008f,
                                   -8.608419f, -10.642031f, -7.698138f,  -3.221952f, -19.524084f,
                                   -4.585126f, -7.318094f,  -12.585784f, -0.841831f, -18.388811f};
    float pixels[28 * 28 * 2];
    for (int i = 0; i < 28 * 28 * 2; i++) pixels[i] = (float)(37 * i % 101) / 101;
    wb_file *file = fixture("flux_cnn_mnist.bson");
    assert_true(wb_record_integer(get(file, "epoch")) == 10);
    wb_array *y = wb_from(WB_F32, pixels, 28, 28, 1, 2);
    for (int layer = 1; layer <= 5; layer += 2) y = conv_block(file, layer, y);
    y = wb_reshape(y, 288, 2);
    y = wb_add(wb_matmul(array_at(file, "model.1.8.1"), y), array_at(file, "model.1.8.2"));
    char where[128];
    const bool same = wb_approx(y, wb_from(WB_F32, wanted, 10, 2), 0, 1e-4, where, sizeof where);
    if (!same) fail_msg("%s", where);
    wb_free(file);
}

static void bson_is_recognised_by_its_bytes(void **state) {
    (void)state;
    wb_file *file = fixture("bsonjl_matrix_float32.bson");
    assert_true(wb_format_bson.recognises(&file->map));
    const wb_mapping shorter = {file->map.bytes, file->map.size_bytes - 1}, none = {NULL, 0};
    assert_false(wb_format_bson.recognises(&shorter));
    assert_false(wb_format_bson.recognises(&none));
    wb_free(file);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(what_is_shared_is_one_record),
        TEST(texts_with_zero_bytes_are_not_cut),
        TEST(nesting_is_limited),
        TEST(names_of_types_are_limited),
        TEST(lists_of_references_do_not_explode),
        TEST(references_do_not_hide_depth),
        TEST(the_same_bytes_are_not_gone_over_forever),
        TEST(a_trained_network_gives_its_logits),
        TEST(bson_is_recognised_by_its_bytes),
    };
    ADD_ROWS(&tests, documents, documents_are_read);
    ADD_ROWS(&tests, faulty, faults_are_found);
    ADD_ROWS(&tests, written, fixtures_hold_what_julia_wrote);
    ADD_TESTS(&tests, others);
    return run_test_list("bson", &tests, NULL, NULL);
}
