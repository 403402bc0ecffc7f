/* Twelve bytes at a time are added to three words, which are then mixed; the last one to twelve
 * bytes get a mix of their own. */
#include "base/lookup3.h"

static uint32_t turn(uint32_t x, int bits) { return x << bits | x >> (32 - bits); }

/* From -= by; from ^= by, turned; by += other. */
static void step(uint32_t *from, uint32_t *by, uint32_t other, int bits) {
    *from -= *by;
    *from ^= turn(*by, bits);
    *by += other;
}

static void mix(uint32_t w[3]) {
    static const unsigned char bits[] = {4, 6, 8, 16, 19, 4};
    for (int i = 0; i < 6; i++) step(&w[i % 3], &w[(i + 2) % 3], w[(i + 1) % 3], bits[i]);
}

static void mix_last(uint32_t w[3]) {
    static const unsigned char bits[] = {14, 11, 25, 16, 4, 14, 24};
    for (int i = 0; i < 7; i++) {
        uint32_t *to = &w[(i + 2) % 3], by = w[(i + 1) % 3];
        *to ^= by;
        *to -= turn(by, bits[i]);
    }
}

static void add(uint32_t w[3], const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) w[i / 4] += (uint32_t)bytes[i] << 8 * (i % 4);
}

uint32_t wb_lookup3(const unsigned char *bytes, size_t size_bytes) {
    const uint32_t start = 0xdeadbeef + (uint32_t)size_bytes;
    uint32_t w[3] = {start, start, start};
    for (; size_bytes > 12; bytes += 12, size_bytes -= 12) {
        add(w, bytes, 12);
        mix(w);
    }
    if (!size_bytes) return w[2];
    add(w, bytes, size_bytes);
    mix_last(w);
    return w[2];
}
