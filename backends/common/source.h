/* What a kernel keeps of its rendered source: there may be thousands of kernels, and texts are
 * long. */
#ifndef WB_COMMON_SOURCE_H
#define WB_COMMON_SOURCE_H

#include <weber/plugin.h>

/* All but the text. False, with the error recorded, when out of memory; release it also on
 * failure. */
bool wb_source_keep(const wb_host *host, const wb_source *source, wb_source *kept);
void wb_source_drop(const wb_host *host, wb_source *kept);

/* The block as a run begins, with the offsets of the command's arguments. Late values are the
 * backend's. */
void wb_source_fill(const wb_source *source, const wb_command *command, const wb_memory *memory,
                    int64_t *words);

#endif
