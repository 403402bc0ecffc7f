/* Bob Jenkins' hash lookup3, hashlittle with the seed 0 (https://burtleburtle.net/bob/c/lookup3.c,
 * in the public domain): the checksum of HDF5. */
#ifndef WB_BASE_LOOKUP3_H
#define WB_BASE_LOOKUP3_H

#include <stddef.h>
#include <stdint.h>

uint32_t wb_lookup3(const unsigned char *bytes, size_t size_bytes);

#endif
