/* src/device/transfer.c: bytes between devices by way of the host, as between backends. */
#include "device/buffer.h"
#include "device/device.h"

#include "support/places.h"

enum { PIECE = WB_RELAY_BYTES };

/* Buffers whose bytes are known, to be copied from `from` to `to` at these places. */
typedef struct relay_row {
    const char *name;
    int64_t size, from, to;
} relay_row;

static const relay_row relay_rows[] = {
    {"one byte", 1, 0, 0},
    {"a few at other places", 100, 8, 24},
    {"a piece less one", PIECE - 1, 0, 0},
    {"a piece", PIECE, 0, 64},
    {"a piece and one", PIECE + 1, 16, 0},
    {"two pieces", 2 * PIECE, 0, 0},
    {"more pieces than there is room for", 5 * PIECE + 12, 4, 128},
};

static char byte_at(int64_t i, int seed) { return (char)((i * 31 + i / 251 + seed) % 127); }

static wb_buffer *filled(const wb_device *device, int64_t size, int seed) {
    wb_buffer *host = wb_buffer_new(cpu, (size_t)size, "data");
    wb_buffer *there = wb_buffer_new(device, (size_t)size, "data");
    assert_true(host && there);
    for (int64_t i = 0; i < size; i++) ((char *)host->handle)[i] = byte_at(i, seed);
    assert_int_equal(wb_buffer_copy(there, 0, host, 0, (size_t)size), WB_OK);
    wb_buffer_unref(host);
    return there;
}

static void assert_relayed(const relay_row *row, wb_buffer *to, int seed) {
    const int64_t whole = row->to + row->size + 8;
    char *bytes = malloc((size_t)whole);
    assert_int_equal(wb_buffer_read(to, 0, bytes, (size_t)whole), WB_OK);
    for (int64_t i = 0; i < whole; i++) {
        const bool is_inside = i >= row->to && i < row->to + row->size;
        const char wanted = is_inside ? byte_at(i - row->to + row->from, seed) : byte_at(i, 99);
        if (bytes[i] != wanted)
            fail_msg("%s: byte %lld of %lld is %d, not %d", row->name, (long long)i,
                     (long long)whole, bytes[i], wanted);
    }
    free(bytes);
}

/* Twice at once, there and back: pieces are used again before anybody waits. */
static void bytes_arrive(void **state) {
    const relay_row *row = *state;
    const int64_t from_size = row->from + row->size + 8, to_size = row->to + row->size + 8;
    wb_buffer *from[2], *to[2];
    for (int i = 0; i < 2; i++) {
        from[i] = filled(i ? second : first, from_size, i);
        to[i] = filled(i ? first : second, to_size, 99);
    }
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 2; i++)
            assert_int_equal(wb_buffer_relay(to[i], row->to, from[i], row->from, (size_t)row->size),
                             WB_OK);
    for (int i = 0; i < 2; i++) {
        assert_relayed(row, to[i], i);
        wb_buffer_unref(from[i]), wb_buffer_unref(to[i]);
    }
}

/* What the target's queue finds meanwhile is not the copy's to tell; what the source's finds is. */
static void late_errors_belong_to_their_queues(void **state) {
    (void)state;
    wb_buffer *from = filled(first, 3 * (int64_t)PIECE, 1);
    wb_buffer *to = filled(second, 3 * (int64_t)PIECE, 99);
    const wb_device *const places_of_errors[] = {second, first};
    for (int i = 0; i < 2; i++) {
        const wb_device *device = places_of_errors[i];
        wb_array *index = wb_to(device, wb_from(WB_I32, ((int32_t[]){5}), 1));
        wb_array *bad = wb_gather(wb_to(device, wb_vector(1, 2, 3)), index, 0);
        assert_int_equal(wb_eval(bad), WB_OK);
        const wb_status status = wb_buffer_relay(to, 0, from, 0, 3 * (size_t)PIECE);
        assert_int_equal(status, device == first ? WB_ERROR_ARGUMENT : WB_OK);
        if (status == WB_OK) assert_int_equal(wb_device_sync(device), WB_ERROR_ARGUMENT);
        assert_error(WB_ERROR_ARGUMENT, "gather: index 5 at place 0 is not in 0 .. 2");
    }
    wb_buffer_unref(from), wb_buffer_unref(to);
}

int main(void) {
    enum { ROWS = sizeof relay_rows / sizeof *relay_rows };
    struct CMUnitTest tests[ROWS + 1];
    for (int i = 0; i < ROWS; i++) tests[i] = TEST_ROW(&relay_rows[i], bytes_arrive);
    tests[ROWS] = (struct CMUnitTest)MOVES(late_errors_belong_to_their_queues);
    for (int i = 0; i < ROWS; i++) tests[i].teardown_func = close_places;
    return cmocka_run_group_tests_name("device/test_transfer", tests, find_places, NULL);
}
