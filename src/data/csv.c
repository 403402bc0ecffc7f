/* Tables as text: the file is read as a whole, and its fields end with a zero in place. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <weber/csv.h>

#include "array/array.h"
#include "array/use.h"
#include "base/decimal.h"
#include "base/memory.h"
#include "data/stream.h"

struct wb_csv {
    wb_object object;
    wb_csv_desc desc;
    char *path, *missing, *bytes;
    int64_t size;
    char **fields; /* row by row, the header first */
    int64_t field_count, field_capacity;
    int64_t *lines; /* where each row begins, from 1 */
    int64_t row_count, line_capacity;
    int64_t columns;
    char (*numbers)[24]; /* names of columns without a header */
    bool has_cr_lines;   /* lines end with CR alone */
};

static void csv_free(void *object) {
    wb_csv *csv = object;
    wb_release(csv->path);
    wb_release(csv->missing);
    wb_release(csv->bytes);
    wb_release(csv->fields);
    wb_release(csv->lines);
    wb_release(csv->numbers);
    wb_object_delete(csv, sizeof *csv, "table");
}

static const wb_class csv_class = {.name = "table", .maker = "wb_read_csv", .free = csv_free};

/* ---- reading ---- */

static bool read_whole(wb_csv *csv, wb_stream *file) {
    int64_t capacity = 0;
    for (;;) {
        if (wb_stream_may_become(file, csv->size) != WB_OK) return false;
        if (!wb_grow_list((void **)&csv->bytes, &capacity, 1, csv->size + (1 << 16) + 1))
            return false;
        const size_t got = wb_stream_read(file, csv->bytes + csv->size, 1 << 16);
        csv->size += (int64_t)got;
        if (got == 0) break;
    }
    csv->bytes[csv->size] = 0;
    if (!ferror(file->file)) return !file->zipped || wb_stream_expect_end(file) == WB_OK;
    (void)wb_fail(WB_ERROR_IO, "%s: %s", csv->path, strerror(errno));
    return false;
}

static bool read_file(wb_csv *csv) {
    wb_stream file;
    const bool good = wb_stream_open(&file, csv->path) == WB_OK && read_whole(csv, &file);
    wb_stream_close(&file);
    return good;
}

/* ---- fields ---- */

typedef struct reader {
    wb_csv *csv;
    char *at, *end;
    int64_t line; /* the line of `at`, from 1 */
} reader;

static bool fail_at(const reader *r, const char *what) {
    (void)wb_fail(WB_ERROR_FORMAT, "%s: line %lld: %s", r->csv->path, (long long)r->line, what);
    return false;
}

static bool ends_field(const reader *r) {
    return r->at == r->end || *r->at == r->csv->desc.separator || *r->at == '\n' ||
           (*r->at == '\r' && (r->csv->has_cr_lines || r->at + 1 == r->end || r->at[1] == '\n'));
}

/* Copies the inside of the quotes to where they begin. */
static bool read_quoted(reader *r, char **to) {
    const int64_t first_line = r->line;
    r->at++;
    for (; r->at < r->end; r->at++) {
        if (*r->at == '"' && (r->at + 1 == r->end || r->at[1] != '"')) {
            r->at++;
            return ends_field(r) || fail_at(r, "there is text after a closing quote");
        }
        if (*r->at == '"') r->at++;
        r->line += *r->at == (r->csv->has_cr_lines ? '\r' : '\n');
        *(*to)++ = *r->at;
    }
    r->line = first_line;
    return fail_at(r, "a quote is not closed");
}

/* Past LF, CRLF, or CR. */
static void skip_line_end(reader *r) {
    const char *before = r->at;
    if (r->at < r->end && *r->at == '\r') r->at++;
    if (r->at < r->end && *r->at == '\n') r->at++;
    r->line += r->at > before && (r->at[-1] == '\n' || r->csv->has_cr_lines);
}

/* One field, and what ends it; *more: another one follows on the line. */
static bool read_field(reader *r, bool *more) {
    wb_csv *csv = r->csv;
    char *field = r->at, *to = field;
    if (!WB_GROW(csv->fields, csv->field_count, csv->field_capacity)) return false;
    if (r->at < r->end && *r->at == '"') {
        if (!read_quoted(r, &to)) return false;
    } else
        while (!ends_field(r)) to = ++r->at;
    csv->fields[csv->field_count++] = field;
    *more = r->at < r->end && *r->at == csv->desc.separator;
    if (*more)
        r->at++;
    else
        skip_line_end(r);
    *to = 0;
    return true;
}

