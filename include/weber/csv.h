/* weber/csv.h: tables as text.
 *
 *     wb_csv *iris = wb_read_csv("iris.csv");
 *     const char *names[] = {"sepal_length", "sepal_width"};
 *     wb_array *x = wb_csv_matrix(iris, 2, names);             // f32 (2, rows)
 *     wb_array *y = wb_csv_labels(iris, "species", NULL);      // i64 (rows), 0, 1, 2
 *     wb_free(iris);
 *
 * Fields are separated by commas and may be quoted, with "" for a quote inside (RFC 4180); lines
 * end with LF or CRLF, or all of them with CR; files may be gzipped (with the limit of wb_read_idx,
 * weber/data.h); empty lines and a byte order mark are skipped. A column has integers if all its
 * fields are integers, else numbers if all are numbers, else texts; empty fields, and fields equal
 * to .missing, are missing values and do not affect the type. Numbers are decimal, with a point
 * whatever the locale (-0.5, 1e3, nan, inf), and may have blanks around them. Messages count lines
 * from 1. NULL in, NULL out. Errors: weber/error.h. */
#ifndef WEBER_CSV_H
#define WEBER_CSV_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Released by wb_free. */
typedef struct wb_csv wb_csv;

typedef struct wb_csv_desc {
    WB_START_MEMBER;
    char separator; /* default ','; not a quote or a line end */
    bool header
        WB_DEFAULT(true); /* false: the first line has values; columns are called "1", ... */
    const char *missing;  /* text of missing values, such as "NA"; default: only empty fields */
    bool missing_is_nan;  /* missing values among numbers become NaN; default: they are errors */
} wb_csv_desc;

/* Reads a whole file. Fails, naming path and line, if a line has another number of fields than the
 * first one, a quote is not closed or has text after it, a byte is zero, or two columns have one
 * name. */
#define wb_read_csv(...)       WB_READ_CSV(__VA_ARGS__, WB_NO_MORE)
#define WB_READ_CSV(path, ...) WB_MAKE_OF(wb_read_csv_make, path, csv, __VA_ARGS__)
WB_API wb_csv *wb_read_csv_make(const char *path, wb_csv_desc desc);

WB_API int64_t wb_csv_rows(const wb_csv *csv);    /* without the header */
WB_API int64_t wb_csv_columns(const wb_csv *csv); /* the number of fields in a line */
/* The name of a column, counted from 0; NULL if there is no such column. */
WB_API const char *wb_csv_name(const wb_csv *csv, int64_t column);
/* A field without its quotes, valid as long as csv; NULL if row or column is out of range. */
WB_API const char *wb_csv_text(const wb_csv *csv, int64_t row, int64_t column);

/* The column of that name, (rows): i64 for integers, f64 for other numbers. A missing value is an
 * error that names its line, unless .missing_is_nan: then a column with missing values is f64. A
 * column of texts is an error that names the first field that is not a number, and its line. An
 * unknown name is an error that lists the valid ones. */
WB_API wb_array *wb_csv_column(const wb_csv *csv, const char *name);

/* Several such columns as f32 (count, rows); names NULL and count 0: all. */
WB_API wb_array *wb_csv_matrix(const wb_csv *csv, int count, const char *const *names);

/* A column of any type as labels, i64 (rows): 0, 1, ... for its distinct texts in the order of
 * their bytes. *classes, if not NULL, is set to their number; wb_csv_label returns the text of a
 * label, NULL for a label out of range. Missing values are errors. */
WB_API wb_array *wb_csv_labels(const wb_csv *csv, const char *name, int64_t *classes);

/* Each table numbers its own texts. To give another table, such as one for testing, the same
 * labels, use the vocabulary of the first: its texts in order, one in each line. To save it with a
 * model and read it again:
 *
 *     wb_save_named("iris.npz", {"model", model}, {"species", wb_csv_vocabulary(iris, "species")});
 *     wb_array *y = wb_csv_labels_in(test, "species", wb_file_text(file, "species"));
 *
 * A text that is not in the vocabulary is an error that names its line; a vocabulary of texts with
 * line ends is an error, too. The vocabulary belongs to the scope. */
WB_API wb_text_entry *wb_csv_vocabulary(const wb_csv *csv, const char *name);
WB_API wb_array *wb_csv_labels_in(const wb_csv *csv, const char *name, const char *vocabulary);
/* How many texts are in the vocabulary, that is, how many classes such labels have. 0 for NULL and
 * "". */
WB_API int64_t wb_vocabulary_size(const char *vocabulary);
WB_API const char *wb_csv_label(const wb_csv *csv, const char *name, int64_t label);

#ifdef __cplusplus
}
#endif
#endif
