/* If WEBER_PROGRAMS names a folder, each program is written there as the bytes of its structs, one
 * file for each different text. */
#include "program/keep.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "platform/process.h"
#include "program/render.h"

/* The key of the program's text in a plain dialect: programs that differ in sizes alone share
 * it. */
static bool key_of(const wb_program *program, uint64_t *key) {
    static const wb_dialect plain = {
        .name = "plain", .prelude = "", .group = 64, .is_serial = true, .has_f64 = true};
    wb_error_aside older;
    wb_error_put_aside(&older);
    wb_source *source = wb_render(program, &plain);
    if (source) *key = source->key;
    const bool rendered = source != NULL;
    wb_source_release(source);
    wb_clear_error();
    wb_error_bring_back(&older);
    return rendered;
}

static bool put(FILE *file, const void *bytes, size_t size, int64_t count) {
    return count == 0 || fwrite(bytes, size, (size_t)count, file) == (size_t)count;
}

static bool put_program(FILE *file, const wb_program *p) {
    return put(file, p, sizeof *p, 1) &&
           put(file, p->instructions, sizeof *p->instructions, p->ninstructions) &&
           put(file, p->accesses, sizeof *p->accesses, p->naccesses);
}

void wb_program_keep(const wb_program *program) {
    const char *folder = wb_platform_trusted_variable("WEBER_PROGRAMS");
    char path[PATH_MAX], fresh[PATH_MAX];
    uint64_t key;
    if (!folder || !key_of(program, &key)) return;
    if (snprintf(path, sizeof path, "%s/%016llx", folder, (unsigned long long)key) >=
            (int)sizeof path ||
        access(path, F_OK) == 0)
        return;
    if (snprintf(fresh, sizeof fresh, "%s.%ld", path, (long)getpid()) >= (int)sizeof fresh) return;
    FILE *file = fopen(fresh, "wb");
    if (!file) return;
    const bool written = put_program(file, program);
    if (fclose(file) != 0 || !written || rename(fresh, path) != 0) (void)remove(fresh);
}
