/* Texts to pipelines. */
#include "program.h"

#include <stdio.h>
#include <string.h>

#include "archive.h"

/* ---- the compiler ---- */

enum { LOG_BYTES = 600, LOG_LINES = 6 };

/* The first lines of what the compiler said. */
static void first_lines(mtl_id error, char text[LOG_BYTES]) {
    (void)snprintf(text, LOG_BYTES, "%s", wb_metal_error_text(error));
    char *end = text;
    for (int line = 0; line < LOG_LINES && end; line++) end = strchr(end + (line > 0), '\n');
    if (end) *end = 0;
}

/* The compiler is a separate process, which long texts can crash: it is tried once more. */
static mtl_id library_of(wb_metal_device *device, mtl_id text, mtl_id *error) {
    const mtl_id library = mtl_new_library(device->id, text, device->options, error);
    if (library || !strstr(wb_metal_error_text(*error), "XPC_ERROR_CONNECTION_INTERRUPTED"))
        return library;
    *error = NULL;
    return mtl_new_library(device->id, text, device->options, error);
}

static mtl_id from_text(wb_metal_device *device, const wb_source *source) {
    char log[LOG_BYTES];
    mtl_id error = NULL;
    const size_t bytes = strlen(device->prelude) + strlen(source->text) + 2;
    char *text = wb_metal_host->alloc(bytes);
    if (!text) return NULL;
    (void)snprintf(text, bytes, "%s\n%s", device->prelude, source->text);
    const mtl_id string = wb_metal_string(text); /* Metal ends the process where it is nil */
    const mtl_id library = string ? library_of(device, string, &error) : NULL;
    wb_metal_host->release(text);
    if (library) return library; /* the error may hold warnings */
    first_lines(error, log);
    (void)wb_metal_host->fail(WB_ERROR_DEVICE, "%s: newLibraryWithSource: %s",
                              source->launches[0].entry, log);
    wb_metal_host->log(WB_LOG_DEBUG, "Metal: the source that does not compile: %s", source->text);
    return NULL;
}

/* ---- pipelines ---- */

static mtl_id descriptor_of(mtl_id library, const char *entry) {
    const mtl_id name = wb_metal_string(entry);
    const mtl_id function = name ? mtl_new_function(library, name) : NULL;
    const mtl_id descriptor =
        function ? mtl_new(wb_metal_class("MTLComputePipelineDescriptor")) : NULL;
    mtl_set_function(descriptor, function);
    mtl_release(function);
    if (!descriptor)
        (void)wb_metal_host->fail(WB_ERROR_DEVICE, "%s: newFunctionWithName: none", entry);
    return descriptor;
}

/* Whether groups and SIMD groups are as wide as the text says. */
static bool suits(const wb_dialect *dialect, mtl_id pipeline, const char *entry) {
    const mtl_uint most = mtl_most_threads(pipeline), width = mtl_simd_width(pipeline);
    if (most < (mtl_uint)dialect->group)
        (void)wb_metal_host->fail(
            WB_ERROR_DEVICE, "%s: expected groups of %d items, but the device takes at most %lu",
            entry, (int)dialect->group, most);
    else if (dialect->warp && width != (mtl_uint)dialect->warp)
        (void)wb_metal_host->fail(WB_ERROR_DEVICE,
                                  "%s: expected SIMD groups of %d items, but the device's have %lu",
                                  entry, (int)dialect->warp, width);
    else
        return true;
    return false;
}

/* A cached pipeline may be unusable: then it is made from the text. */
static mtl_id pipeline_of(wb_metal_device *device, mtl_id descriptor, const char *entry,
                          const wb_metal_archive *archive) {
    mtl_id error = NULL;
    const bool is_offered = wb_metal_archive_offer(archive, descriptor);
    mtl_id pipeline = mtl_new_pipeline(device->id, descriptor, 0, NULL, &error);
    if (!pipeline && is_offered) {
        wb_metal_archive_withdraw(archive, descriptor);
        pipeline = mtl_new_pipeline(device->id, descriptor, 0, NULL, &error);
    }
    if (!pipeline)
        (void)wb_metal_host->fail(WB_ERROR_DEVICE, "%s: newComputePipelineState: %s", entry,
                                  wb_metal_error_text(error));
    if (pipeline && suits(&device->dialect, pipeline, entry)) return pipeline;
    mtl_release(pipeline);
    return NULL;
}

static mtl_id make_pipeline(wb_metal_device *device, mtl_id library, const char *entry,
                            wb_metal_archive *archive) {
    const mtl_id descriptor = descriptor_of(library, entry);
    if (!descriptor) return NULL;
    const mtl_id pipeline = pipeline_of(device, descriptor, entry, archive);
    if (pipeline) wb_metal_archive_add(archive, descriptor);
    mtl_release(descriptor);
    return pipeline;
}

static bool make_pipelines(wb_metal_device *device, mtl_id library, const wb_source *source,
                           wb_metal_program *program) {
    wb_metal_archive archive;
    bool are_made = true;
    wb_metal_archive_open(device, source->key, &archive);
    for (int i = 0; i < source->launch_count && are_made; i++) {
        program->pipelines[i] = make_pipeline(device, library, source->launches[i].entry, &archive);
        are_made = program->pipelines[i];
    }
    if (!are_made) archive.is_new = false;
    wb_metal_archive_close(&archive);
    return are_made;
}

/* ---- for wb_texts ---- */

void wb_metal_program_drop(void *device, void *any) {
    wb_metal_program *program = any;
    (void)device;
    for (int i = 0; i < WB_METAL_MOST_ENTRIES; i++) mtl_release(program->pipelines[i]);
    wb_metal_host->release(program);
}

void *wb_metal_program_build(void *any, const wb_source *source) {
    wb_metal_device *device = any;
    wb_metal_program *program = wb_metal_host->alloc(sizeof *program);
    const mtl_id library = program ? from_text(device, source) : NULL;
    const bool is_made = library && make_pipelines(device, library, source, program);
    mtl_release(library);
    if (is_made) return program;
    if (program) wb_metal_program_drop(device, program);
    return NULL;
}
