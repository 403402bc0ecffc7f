/* src/text: small tokenizers of each kind, what is refused, damage. tests/text/peers.py compares
 * with another library. */
#include <weber/text.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "support/files.h"
#include "support/support.h"

enum { ROOM = 64 };

/* A file with apostrophes instead of quotes. */
static const char *file_of(const char *text) {
    const char *path = path_of("tokenizer.json");
    char *json = malloc(strlen(text) + 1);
    assert_non_null(json);
    strcpy(json, text);
    for (char *at = json; *at; at++)
        if (*at == '\'') *at = '"';
    write_file(path, json, strlen(json));
    free(json);
    return path;
}

/* Skips the test where a library is missing. */
static wb_tokenizer *load(const char *text) {
    wb_tokenizer *t = wb_tokenizer_load(file_of(text));
    if (!t && wb_error_status() == WB_ERROR_UNSUPPORTED) {
        print_message("skipped: %s\n", wb_error_message());
        wb_clear_error();
        skip();
    }
    if (!t) fail_msg("%s", wb_error_message());
    return t;
}

/* The ids as a text: "1 2 3". */
static const char *encoded(const wb_tokenizer *t, const char *text) {
    static char line[ROOM * 12];
    int32_t ids[ROOM];
    const int64_t count = wb_encode(t, text, ids, ROOM);
    size_t used = 0;
    line[0] = 0;
    for (int64_t i = 0; i < count; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%d", i ? " " : "", ids[i]);
    return line;
}

static const char *decoded(const wb_tokenizer *t, int count, const int32_t *ids, bool is_partial) {
    static char text[256];
    assert_true(wb_decode(t, ids, count, text, sizeof text, .partial = is_partial) >= 0);
    return text;
}

#define DECODED(t, ...)                                                                            \
    decoded(t, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t), (int32_t[]){__VA_ARGS__}, false)
#define PARTIAL(t, ...)                                                                            \
    decoded(t, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t), (int32_t[]){__VA_ARGS__}, true)

/* ---- kinds ---- */

/* Ġ is a space, Ã © are the bytes of é */
static const char byte_level[] =
    "{'model': {'type': 'BPE', 'vocab': {'h': 0, 'e': 1, 'l': 2, 'o': 3, 'Ġ': 4, 'he': 5, 'll': "
    "6, 'llo': 7, 'hello': 8, 'Ã': 9, '©': 10, '!': 11}, 'merges': ['l l', 'h e', ['ll', 'o'], "
    "['he', 'llo']]}, 'pre_tokenizer': {'type': 'ByteLevel', 'add_prefix_space': false}, 'decoder':"
    " {'type': 'ByteLevel'}, 'added_tokens': [{'id': 12, 'content': '<end>', 'special': true, "
    "'normalized': false, 'rstrip': true}]}";

static void bytes_are_merged(void **state) {
    (void)state;
    wb_tokenizer *t = load(byte_level);
    assert_string_equal(encoded(t, "hello hell!"), "8 4 5 6 11");
    assert_string_equal(encoded(t, "lllo"), "6 2 3"); /* the leftmost pair first */
    assert_string_equal(encoded(t, "h\xC3\xA9"), "0 9 10");
    assert_string_equal(encoded(t, "z"), ""); /* no token, and no token for what is unknown */
    assert_string_equal(encoded(t, ""), "");
    assert_string_equal(encoded(t, "he<end>  he"), "5 12 5");
    assert_string_equal(DECODED(t, 8, 4, 5, 6, 12, 9, 10), "hello hell\xC3\xA9");
    assert_int_equal(wb_tokenizer_size(t), 13);
    assert_int_equal(wb_tokenizer_id(t, "hello"), 8);
    assert_int_equal(wb_tokenizer_id(t, "<end>"), 12);
    assert_int_equal(wb_tokenizer_id(t, "hallo"), -1);
    assert_string_equal(wb_tokenizer_token(t, 12), "<end>");
    assert_string_equal(wb_tokenizer_token(t, 4), "\xC4\xA0");
    assert_null(wb_tokenizer_token(t, 13));
    assert_null(wb_tokenizer_token(t, -1));
    wb_free(t);
}

