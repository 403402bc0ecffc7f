/* Tables and sequences: columns and labels of a file of text, the same share of each label in both
 * parts, and a loader over sequences of different lengths, which are padded.
 *
 * | line 3 has none: measures.csv: line 3, column "weight": the value is missing: ""; .missing_is_nan makes it NaN
 * | 8 rows: cat 4, dog 4
 * | train 6, held 2 with labels 0 1
 * | batch 0: (2, 5, 4), lengths 2 3 4 5
 * | batch 1: (2, 4, 3), lengths 2 3 4
 */
#include <stdio.h>

#include <weber.h>

static const char table[] = "name,weight,age,kind\n"
                            "Tom,4.5,3,cat\n"
                            "Rex,,7,dog\n"
                            "Ada,3.9,2,cat\n"
                            "\"Fox, the\",12,4,dog\n"
                            "Liv,4.1,9,cat\n"
                            "Bo,31.5,5,dog\n"
                            "Ina,5.0,1,cat\n"
                            "Max,22,6,dog\n";

static void read_table(void) {
    FILE *file = fopen("measures.csv", "w");
    if (!file) return;
    (void)fputs(table, file), (void)fclose(file);

    char why[200];
    wb_csv *strict = wb_read_csv("measures.csv");
    (void)wb_csv_column(strict, "weight");
    (void)wb_take_error(why, sizeof why);
    printf("line 3 has none: %s\n", why);

    wb_csv *csv = wb_read_csv("measures.csv", .missing_is_nan = true);
    const char *const names[] = {"weight", "age"};
    wb_array *x = wb_csv_matrix(csv, 2, names), *y = wb_csv_labels(csv, "kind", NULL);
    wb_array *known = wb_select(wb_isnan(x), wb_number(10), x); /* where it is missing: 10 */
    wb_group kinds[2];
    (void)wb_frequencies(y, 2, kinds);
    printf("%lld rows: %s %lld, %s %lld\n", (long long)wb_csv_rows(csv),
           wb_csv_label(csv, "kind", 0), (long long)kinds[0].count, wb_csv_label(csv, "kind", 1),
           (long long)kinds[1].count);

    wb_array *both[] = {wb_standardise(known, -1, 0), y}, *parts[2][2];
    (void)wb_splitobs_all(2, both, parts[0], .at = {0.75}, .stratified = y);
    printf("train %lld, held %lld with labels %g %g\n", (long long)wb_numobs(parts[0][0]),
           (long long)wb_numobs(parts[1][0]), wb_at(parts[1][1], 0), wb_at(parts[1][1], 1));
    wb_free(strict), wb_free(csv);
}

/* Sequence i: two features, 2 + i % 4 steps. */
static wb_status sequence(int64_t place, wb_array **arrays, void *user) {
    (void)user;
    arrays[0] = wb_full(WB_F32, (double)place, 2, 2 + place % 4);
    arrays[1] = wb_scalar(WB_I64, 2 + (double)(place % 4));
    return wb_failed() ? wb_error_status() : WB_OK;
}

static wb_status pad(wb_batch *batch, wb_array *const *const *lists, void *user) {
    (void)user;
    batch->x = wb_batchseq((int)batch->size, lists[0], 0);
    batch->y = wb_stack_make(-1, (int)batch->size, lists[1]);
    return wb_failed() ? wb_error_status() : WB_OK;
}

static void load_sequences(void) {
    wb_loader *data =
        wb_loader_new(.numobs = 7, .observe = sequence, .collate = pad, .batchsize = 4);
    for (wb_batch batch = {0}; wb_next(data, &batch);) {
        printf("batch %lld: (%lld, %lld, %lld), lengths", (long long)batch.index,
               (long long)wb_size(batch.x, 0), (long long)wb_size(batch.x, 1),
               (long long)wb_size(batch.x, 2));
        for (int64_t i = 0; i < batch.size; i++) printf(" %g", wb_at(batch.y, i));
        printf("\n");
    }
    wb_free(data);
}

int main(void) {
    wb_scope_open();
    read_table();
    load_sequences();
    wb_scope_close();
    return wb_report("tables");
}
