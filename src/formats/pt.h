/* What the forms of PyTorch's files have in common: a pickle whose tensors are views of storages.
 *
 * Sizes come slowest first, and are reversed: no bytes are moved. Names are paths, as in
 * safetensors: {"model": {"0.weight": W}, "epoch": 3} has model.0.weight and epoch; elements of
 * lists have numbers from 1 on. A tensor that is the same as the first one of its storage is the
 * same record. */
#ifndef WB_FORMATS_PT_H
#define WB_FORMATS_PT_H

#include "formats/flat.h"
#include "formats/pickle.h"

/* What the file knows of a storage, and the first tensor that was made of it. */
typedef struct wb_pt_storage {
    const char *name; /* for messages */
    int64_t offset, size_bytes;
    const unsigned char *bytes; /* NULL: not looked at yet */
    wb_record *first;
    int first_type;
    int64_t first_offset;
    int64_t strides[WB_MAX_DIMS]; /* of the first one */
} wb_pt_storage;

#define WB_PT_BIG_ENDIAN                                                                           \
    "its bytes are not in the order of little-endian processors; save it on one"

typedef struct wb_pt wb_pt;
struct wb_pt {
    wb_file *file;
    wb_pt_storage *storages;
    /* The place of a storage, of so many elements of a type (wb_pt_type_size), in the list; -1
     * with the error recorded. */
    int64_t (*find)(wb_pt *pt, const wb_pickle *pickle, const char *key, int type, int64_t count,
                    int64_t at);
    const unsigned char *(*bytes)(wb_pt *pt, wb_pt_storage *storage); /* NULL with the error */
    bool is_survey;       /* the storages are only asked for; tensors are opaque */
    int64_t copied_bytes; /* so far, of tensors that are no plain part of their storage */
    wb_flat flat;
};

/* pt_tensors.c: what a pickle calls, and what lies outside of it. The pickle's context is the
 * wb_pt. */
wb_record *wb_pt_call(const wb_pickle *pickle, const char *name, wb_record *arguments, int64_t at);
wb_record *wb_pt_persistent(const wb_pickle *pickle, wb_record *key, int64_t at);
int wb_pt_type_size(int type); /* bytes of an element */

/* pt_tree.c: notes all values below the record with their paths. */
wb_status wb_pt_flatten(wb_pt *pt, wb_record *record, const char *path);
/* Makes the file's root, and the order of its names. With has_parts, dictionaries in the value are
 * parts of a checkpoint. */
wb_status wb_pt_set_root(wb_pt *pt, wb_record *value, bool has_parts);
/* Values of a byte each, such as True, become records with paths. */
void wb_pt_allow_values(wb_file *file, int64_t pickle_bytes);

/* pt_old.c: the form before PyTorch 1.6. */
bool wb_pt_is_old(const wb_mapping *map);
wb_status wb_pt_read_old(wb_file *file);

#endif
