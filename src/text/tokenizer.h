/* Texts into numbers of tokens and back: private side of weber/text.h. A text goes through a list
 * of steps, as the file names them: normalisers change it, splitters cut it into pieces, the model
 * makes ids of each piece, a template puts special tokens around them. */
#ifndef WB_TEXT_TOKENIZER_H
#define WB_TEXT_TOKENIZER_H

#include <weber/text.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/object.h"
#include "formats/json.h"
#include "text/regex.h"
#include "text/unicode.h"

/* ---- pieces of a text ---- */

/* Bytes of a text, or, with id >= 0, an added token. */
typedef struct wb_piece {
    int64_t begin, end;
    int32_t id;
    bool is_first; /* it begins where the whole text began, before anything was changed */
} wb_piece;

typedef struct wb_pieces {
    wb_text text;
    wb_piece *pieces;
    int64_t count, capacity;
} wb_pieces;

/* Appends a piece; nothing for an empty one. False when out of memory. */
bool wb_pieces_add(wb_pieces *out, const char *text, size_t bytes, bool is_first);
/* What was put into the text from `begin` on, as a piece, which may be empty. */
bool wb_pieces_add_token(wb_pieces *out, int64_t begin);
void wb_pieces_release(wb_pieces *pieces);

/* ---- the vocabulary ---- */

typedef struct wb_entry {
    const char *text;
    uint32_t bytes;
    int32_t id;
    double score; /* Unigram */
} wb_entry;

enum { WB_TOKEN_BYTES = 4096 }; /* longer tokens are refused: a search may take as many steps */

typedef struct wb_vocabulary {
    wb_entry *entries; /* in the order of their bytes */
    int64_t count;
    int32_t *by_id; /* places of entries, in the order of their ids */
} wb_vocabulary;

/* Sorts what was put into entries. */
bool wb_vocabulary_sort(wb_vocabulary *vocabulary);
/* The id of a token, or -1. */
int32_t wb_vocabulary_id(const wb_vocabulary *vocabulary, const char *text, size_t bytes);
/* The token of an id, or NULL. */
const wb_entry *wb_vocabulary_entry(const wb_vocabulary *vocabulary, int32_t id);
/* Narrows the range [*begin, *end) of entries, which begin with the same `at` bytes, to those whose
 * next byte is c. */
void wb_vocabulary_narrow(const wb_vocabulary *vocabulary, int64_t *begin, int64_t *end, size_t at,
                          unsigned char c);
/* The longest token that `prefix` and the text begin with: its bytes of the text, or 0. */
size_t wb_vocabulary_longest(const wb_vocabulary *vocabulary, const char *prefix, const char *text,
                             size_t bytes, int32_t *id);
void wb_vocabulary_release(wb_vocabulary *vocabulary);

/* ---- models ---- */

typedef struct wb_ids {
    int32_t *ids;
    int64_t count, capacity;
} wb_ids;
bool wb_ids_add(wb_ids *out, int32_t id);

/* Two tokens that become one; rank 0 is the first that was learnt. */
typedef struct wb_merge {
    int32_t left, right, rank, id;
} wb_merge;

typedef struct wb_token_model {
    /* Appends the ids of a piece. False when out of memory. */
    bool (*encode)(const struct wb_token_model *model, const char *text, size_t bytes, wb_ids *out);
    wb_vocabulary vocabulary;
    wb_merge *merges; /* in the order of left, right */
    int64_t merge_count;
    int32_t unknown;       /* -1: none */
    int32_t byte_ids[256]; /* of the tokens <0x00> ... <0xFF>; -1: none */
    bool has_byte_fallback, fuses_unknown, ignores_merges;
    const char *prefix, *suffix; /* of pieces that go on, of pieces that end a word; or NULL */
    int64_t most_characters;     /* WordPiece: longer words are unknown */
    double unknown_score;        /* Unigram */
} wb_token_model;

/* Reads "model". */
wb_status wb_token_model_read(wb_token_model *model, wb_file *file, wb_arena *arena,
                              const wb_json *json);
void wb_token_model_release(wb_token_model *model);

bool wb_bpe_encode(const wb_token_model *model, const char *text, size_t bytes, wb_ids *out);
bool wb_wordpiece_encode(const wb_token_model *model, const char *text, size_t bytes, wb_ids *out);
bool wb_unigram_encode(const wb_token_model *model, const char *text, size_t bytes, wb_ids *out);

/* Whether each byte has a token <0x..>. */
bool wb_has_byte_ids(const wb_token_model *model, const char *text, size_t bytes);

/* ---- steps ---- */

typedef enum wb_behaviour {
    WB_SPLIT_REMOVED,
    WB_SPLIT_ISOLATED,
    WB_SPLIT_WITH_PREVIOUS,
    WB_SPLIT_WITH_NEXT,
    WB_SPLIT_CONTIGUOUS
} wb_behaviour;

typedef struct wb_text_step wb_text_step;

/* What a kind of step does with one piece: appends what becomes of it. */
typedef bool wb_step_fn(const wb_text_step *step, const char *text, size_t bytes, bool is_first,
                        wb_pieces *out);

