/* src/base/scratch.c, and what it is for: programs that open the library themselves. */
#include <dlfcn.h>
#include <pthread.h>

#include "base/scratch.h"
#include "support/stage.h"

static void *write_there(void *other) {
    char *own = wb_scratch(WB_SCRATCH_ORIGIN, 16);
    const bool is_new = own != other && own[0] == 0;
    (void)strcpy(own, "there");
    return is_new ? other : NULL;
}

static void each_thread_has_its_own(void **state) {
    (void)state;
    pthread_t thread;
    void *result;
    char *here = wb_scratch(WB_SCRATCH_ORIGIN, 16);
    (void)strcpy(here, "here");
    assert_int_equal(pthread_create(&thread, NULL, write_there, here), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, here);
    assert_string_equal(wb_scratch(WB_SCRATCH_ORIGIN, 16), "here");
    assert_ptr_not_equal(wb_scratch(WB_SCRATCH_REASON, 16), here);
}

/* Python's ctypes does this. It fails where the library has more thread-local storage than the
 * loader keeps for late ones. */
static void the_library_can_be_opened_late(void) {
    void *library = dlopen(stage_build("libweber.so"), RTLD_NOW | RTLD_LOCAL);
    if (!library) (void)fprintf(stderr, "%s\n", dlerror());
    expect(library != NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(each_thread_has_its_own),
                                       SCENE(the_library_can_be_opened_late)};
    return cmocka_run_group_tests_name("base/test_scratch", tests, NULL, NULL);
}
