/* einsum: against a loop over all letters, and what it refuses. */
#include "support/support.h"

static const struct einsum_row {
    const char *name; /* the text */
    int count;
    struct {
        int ndim;
        int64_t sizes[4];
    } arrays[3];
    int ndim;
    int64_t sizes[4];
} rows[] = {{"ij,jk->ik", 2, {{2, {2, 3}}, {2, {3, 4}}}, 2, {2, 4}},
            {"ij,jk->ki", 2, {{2, {2, 3}}, {2, {3, 4}}}, 2, {4, 2}},
            {"ij,jk", 2, {{2, {2, 3}}, {2, {3, 4}}}, 2, {2, 4}},
            {"ba", 1, {{2, {2, 3}}}, 2, {3, 2}},
            {" i j , j -> i ", 2, {{2, {2, 3}}, {1, {3}}}, 1, {2}},
            {"ij->j", 1, {{2, {2, 3}}}, 1, {3}},
            {"ij->", 1, {{2, {2, 3}}}, 0, {0}},
            {"ij->ji", 1, {{2, {2, 3}}}, 2, {3, 2}},
            {"ii", 1, {{2, {3, 3}}}, 0, {0}},
            {"ii->i", 1, {{2, {3, 3}}}, 1, {3}},
            {"iji->ij", 1, {{3, {2, 3, 2}}}, 2, {2, 3}},
            {"iii->i", 1, {{3, {2, 2, 2}}}, 1, {2}},
            {"ijij->ji", 1, {{4, {2, 3, 2, 3}}}, 2, {3, 2}},
            {"i,j->ij", 2, {{1, {2}}, {1, {3}}}, 2, {2, 3}},
            {"i,i->", 2, {{1, {3}}, {1, {3}}}, 0, {0}},
            {"i,i->i", 2, {{1, {3}}, {1, {3}}}, 1, {3}},
            {"ijb,jkb->ikb", 2, {{3, {2, 3, 2}}, {3, {3, 4, 2}}}, 3, {2, 4, 2}},
            {"bij,bjk->bik", 2, {{3, {2, 2, 3}}, {3, {2, 3, 4}}}, 3, {2, 2, 4}},
            {"bij,jk->ikb", 2, {{3, {2, 2, 3}}, {2, {3, 4}}}, 3, {2, 4, 2}},
            {"ijk,kl->i", 2, {{3, {2, 3, 2}}, {2, {2, 3}}}, 1, {2}},
            {"abcd,cdb->a", 2, {{4, {2, 3, 2, 2}}, {3, {2, 2, 3}}}, 1, {2}},
            {"ij,jk,kl->il", 3, {{2, {2, 3}}, {2, {3, 4}}, {2, {4, 2}}}, 2, {2, 2}},
            {"i,ij,j->", 3, {{1, {2}}, {2, {2, 3}}, {1, {3}}}, 0, {0}},
            {"i,i,i->i", 3, {{1, {3}}, {1, {3}}, {1, {3}}}, 1, {3}},
            {"ii,ij->j", 2, {{2, {2, 2}}, {2, {2, 3}}}, 1, {3}},
            {"iB,iA", 2, {{2, {2, 3}}, {2, {2, 2}}}, 2, {2, 3}},
            {"ij,j->i", 2, {{2, {2, 0}}, {1, {0}}}, 1, {2}}};

static void append(char *list, char c) {
    const size_t size = strlen(list);
    list[size] = c, list[size + 1] = 0;
}

/* Every combination of the letters' values: the product of the arrays' elements goes to the
 * result's. */
static void by_loops(const struct einsum_row *r, double *const *numbers, double *out) {
    char letters[16] = "", text[32] = "", result[16] = "";
    int64_t sizes[128] = {0}, at[128] = {0}, total = 1;
    for (const char *c = r->name; *c; c++)
        if (*c != ' ') append(text, *c);
    const char *arrow = strstr(text, "->");
    for (const char *c = text, *segment = text; *c && c != arrow; c++) {
        if (*c == ',') segment = c + 1;
        if (*c == ',') continue;
        int array = 0;
        for (const char *before = text; before < c; before++) array += *before == ',';
        sizes[(int)*c] = r->arrays[array].sizes[c - segment];
        if (!strchr(letters, *c)) append(letters, *c);
    }
    if (arrow) (void)snprintf(result, sizeof result, "%s", arrow + 2);
    for (char c = 'A'; !arrow && c <= 'z'; c++)
        if (strchr(letters, c) && strchr(text, c) == strrchr(text, c)) append(result, c);
    for (const char *c = letters; *c; c++) total *= sizes[(int)*c];
    for (int64_t n = 0; n < total; n++) {
        double product = 1;
        int64_t rest = n, place = 0, stride = 1;
        for (const char *c = letters; *c; c++)
            at[(int)*c] = rest % sizes[(int)*c], rest /= sizes[(int)*c];
        const char *c = text;
        for (int k = 0; k < r->count; k++, c++) {
            for (place = 0, stride = 1; *c && *c != ',' && c != arrow; c++)
                place += at[(int)*c] * stride, stride *= sizes[(int)*c];
            product *= numbers[k][place];
        }
        for (place = 0, stride = 1, c = result; *c; c++)
            place += at[(int)*c] * stride, stride *= sizes[(int)*c];
        out[place] += product;
    }
}

