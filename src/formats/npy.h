/* NumPy's array in a file: what .npy and the entries of .npz share. */
#ifndef WB_FORMATS_NPY_H
#define WB_FORMATS_NPY_H

#include "formats/record.h"

/* Bytes that are to be an array: a whole .npy, or an entry of an .npz. */
typedef struct wb_npy_source {
    wb_file *file;
    const unsigned char *bytes;
    int64_t size_bytes;
    /* in the file: of the first byte, or, for a compressed entry, of the entry */
    int64_t offset;
    bool is_inflated;  /* the bytes were decompressed: messages give the entry's offset */
    const char *entry; /* its name, or NULL */
} wb_npy_source;

/* The array, over the source's bytes; big-endian numbers are copied into the file's arena in the
 * machine's order. NULL on failure. */
wb_record *wb_npy_read(const wb_npy_source *source);

/* A name, for messages, of an array or an opaque record with data that NumPy's files cannot hold;
 * NULL: they can hold it. */
const char *wb_npy_refuses(const wb_record *record);

enum { WB_NPY_MOST_HEADER = 512, WB_NPY_ALIGN = 64 };

/* Writes the header of an array in Fortran's order, which is Weber's. Returns its length, a
 * multiple of 64, or 0 with the error recorded. path and name are for messages. */
size_t wb_npy_header(const wb_record *record, char header[WB_NPY_MOST_HEADER], const char *path,
                     const char *name);

#endif
