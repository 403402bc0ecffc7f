/* src/layers/transformer.c, against its parts put together by hand. */

#include "models/flux_structs.h"
#include "support/support.h"

static wb_array *part(wb_layer *b, const char *name, wb_array *x) {
    return wb_apply(wb_get_layer(b, name), x);
}

static wb_array *many(wb_layer *layer, int count, wb_array *const *inputs) {
    wb_array *y[1];
    return wb_apply_many(layer, count, inputs, 1, y) == 1 ? y[0] : NULL;
}

static wb_array *crossed(wb_layer *b, wb_array *x, wb_array *memory) {
    return many(wb_get_layer(b, "cross_attention"), 2, (wb_array *[]){x, memory});
}

static void assert_close(wb_array *a, wb_array *b) {
    char where[100] = "";
    if (!a || !b || !wb_approx(a, b, 1e-12, 1e-12, where, sizeof where))
        fail_msg("%s %s", where, wb_error_message());
}

static void an_encoder_is_its_parts(void **state) {
    (void)state;
    wb_array *x = wb_normal(WB_F64, 8, 5, 2);
    wb_layer *b = wb_transformer_encoder(8, .heads = 2, .hidden = 6, .dtype = WB_F64);
    wb_array *h = part(b, "norm1", wb_add(x, part(b, "attention", x)));
    h = part(b, "norm2", wb_add(h, part(b, "feed_forward", h)));
    assert_close(wb_apply(b, x), h);
    wb_free(b);
    b = wb_transformer_encoder(8, .heads = 2, .dtype = WB_F64, .norm_first = true, .causal = true);
    h = wb_add(x, part(b, "attention", part(b, "norm1", x)));
    h = wb_add(h, part(b, "feed_forward", part(b, "norm2", h)));
    assert_close(wb_apply(b, x), h);
    wb_array *first = wb_apply(b, wb_slice(x, 1, 0, 3, 1)); /* causal: the rest changes nothing */
    assert_close(first, wb_slice(h, 1, 0, 3, 1));
    wb_free(b);
}

static void a_decoder_is_its_parts(void **state) {
    (void)state;
    wb_array *x = wb_normal(WB_F64, 4, 3, 2), *memory = wb_normal(WB_F64, 4, 5, 2), *y[2];
    wb_layer *b = wb_transformer_decoder(4, .heads = 2, .causal = true, .dtype = WB_F64);
    wb_array *h = part(b, "norm1", wb_add(x, part(b, "attention", x)));
    h = part(b, "norm2", wb_add(h, crossed(b, h, memory)));
    h = part(b, "norm3", wb_add(h, part(b, "feed_forward", h)));
    assert_int_equal(wb_apply_many(b, 2, (wb_array *[]){x, memory}, 2, y), 2);
    assert_close(y[0], h);
    assert_ptr_equal(y[1], memory);
    wb_free(b);
    b = wb_transformer_decoder(4, .heads = 2, .norm_first = true, .dtype = WB_F64);
    h = wb_add(x, part(b, "attention", part(b, "norm1", x)));
    h = wb_add(h, crossed(b, part(b, "norm2", h), memory));
    h = wb_add(h, part(b, "feed_forward", part(b, "norm3", h)));
    assert_int_equal(wb_apply_many(b, 2, (wb_array *[]){x, memory}, 2, y), 2);
    assert_close(y[0], h);
    wb_free(b);
}

static int doubled(void *context, int count, wb_array *const *x, wb_array **y) {
    if (count != 1) return (void)wb_fail(WB_ERROR_ARGUMENT, "takes one array, got %d", count), 0;
    y[0] = wb_mul_number(x[0], *(const double *)context);
    return y[0] ? 1 : 0;
}

static void a_feed_forward_part_may_be_given(void **state) {
    (void)state;
    double two = 2;
    wb_array *x = wb_normal(WB_F64, 4, 3);
    wb_layer *given = wb_chain(wb_dense(4, 4, .dtype = WB_F64), wb_fn_with(doubled, &two));
    wb_layer *b = wb_transformer_encoder(4, .heads = 2, .dtype = WB_F64, .feed_forward = given);
    assert_ptr_equal(wb_get_layer(b, "feed_forward"), given);
    wb_array *h = part(b, "norm1", wb_add(x, part(b, "attention", x)));
    assert_close(wb_apply(b, x), part(b, "norm2", wb_add(h, wb_apply(given, h))));
    wb_free(b);
    assert_null(wb_transformer_encoder(4, .hidden = 8, .feed_forward = wb_dense(4, 4)));
    assert_error(WB_ERROR_ARGUMENT, "feed_forward is given, so hidden must not be");
    assert_null(
        wb_transformer_decoder(4, 2, .activation = wb_gelu, .feed_forward = wb_dense(4, 4)));
    assert_error(WB_ERROR_ARGUMENT, "feed_forward is given, so activation must not be");
    assert_null(wb_transformer_encoder(4, .heads = 3, .feed_forward = wb_dense(4, 4)));
    assert_error(WB_ERROR_ARGUMENT, "3");
}

static void a_feed_forward_part_of_other_sizes_is_refused(void **state) {
    (void)state;
    wb_layer *b = wb_transformer_encoder(4, .heads = 2, .feed_forward = wb_dense(4, 1));
    assert_null(wb_apply(b, wb_ones(WB_F32, 4, 3))); /* a sum would repeat the one feature */
    assert_error(WB_ERROR_SHAPE,
                 "feed_forward must give the sizes of its input, (4, 3), got (1, 3)");
    wb_free(b);
}

