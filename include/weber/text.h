/* weber/text.h: texts into the numbers of tokens that language models read, and back.
 *
 *     wb_tokenizer *tokenizer = wb_tokenizer_load("gpt2");       // a folder with tokenizer.json
 *     int32_t ids[512];
 *     int64_t count = wb_encode(tokenizer, "How are you?", ids, 512);
 *     char text[4096];
 *     wb_decode(tokenizer, ids, count, text, sizeof text);
 *     wb_free(tokenizer);
 *
 * A tokenizer is what Hugging Face's library `tokenizers` has saved as tokenizer.json:
 * docs/files.md says what of it is read; anything else in it is an error that names it, and nothing
 * is executed.
 * Its regular expressions need PCRE2, its normal forms utf8proc; they are opened when a file needs
 * them, and an error names the missing package. Any number of threads may use one tokenizer at
 * once. Texts are UTF-8. NULL in; NULL, -1 or a size of 0 out. Errors: weber/error.h. */
#ifndef WEBER_TEXT_H
#define WEBER_TEXT_H

#include "desc.h"
#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Released by wb_free. */
typedef struct wb_tokenizer wb_tokenizer;

/* Reads the file, or tokenizer.json in the folder. Errors: WB_ERROR_IO; WB_ERROR_FORMAT with the
 * offset of what is wrong or not supported; WB_ERROR_UNSUPPORTED if PCRE2 or utf8proc is
 * missing. */
WB_API wb_tokenizer *wb_tokenizer_load(const char *path);

typedef struct wb_encode_desc {
    WB_START_MEMBER;
    const char *text;
    int32_t *ids;                  /* where the ids go; NULL: they are only counted */
    int64_t room;                  /* at most so many ids are written */
    int64_t bytes;                 /* of the text, which may have zero bytes; default: up to one */
    bool special WB_DEFAULT(true); /* with the tokens that the file puts around a text */
} wb_encode_desc;

/* The number of the text's ids, which may be more than the room; -1 on failure: the text is not
 * valid UTF-8, or a regular expression of the file took too many steps on it.
 * wb_encode(tokenizer, text, ids, 512, .special = false). */
#define wb_encode(...)             WB_ENCODE_(__VA_ARGS__, WB_NO_MORE)
#define WB_ENCODE_(tokenizer, ...) WB_MAKE_OF(wb_encode_make, tokenizer, encode, __VA_ARGS__)
WB_API int64_t wb_encode_make(const wb_tokenizer *tokenizer, wb_encode_desc desc);

typedef struct wb_decode_desc {
    WB_START_MEMBER;
    const int32_t *ids;
    int64_t count;
    char *text;   /* where the text goes, ended by a zero byte; NULL: its bytes are only counted */
    int64_t room; /* at most so many bytes are written, the zero byte included */
    bool special; /* with special tokens (<|endoftext|>); default: they are left out */
    /* more ids will follow: a character that is not complete, and bytes whose characters the next
     * ids decide, are left out */
    bool partial;
} wb_decode_desc;

/* The number of the text's bytes without its end, which may be more than the room; -1 on failure.
 * Bytes that are not UTF-8 become U+FFFD; ids without a token are left out. A token may end within
 * a character, so a program that shows text as it is generated decodes all ids so far with
 * .partial, and shows what is new. */
#define wb_decode(...)             WB_DECODE_(__VA_ARGS__, WB_NO_MORE)
#define WB_DECODE_(tokenizer, ...) WB_MAKE_OF(wb_decode_make, tokenizer, decode, __VA_ARGS__)
WB_API int64_t wb_decode_make(const wb_tokenizer *tokenizer, wb_decode_desc desc);

/* One more than the largest id: what an Embedding of its tokens needs. */
WB_API int64_t wb_tokenizer_size(const wb_tokenizer *tokenizer);
/* The id of a token as the file writes it ("<|endoftext|>", "Ġthe"), or -1. */
WB_API int32_t wb_tokenizer_id(const wb_tokenizer *tokenizer, const char *token);
/* The token of an id, valid as long as the tokenizer; NULL: there is none. */
WB_API const char *wb_tokenizer_token(const wb_tokenizer *tokenizer, int32_t id);

#ifdef __cplusplus
}
#endif
#endif
