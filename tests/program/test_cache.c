/* The disk cache: entries come back whole or not at all. Each test has a folder of its own. */
#include "program/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "support/support.h"

static char folder[64];

static int make_folder(void **state) {
    (void)strcpy(folder, "/tmp/weber-cache-XXXXXX");
    return mkdtemp(folder) && setenv("WEBER_CACHE", folder, 1) == 0 ? open_scope(state) : 1;
}

static int remove_folder(void **state) {
    char command[256];
    (void)snprintf(command, sizeof command, "chmod -R u+rwX %s; rm -r %s", folder, folder);
    return system(command) == 0 ? close_scope(state) : 1;
}

#define CACHE_TEST(function) cmocka_unit_test_setup_teardown(function, make_folder, remove_folder)

static void assert_entry(const char *backend, const char *name, const char *text) {
    void *data;
    size_t size = 0;
    assert_true(wb_cache_read(backend, name, &data, &size));
    assert_int_equal(size, strlen(text));
    assert_memory_equal(data, text, size);
    wb_release(data);
}

static void assert_none(const char *backend, const char *name) {
    void *data = &data;
    size_t size;
    assert_false(wb_cache_read(backend, name, &data, &size));
    assert_null(data);
}

/* The one file of the backend's folder. */
static void path_of_entry(char path[512]) {
    char backend[128];
    (void)snprintf(backend, sizeof backend, "%s/OpenCL", folder);
    DIR *list = opendir(backend);
    int count = 0;
    assert_non_null(list);
    for (struct dirent *e; (e = readdir(list));) {
        if (e->d_name[0] == '.') continue;
        (void)snprintf(path, 512, "%s/%s", backend, e->d_name);
        count++;
    }
    (void)closedir(list);
    assert_int_equal(count, 1);
}

static void what_was_written_is_read(void **state) {
    (void)state;
    assert_none("OpenCL", "a");
    wb_cache_write("OpenCL", "a", "one", 3);
    wb_cache_write("OpenCL", "b/../c d", "two", 3);
    wb_cache_write("CUDA", "a", "three", 5);
    assert_entry("OpenCL", "a", "one");
    assert_entry("OpenCL", "b/../c d", "two");
    assert_entry("CUDA", "a", "three");
    assert_none("OpenCL", "c");
    wb_cache_write("OpenCL", "a", "another", 7);
    assert_entry("OpenCL", "a", "another");
    wb_cache_write("OpenCL", "nothing", "", 0);
    assert_entry("OpenCL", "nothing", "");
}

