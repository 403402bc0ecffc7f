/* A language model is trained a little on a text, by low-rank adapters (LoRA): all of its weights
 * stay as they are, and two small matrices beside each projection of queries and values learn.
 *
 * Without arguments a small model is made here, which knows one sentence and learns another:
 *
 * | before: the cat sat on the mat and looked at the moon
 * | trained: 4608 of 69824 parameters
 * | after: the dog sat on the log and looked at the frog
 *
 * 32_lora FOLDER TEXT OUT takes a model in a folder of Hugging Face's with its tokenizer, trains it
 * on the file TEXT, and writes the adapters into the folder OUT, which PEFT and `weber generate
 * FOLDER ... --lora=OUT` read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weber.h>

enum { LENGTH = 52, BATCH = 4, STEPS = 60 };

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

/* Pieces of the text (length + 1, N), one after another: x all tokens of a piece but the last, y
 * all but the first. */
static void train(wb_layer *model, const int32_t *tokens, int64_t count, int64_t length,
                  double eta) {
    const int64_t pieces = count / (length + 1) < BATCH ? count / (length + 1) : BATCH;
    const int64_t batches = pieces ? count / ((length + 1) * pieces) : 0;
    wb_optimiser *adam = wb_setup(wb_adam(.eta = eta), model, .clip_total_norm = 1);
    for (int step = 0; step < STEPS && batches && !wb_failed(); step++) {
        wb_scope_open();
        const int64_t first = step % batches * pieces * (length + 1);
        wb_array *all = wb_from(WB_I32, tokens + first, length + 1, pieces);
        const wb_batch batch = {.x = wb_slice(all, 0, 0, length, 1),
                                .y = wb_slice(all, 0, 1, length + 1, 1)};
        (void)wb_train_step(loss, model, &batch, NULL, adam);
        wb_scope_close();
    }
    wb_free(adam);
}

/* ---- a small model, of letters ---- */

static void say(wb_layer *model, const char *when, const char *begin) {
    int32_t tokens[LENGTH];
    const int64_t given = (int64_t)strlen(begin);
    for (int64_t i = 0; i < given; i++) tokens[i] = begin[i];
    const int64_t count =
        wb_generate(model, given, tokens, .most = LENGTH, .temperature = 0, .end = '\n');
    printf("%s: ", when);
    for (int64_t i = 0; i < count && tokens[i] != '\n'; i++) putchar(tokens[i]);
    putchar('\n');
}

static void learn(wb_layer *model, const char *sentence, double eta) {
    int32_t tokens[LENGTH + 1];
    for (int64_t i = 0, n = (int64_t)strlen(sentence); i <= LENGTH; i++)
        tokens[i] = i < n ? sentence[i] : '\n';
    train(model, tokens, LENGTH + 1, LENGTH, eta);
}

static void show_a_small_one(void) {
    wb_layer *model = wb_gpt2(.vocabulary = 128, .positions = LENGTH, .features = 64, .layers = 1,
                              .heads = 4, .tied = false);
    learn(model, "the cat sat on the mat and looked at the moon", 3e-3);
    say(model, "before", "the");
    const int64_t all = wb_parameter_count(model);
    (void)wb_lora(model, .rank = 4, .targets = {"layers.4"});
    printf("trained: %lld of %lld parameters\n", (long long)wb_parameter_count(model),
           (long long)all);
    learn(model, "the dog sat on the log and looked at the frog", 2e-2);
    (void)wb_lora_merge(model);
    say(model, "after", "the");
    wb_free(model);
}

/* ---- a folder of Hugging Face's ---- */

/* To be freed; NULL if it cannot be read. */
static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    enum { MOST = 1 << 24 };
    char *text = file ? calloc(1, MOST + 1) : NULL;
    const bool good = text && fread(text, 1, MOST, file) > 0;
    if (file) fclose(file);
    if (good) return text;
    free(text);
    return NULL;
}

static int train_a_folder(const char *folder, const char *path, const char *out) {
    char *text = read_file(path);
    wb_tokenizer *tokenizer = wb_tokenizer_load(folder);
    wb_layer *model = wb_load_model(folder, NULL);
    const int64_t count = text ? wb_encode(tokenizer, text) : 0;
    int32_t *tokens = count > 0 ? calloc((size_t)count, sizeof *tokens) : NULL;
    if (tokens) (void)wb_encode(tokenizer, text, tokens, count);
    (void)wb_lora(model, .rank = 8, .alpha = 16);
    if (tokens) train(model, tokens, count, count < 128 ? count - 1 : 64, 1e-3);
    (void)wb_lora_save(out, model, .base = folder);
    if (!tokens) fprintf(stderr, "32_lora: %s: no tokens\n", path);
    free(text), free(tokens);
    wb_free(model), wb_free(tokenizer);
    return tokens ? 0 : 1;
}

int main(int count, char **arguments) {
    int failed = 0;
    wb_scope_open();
    wb_seed(1);
    if (count == 4)
        failed = train_a_folder(arguments[1], arguments[2], arguments[3]);
    else
        show_a_small_one();
    wb_scope_close();
    return wb_report("32_lora") || failed;
}
