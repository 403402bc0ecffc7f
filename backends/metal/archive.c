/* Metal reads and writes binary archives only as files, so the bytes of the host's cache pass
 * through a temporary file. A new archive collects the pipelines of one text and is written to the
 * cache when it is closed. */
#include "archive.h"
#include "platform/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Metal reads and writes archives as files: one in a folder of our own, which the cache's bytes go
 * through. When Metal writes it, it is not there yet. */
static const char name_there[] = "/pipelines";

static bool make_place(wb_metal_archive *archive) {
    const char *folder = wb_platform_trusted_variable("TMPDIR");
    const size_t most = sizeof archive->path - sizeof name_there;
    const int length = snprintf(archive->path, most, "%s/weber-metal.XXXXXX",
                                folder && folder[0] ? folder : "/tmp");
    const bool is_made = length > 0 && (size_t)length < most && mkdtemp(archive->path);
    if (is_made)
        memcpy(archive->path + length, name_there, sizeof name_there);
    else
        archive->path[0] = 0;
    return is_made;
}

static bool make_file(wb_metal_archive *archive, const void *data, size_t size_bytes) {
    FILE *file = make_place(archive) ? fopen(archive->path, "wbe") : NULL;
    if (!file) return false;
    const bool is_written = fwrite(data, 1, size_bytes, file) == size_bytes;
    return fclose(file) == 0 && is_written;
}

static void remove_file(wb_metal_archive *archive) {
    if (!archive->path[0]) return;
    (void)unlink(archive->path);
    archive->path[strlen(archive->path) - strlen(name_there)] = 0;
    (void)rmdir(archive->path);
    archive->path[0] = 0;
}

static mtl_id url_of(const wb_metal_archive *archive) {
    const mtl_id path = wb_metal_string(archive->path);
    return path ? mtl_file_url(wb_metal_class("NSURL"), path) : NULL;
}

/* ---- opening ---- */

static mtl_id new_archive(wb_metal_device *device, mtl_id url) {
    mtl_id error = NULL;
    const mtl_id descriptor = mtl_new(wb_metal_class("MTLBinaryArchiveDescriptor"));
    if (url) mtl_set_url(descriptor, url);
    const mtl_id archive = descriptor ? mtl_new_archive(device->id, descriptor, &error) : NULL;
    mtl_release(descriptor);
    return archive;
}

static void read_cached(wb_metal_device *device, wb_metal_archive *archive) {
    void *data = NULL;
    size_t size = 0;
    if (!wb_metal_host->cache_read("Metal", archive->name, &data, &size)) return;
    const mtl_id url = make_file(archive, data, size) ? url_of(archive) : NULL;
    if (url) archive->id = new_archive(device, url);
    if (!archive->id) {
        wb_metal_host->log(WB_LOG_DEBUG, "Metal: the cached archive %s cannot be used",
                           archive->name);
        remove_file(archive);
    }
    wb_metal_host->release(data);
}

void wb_metal_archive_open(wb_metal_device *device, uint64_t key, wb_metal_archive *archive) {
    *archive = (wb_metal_archive){.id = NULL};
    if (!wb_metal_host->cache_wanted()) return;
    (void)snprintf(archive->name, sizeof archive->name, "%016llx-%016llx", (unsigned long long)key,
                   (unsigned long long)device->compiler);
    read_cached(device, archive);
    if (archive->id) return;
    archive->id = new_archive(device, NULL);
    archive->is_new = archive->id;
}

/* ---- pipelines ---- */

bool wb_metal_archive_offer(const wb_metal_archive *archive, mtl_id descriptor) {
    if (!archive->id || archive->is_new) return false;
    mtl_set_archives(descriptor, mtl_array_of(wb_metal_class("NSArray"), archive->id));
    return true;
}

void wb_metal_archive_withdraw(const wb_metal_archive *archive, mtl_id descriptor) {
    wb_metal_host->log(WB_LOG_DEBUG, "Metal: the cached archive %s gave no pipeline",
                       archive->name);
    mtl_set_archives(descriptor, NULL);
}

void wb_metal_archive_add(wb_metal_archive *archive, mtl_id descriptor) {
    mtl_id error = NULL;
    if (archive->is_new) archive->is_new = mtl_add_pipeline(archive->id, descriptor, &error);
}

/* ---- closing ---- */

static void *read_file(const char *path, size_t *size_bytes) {
    FILE *file = fopen(path, "rb");
    void *data = NULL;
    if (file && fseek(file, 0, SEEK_END) == 0) {
        const long size = ftell(file);
        *size_bytes = size > 0 ? (size_t)size : 0;
        rewind(file);
        data = *size_bytes ? wb_metal_host->alloc(*size_bytes) : NULL;
        if (data && fread(data, 1, *size_bytes, file) != *size_bytes) {
            wb_metal_host->release(data);
            data = NULL;
        }
    }
    if (file) (void)fclose(file);
    return data;
}

static void write_cached(wb_metal_archive *archive) {
    mtl_id error = NULL;
    size_t size = 0;
    const mtl_id url = make_place(archive) ? url_of(archive) : NULL;
    if (!url || !mtl_serialize(archive->id, url, &error)) return;
    void *data = read_file(archive->path, &size);
    if (data) wb_metal_host->cache_write("Metal", archive->name, data, size);
    wb_metal_host->release(data);
}

void wb_metal_archive_close(wb_metal_archive *archive) {
    if (archive->is_new) write_cached(archive);
    remove_file(archive);
    mtl_release(archive->id);
    archive->id = NULL;
}
