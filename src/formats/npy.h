/* NumPy's array in a file: what .npy and the entries of .npz share. */
#ifndef WB_FORMATS_NPY_H
#define WB_FORMATS_NPY_H

#include "formats/record.h"

/* Bytes that are to be an array: a whole .npy, or an entry of an .npz. */
typedef struct wb_npy_source {
    wb_file *file;
    const unsigned char *bytes;
    int64_t size_bytes;
    /* of the first byte in the file; of a compressed entry: where it begins there */
    int64_t offset;
    bool is_inflated;  /* the bytes are not the file's own: messages name the entry's place */
    const char *entry; /* its name, or NULL */
} wb_npy_source;

/* The array, over the source's bytes, or turned around in the file's arena where they are
 * big-endian; NULL on failure. */
wb_record *wb_npy_read(const wb_npy_source *source);

/* What an array, or what is opaque with data, is that NumPy's files cannot hold; NULL: they can. */
const char *wb_npy_refuses(const wb_record *record);

enum { WB_NPY_MOST_HEADER = 512, WB_NPY_ALIGN = 64 };

/* The header of an array that is written in Fortran's order, which is Weber's; a multiple of 64
 * bytes. Returns its length, or 0 with the error recorded: path and name are for messages. */
size_t wb_npy_header(const wb_record *record, char header[WB_NPY_MOST_HEADER], const char *path,
                     const char *name);

#endif