static void a_character_may_come_in_two_tokens(void **state) {
    (void)state;
    wb_tokenizer *t = load(byte_level);
    assert_string_equal(PARTIAL(t, 0, 9), "h");
    assert_string_equal(PARTIAL(t, 0, 9, 10), "h\xC3\xA9");
    assert_string_equal(DECODED(t, 0, 9), "h\xEF\xBF\xBD");
    assert_string_equal(PARTIAL(t, 9, 0), "\xEF\xBF\xBDh"); /* cannot be completed any more */
    assert_string_equal(DECODED(t, 10, 10), "\xEF\xBF\xBD\xEF\xBF\xBD");
    wb_free(t);
}

static void special_tokens_are_shown_on_demand(void **state) {
    (void)state;
    wb_tokenizer *t = load(byte_level);
    char text[32];
    const int32_t ids[] = {5, 12};
    assert_int_equal(wb_decode(t, ids, 2, text, sizeof text, .special = true), 7);
    assert_string_equal(text, "he<end>");
    assert_int_equal(wb_decode(t, ids, 2, text, 5, .special = true), 7);
    assert_string_equal(text, "he<e");
    assert_int_equal(wb_decode(t, ids, 2), 2);
    assert_int_equal(wb_encode(t, "hello hell!"), 5);
    int32_t few[2] = {-1, -1};
    assert_int_equal(wb_encode(t, "hello hell!", few, 1), 5);
    assert_true(few[0] == 8 && few[1] == -1);
    assert_int_equal(wb_encode(t, "he\0he", .bytes = 5), 2); /* no token for the zero byte */
    wb_free(t);
}

static void unknown_characters_become_bytes(void **state) {
    (void)state;
    wb_tokenizer *t = load(
        "{'model': {'type': 'BPE', 'vocab': {'<unk>': 0, '<0xC3>': 1, '<0xA9>': 2, 'a': 3, "
        "'\u2581': "
        "4, '\u2581a': 5}, 'merges': [['\u2581', 'a']], 'unk_token': '<unk>', 'byte_fallback': "
        "true, "
        "'fuse_unk': true}, 'normalizer': {'type': 'Sequence', 'normalizers': [{'type': 'Prepend', "
        "'prepend': '\u2581'}, {'type': 'Replace', 'pattern': {'String': ' '}, 'content': "
        "'\u2581'}]}, "
        "'decoder': {'type': 'Sequence', 'decoders': [{'type': 'Replace', 'pattern': {'String': "
        "'\u2581'}, 'content': ' '}, {'type': 'ByteFallback'}, {'type': 'Fuse'}, {'type': 'Strip', "
        "'content': ' ', 'start': 1, 'stop': 0}]}}");
    assert_string_equal(encoded(t, "a a\xC3\xA9xyz"), "5 5 1 2 0");
    assert_string_equal(DECODED(t, 5, 5, 1, 2), "a a\xC3\xA9");
    assert_string_equal(DECODED(t, 5, 1), "a\xEF\xBF\xBD");
    assert_string_equal(PARTIAL(t, 5, 1), "a");
    /* bytes in a row are one text or none: what has been shown stays */
    assert_string_equal(PARTIAL(t, 5, 1, 2), "a");
    assert_string_equal(PARTIAL(t, 5, 1, 2, 5), "a\xC3\xA9 a");
    assert_string_equal(PARTIAL(t, 5, 1, 2, 1), "a");
    assert_string_equal(PARTIAL(t, 5, 1, 2, 1, 5), "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD a");
    wb_free(t);
}

static const char word_piece[] =
    "{'model': {'type': 'WordPiece', 'unk_token': '[UNK]', 'max_input_chars_per_word': 9, "
    "'vocab': {'[UNK]': 0, '[CLS]': 1, '[SEP]': 2, 'un': 3, '##aff': 4, '##able': 5, '##a': 6, "
    "',':"
    " 7, '\u4e2d': 8}}, 'normalizer': {'type': 'BertNormalizer'}, 'pre_tokenizer': {'type': "
    "'BertPreTokenizer'}, 'post_processor': {'type': 'BertProcessing', 'cls': ['[CLS]', 1], "
    "'sep': ['[SEP]', 2]}, 'decoder': {'type': 'WordPiece', 'prefix': '##'}}";

