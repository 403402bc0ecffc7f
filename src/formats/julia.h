/* What formats of Julia's have in common: the names of its types, and its numbers. */
#ifndef WB_FORMATS_JULIA_H
#define WB_FORMATS_JULIA_H

#include "formats/record.h"

/* True if name's last part is this: "Flux.Dense" and "Dense". */
bool wb_julia_last_is(const char *name, const char *last);
/* True for the arrays of GPU packages, whose numbers no file has. */
bool wb_julia_is_device_array(const char *type);
/* True for structs that hold what only their own process can read: memory of a device, of another
 * library. */
bool wb_julia_is_beyond(const char *type);
/* "relu" for NNlib.#relu; NULL: r is not a function with a name. */
const char *wb_julia_function(const wb_record *r);

/* ---- numbers ---- */

typedef struct wb_julia_number {
    const char *name;
    int64_t size_bytes;
    wb_record_kind kind;
    bool is_signed;
    int dtype; /* or -1 */
} wb_julia_number;
const wb_julia_number *wb_julia_number_of(const char *type); /* NULL: not a number type */
const char *wb_julia_name_of_dtype(wb_dtype dtype);          /* NULL: Julia has none */
/* The bits of a number of size_bytes, least significant byte first. */
uint64_t wb_julia_bits(const unsigned char *bytes, int64_t size_bytes);
/* Sets kind and value of the record; false if no type of Weber's holds the number. */
bool wb_julia_set_number(wb_record *record, const wb_julia_number *number,
                         const unsigned char *bytes);

#endif