static bool is_empty_line(const reader *r) {
    return ends_field(r) && *r->at != r->csv->desc.separator;
}

/* If a whole line is one field, perhaps the file has another separator: says which. */
static void advise_on_separator(const wb_csv *csv) {
    const char *other = csv->columns == 1 ? strpbrk(csv->fields[0], ",;\t|") : NULL;
    if (other && *other != csv->desc.separator)
        wb_error_add("line %lld has one field, \"%.40s\": perhaps .separator = '%s'",
                     (long long)csv->lines[0], csv->fields[0],
                     *other == '\t' ? "\\t" : (const char[]){*other, 0});
}

static bool read_row(reader *r) {
    wb_csv *csv = r->csv;
    const int64_t first = csv->field_count, line = r->line;
    if (!WB_GROW(csv->lines, csv->row_count, csv->line_capacity)) return false;
    csv->lines[csv->row_count++] = line;
    for (bool more = true; more;)
        if (!read_field(r, &more)) return false;
    const int64_t count = csv->field_count - first;
    if (csv->row_count == 1) csv->columns = count;
    if (count == csv->columns) return true;
    (void)wb_fail(WB_ERROR_FORMAT, "%s: line %lld has %lld fields, but line %lld has %lld",
                  csv->path, (long long)line, (long long)count, (long long)csv->lines[0],
                  (long long)csv->columns);
    advise_on_separator(csv);
    return false;
}

/* Fields end with a zero byte, so they must not contain one. */
static bool check_bytes(const wb_csv *csv) {
    const char *zero = memchr(csv->bytes, 0, (size_t)csv->size);
    if (!zero) return true;
    long long line = 1;
    for (const char *at = csv->bytes; at < zero; at++) line += *at == '\n';
    (void)wb_fail(WB_ERROR_FORMAT, "%s: line %lld: text must have no zero bytes (is it UTF-16?)",
                  csv->path, line);
    return false;
}

static bool read_rows(wb_csv *csv) {
    static const char mark[] = "\xEF\xBB\xBF";
    reader r = {.csv = csv, .at = csv->bytes, .end = csv->bytes + csv->size, .line = 1};
    if (!check_bytes(csv)) return false;
    csv->has_cr_lines = !memchr(csv->bytes, '\n', (size_t)csv->size);
    if (csv->size >= 3 && memcmp(csv->bytes, mark, 3) == 0) r.at += 3;
    while (r.at < r.end) {
        if (is_empty_line(&r))
            skip_line_end(&r);
        else if (!read_row(&r))
            return false;
    }
    if (csv->row_count > 0) return true;
    (void)wb_fail(WB_ERROR_FORMAT, "%s: the file has no lines", csv->path);
    return false;
}

/* ---- names ---- */

static int64_t rows_before(const wb_csv *csv) { return csv->desc.header ? 1 : 0; }

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Of equal texts, the first column comes first. */
static int by_text_and_place(const void *a, const void *b) {
    char *const *x = *(char *const *const *)a, *const *y = *(char *const *const *)b;
    const int order = strcmp(*x, *y);
    return order ? order : (x > y) - (x < y);
}

static bool have_other_names(const wb_csv *csv) {
    char ***places = wb_alloc_list(csv->columns, sizeof *places);
    char **again = NULL, **first = NULL;
    if (!places) return false;
    for (int64_t i = 0; i < csv->columns; i++) places[i] = &csv->fields[i];
    qsort(places, (size_t)csv->columns, sizeof *places, by_text_and_place);
    for (int64_t i = 1; i < csv->columns; i++)
        if (strcmp(*places[i - 1], *places[i]) == 0 && (!again || places[i] < again))
            first = places[i - 1], again = places[i];
    wb_release(places);
    if (!again) return true;
    (void)wb_fail(WB_ERROR_FORMAT, "%s: columns %lld and %lld are both called \"%s\"", csv->path,
                  (long long)(first - csv->fields) + 1, (long long)(again - csv->fields) + 1,
                  *again);
    return false;
}

static bool name_columns(wb_csv *csv) {
    if (!csv->desc.header) {
        csv->numbers = wb_alloc_list(csv->columns, sizeof *csv->numbers);
        for (int64_t i = 0; csv->numbers && i < csv->columns; i++)
            (void)snprintf(csv->numbers[i], sizeof csv->numbers[i], "%lld", (long long)i + 1);
        return csv->numbers != NULL;
    }
    return have_other_names(csv);
}

