/* src/images: PNG files of every kind, written here by the rules of the format, and JPEG files;
 * damaged ones, each byte, and those that claim too much. */
#include <dlfcn.h>
#include <sys/stat.h>
#include <zlib.h>

#include <weber/data.h>
#include <weber/images.h>
#include <weber/show.h>

#include "images/jpegs.h"
#include "support/files.h"
#include "support/support.h"

int64_t wb_fail_allocation(int64_t n);

/* ---- PNG files ---- */

typedef struct kind {
    const char *name;
    int depth, colours; /* 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha */
    bool has_key;       /* tRNS */
    bool is_interlaced; /* Adam7 */
    const char *extra;  /* a chunk that changes nothing */
} kind;

typedef struct bytes {
    unsigned char data[1 << 12];
    size_t size;
} bytes;

enum { W = 11, H = 7 };

static void put(bytes *b, const void *from, size_t size) {
    assert_true(b->size + size <= sizeof b->data);
    memcpy(b->data + b->size, from, size);
    b->size += size;
}

static void put32(bytes *b, uint32_t value) {
    const unsigned char four[] = {(unsigned char)(value >> 24), (unsigned char)(value >> 16),
                                  (unsigned char)(value >> 8), (unsigned char)value};
    put(b, four, 4);
}

static void put_chunk(bytes *b, const char *name, const void *data, size_t size) {
    put32(b, (uint32_t)size);
    const size_t at = b->size;
    put(b, name, 4);
    if (size) put(b, data, size);
    put32(b, (uint32_t)crc32(0, b->data + at, (uInt)(size + 4)));
}

static int channels_of(int colours) { return (int[]){1, 0, 3, 1, 2, 0, 4}[colours]; }

/* The sample that stands in the file: bits of a mixed number. */
static unsigned sample(const kind *k, int x, int y, int c) {
    const uint32_t mixed = (uint32_t)(x * 7919 + y * 104729 + c * 1299709 + 12345) * 2654435761u;
    return mixed >> (32 - k->depth);
}

static unsigned char palette_at(unsigned entry, int c) {
    return (unsigned char)(entry * 37 + (unsigned)c * 101 + 5);
}

/* As 8 bits of channel c of the picture (palette: a colour). */
static unsigned char wanted_at(const kind *k, int x, int y, int c) {
    if (k->colours == 3) return palette_at(sample(k, x, y, 0), c);
    const unsigned most = (1u << k->depth) - 1, s = sample(k, x, y, c);
    return (unsigned char)(k->depth == 16 ? s >> 8 : s * 255 / most);
}

/* The rows of one pass, each behind its filter's number. */
static void put_rows(bytes *b, const kind *k, int x0, int y0, int dx, int dy) {
    for (int y = y0; y < H && x0 < W; y += dy) {
        unsigned char row[1 + W * 8] = {0};
        int bit = 8;
        for (int x = x0; x < W; x += dx)
            for (int c = 0; c < channels_of(k->colours); c++, bit += k->depth) {
                const unsigned s = sample(k, x, y, c);
                if (k->depth == 16)
                    row[bit / 8] = (unsigned char)(s >> 8), row[bit / 8 + 1] = (unsigned char)s;
                else
                    row[bit / 8] |= (unsigned char)(s << (8 - k->depth - bit % 8));
            }
        put(b, row, (size_t)(bit + 7) / 8);
    }
}

