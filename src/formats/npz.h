/* What .npz has beside arrays: shared by reading and writing. */
#ifndef WB_FORMATS_NPZ_H
#define WB_FORMATS_NPZ_H

#include "formats/zip.h"

/* The entry for what named arrays cannot express (lists, numbers, texts, structs, order, sharing):
 * BSON, {tree: ..., metadata: ...}, in which an array is a struct Weber.Array with the name of its
 * entry. A file without it is read as maps of arrays. */
#define WB_NPZ_TREE "weber.bson"

wb_status wb_npz_write(const wb_record *root, const wb_record *metadata, wb_text *out);

#endif
