/* Pipelines on the disk: a binary archive for each text, in the host's cache of kernels.
 *
 * An archive can be used only by the same GPU and the same build of macOS, which are part of its
 * name. If anything fails, pipelines are made without it. */
#ifndef WB_METAL_ARCHIVE_H
#define WB_METAL_ARCHIVE_H

#include "device.h"

typedef struct wb_metal_archive {
    mtl_id id;      /* an MTLBinaryArchive; NULL: none */
    bool is_new;    /* takes pipelines; else it holds them */
    char name[40];  /* in the cache */
    char path[256]; /* of the file that it is read from; "": none */
} wb_metal_archive;

/* The archive of the text: from the cache, or a new one; none where there is no cache. */
void wb_metal_archive_open(wb_metal_device *device, uint64_t key, wb_metal_archive *archive);

/* offer is called before a pipeline is made of the descriptor, withdraw after. True if pipelines of
 * the archive are offered; withdraw takes them back. */
bool wb_metal_archive_offer(const wb_metal_archive *archive, mtl_id descriptor);
void wb_metal_archive_withdraw(const wb_metal_archive *archive, mtl_id descriptor);
void wb_metal_archive_add(wb_metal_archive *archive, mtl_id descriptor);

/* Writes a new one to the cache, if all pipelines are in it; releases it. */
void wb_metal_archive_close(wb_metal_archive *archive);

#endif
