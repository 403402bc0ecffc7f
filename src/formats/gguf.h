/* Shared by reading and writing GGUF, the format of llama.cpp.
 *
 *     "GGUF", version u32, tensors u64, pairs u64
 *     pairs      key, type u32, value: what is known of the file
 *     tensors    name, dimensions u32, sizes u64 each (fastest first), type u32, offset u64
 *     data       at a multiple of general.alignment (32), and so is each tensor in it
 *
 * All numbers are little-endian; a text is its length, u64, and its bytes.
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md */
#ifndef WB_FORMATS_GGUF_H
#define WB_FORMATS_GGUF_H

#include "formats/record.h"

#define WB_GGUF_MAGIC          "GGUF"
#define WB_GGUF_ALIGNMENT_NAME "general.alignment"
#define WB_GGUF_Q8_0           "q8_0"

enum {
    WB_GGUF_MAGIC_BYTES = 4,
    WB_GGUF_ALIGNMENT = 32,           /* where the file does not say another */
    WB_GGUF_MOST_ALIGNMENT = 1 << 16, /* a small file must not become a large one when written */
    WB_GGUF_DIMS = 4,                 /* at most, of a tensor */
    WB_GGUF_VERSION = 3,              /* that is written */
    WB_GGUF_BLOCK = 32,               /* elements of a block of q8_0 */
    WB_GGUF_TYPES = 40                /* numbers of types are below it */
};

/* A type of tensors. Elements are in blocks of some bytes, and rows of whole blocks. */
typedef struct wb_gguf_type {
    const char *name; /* NULL: there is no such type */
    int block_elements, block_bytes;
    int dtype; /* wb_dtype of the elements, or of what they are unpacked to; -1: not read */
    void (*unpack)(const unsigned char *bytes, int64_t count, void *elements); /* NULL: as it is */
} wb_gguf_type;
/* By its number in files; NULL: it is not known. */
const wb_gguf_type *wb_gguf_type_at(uint32_t number);

/* A type of metadata. */
typedef enum wb_gguf_value {
    WB_GGUF_U8,
    WB_GGUF_I8,
    WB_GGUF_U16,
    WB_GGUF_I16,
    WB_GGUF_U32,
    WB_GGUF_I32,
    WB_GGUF_F32,
    WB_GGUF_BOOL,
    WB_GGUF_TEXT,
    WB_GGUF_LIST, /* type u32, count u64, values */
    WB_GGUF_U64,
    WB_GGUF_I64,
    WB_GGUF_F64,
    WB_GGUF_VALUES
} wb_gguf_value;

/* What the values of a metadata type are, texts and lists left out. */
typedef struct wb_gguf_number {
    const char *name;
    int size_bytes;
    int dtype; /* of a list of them; wider integers where Weber lacks the type */
    bool is_signed;
    void (*unpack)(const unsigned char *bytes, int64_t count, void *elements); /* NULL: as it is */
} wb_gguf_number;
extern const wb_gguf_number wb_gguf_numbers[WB_GGUF_VALUES];

wb_status wb_gguf_read(wb_file *file);

/* ---- writing ---- */

const char *wb_gguf_refuses(const wb_record *record); /* see wb_format */
wb_status wb_gguf_write(const wb_record *root, const wb_record *metadata, wb_text *out);
/* Whether the record is an array that q8_0 can hold: of floats, two dimensions or more, and rows of
 * whole blocks. The writer does so if the record's type is "q8_0". */
bool wb_gguf_can_quantise(const wb_record *record);

#endif