static void words_are_made_of_pieces(void **state) {
    (void)state;
    wb_tokenizer *t = load(word_piece);
    assert_string_equal(encoded(t, "UNaffable,un \u4e2d\u00C4 x"), "1 3 4 5 7 3 8 0 0 2");
    assert_string_equal(encoded(t, "unaffableab"), "1 0 2"); /* too long */
    assert_string_equal(DECODED(t, 1, 3, 4, 5, 7, 3), "[CLS] unaffable, un");
    wb_free(t);
}

static void the_best_sum_of_scores_wins(void **state) {
    (void)state;
    wb_tokenizer *t = load(
        "{'model': {'type': 'Unigram', 'unk_id': 0, 'vocab': [['<unk>', 0], ['\u2581', -3], ['a', "
        "-2],"
        " ['b', -2], ['ab', -3], ['\u2581a', -1], ['ba', -9]]}, 'pre_tokenizer': {'type': "
        "'Metaspace', 'replacement': '\u2581', 'prepend_scheme': 'always'}, 'decoder': {'type': "
        "'Metaspace', 'replacement': '\u2581', 'prepend_scheme': 'always'}, 'post_processor': {"
        "'type': 'TemplateProcessing', 'single': [{'Sequence': {'id': 'A', 'type_id': 0}}, "
        "{'SpecialToken': {'id': '</s>', 'type_id': 0}}], 'special_tokens': {'</s>': {'id': '</s>',"
        " 'ids': [7], 'tokens': ['</s>']}}}}");
    assert_string_equal(encoded(t, "ab ba"), "5 3 1 3 2 7");
    assert_string_equal(encoded(t, "xyab"), "1 0 4 7"); /* what is unknown is one token */
    assert_string_equal(DECODED(t, 5, 3, 1, 3, 2), "ab ba");
    wb_free(t);
}

/* Each decoder gives valid UTF-8 to the next one. */
static void decoders_in_a_row_read_characters(void **state) {
    (void)state;
    wb_tokenizer *t = load(
        "{'model': {'type': 'BPE', 'vocab': {'h': 0, 'Ã': 1, 'ð': 2}, 'merges': []}, 'decoder': {"
        "'type': 'Sequence', 'decoders': [{'type': 'ByteLevel'}, {'type': 'ByteLevel'}, {'type': "
        "'Replace', 'pattern': {'Regex': '[^h]'}, 'content': '?'}]}}");
    assert_string_equal(DECODED(t, 0, 2), "h?");
    assert_string_equal(DECODED(t, 1, 0, 2), "?h?");
    assert_string_equal(PARTIAL(t, 0, 2), "h");
    wb_free(t);
}

/* The first of two that are equal once they are normalised, and the longer of two. */
static void added_tokens_have_an_order(void **state) {
    (void)state;
    wb_tokenizer *t =
        load("{'model': {'type': 'BPE', 'vocab': {'a': 0}, 'merges': []}, 'normalizer': {'type': "
             "'Strip'}, "
             "'added_tokens': [{'id': 7, 'content': ' xy'}, {'id': 5, 'content': 'xy '}, {'id': 6, "
             "'content': 'xyz', 'normalized': true}, {'id': 8, 'content': 'q', 'normalized': "
             "false}, {'id':"
             " 9, 'content': 'qq', 'normalized': false}]}");
    assert_string_equal(encoded(t, "aqqa"), "0 9 0");
    assert_string_equal(encoded(t, "qqq"), "9 8");
    assert_string_equal(encoded(t, "xy xyz"), "5 6");
    wb_free(t);
}

/* ---- what is refused ---- */

#define BPE "'model': {'type': 'BPE', 'vocab': {'a': 0}, 'merges': []}"
#define SPLIT                                                                                      \
    "{" BPE ", 'pre_tokenizer': {'type': 'Split', 'behavior': 'Isolated', "                        \
    "'pattern': {"
#define REGEX(text) SPLIT "'Regex': '" text "'}}}"

