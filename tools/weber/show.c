/* `weber show FILE`: the tree of a file of models or arrays. */
#include <inttypes.h>
#include <stdio.h>

#include <weber/state.h>

#include "tool.h"

typedef struct totals {
    int64_t arrays, numbers, bytes, shared;
    const wb_record **seen; /* arrays that were printed */
} totals;

enum { MOST_SEEN = 1 << 16, DEEPEST = 256 };

static bool was_seen(const totals *t, const wb_record *r) {
    for (int64_t i = 0; i < t->arrays && i < MOST_SEEN; i++)
        if (t->seen[i] == r) return true;
    return false;
}

static void print_array(const wb_file *file, const wb_record *r, totals *t) {
    wb_scope_open();
    wb_array *x = wb_record_array(file, r);
    printf("%s (", x ? wb_dtype_name(wb_dtype_of(x)) : "?");
    for (int d = 0; d < wb_ndim(x); d++) printf("%s%" PRId64, d ? ", " : "", wb_size(x, d));
    printf(")%s\n", was_seen(t, r) ? ", shared" : "");
    if (was_seen(t, r))
        t->shared++;
    else {
        if (t->arrays < MOST_SEEN) t->seen[t->arrays] = r;
        t->arrays++;
        t->numbers += wb_count(x);
        t->bytes += wb_count(x) * (int64_t)wb_dtype_size(wb_dtype_of(x));
    }
    wb_scope_close();
}

static void print_scalar(const wb_record *r) {
    switch (wb_record_kind_of(r)) {
    case WB_RECORD_BOOL:
        printf("%s\n", wb_record_bool(r) ? "true" : "false");
        return;
    case WB_RECORD_INTEGER:
        printf("%" PRId64 "\n", wb_record_integer(r));
        return;
    case WB_RECORD_REAL:
        printf("%.17g\n", wb_record_real(r));
        return;
    case WB_RECORD_TEXT:
        printf("\"%.200s\"\n", wb_record_text(r));
        return;
    default:
        puts("nothing");
        return;
    }
}

static void print_record(const wb_file *file, const wb_record *r, int depth, totals *t) {
    const wb_record_kind kind = wb_record_kind_of(r);
    if (kind == WB_RECORD_ARRAY) {
        print_array(file, r, t);
        return;
    }
    if (kind < WB_RECORD_LIST) {
        print_scalar(r);
        return;
    }
    printf("%s%s\n", wb_record_type(r),
           kind == WB_RECORD_OPAQUE ? (*wb_record_type(r) ? " (not understood)" : "not understood")
                                    : "");
    for (int64_t i = 0; i < wb_record_count(r) && depth < DEEPEST; i++) {
        const char *name = wb_record_name(r, i);
        printf("%*s", 2 * depth, "");
        if (name)
            printf("%s: ", name);
        else
            printf("%" PRId64 ": ", i + 1);
        print_record(file, wb_record_at(r, i), depth + 1, t);
    }
}

int tool_show(int count, char **arguments) {
    static const wb_record *seen[MOST_SEEN];
    totals t = {.seen = seen};
    if (count != 1) return tool_usage();
    wb_file *file = wb_open(arguments[0]);
    if (!file) return wb_report("weber show");
    printf("%s ", arguments[0]);
    print_record(file, wb_file_root(file), 1, &t);
    printf("%" PRId64 " arrays, %" PRId64 " numbers, %" PRId64 " bytes", t.arrays, t.numbers,
           t.bytes);
    if (t.shared) printf(", %" PRId64 " shared", t.shared);
    puts("");
    wb_free(file);
    return wb_report("weber show");
}