/* What a mask hides may be anything; a bias of minus infinity hides, too. */
static void masks_go_through_a_chain(void **state) {
    (void)state;
    wb_layer *blocks = wb_chain(wb_transformer_encoder(4, .heads = 2, .dtype = WB_F64),
                                wb_transformer_encoder(4, .heads = 1, .dtype = WB_F64));
    wb_array *x = wb_normal(WB_F64, 4, 3), *longer = wb_concat(1, x, wb_normal(WB_F64, 4, 2));
    wb_array *mask = wb_lt(wb_iota(WB_F64, 0, 5, 1), wb_number(3)), *y[3]; /* (keys, 1) */
    wb_array *bias = wb_select(mask, wb_number(0), wb_number(-INFINITY));
    bias = wb_cast(bias, WB_F64);
    assert_int_equal(wb_apply_many(blocks, 2, (wb_array *[]){longer, mask}, 3, y), 2);
    assert_ptr_equal(y[1], mask);
    assert_close(wb_slice(y[0], 1, 0, 3, 1), wb_apply(blocks, x));
    assert_int_equal(wb_apply_many(blocks, 3, (wb_array *[]){longer, bias, mask}, 3, y), 3);
    assert_close(wb_slice(y[0], 1, 0, 3, 1), wb_apply(blocks, x));
    wb_free(blocks);
    blocks = wb_chain(wb_transformer_decoder(4, .heads = 2, .dtype = WB_F64),
                      wb_transformer_decoder(4, .heads = 1, .dtype = WB_F64));
    wb_array *z[3];
    assert_int_equal(wb_apply_many(blocks, 3, (wb_array *[]){x, longer, mask}, 3, y), 3);
    wb_array *shorter = wb_slice(longer, 1, 0, 3, 1);
    assert_int_equal(wb_apply_many(blocks, 2, (wb_array *[]){x, shorter}, 3, z), 2);
    assert_close(y[0], z[0]);
    wb_free(blocks);
}

static void dropout_is_for_training(void **state) {
    (void)state;
    wb_seed(1);
    wb_layer *b = wb_transformer_encoder(8, .dropout = 0.5);
    wb_array *x = wb_normal(WB_F32, 8, 4);
    assert_true(wb_approx(wb_apply(b, x), wb_apply(b, x), 0, 0, NULL, 0));
    wb_train_mode(b);
    assert_false(wb_approx(wb_apply(b, x), wb_apply(b, x), 1e-3, 1e-3, NULL, 0));
    wb_free(b);
    /* all of each part is dropped: the way around it is what is left */
    b = wb_transformer_encoder(8, .dropout = 1, .norm_first = true);
    wb_train_mode(b);
    assert_true(wb_approx(wb_apply(b, x), x, 0, 0, NULL, 0));
    wb_free(b);
}

#define ATTENTION "MultiHeadAttention(8 => 8 => 8; nheads=2, bias=true"
#define FORWARD   "feed_forward = Chain(Dense(8 => 32, gelu), Dropout(0.1), Dense(32 => 8)), "
static void texts(void **state) {
    (void)state;
    const char *const of_encoder =
        "TransformerEncoderBlock(norm_first=true, attention = " ATTENTION
        ", dropout_prob=0.1, causal=true), norm1 = LayerNorm(8), " FORWARD
        "norm2 = LayerNorm(8), dropout = Dropout(0.1))";
    wb_layer *b = wb_transformer_encoder(8, .heads = 2, .activation = wb_gelu, .dropout = 0.1,
                                         .causal = true, .norm_first = true);
    assert_structure(b, of_encoder);
    wb_layer *again = wb_parse(of_encoder);
    if (!again) fail_msg("%s", wb_error_message());
    assert_structure(again, of_encoder);
    wb_free(b), wb_free(again);
    const char *const of_decoder =
        "TransformerDecoderBlock(attention = " ATTENTION "), norm1 = LayerNorm(8), "
        "cross_attention = " ATTENTION "), norm2 = LayerNorm(8), feed_forward = "
        "Chain(Dense(8 => 32, relu), Dropout(0), Dense(32 => 8)), norm3 = LayerNorm(8), "
        "dropout = Dropout(0))";
    b = wb_transformer_decoder(8, .heads = 2);
    assert_structure(b, of_decoder);
    assert_int_equal(wb_count_model(b).numbers, 2 * 4 * 72 + 3 * 16 + 8 * 32 + 32 + 32 * 8 + 8);
    wb_free(b);
    /* other parts: text or files may have them */
    b = wb_parse("TransformerEncoderBlock(attention = " ATTENTION "), norm1 = RMSNorm(8), "
                 "feed_forward = Dense(8 => 8), norm2 = RMSNorm(8), dropout = Dropout(0))");
    assert_sizes(wb_apply(b, wb_ones(WB_F32, 8, 3)), 8, 3);
    wb_free(b);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(an_encoder_is_its_parts),
        TEST(a_decoder_is_its_parts),
        TEST(a_feed_forward_part_may_be_given),
        TEST(a_feed_forward_part_of_other_sizes_is_refused),
        TEST(masks_go_through_a_chain),
        TEST(dropout_is_for_training),
        TEST(texts),
    };
    ADD_TESTS(&tests, single);
    return run_test_list("layers/test_transformer", &tests, make_folder, drop_folder);
}