typedef struct fault_row {
    const char *name, *text, *message;
} fault_row;

static const fault_row fault_rows[] = {
    {"no JSON", "{", "offset 1: this is not valid JSON"},
    {"a list", "[]", "offset 0: there is no \"model\": this is not a tokenizer.json"},
    {"a model that is a number", "{'model': 1}", "offset 1: model must be an object"},
    {"an unknown model", "{'model': {'type': 'Own'}}", "the model is \"Own\", which is not"},
    {"no vocabulary", "{'model': {'type': 'BPE'}}", "vocab must be an object, but is nothing"},
    {"an id that is a text", "{'model': {'type': 'BPE', 'vocab': {'a': 'b'}}}",
     "offset 36: an id must be an integer"},
    {"an id that is too large", "{'model': {'type': 'BPE', 'vocab': {'a': 2147483648}}}",
     "an id must be an integer from 0 to 2^31 - 1"},
    {"no merges", "{'model': {'type': 'BPE', 'vocab': {'a': 0}}}", "merges must be a list"},
    {"a merge of one token", "{'model': {'type': 'BPE', 'vocab': {'a': 0}, 'merges': ['a']}}",
     "a merge must be two tokens"},
    {"a merge into nothing", "{'model': {'type': 'BPE', 'vocab': {'a': 0}, 'merges': ['a a']}}",
     "of which one, or the result, is not in the vocabulary"},
    {"an unknown token that is not there",
     "{'model': {'type': 'BPE', 'vocab': {'a': 0}, 'merges': [], 'unk_token': 'b'}}",
     "unk_token \"b\" is not in the vocabulary"},
    {"dropout", "{'model': {'type': 'BPE', 'vocab': {'a': 0}, 'merges': [], 'dropout': 0.1}}",
     "dropout is not supported"},
    {"a score that is a text", "{'model': {'type': 'Unigram', 'vocab': [['a', 'b']]}}",
     "a token and its score are expected"},
    {"an unknown token that is not there",
     "{'model': {'type': 'Unigram', 'unk_id': 1, 'vocab': [['a', 0]]}}",
     "unk_id must be the place of a token"},
    {"an unknown normaliser", "{" BPE ", 'normalizer': {'type': 'Nmt'}}",
     "the normalizer \"Nmt\" is not supported"},
    {"a table that is no text", "{" BPE ", 'normalizer': {'type': 'Precompiled'}}",
     "precompiled_charsmap must be a text"},
    {"a table that is not base 64",
     "{" BPE ", 'normalizer': {'type': 'Precompiled', 'precompiled_charsmap': 'AA?A'}}",
     "precompiled_charsmap is not base 64"},
    {"a table without a size",
     "{" BPE ", 'normalizer': {'type': 'Precompiled', 'precompiled_charsmap': 'AAAA'}}",
     "precompiled_charsmap is cut short"},
    {"a table that is too short",
     "{" BPE ", 'normalizer': {'type': 'Precompiled', 'precompiled_charsmap': 'BAAAAAAA'}}",
     "precompiled_charsmap is cut short"},
    {"a table with half a character",
     "{" BPE ", 'normalizer': {'type': 'Precompiled', 'precompiled_charsmap': 'AAAAAMMA'}}",
     "precompiled_charsmap has texts that are not UTF-8"},
    {"an unknown splitter", "{" BPE ", 'pre_tokenizer': {'type': 'Own'}}",
     "the pre_tokenizer \"Own\" is not supported"},
    {"an unknown splitter within a sequence",
     "{" BPE ", 'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': [{'type': 'Own'}]}}",
     "the pre_tokenizer \"Own\" is not supported"},
    {"a sequence that is none", "{" BPE ", 'normalizer': {'type': 'Sequence'}}",
     "normalizers must be a list, but is nothing"},
    {"a splitter that is a number", "{" BPE ", 'pre_tokenizer': 3}",
     "pre_tokenizer must be an object with a type, but is an integer"},
    {"an unknown decoder", "{" BPE ", 'decoder': {'type': 'CTC'}}",
     "the decoder \"CTC\" is not supported"},
    {"an unknown template", "{" BPE ", 'post_processor': {'type': 'Own'}}",
     "the post_processor \"Own\" is not supported"},
    {"a special token without ids",
     "{" BPE ", 'post_processor': {'type': 'TemplateProcessing', 'single': [{'Sequence': {'id': 'A'"
     "}}, {'SpecialToken': {'id': 'x'}}], 'special_tokens': {}}}",
     "special_tokens has no ids of \"x\""},
    {"a text twice in a template",
     "{" BPE ", 'post_processor': {'type': 'TemplateProcessing', 'single': [{'Sequence': {'id': 'A'"
     "}}, {'Sequence': {'id': 'A'}}], 'special_tokens': {}}}",
     "a SpecialToken or one Sequence is expected"},
    {"an unknown behaviour",
     "{" BPE ", 'pre_tokenizer': {'type': 'Split', 'behavior': 'Own', 'pattern': {'String': 'a'}}}",
     "an unknown behavior"},
    {"an empty pattern", SPLIT "'String': ''}}}", "a String or a Regex that is not empty"},
    {"an added token without an id", "{" BPE ", 'added_tokens': [{'content': 'x'}]}",
     "the id of an added token must be an integer"},
    {"an added token without a text", "{" BPE ", 'added_tokens': [{'id': 3}]}",
     "content must be a text, but is nothing"},
};

