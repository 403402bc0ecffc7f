/* Tables as text: the first byte says how the rest is read. What could be read, written with quotes
 * around each field, is the same table; columns and labels agree with the fields. */
#include "fuzz_path.h"

#include <string.h>

enum { NO_HEADER = 1, NAN_FOR_MISSING = 2, SEMICOLON = 4, HAS_NA = 8, MOST_COLUMNS = 8 };

static wb_csv_desc desc_of(uint8_t flags) {
    return WB_DESC(csv, .separator = flags & SEMICOLON ? ';' : ',', .header = !(flags & NO_HEADER),
                   .missing_is_nan = flags & NAN_FOR_MISSING,
                   .missing = flags & HAS_NA ? "NA" : NULL);
}

static void put_field(FILE *out, const char *field, char behind) {
    (void)fputc('"', out);
    for (; *field; field++) {
        if (*field == '"') (void)fputc('"', out);
        (void)fputc(*field, out);
    }
    (void)fputc('"', out);
    (void)fputc(behind, out);
}

static void put_table(FILE *out, const wb_csv *csv, const wb_csv_desc *desc) {
    const int64_t columns = wb_csv_columns(csv);
    for (int64_t row = desc->header ? -1 : 0; row < wb_csv_rows(csv); row++)
        for (int64_t i = 0; i < columns; i++)
            put_field(out, row < 0 ? wb_csv_name(csv, i) : wb_csv_text(csv, row, i),
                      i + 1 < columns ? desc->separator : '\n');
}

static void check_again(const wb_csv *csv, const wb_csv_desc *desc) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) abort();
    put_table(out, csv, desc);
    if (fclose(out) != 0) abort();
    wb_csv *again = wb_read_csv_make(fuzz_path((const uint8_t *)text, size), *desc);
    DEMAND(again && wb_csv_rows(again) == wb_csv_rows(csv));
    DEMAND(wb_csv_columns(again) == wb_csv_columns(csv));
    for (int64_t i = 0; i < wb_csv_columns(csv); i++) {
        DEMAND(strcmp(wb_csv_name(again, i), wb_csv_name(csv, i)) == 0);
        for (int64_t row = 0; row < wb_csv_rows(csv); row++)
            DEMAND(strcmp(wb_csv_text(again, row, i), wb_csv_text(csv, row, i)) == 0);
    }
    wb_free(again);
    free(text);
}

/* A label's text is that of its row. */
static void check_labels(const wb_csv *csv, int64_t column) {
    const char *name = wb_csv_name(csv, column);
    int64_t classes;
    wb_array *y = wb_csv_labels(csv, name, &classes);
    const int64_t *labels = y ? wb_read_begin(y) : NULL;
    for (int64_t row = 0; labels && row < wb_csv_rows(csv) && row < MOST_COLUMNS; row++) {
        DEMAND(labels[row] >= 0 && labels[row] < classes);
        const char *text = wb_csv_label(csv, name, labels[row]);
        DEMAND(text && strcmp(text, wb_csv_text(csv, row, column)) == 0);
    }
    if (labels) wb_read_end(y);
    wb_clear_error();
}

static void check_columns(const wb_csv *csv) {
    for (int64_t i = 0; i < wb_csv_columns(csv) && i < MOST_COLUMNS; i++) {
        wb_array *x = wb_csv_column(csv, wb_csv_name(csv, i));
        DEMAND(!x == wb_failed());
        if (x) DEMAND(wb_size(x, 0) == wb_csv_rows(csv));
        wb_clear_error();
        check_labels(csv, i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const wb_csv_desc desc = desc_of(*data);
    if (wb_scope_open() != WB_OK) abort();
    wb_csv *csv = wb_read_csv_make(fuzz_path(data + 1, size - 1), desc);
    DEMAND(!csv == wb_failed());
    if (csv) check_columns(csv), check_again(csv, &desc);
    wb_free(csv);
    wb_clear_error();
    (void)wb_scope_close();
    return 0;
}