struct wb_text_step {
    wb_step_fn *run;
    const struct wb_tokenizer *tokenizer;
    wb_regex *regex; /* or NULL: `text` itself is looked for */
    const char *text, *content;
    size_t text_bytes, content_bytes;
    wb_behaviour behaviour;
    bool (*is_character)(const wb_unicode *unicode, uint32_t code); /* what a splitter looks for */
    int form;                                                       /* of wb_unicode_normalise */
    bool is_partial; /* of a decoder: more ids will follow */
    bool is_inverted, adds_prefix, only_first, splits, cleans, spaces_chinese, strips, lowers;
    int64_t begin, end; /* Strip: at most so many characters */
};

typedef struct wb_steps {
    wb_text_step *steps;
    int64_t count, capacity;
} wb_steps;

/* Runs all steps over all pieces; `pieces` has the result. */
bool wb_steps_run(const wb_steps *steps, wb_pieces *pieces);
void wb_steps_release(wb_steps *steps);

/* A row of a table of kinds: what "type" says, and what reads the rest. */
typedef struct wb_step_kind {
    const char *name;
    wb_status (*read)(wb_tokenizer *t, const wb_json *json, wb_text_step *step);
} wb_step_kind;

/* Reads a step, or the steps of a Sequence, whose list has the name `sequence`. */
wb_status wb_steps_read(wb_tokenizer *t, wb_steps *steps, const wb_json *json, const char *what,
                        const char *sequence, const wb_step_kind *kinds, size_t kind_count);

wb_status wb_normalisers_read(wb_tokenizer *t, const wb_json *json);
wb_status wb_splitters_read(wb_tokenizer *t, const wb_json *json);
wb_status wb_template_read(wb_tokenizer *t, const wb_json *json);
wb_status wb_decoders_read(wb_tokenizer *t, const wb_json *json);

/* {"String": "x"} or {"Regex": "x"}, or "x" alone. */
wb_status wb_pattern_read(wb_tokenizer *t, const wb_json *json, const wb_json *pattern,
                          wb_text_step *step);
/* Members of a step; errors name them. */
wb_status wb_member_text(const wb_tokenizer *t, const wb_json *json, const char *name,
                         const char **text, size_t *bytes);
wb_status wb_member_bool(const wb_tokenizer *t, const wb_json *json, const char *name,
                         bool otherwise, bool *value);

/* "Precompiled": the step's text is the trie, its content the texts. */
wb_status wb_charsmap_read(wb_tokenizer *t, const wb_json *json, wb_text_step *step);
bool wb_charsmap_run(const wb_text_step *step, const char *text, size_t bytes, wb_text *out);

/* Puts the place in the file in front of the pending error, if it has none yet. */
wb_status wb_error_at(const wb_tokenizer *t, const wb_json *json, uint64_t since);

/* The first match at or behind `at`, or false with *end = -1 after a failure. */
bool wb_step_find(const wb_text_step *step, wb_match *match, const char *text, size_t bytes,
                  size_t at, int64_t *begin, int64_t *end);

/* ---- bytes as characters, which byte-level models read ---- */

void wb_byte_level(wb_text *out, const char *text, size_t bytes);
/* Appends the bytes; false, and nothing is appended, if a character stands for none. */
bool wb_byte_level_back(wb_text *out, const char *text, size_t bytes);

/* How many bytes at the end begin a character that could still be completed. */
size_t wb_unfinished_bytes(const char *text, size_t bytes);
/* Appends valid UTF-8: U+FFFD instead of each part that cannot be completed. */
void wb_put_valid(wb_text *out, const char *text, size_t bytes);

/* ---- decoding ---- */

typedef bool wb_decoder_fn(const wb_text_step *step, const wb_pieces *in, wb_pieces *out);

typedef struct wb_decoder {
    wb_decoder_fn *run;
    wb_text_step step;
} wb_decoder;

/* ---- the tokenizer ---- */

typedef struct wb_added {
    wb_entry entry;
    const char *normalised; /* what is looked for in normalised text; else NULL */
    size_t normalised_bytes;
    bool is_special, is_single_word, strips_left, strips_right, is_normalised;
} wb_added;

struct wb_tokenizer {
    wb_object object;
    wb_file *file; /* while it is read */
    wb_arena arena;
    wb_unicode unicode;
    wb_regex_library regexes;
    wb_token_model model;
    wb_added *added; /* in the order of their ids */
    int64_t added_count;
    wb_vocabulary added_texts; /* of all of them */
    /* What is looked for in the text as it is, and in normalised text. Ids are INT32_MAX - places,
     * so that of equal ones the first counts. */
    wb_vocabulary plain, normal;
    bool begins[256]; /* whether an added token begins with this byte */
    wb_steps normalisers, splitters;
    wb_ids template; /* -1: where the text's ids belong; empty: they stand alone */
    wb_decoder *decoders;
    int64_t decoder_count, decoder_capacity;
    bool has_decoder;
};

/* The added token of an id, or of a text; NULL: there is none. */
const wb_added *wb_added_of(const wb_tokenizer *t, int32_t id);
const wb_added *wb_added_named(const wb_tokenizer *t, const char *text, size_t bytes);
/* Cuts added tokens out of the text. */
bool wb_added_split(const wb_tokenizer *t, bool is_normalised, const char *text, size_t bytes,
                    bool is_first, wb_pieces *out);

bool wb_tokenizer_check(const char *function, const wb_tokenizer *tokenizer);

#endif