static const fault_row regex_rows[] = {
    {"a bracket without its end", REGEX("[a"), "the regular expression \"[a\" cannot be used"},
    {"an intersection of classes", REGEX("[a-z&&[^b]]"), "cannot be used: && in brackets"},
    {"a class in a class", REGEX("[a[b]]"), "cannot be used: brackets in brackets"},
    {"a flag that means something else", REGEX("(?m:a.b)"), "cannot be used: the flag m"},
    {"half a character", REGEX("\\\\C"), "cannot be used"},
};

static void is_refused(void **state) {
    const fault_row *row = *state;
    const char *path = file_of(row->text);
    assert_null(wb_tokenizer_load(path));
    if (wb_error_status() == WB_ERROR_UNSUPPORTED) {
        wb_clear_error();
        skip();
    }
    assert_non_null(strstr(wb_error_message(), path));
    assert_non_null(strstr(wb_error_message(), "offset "));
    assert_error(WB_ERROR_FORMAT, row->message);
}

static void arguments_are_checked(void **state) {
    (void)state;
    assert_null(wb_tokenizer_load(NULL));
    assert_error(WB_ERROR_ARGUMENT, "wb_tokenizer_load: the path is NULL");
    assert_null(wb_tokenizer_load("none"));
    assert_error(WB_ERROR_IO, "none: cannot be opened");
    wb_tokenizer *t = load("{" BPE "}");
    assert_int_equal(wb_encode(t, "a\xFF"), -1);
    assert_error(WB_ERROR_ARGUMENT, "wb_encode: byte 1 of the text is not valid UTF-8");
    assert_int_equal(wb_encode(t, NULL), -1);
    assert_error(WB_ERROR_ARGUMENT, "wb_encode: the text is NULL");
    assert_int_equal(wb_encode(t, "a", .room = 3), -1);
    assert_error(WB_ERROR_ARGUMENT, "wb_encode: .ids must be given with a .room, got 3");
    assert_int_equal(wb_decode(t, NULL, 3), -1);
    assert_error(WB_ERROR_ARGUMENT, "wb_decode");
    assert_int_equal(wb_tokenizer_size(NULL), 0);
    wb_free(t);
}

/* ---- what costs ---- */

static void a_search_that_would_take_for_ever_is_given_up(void **state) {
    (void)state;
    wb_tokenizer *t = load(REGEX("(a+)+$"));
    char text[101] = "";
    memset(text, 'a', 99);
    text[99] = '!';
    assert_int_equal(wb_encode(t, text), -1);
    assert_error(WB_ERROR_FORMAT,
                 "a regular expression of the tokenizer was given up: match limit");
    assert_int_equal(wb_encode(t, "aa"), 2);
    wb_free(t);
}