wb_csv *wb_read_csv_make(const char *path, wb_csv_desc desc) {
    if (wb_failed()) return wb_not_run_null("wb_read_csv");
    if (!path) return wb_fail_argument_null("read_csv", "path");
    if (!wb_check_start("read_csv", desc.start_)) return NULL;
    if (desc.separator && strchr("\"\r\n", desc.separator))
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "read_csv: separator must not be a quote or a line end, got byte %d",
                            desc.separator);
    wb_csv *csv = wb_object_new(&csv_class, sizeof *csv);
    if (!csv) return NULL;
    csv->desc = desc;
    if (!desc.separator) csv->desc.separator = ',';
    csv->path = wb_copy_text(path);
    csv->missing = wb_copy_text(desc.missing ? desc.missing : "");
    if (csv->path && csv->missing && read_file(csv) && read_rows(csv) && name_columns(csv))
        return csv;
    csv_free(csv);
    return NULL;
}

static bool check(const char *function, const wb_csv *csv) {
    return wb_may_use(function, csv, &csv_class, "the table");
}

/* For questions, which have an answer for NULL, too. */
static bool may_ask(const char *function, const wb_csv *csv) { return csv && check(function, csv); }

int64_t wb_csv_rows(const wb_csv *csv) {
    return may_ask("csv_rows", csv) ? csv->row_count - rows_before(csv) : 0;
}

int64_t wb_csv_columns(const wb_csv *csv) { return may_ask("csv_columns", csv) ? csv->columns : 0; }

const char *wb_csv_name(const wb_csv *csv, int64_t column) {
    if (!may_ask("csv_name", csv) || column < 0 || column >= csv->columns) return NULL;
    return csv->desc.header ? csv->fields[column] : csv->numbers[column];
}

const char *wb_csv_text(const wb_csv *csv, int64_t row, int64_t column) {
    if (!may_ask("csv_text", csv)) return NULL;
    if (column < 0 || column >= csv->columns || row < 0 || row >= wb_csv_rows(csv)) return NULL;
    return csv->fields[(row + rows_before(csv)) * csv->columns + column];
}

/* ---- columns ---- */

static int64_t find_column(const char *function, const wb_csv *csv, const char *name) {
    char names[400] = "";
    size_t used = 0;
    if (!check(function, csv)) return -1;
    if (!name) return (void)wb_fail_argument_null(function, "the name"), -1;
    for (int64_t i = 0; i < csv->columns; i++) {
        const char *own = wb_csv_name(csv, i);
        if (strcmp(own, name) == 0) return i;
        if (used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", own);
    }
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: there is no column \"%s\"; there are %s", csv->path, name,
                  names);
    advise_on_separator(csv);
    return -1;
}

static bool is_missing(const wb_csv *csv, const char *field) {
    return !*field || strcmp(field, csv->missing) == 0;
}

static const char blanks[] = " \t";

/* Of a field that is a number. */
static bool as_integer(const char *field, int64_t *value) {
    char *end;
    errno = 0;
    *value = strtoll(field, &end, 10);
    return end != field && end[strspn(end, blanks)] == 0 && errno == 0;
}

/* nan and inf as programs write them: NaN, Inf, -Infinity. */
static bool as_limit(const char *text, size_t length, double *value) {
    static const struct {
        const char *text;
        double value;
    } limits[] = {{"nan", (double)NAN}, {"inf", (double)INFINITY}, {"infinity", (double)INFINITY}};
    const bool has_sign = *text == '-' || *text == '+';
    for (int i = 0; i < 3; i++) {
        if (length - has_sign != strlen(limits[i].text)) continue;
        if (strncasecmp(text + has_sign, limits[i].text, length - has_sign) != 0) continue;
        *value = *text == '-' ? -limits[i].value : limits[i].value;
        return true;
    }
    return false;
}

static bool as_number(const char *field, double *value) {
    field += strspn(field, blanks);
    size_t length = strlen(field);
    while (length > 0 && strchr(blanks, field[length - 1])) length--;
    return wb_read_decimal(field, length, value) || as_limit(field, length, value);
}

