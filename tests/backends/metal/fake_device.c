/* Devices, buffers, shared events. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_metal.h"

/* ---- devices ---- */

enum { MOST_DEVICES = 4 };

FAKE_EXPORT mtl_id MTLCopyAllDevices(void) {
    FAKE_ENTER();
    static void *devices[MOST_DEVICES];
    long count = fake_number("FAKE_METAL_DEVICES", 1), code;
    if (count > MOST_DEVICES) count = MOST_DEVICES;
    if (fake_has_to_fail("MTLCopyAllDevices", &code)) return NULL;
    for (int i = 0; i < count; i++) {
        if (devices[i]) continue;
        fake_device *d = fake_new(FAKE_MTLDevice);
        if (!d) return NULL;
        d->ordinal = i;
        d->limit = (size_t)fake_number("FAKE_METAL_MEMORY", 1 << 30);
        devices[i] = d;
    }
    return fake_array_new(devices, count);
}

static fake_device *device_of(mtl_id self) { return (fake_device *)(void *)self; }

mtl_id send_name(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    (void)selector;
    char name[32];
    (void)snprintf(name, sizeof name, "Fake M1 %d", device_of(self)->ordinal);
    return fake_string_new(name);
}

uint64_t send_registry_id(mtl_id self, mtl_selector selector) {
    (void)selector;
    return 0x100000300u + (uint64_t)device_of(self)->ordinal;
}

uint64_t send_working_set(mtl_id self, mtl_selector selector) {
    (void)selector;
    return device_of(self)->limit;
}

mtl_uint send_most_buffer(mtl_id self, mtl_selector selector) {
    (void)selector;
    return device_of(self)->limit / 4 * 3;
}

bool send_has_unified_memory(mtl_id self, mtl_selector selector) {
    (void)self, (void)selector;
    return fake_number("FAKE_METAL_UNIFIED", 1);
}

/* A device of a family of Apple's has those below it, too, and all of Metal's from Apple7 on. */
bool send_supports_family(mtl_id self, mtl_selector selector, mtl_int family) {
    (void)self, (void)selector;
    const long own = fake_number("FAKE_METAL_FAMILY", MTL_FAMILY_APPLE7);
    if (family > 1000 && family < 2000) return own < 2000 && family <= own;
    return family == MTL_FAMILY_MAC2 || own >= MTL_FAMILY_APPLE7;
}

FAKE_EXPORT bool MPSSupportsMTLDevice(mtl_id device) {
    FAKE_ENTER();
    return fake_is(device, FAKE_MTLDevice) && fake_number("FAKE_METAL_MPS", 1);
}

/* ---- buffers ---- */

/* A page that cannot be read, the buffer, NaN up to the next page, again such a page. */
enum { PAGE = 16384, AROUND = 256 };

static size_t in_pages(size_t bytes) { return (bytes + AROUND + PAGE - 1) / PAGE * PAGE; }

static bool map(fake_buffer *b, size_t bytes) {
    b->mapped_bytes = in_pages(bytes) + 2 * (size_t)PAGE;
    void *memory =
        mmap(NULL, b->mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    b->mapped = memory, b->memory = b->mapped + PAGE, b->bytes = bytes;
    (void)mprotect(b->memory, in_pages(bytes), PROT_READ | PROT_WRITE);
    memset(b->memory, 0xff, bytes + AROUND);
    return true;
}

mtl_id send_new_buffer(mtl_id self, mtl_selector selector, mtl_uint bytes, mtl_uint options) {
    FAKE_ENTER();
    fake_device *device = device_of(self);
    if (fake_fails(selector, NULL) || fake_is_removed()) return NULL;
    if (options != MTL_STORAGE_SHARED && options != MTL_STORAGE_PRIVATE)
        fake_abort("newBufferWithLength:options: knows no options %lu", options);
    if (bytes == 0) fake_complain("newBufferWithLength: 0 bytes");
    if (bytes == 0 || bytes > device->limit / 4 * 3 || bytes > device->limit - device->used)
        return NULL;
    fake_buffer *b = fake_new(FAKE_MTLBuffer);
    if (!b || !map(b, bytes)) fake_abort("no memory for a buffer of %lu bytes", bytes);
    b->device = device, b->is_private = options == MTL_STORAGE_PRIVATE;
    device->used += bytes;
    fake_count.buffers++;
    return &b->object;
}

/* The addresses of released buffers are not soon somebody else's. */
static void unmap_later(void *memory, size_t bytes) {
    enum { GRAVES = 256 };
    static struct {
        void *memory;
        size_t bytes;
    } graves[GRAVES];
    static unsigned next;
    const unsigned place = next++ % GRAVES;
    if (graves[place].memory) (void)munmap(graves[place].memory, graves[place].bytes);
    (void)mmap(memory, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
               -1, 0);
    graves[place].memory = memory, graves[place].bytes = bytes;
}

void fake_end_buffer(void *object) {
    fake_buffer *b = object;
    for (int i = 0; i < AROUND; i++)
        if ((unsigned char)b->memory[b->bytes + (size_t)i] != 0xff) {
            fake_complain("byte %d behind a buffer of %zu bytes was written", i, b->bytes);
            break;
        }
    b->device->used -= b->bytes;
    fake_count.buffers--;
    unmap_later(b->mapped, b->mapped_bytes);
}

mtl_address send_contents(mtl_id self, mtl_selector selector) {
    (void)selector;
    const fake_buffer *b = (const void *)self;
    return b->is_private ? NULL : b->memory;
}

/* ---- shared events ---- */

mtl_id send_new_shared_event(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    (void)self;
    return fake_fails(selector, NULL) || fake_is_removed() ? NULL : fake_new(FAKE_MTLSharedEvent);
}

void send_set_signaled(mtl_id self, mtl_selector selector, uint64_t value) {
    FAKE_ENTER();
    (void)selector;
    ((fake_event *)(void *)self)->value = value;
}
