/* For tests of files of NumPy's arrays. */
#ifndef WB_TESTS_FORMATS_NPY_MAKER_H
#define WB_TESTS_FORMATS_NPY_MAKER_H

#include "formats/npy.h"
#include "formats/trees.h"

/* A file: the version, the header's text as it is, that many bytes 1, 2, 3, ... */
static inline size_t put_npy(unsigned char *bytes, int version, const char *text,
                             size_t data_bytes) {
    const size_t length = strlen(text), begin = version == 1 ? 10 : 12;
    memset(bytes, 0, begin);
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (unsigned char)version;
    bytes[8] = (unsigned char)(length & 255), bytes[9] = (unsigned char)(length >> 8);
    memcpy(bytes + begin, text, length);
    for (size_t i = 0; i < data_bytes; i++) bytes[begin + length + i] = (unsigned char)(i + 1);
    return begin + length + data_bytes;
}

#define H(descr, order, shape)                                                                     \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"

#endif