static bool fail_field(const wb_csv *csv, int64_t row, int64_t column, const char *what,
                       const char *hint) {
    const char *text = wb_csv_text(csv, row, column);
    const bool may_mean_none = *text && !*csv->missing;
    (void)wb_fail(WB_ERROR_FORMAT, "%s: line %lld, column \"%s\": %s \"%.80s\"%s%s", csv->path,
                  (long long)csv->lines[row + rows_before(csv)], wb_csv_name(csv, column), what,
                  text, hint, may_mean_none ? "; .missing says which text means no value" : "");
    advise_on_separator(csv);
    return false;
}

/* All fields as numbers; *are_integers: each is one, and none is missing. */
static bool read_numbers(const wb_csv *csv, int64_t column, double *values, int64_t *integers,
                         bool *are_integers) {
    *are_integers = true;
    for (int64_t row = 0; row < wb_csv_rows(csv); row++) {
        const char *field = wb_csv_text(csv, row, column);
        if (is_missing(csv, field)) {
            if (!csv->desc.missing_is_nan)
                return fail_field(csv, row, column,
                                  "the value is missing:", "; .missing_is_nan makes it NaN");
            values[row] = (double)NAN, *are_integers = false;
        } else if (!as_number(field, &values[row]))
            return fail_field(csv, row, column,
                              "this is not a number:", "; wb_csv_labels reads names");
        else if (!as_integer(field, &integers[row]))
            *are_integers = false;
    }
    return true;
}

static wb_array *column_at(const wb_csv *csv, int64_t column) {
    const int64_t rows = wb_csv_rows(csv);
    double *values = wb_alloc_list(rows + 1, sizeof *values);
    int64_t *integers = wb_alloc_list(rows + 1, sizeof *integers);
    bool are_integers;
    wb_array *x = NULL;
    if (values && integers && read_numbers(csv, column, values, integers, &are_integers))
        x = are_integers ? wb_from_make(WB_I64, integers, 1, &rows)
                         : wb_from_make(WB_F64, values, 1, &rows);
    wb_release(values);
    wb_release(integers);
    return x;
}

wb_array *wb_csv_column(const wb_csv *csv, const char *name) {
    const int64_t column = find_column("csv_column", csv, name);
    return column < 0 ? NULL : column_at(csv, column);
}

wb_array *wb_csv_matrix(const wb_csv *csv, int count, const char *const *names) {
    if (!check("csv_matrix", csv)) return NULL;
    if (names && !wb_check_list("csv_matrix", count, names)) return NULL;
    if (!names && count != 0)
        return wb_fail_null(WB_ERROR_ARGUMENT, "csv_matrix: without names count must be 0, got %d",
                            count);
    if (!names) count = (int)csv->columns;
    wb_array **columns = wb_alloc_list(count + 1, sizeof *columns);
    bool good = columns != NULL;
    for (int i = 0; good && i < count; i++) {
        wb_array *x = names ? wb_csv_column(csv, names[i]) : column_at(csv, i);
        good = x && (columns[i] = wb_cast(x, WB_F32)) != NULL;
    }
    wb_array *matrix = good ? wb_stack_make(0, count, columns) : NULL;
    wb_release(columns);
    return matrix;
}

/* ---- labels ---- */

/* The distinct texts of a column, sorted; to be released. NULL: an error is recorded. */
static const char **distinct_texts(const wb_csv *csv, int64_t column, int64_t *count) {
    const int64_t rows = wb_csv_rows(csv);
    const char **texts = wb_alloc_list(rows + 1, sizeof *texts);
    *count = 0;
    if (!texts) return NULL;
    for (int64_t row = 0; row < rows; row++) {
        texts[row] = wb_csv_text(csv, row, column);
        if (!is_missing(csv, texts[row])) continue;
        (void)fail_field(csv, row, column, "the value is missing:", "");
        wb_release(texts);
        return NULL;
    }
    if (rows > 1) qsort(texts, (size_t)rows, sizeof *texts, by_text);
    for (int64_t row = 0; row < rows; row++)
        if (*count == 0 || strcmp(texts[*count - 1], texts[row]) != 0)
            texts[(*count)++] = texts[row];
    return texts;
}