static void put_pixels(bytes *b, const kind *k) {
    static const int passes[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                     {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    static bytes rows;
    static unsigned char packed[1 << 12];
    uLongf size = sizeof packed;
    rows.size = 0;
    for (int i = 0; k->is_interlaced && i < 7; i++)
        put_rows(&rows, k, passes[i][0], passes[i][1], passes[i][2], passes[i][3]);
    if (!k->is_interlaced) put_rows(&rows, k, 0, 0, 1, 1);
    assert_int_equal(compress(packed, &size, rows.data, rows.size), Z_OK);
    put_chunk(b, "IDAT", packed, size / 2);
    put_chunk(b, "IDAT", packed + size / 2, size - size / 2);
}

static void make_png(bytes *b, const kind *k) {
    unsigned char header[13] = {0, 0, 0, W, 0, 0, 0, H, 0}, palette[3 << 8], key[6] = {0, 1, 2};
    header[8] = (unsigned char)k->depth, header[9] = (unsigned char)k->colours;
    header[12] = k->is_interlaced;
    b->size = 0;
    put(b, "\x89PNG\r\n\x1a\n", 8);
    put_chunk(b, "IHDR", header, 13);
    if (k->extra) put_chunk(b, k->extra, "\0\0\x40\0", 4);
    for (unsigned i = 0; i < 3u << k->depth && k->colours == 3; i++)
        palette[i] = palette_at(i / 3, (int)i % 3);
    if (k->colours == 3) put_chunk(b, "PLTE", palette, 3u << k->depth);
    if (k->has_key) put_chunk(b, "tRNS", key, k->colours == 0 ? 2 : k->colours == 3 ? 2 : 6);
    put_pixels(b, k);
    put_chunk(b, "IEND", "", 0);
}

static const kind kinds[] = {
    {"grey of 1 bit", 1, 0, false, false, NULL},
    {"grey of 2 bits", 2, 0, false, false, NULL},
    {"grey of 4 bits", 4, 0, false, false, NULL},
    {"grey of 8 bits", 8, 0, false, false, NULL},
    {"grey of 16 bits", 16, 0, false, false, NULL},
    {"grey with a key", 8, 0, true, false, NULL},
    {"RGB", 8, 2, false, false, NULL},
    {"RGB of 16 bits", 16, 2, false, false, NULL},
    {"RGB with a key", 8, 2, true, false, NULL},
    {"a palette of 1 bit", 1, 3, false, false, NULL},
    {"a palette of 4 bits", 4, 3, false, true, NULL},
    {"a palette of 8 bits with alpha", 8, 3, true, false, NULL},
    {"grey and alpha", 8, 4, false, false, NULL},
    {"grey and alpha of 16 bits", 16, 4, false, false, NULL},
    {"RGB and alpha", 8, 6, false, false, NULL},

    {"RGB and alpha of 16 bits", 16, 6, false, false, NULL},
    {"RGB and alpha of 16 bits, interlaced", 16, 6, false, true, NULL},
    {"RGB, interlaced", 8, 2, false, true, NULL},
    {"grey of 1 bit, interlaced", 1, 0, false, true, NULL},
    {"RGB with a gamma, which is not applied", 8, 2, false, false, "gAMA"},
    {"RGB with a chunk that nobody knows", 8, 2, false, false, "weBr"},
};

enum { PALETTE_WITH_ALPHA = 11, RGB = 6 }; /* places in kinds */

static bool has_png(void) { return dlopen("libpng16.so.16", RTLD_NOW) != NULL; }
static bool has_jpeg(void) { return dlopen("libturbojpeg.so.0", RTLD_NOW) != NULL; }

static unsigned char grey_of(const unsigned char *rgb) {
    return (unsigned char)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

/* Channel c of `channels`, made of what the file has. */
static int converted_at(const kind *k, int x, int y, int c, int channels) {
    const bool has_alpha = k->colours == 4 || k->colours == 6, is_grey = k->colours % 4 == 0;
    if (c == 3) return has_alpha ? wanted_at(k, x, y, is_grey ? 1 : 3) : 255;
    const unsigned char rgb[] = {wanted_at(k, x, y, 0), wanted_at(k, x, y, is_grey ? 0 : 1),
                                 wanted_at(k, x, y, is_grey ? 0 : 2)};
    return channels == 1 && !is_grey ? grey_of(rgb) : rgb[c];
}

static void check_kind(const kind *k, const char *path, int channels) {
    wb_array *x = wb_image_read(path, channels);
    if (!x) fail_msg("%s: %s", k->name, wb_error_message());
    assert_true(wb_size(x, 0) == W && wb_size(x, 1) == H && wb_size(x, 2) == channels);
    assert_int_equal(wb_dtype_of(x), WB_U8);
    const unsigned char *found = wb_read_begin(x);
    for (int i = 0; i < W * H * channels; i++) {
        const int wanted = converted_at(k, i % W, i / W % H, i / (W * H), channels);
        if (k->has_key && i / (W * H) == 3) continue; /* its alpha is another test */
        if (found[i] != wanted)
            fail_msg("%s, %d channels: byte %d is %d, not %d", k->name, channels, i, found[i],
                     wanted);
    }
    wb_read_end(x);
}

static void png_files_of_every_kind_have_the_bytes_that_were_written(void **state) {
    (void)state;
    static bytes file;
    if (!has_png()) skip();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        make_png(&file, &kinds[i]);
        const char *path = path_of("kind.png");
        write_file(path, file.data, file.size);
        check_kind(&kinds[i], path, 1);
        check_kind(&kinds[i], path, 3);
        check_kind(&kinds[i], path, 4);
    }
}

static void without_channels_a_picture_has_those_of_its_file(void **state) {
    (void)state;
    static bytes file;
    if (!has_png()) skip();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const kind *k = &kinds[i];
        const int usual = k->colours == 3 ? 3 : channels_of(k->colours);
        make_png(&file, k);
        write_file(path_of("kind.png"), file.data, file.size);
        wb_array *x = wb_image_read(path_of("kind.png"));
        assert_int_equal(wb_size(x, 2), usual + k->has_key);
    }
}

static void what_wb_image_write_wrote_comes_back(void **state) {
    (void)state;
    if (!has_png()) skip();
    uint8_t values[5 * 4 * 3], found[5 * 4 * 3];
    for (int i = 0; i < 60; i++) values[i] = (uint8_t)(i * 53);
    for (int channels = 1; channels <= 3; channels += 2) {
        wb_array *x = wb_from(WB_U8, values, 5, 4, channels);
        assert_int_equal(wb_image_write(path_of("x.png"), x), WB_OK);
        x = wb_image_read(path_of("x.png"));
        assert_int_equal(wb_size(x, 2), channels);
        assert_int_equal(wb_read(x, found, (size_t)(20 * channels)), WB_OK);
        assert_memory_equal(found, values, 20 * channels);
    }
}

/* ---- JPEG files ---- */

static void check_near(wb_array *x, int channel, int base, int per_x, int per_y) {
    assert_true(wb_size(x, 0) == 28 && wb_size(x, 1) == 18);
    for (int y = 0; y < 18; y++)
        for (int column = 0; column < 28; column++)
            assert_true(abs((int)wb_at(x, column, y, channel) - base - column * per_x - y * per_y) <
                        16);
}

static void jpeg_files_are_near_to_what_was_compressed(void **state) {
    (void)state;
    if (!has_jpeg()) skip();
    write_file(path_of("x.dat"), jpeg_colour, sizeof jpeg_colour); /* its name says nothing */
    wb_array *x = wb_image_read(path_of("x.dat"));
    assert_int_equal(wb_size(x, 2), 3);
    check_near(x, 0, 0, 8, 0);
    check_near(x, 1, 0, 0, 12);
    check_near(x, 2, 128, 0, 0);
    write_file(path_of("grey.jpg"), jpeg_grey, sizeof jpeg_grey);
    x = wb_image_read(path_of("grey.jpg"));
    assert_int_equal(wb_size(x, 2), 1);
    assert_true(abs((int)wb_at(x, 20, 10, 0) - (20 * 8 * 299 + 120 * 587 + 128 * 114) / 1000) < 9);
    x = wb_image_read(path_of("grey.jpg"), 4);
    assert_true(wb_at(x, 20, 10, 0) == wb_at(x, 20, 10, 2) && wb_at(x, 20, 10, 3) == 255);
}

/* ---- mistakes and damage ---- */

static void what_is_no_picture_is_said(void **state) {
    (void)state;
    write_file(path_of("text.png"), "hello", 5);
    assert_null(wb_image_read(path_of("text.png")));
    assert_error(WB_ERROR_FORMAT, "a picture must be a PNG or JPEG file");
    write_file(path_of("none.png"), "", 0);
    assert_null(wb_image_read(path_of("none.png")));
    assert_error(WB_ERROR_FORMAT, "a picture must be a PNG or JPEG file");
    assert_null(wb_image_read(folder));
    assert_error(WB_ERROR_IO, "a picture must be a regular file");
    assert_null(wb_image_read(path_of("absent.png")));
    assert_error(WB_ERROR_IO, "absent.png: No such file");
    assert_null(wb_image_read(NULL));
    assert_error(WB_ERROR_ARGUMENT, "the path is NULL");
    assert_null(wb_image_read(path_of("text.png"), .channels = 2));
    assert_error(WB_ERROR_ARGUMENT, "channels must be 1, 3 or 4");
    if (!has_jpeg()) skip();
    write_file(path_of("cmyk.jpg"), jpeg_cmyk, sizeof jpeg_cmyk);
    assert_null(wb_image_read(path_of("cmyk.jpg")));
    assert_error(WB_ERROR_UNSUPPORTED, "cmyk.jpg: the picture is in CMYK");
}

static void sizes_that_the_bytes_cannot_hold_are_refused(void **state) {
    (void)state;
    static bytes file;
    if (!has_png()) skip();
    make_png(&file, &kinds[RGB]);
    static const struct {
        const char *sides, *error;
    } claims[] = {{"\0\x0F\x42\x3F", "cannot hold the (999999, 999999)"}, /* libpng allows it */
                  {"\x7F\xFF\xFF\xFF", "Invalid IHDR data"}};
    for (int i = 0; i < 2; i++) {
        unsigned char header[17] = {'I', 'H', 'D', 'R', 0, 0, 0, 0, 0, 0, 0, 0, 8, 2};
        memcpy(header + 4, claims[i].sides, 4), memcpy(header + 8, claims[i].sides, 4);
        memcpy(file.data + 12, header, sizeof header);
        const uint32_t sum = (uint32_t)crc32(0, header, sizeof header);
        for (int k = 0; k < 4; k++) file.data[29 + k] = (unsigned char)(sum >> (24 - 8 * k));
        write_file(path_of("huge.png"), file.data, file.size);
        assert_null(wb_image_read(path_of("huge.png")));
        assert_error(WB_ERROR_FORMAT, claims[i].error);
    }
    if (!has_jpeg()) skip();
    unsigned char jpeg[sizeof jpeg_colour];
    memcpy(jpeg, jpeg_colour, sizeof jpeg);
    size_t at = 0;
    while (jpeg[at] != 0xFF || jpeg[at + 1] != 0xC0) at++;
    memcpy(jpeg + at + 5, "\xFF\xDC\xFF\xDC", 4);
    write_file(path_of("huge.jpg"), jpeg, sizeof jpeg);
    assert_null(wb_image_read(path_of("huge.jpg")));
    assert_error(WB_ERROR_FORMAT, "cannot hold the (65500, 65500)");
}

static void the_limit_of_inflated_bytes_holds_for_pictures(void **state) {
    (void)state;
    if (!has_png()) skip();
    wb_array *x = wb_zeros(WB_U8, 1100, 1000);
    assert_int_equal(wb_image_write(path_of("large.png"), x), WB_OK);
    assert_int_equal(setenv("WEBER_INFLATE_MIB", "1", 1), 0);
    assert_null(wb_image_read(path_of("large.png")));
    assert_int_equal(unsetenv("WEBER_INFLATE_MIB"), 0);
    assert_error(WB_ERROR_FORMAT, "WEBER_INFLATE_MIB");
    assert_non_null(wb_image_read(path_of("large.png")));
}

static void check_cuts(const char *name, const unsigned char *whole, size_t size) {
    for (size_t cut = 0; cut < size; cut++) {
        write_file(path_of(name), whole, cut);
        assert_null(wb_image_read(path_of(name)));
        assert_non_null(strstr(wb_error_message(), name));
        assert_error(WB_ERROR_FORMAT, "");
    }
}

/* Whether the picture, which is one of these sizes, can be read; else the error has the path. */
static bool can_be_read(const char *name, const unsigned char *damaged, size_t size) {
    write_file(path_of(name), damaged, size);
    wb_array *x = wb_image_read(path_of(name));
    if (x) return wb_eval(x) == WB_OK;
    assert_non_null(strstr(wb_error_message(), name));
    assert_true(wb_error_status() == WB_ERROR_FORMAT || wb_error_status() == WB_ERROR_UNSUPPORTED);
    wb_clear_error();
    return false;
}

static void damaged_png_files_are_noticed(void **state) {
    (void)state;
    static bytes file;
    if (!has_png()) skip();
    make_png(&file, &kinds[PALETTE_WITH_ALPHA]);
    check_cuts("cut.png", file.data, file.size);
    for (size_t i = 0; i < file.size; i++) {
        file.data[i] ^= 1 << i % 8;
        assert_false(can_be_read("bad.png", file.data, file.size)); /* the sums are of tRNS, too */
        file.data[i] ^= 1 << i % 8;
    }
}

static void damaged_jpeg_files_give_a_picture_or_an_error(void **state) {
    (void)state;
    unsigned char bad[sizeof jpeg_colour];
    if (!has_jpeg()) skip();
    check_cuts("cut.jpg", jpeg_colour, sizeof jpeg_colour - 2);
    check_cuts("cut.jpg", jpeg_grey, sizeof jpeg_grey - 2);
    memcpy(bad, jpeg_colour, sizeof bad);
    for (size_t i = 0; i < sizeof bad; i++)
        for (int bit = 0; bit < 8; bit++) {
            bad[i] ^= 1 << bit;
            (void)can_be_read("bad.jpg", bad, sizeof bad);
            bad[i] ^= 1 << bit;
        }
}

static void without_memory_nothing_is_left(void **state) {
    (void)state;
    static bytes file;
    if (!has_png() || !has_jpeg()) skip();
    make_png(&file, &kinds[RGB]);
    write_file(path_of("x.png"), file.data, file.size);
    write_file(path_of("x.jpg"), jpeg_colour, sizeof jpeg_colour);
    for (int i = 0; i < 2; i++) {
        bool is_read = false;
        for (int64_t n = 1; !is_read; n++) {
            (void)wb_fail_allocation(n);
            wb_array *x = wb_image_read(path_of(i ? "x.jpg" : "x.png"));
            (void)wb_fail_allocation(0);
            is_read = x != NULL;
            assert_true(is_read || wb_error_status() == WB_ERROR_MEMORY);
            wb_clear_error();
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(png_files_of_every_kind_have_the_bytes_that_were_written),
        TEST(without_channels_a_picture_has_those_of_its_file),
        TEST(what_wb_image_write_wrote_comes_back),
        TEST(jpeg_files_are_near_to_what_was_compressed),
        TEST(what_is_no_picture_is_said),
        TEST(sizes_that_the_bytes_cannot_hold_are_refused),
        TEST(the_limit_of_inflated_bytes_holds_for_pictures),
        TEST(damaged_png_files_are_noticed),
        TEST(damaged_jpeg_files_give_a_picture_or_an_error),
        TEST(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests_name("images/test_read", tests, make_folder, drop_folder);
}
