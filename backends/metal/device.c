/* Opening and closing a device. */
#include "device.h"

#include <stdio.h>

#include "program.h"
#include <backends/metal/prelude.txt.h>

/* 256 is what every Metal GPU takes, and a multiple of the 32 items that neighbour. */
enum { GROUP = 256, SIMD = 32 };

static bool set_dialect(wb_metal_device *device) {
    static const char simd_line[] = "#define WB_SIMD 1\n";
    const bool has_simd = wb_metal_has_simd(device->id);
    device->prelude = wb_metal_host->alloc(sizeof simd_line + sizeof prelude_text);
    if (!device->prelude) return false;
    (void)snprintf(device->prelude, sizeof simd_line + sizeof prelude_text, "%s%s",
                   has_simd ? simd_line : "", prelude_text);
    device->dialect = (wb_dialect){
        .name = "Metal", .prelude = device->prelude, .group = GROUP, .warp = has_simd ? SIMD : 0};
    return true;
}

/* Infinities and NaN must be right, so no fast math; the version of the language is the same on
 * every macOS. */
static bool set_options(wb_metal_device *device) {
    device->options = mtl_new(wb_metal_class("MTLCompileOptions"));
    if (!device->options)
        return wb_metal_host->fail(WB_ERROR_DEVICE, "Metal: no MTLCompileOptions") == WB_OK;
    mtl_set_language(device->options, MTL_LANGUAGE_2_4);
    if (mtl_responds_to(device->options, mtl_selector_of.set_math_mode)) { /* since macOS 15 */
        mtl_set_math_mode(device->options, MTL_MATH_SAFE);
        mtl_set_math_functions(device->options, MTL_FUNCTIONS_PRECISE);
    } else {
        mtl_set_fast_math(device->options, false);
    }
    return true;
}

static void set_limits(wb_metal_device *device) {
    device->is_unified = mtl_has_unified_memory(device->id);
    device->most_bytes = mtl_most_buffer(device->id);
    device->memory_bytes = mtl_working_set(device->id);
    device->compiler = wb_text_hash_on(WB_TEXT_HASH, wb_metal_text(mtl_name(device->id)));
    device->compiler = wb_text_hash_on(device->compiler, wb_metal_system());
}

static bool open_parts(wb_metal_device *device) {
    if (!wb_metal_queue_init(device, &device->own) || !set_dialect(device) || !set_options(device))
        return false;
    set_limits(device);
    device->dummy = wb_metal_shared(device, 1, "Metal");
    return device->dummy;
}

void *wb_metal_open(int index) {
    const mtl_id id = wb_metal_find(index);
    if (!id) return NULL;
    WB_METAL_POOL(pool);
    wb_metal_device *device = wb_metal_host->alloc(sizeof *device);
    if (!device) return NULL;
    device->id = id;
    device->texts = (wb_texts){.host = wb_metal_host,
                               .context = device,
                               .build = wb_metal_program_build,
                               .drop = wb_metal_program_drop};
    wb_texts_init(&device->texts);
    if (open_parts(device)) return device;
    wb_metal_close(device);
    return NULL;
}

void wb_metal_close(void *any) {
    wb_metal_device *device = any;
    if (!device) return;
    WB_METAL_POOL(pool);
    wb_metal_queue_release(&device->own);
    if (device->copying) wb_texts_put(&device->texts, device->copying);
    wb_texts_release(&device->texts);
    mtl_release(device->dummy);
    mtl_release(device->options);
    wb_metal_host->release(device->prelude);
    wb_metal_host->release(device);
}