wb_array *wb_csv_labels(const wb_csv *csv, const char *name, int64_t *classes) {
    if (classes) *classes = 0;
    const int64_t column = find_column("csv_labels", csv, name);
    if (column < 0) return NULL;
    int64_t count;
    const int64_t rows = wb_csv_rows(csv);
    const char **texts = distinct_texts(csv, column, &count);
    int64_t *labels = texts ? wb_alloc_list(rows + 1, sizeof *labels) : NULL;
    for (int64_t row = 0; labels && row < rows; row++) {
        const char *text = wb_csv_text(csv, row, column);
        const char **found = bsearch(&text, texts, (size_t)count, sizeof *texts, by_text);
        labels[row] = found - texts;
    }
    wb_array *x = labels ? wb_from_make(WB_I64, labels, 1, &rows) : NULL;
    if (x && classes) *classes = count;
    wb_release(texts);
    wb_release(labels);
    return x;
}

const char *wb_csv_label(const wb_csv *csv, const char *name, int64_t label) {
    const int64_t column = find_column("csv_label", csv, name);
    int64_t count;
    const char **texts = column < 0 ? NULL : distinct_texts(csv, column, &count);
    const char *text = texts && label >= 0 && label < count ? texts[label] : NULL;
    wb_release(texts);
    return text;
}

wb_text_entry *wb_csv_vocabulary(const wb_csv *csv, const char *name) {
    const int64_t column = find_column("csv_vocabulary", csv, name);
    int64_t count;
    size_t bytes = 1;
    const char **texts = column < 0 ? NULL : distinct_texts(csv, column, &count);
    for (int64_t i = 0; texts && i < count; i++) bytes += strlen(texts[i]) + 1;
    char *lines = texts ? wb_alloc(bytes) : NULL, *end = lines;
    for (int64_t i = 0; lines && i < count; i++) {
        const size_t length = strlen(texts[i]);
        if (strpbrk(texts[i], "\r\n"))
            (void)wb_fail(WB_ERROR_UNSUPPORTED,
                          "csv_vocabulary: \"%.40s\" of column \"%s\" has a line end", texts[i],
                          name);
        memcpy(end, texts[i], length), end += length;
        if (i + 1 < count) *end++ = '\n';
    }
    const uint64_t errors = wb_error_count();
    wb_text_entry *entry = lines && !wb_failed() ? wb_text_make(lines) : NULL;
    if (lines && !entry) (void)wb_error_prefix(errors, "csv_vocabulary: column \"%s\": ", name);
    wb_release(lines);
    wb_release(texts);
    return entry;
}

typedef struct word {
    const char *text; /* first, because by_text reads it */
    int64_t place;
} word;

/* The lines of a text, sorted, each with its number. Line ends in the text become zero bytes. */
static word *words_of(char *lines, int64_t *count) {
    word *words = NULL;
    int64_t capacity = 0;
    *count = 0;
    for (char *at = lines, *end; at; at = end) {
        if ((end = strchr(at, '\n'))) *end++ = 0;
        if (!WB_GROW(words, *count, capacity)) {
            wb_release(words);
            return NULL;
        }
        words[*count] = (word){at, *count};
        ++*count;
    }
    qsort(words, (size_t)*count, sizeof *words, by_text);
    return words;
}

int64_t wb_vocabulary_size(const char *vocabulary) {
    int64_t count = vocabulary && *vocabulary;
    for (const char *at = vocabulary; at && (at = strchr(at, '\n')); at++) count++;
    return count;
}

wb_array *wb_csv_labels_in(const wb_csv *csv, const char *name, const char *vocabulary) {
    const int64_t column = find_column("csv_labels_in", csv, name), rows = wb_csv_rows(csv);
    if (column < 0) return NULL;
    if (!vocabulary)
        return wb_failed() ? NULL : wb_fail_argument_null("csv_labels_in", "the vocabulary");
    int64_t *labels = wb_alloc_list(rows + 1, sizeof *labels), count = 0;
    char *lines = labels ? wb_copy_text(vocabulary) : NULL;
    word *words = lines ? words_of(lines, &count) : NULL;
    bool good = words != NULL;
    for (int64_t row = 0; good && row < rows; row++) {
        const word wanted = {.text = wb_csv_text(csv, row, column)};
        const word *found = bsearch(&wanted, words, (size_t)count, sizeof *words, by_text);
        good = found || fail_field(csv, row, column, "the vocabulary lacks", "");
        if (found) labels[row] = found->place;
    }
    wb_array *x = good ? wb_from_make(WB_I64, labels, 1, &rows) : NULL;
    wb_release(words);
    wb_release(lines);
    wb_release(labels);
    return x;
}
