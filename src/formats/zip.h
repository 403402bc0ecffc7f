/* Zip files: their records, and a reader of the entries. */
#ifndef WB_FORMATS_ZIP_H
#define WB_FORMATS_ZIP_H

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

typedef struct wb_zip_entry {
    char *name; /* in the file's arena */
    int64_t header, data, end;
    int64_t size_bytes, stored_bytes;
    uint32_t crc;
    int method;
    int64_t central; /* where the directory speaks of it */
} wb_zip_entry;

typedef struct wb_zip {
    wb_file *file;
    const unsigned char *bytes;
    int64_t size_bytes;
    int64_t directory, directory_bytes, count; /* the central directory */
    wb_zip_entry *entries;                     /* in the order of their data */
    int64_t inflated_bytes;                    /* so far */
} wb_zip;

/* Reads the directory. To be closed also on failure, with the file's offset in the error. */
wb_status wb_zip_open(wb_zip *zip, wb_file *file);
void wb_zip_close(wb_zip *zip);

/* The entry's bytes: the file's, or, where they were deflated, in its arena. NULL with the error
 * recorded: they are damaged, or too many. */
const unsigned char *wb_zip_bytes(wb_zip *zip, const wb_zip_entry *entry);

bool wb_is_zip(const wb_mapping *map);

#endif
