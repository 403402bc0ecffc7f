#include "support/scoped.h"

/* cmocka's own, not those that scoped.h puts in their place */
#undef _fail
#undef _assert_true
#undef _assert_int_equal
#undef _assert_float_equal
#undef _assert_string_equal
#undef _assert_memory_equal
#undef _assert_in_range

bool is_skipped_without_f64;

void skip_without_f64(const char *message, const char *file, int line) {
    if (!strstr(message, "has no f64") || widest() == WB_F64) return;
    print_message("the rest needs f64: %s\n", message);
    is_skipped_without_f64 = true;
    wb_clear_error();
    _skip(file, line);
}

static void before_failing(bool fails, const char *file, int line) {
    if (fails && wb_failed()) skip_without_f64(wb_error_message(), file, line);
}

void scoped_fail(const char *file, int line) {
    before_failing(true, file, line);
    _fail(file, line);
}

void scoped_true(LargestIntegralType holds, const char *what, const char *file, int line) {
    before_failing(!holds, file, line);
    _assert_true(holds, what, file, line);
}

void scoped_equal(LargestIntegralType a, LargestIntegralType b, const char *file, int line) {
    before_failing(a != b, file, line);
    _assert_int_equal(a, b, file, line);
}

void scoped_float(float a, float b, float epsilon, const char *file, int line) {
    before_failing(!(a - b <= epsilon && b - a <= epsilon), file, line);
    _assert_float_equal(a, b, epsilon, file, line);
}

void scoped_string(const char *a, const char *b, const char *file, int line) {
    before_failing(strcmp(a, b) != 0, file, line);
    _assert_string_equal(a, b, file, line);
}

void scoped_memory(const void *a, const void *b, size_t bytes, const char *file, int line) {
    before_failing(memcmp(a, b, bytes) != 0, file, line);
    _assert_memory_equal(a, b, bytes, file, line);
}

void scoped_range(LargestIntegralType x, LargestIntegralType low, LargestIntegralType high,
                  const char *file, int line) {
    before_failing(x < low || x > high, file, line);
    _assert_in_range(x, low, high, file, line);
}
