/* The zip format as .npz uses it: shared by reading and writing. */
#ifndef WB_FORMATS_NPZ_H
#define WB_FORMATS_NPZ_H

#include "formats/record.h"

/* The records of a zip file: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT; all
 * numbers are little-endian. */
enum {
    WB_ZIP_LOCAL = 0x04034b50,
    WB_ZIP_LOCAL_BYTES = 30,
    WB_ZIP_CENTRAL = 0x02014b50,
    WB_ZIP_CENTRAL_BYTES = 46,
    WB_ZIP_END = 0x06054b50,
    WB_ZIP_END_BYTES = 22,
    WB_ZIP_END64 = 0x06064b50,
    WB_ZIP_END64_BYTES = 56,
    WB_ZIP_LOCATOR64 = 0x07064b50,
    WB_ZIP_LOCATOR64_BYTES = 20,
    WB_ZIP_EXTRA64 = 1,
    WB_ZIP_EXTRA_ALIGN = 0xD935, /* the id that zipalign uses */
    WB_ZIP_STORED = 0,
    WB_ZIP_DEFLATED = 8,
    WB_ZIP_UTF8 = 1 << 11,
    WB_ZIP_ENCRYPTED = 1 << 0,
};
#define WB_ZIP_FULL16 0xFFFF /* the number is in the 64-bit fields instead */
#define WB_ZIP_FULL32 0xFFFFFFFFll

/* The entry for what named arrays cannot express (lists, numbers, texts, structs, order, sharing):
 * BSON, {tree: ..., metadata: ...}, in which an array is a struct Weber.Array with the name of its
 * entry. A file without it is read as maps of arrays. */
#define WB_NPZ_TREE "weber.bson"

wb_status wb_npz_write(const wb_record *root, const wb_record *metadata, wb_text *out);

#endif