static void sum_is(void **state) {
    const struct einsum_row *r = *state;
    static const wb_dtype types[] = {WB_F64, WB_F32, WB_I32};
    test_random random = {test_seed() ^ (uint64_t)(r - rows)};
    for (int t = 0; t < 3; t++) {
        double memory[3][64], wanted[64] = {0};
        double *numbers[3] = {memory[0], memory[1], memory[2]};
        wb_array *x[3];
        for (int k = 0; k < r->count; k++) {
            for (int i = 0; i < 64; i++) memory[k][i] = (double)random_below(&random, 9) - 4;
            x[k] = array_of(types[t], memory[k], r->arrays[k].ndim, r->arrays[k].sizes);
        }
        by_loops(r, numbers, wanted);
        wb_array *y = wb_einsum_make(r->name, r->count, x);
        assert_sizes_make(y, r->ndim, r->sizes);
        assert_numbers(y, wb_count(y), wanted, 1e-6);
    }
}

static void mistakes_are_named(void **state) {
    (void)state;
    wb_array *a = wb_ones(WB_F32, 2, 3), *b = wb_ones(WB_F32, 4, 5), *v = wb_ones(WB_F32, 1, 1, 1);
    static const struct mistake {
        const char *text, *message;
        wb_status status;
    } list[] = {{"ij,jk->ik",
                 "einsum: letter j is 3 in array 0, so it must be 3 in array 1, got 4 in "
                 "(4, 5)",
                 WB_ERROR_SHAPE},
                {"ijk,lm->i", "einsum: array 0 is (2, 3), so it needs 2 letters, got \"ijk\"",
                 WB_ERROR_SHAPE},
                {"ij->i", "einsum: \"ij->i\" names 1 arrays, got 2", WB_ERROR_ARGUMENT},
                {"ij,kl->m",
                 "einsum: each letter of the result must name a dimension of an array, got m in "
                 "\"ij,kl->m\"",
                 WB_ERROR_ARGUMENT},
                {"ij,kl->ii",
                 "einsum: a letter may stand once in the result, got i twice in "
                 "\"ij,kl->ii\"",
                 WB_ERROR_ARGUMENT},
                {"i.,kl",
                 "einsum: letters, commas and one -> are expected, got '.' at place 1 of "
                 "\"i.,kl\"",
                 WB_ERROR_ARGUMENT},
                {"ij,kl->i->j", "got '-' at place 8 of", WB_ERROR_ARGUMENT},
                {"ij>kl", "got '>' at place 2 of", WB_ERROR_ARGUMENT},
                {"ij,kl->i,k", "got ',' at place 8 of", WB_ERROR_ARGUMENT}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        assert_null(wb_einsum(list[i].text, a, b));
        assert_error(list[i].status, list[i].message);
    }
    assert_null(wb_einsum("abc,def,ghi", v, v, v));
    assert_error(WB_ERROR_SHAPE,
                 "einsum: a product of two arrays may have 8 dimensions, got 9 (abcdefghi)");
    assert_null(wb_einsum(NULL, a));
    assert_error(WB_ERROR_ARGUMENT, "einsum: text is NULL");
    char longer[400];
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = 0;
    assert_null(wb_einsum(longer, a));
    assert_error(WB_ERROR_ARGUMENT, "einsum: the text must have less than 256 characters, got 399");
    longer[200] = 0;
    assert_null(wb_einsum(longer, a));
    assert_error(WB_ERROR_SHAPE, "einsum: array 0 is (2, 3), so it needs 2 letters, got");
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {TEST(mistakes_are_named)};
    ADD_ROWS(&tests, rows, sum_is);
    ADD_TESTS(&tests, others);
    return run_test_list("ops/test_einsum", &tests, NULL, NULL);
}