static void entries_belong_to_their_user(void **state) {
    (void)state;
    char path[512], backend[128];
    struct stat s;
    wb_cache_write("OpenCL", "a", "one", 3);
    path_of_entry(path);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
    (void)snprintf(backend, sizeof backend, "%s/OpenCL", folder);
    assert_int_equal(stat(backend, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0700);
    assert_int_equal(chmod(backend, 0777), 0); /* others could have put something there */
    assert_none("OpenCL", "a");
    assert_int_equal(chmod(backend, 0700), 0);
    assert_entry("OpenCL", "a", "one");
    assert_int_equal(chmod(folder, 0770), 0);
    assert_none("OpenCL", "a");
}

static void a_changed_byte_is_noticed(void **state) {
    (void)state;
    char path[512];
    wb_cache_write("OpenCL", "name", "0123456789abcdef+", 17);
    path_of_entry(path);
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    for (off_t at = 0; at < s.st_size; at++) {
        char was, is;
        const int file = open(path, O_RDWR);
        assert_int_equal(pread(file, &was, 1, at), 1);
        is = (char)(was ^ 0x10);
        assert_int_equal(pwrite(file, &is, 1, at), 1);
        assert_none("OpenCL", "name");
        assert_int_equal(pwrite(file, &was, 1, at), 1);
        (void)close(file);
    }
    assert_entry("OpenCL", "name", "0123456789abcdef+");
}

static void a_cut_file_is_none(void **state) {
    (void)state;
    char path[512];
    struct stat s;
    wb_cache_write("OpenCL", "name", "0123456789", 10);
    path_of_entry(path);
    assert_int_equal(stat(path, &s), 0);
    for (off_t size = s.st_size - 1; size >= 0; size--) {
        assert_int_equal(truncate(path, size), 0);
        assert_none("OpenCL", "name");
    }
    wb_cache_write("OpenCL", "name", "new", 3);
    assert_entry("OpenCL", "name", "new");
}

static void no_folder_is_no_cache(void **state) {
    (void)state;
    char path[128];
    assert_true(wb_cache_wanted());
    (void)setenv("WEBER_CACHE", "", 1);
    assert_false(wb_cache_wanted());
    wb_cache_write("OpenCL", "a", "one", 3);
    assert_none("OpenCL", "a");
    (void)snprintf(path, sizeof path, "%s/file", folder);
    (void)close(open(path, O_CREAT | O_WRONLY, 0600));
    (void)setenv("WEBER_CACHE", path, 1); /* no folder */
    wb_cache_write("OpenCL", "a", "one", 3);
    assert_none("OpenCL", "a");
    (void)setenv("WEBER_CACHE", "/dev/null/there", 1);
    wb_cache_write("OpenCL", "a", "one", 3);
    assert_none("OpenCL", "a");
}

static void the_folder_is_found_by_the_environment(void **state) {
    (void)state;
    char path[256], home[128];
    struct stat s;
    const char *old_home = getenv("HOME"), *old_xdg = getenv("XDG_CACHE_HOME");
    (void)unsetenv("WEBER_CACHE");
    (void)setenv("HOME", folder, 1);
    (void)setenv("XDG_CACHE_HOME", "relative", 1);
    wb_cache_write("OpenCL", "a", "one", 3);
    (void)snprintf(path, sizeof path, "%s/.cache/weber/OpenCL", folder);
    assert_int_equal(stat(path, &s), 0);
    (void)snprintf(home, sizeof home, "%s/xdg", folder);
    (void)setenv("XDG_CACHE_HOME", home, 1);
    assert_none("OpenCL", "a");
    wb_cache_write("OpenCL", "a", "two", 3);
    (void)snprintf(path, sizeof path, "%s/xdg/weber/OpenCL", folder);
    assert_int_equal(stat(path, &s), 0);
    assert_entry("OpenCL", "a", "two");
    if (old_home) (void)setenv("HOME", old_home, 1);
    if (old_xdg)
        (void)setenv("XDG_CACHE_HOME", old_xdg, 1);
    else
        (void)unsetenv("XDG_CACHE_HOME");
}

/* Writers of different texts, and a reader that sees one of them whole. */
static void writers_at_the_same_time_do_no_harm(void **state) {
    (void)state;
    enum { WRITERS = 4, ROUNDS = 200, SIZE = 20000 };
    static char text[SIZE];
    pid_t children[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        children[w] = fork();
        if (children[w] != 0) continue;
        memset(text, 'a' + w, SIZE);
        for (int i = 0; i < ROUNDS; i++) wb_cache_write("OpenCL", "same", text, SIZE);
        _exit(0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        char *data;
        size_t size;
        if (!wb_cache_read("OpenCL", "same", (void **)&data, &size)) continue;
        assert_int_equal(size, SIZE);
        for (size_t k = 1; k < size; k++) assert_int_equal(data[k], data[0]);
        wb_release(data);
    }
    for (int w = 0; w < WRITERS; w++) assert_int_equal(waitpid(children[w], NULL, 0), children[w]);
    char path[512];
    path_of_entry(path); /* no parts are left */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CACHE_TEST(what_was_written_is_read),
        CACHE_TEST(entries_belong_to_their_user),
        CACHE_TEST(a_changed_byte_is_noticed),
        CACHE_TEST(a_cut_file_is_none),
        CACHE_TEST(no_folder_is_no_cache),
        CACHE_TEST(the_folder_is_found_by_the_environment),
        CACHE_TEST(writers_at_the_same_time_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