static void long_tokens_are_refused(void **state) {
    (void)state;
    enum { LENGTH = 4097 };
    static char text[LENGTH + 200];
    const size_t used =
        (size_t)sprintf(text, "{'model': {'type': 'BPE', 'merges': [], 'vocab': {'");
    memset(text + used, 'a', LENGTH);
    (void)sprintf(text + used + LENGTH, "': 0}}}");
    assert_null(wb_tokenizer_load(file_of(text)));
    assert_error(WB_ERROR_FORMAT, "a token may have at most 4096 bytes");
}

static void a_long_piece_takes_no_square_of_its_length(void **state) {
    (void)state;
    enum { LENGTH = 1 << 18 };
    wb_tokenizer *t = load(byte_level);
    char *text = malloc(LENGTH + 1);
    assert_non_null(text);
    memset(text, 'l', LENGTH);
    text[LENGTH] = 0;
    assert_int_equal(wb_encode(t, text), LENGTH / 2);
    memset(text, ' ', LENGTH);
    assert_int_equal(wb_encode(t, text), LENGTH);
    free(text);
    wb_free(t);
}

static void fail_each(const char *json, const char *text) {
    wb_tokenizer *good = load(json), *t = NULL;
    const char *path = path_of("tokenizer.json");
    int32_t ids[ROOM];
    const int64_t wanted = wb_encode(good, text, ids, ROOM),
                  wanted_bytes = wb_decode(good, ids, wanted);
    int64_t count = -1, bytes = -1;
    for (int64_t n = 1; !t; n++) {
        (void)wb_fail_allocation(n);
        t = wb_tokenizer_load(path);
        (void)wb_fail_allocation(0);
        if (!t) assert_error(WB_ERROR_MEMORY, "");
        assert_true(n < 1000);
    }
    for (int64_t n = 1; count < 0; n++) {
        (void)wb_fail_allocation(n);
        count = wb_encode(t, text);
        (void)wb_fail_allocation(0);
        if (count < 0) assert_error(WB_ERROR_MEMORY, "");
    }
    for (int64_t n = 1; bytes < 0; n++) {
        (void)wb_fail_allocation(n);
        bytes = wb_decode(t, ids, wanted);
        (void)wb_fail_allocation(0);
        if (bytes < 0) assert_error(WB_ERROR_MEMORY, "");
    }
    assert_int_equal(count, wanted);
    assert_int_equal(bytes, wanted_bytes);
    wb_free(good), wb_free(t);
}

static void allocations_that_fail_are_errors(void **state) {
    (void)state;
    fail_each(byte_level, "hello <end> hell");
    fail_each(word_piece, "unaffable, un able aff able unaffable");
}

int main(void) {
    enum { FAULTS = sizeof fault_rows / sizeof *fault_rows };
    enum { REGEXES = sizeof regex_rows / sizeof *regex_rows };
    static struct CMUnitTest faults[FAULTS + REGEXES];
    const struct CMUnitTest tests[] = {
        TEST(bytes_are_merged),
        TEST(a_character_may_come_in_two_tokens),
        TEST(special_tokens_are_shown_on_demand),
        TEST(unknown_characters_become_bytes),
        TEST(words_are_made_of_pieces),
        TEST(the_best_sum_of_scores_wins),
        TEST(decoders_in_a_row_read_characters),
        TEST(added_tokens_have_an_order),
        TEST(arguments_are_checked),
        TEST(a_search_that_would_take_for_ever_is_given_up),
        TEST(long_tokens_are_refused),
        TEST(a_long_piece_takes_no_square_of_its_length),
        TEST(allocations_that_fail_are_errors),
    };
    if (make_folder(NULL)) return 1;
    for (int i = 0; i < FAULTS; i++) faults[i] = TEST_ROW(&fault_rows[i], is_refused);
    for (int i = 0; i < REGEXES; i++) faults[FAULTS + i] = TEST_ROW(&regex_rows[i], is_refused);
    const int failed = cmocka_run_group_tests_name("what is refused", faults, NULL, NULL) +
                       cmocka_run_group_tests_name("tokenizers", tests, NULL, NULL);
    return drop_folder(NULL) || failed;
}
