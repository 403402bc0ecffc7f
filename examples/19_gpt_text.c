/* A small GPT learns a song word by word: an embedding, learnt positions, two blocks of a
 * transformer that see what came before, and logits of the next word. Then it sings a verse.
 *
 * | 63 words, 66048 parameters
 * | step 0: loss 4.4
 * | step 120: loss 0.0
 * | On the seventh day of Christmas
 * | my true love sent to me
 * | seven swans a-swimming,
 * | six geese a-laying,
 * | five gold rings,
 * | four calling birds,
 * | three French hens,
 * | two turtle doves and
 * | a partridge in a pear tree.
 * |
 */
#include <stdio.h>
#include <string.h>

#include <weber.h>

enum { FEATURES = 48, LENGTH = 68, STEPS = 120, WORDS = 64 };

/* "The Twelve Days of Christmas" (England, 1780): the days, and what came on each. */
static const char *const song[][2] = {
    {"first", "a partridge in a pear tree.\n"},
    {"second", "two turtle doves and\n"},
    {"third", "three French hens,\n"},
    {"fourth", "four calling birds,\n"},
    {"fifth", "five gold rings,\n"},
    {"sixth", "six geese a-laying,\n"},
    {"seventh", "seven swans a-swimming,\n"},
    {"eighth", "eight maids a-milking,\n"},
    {"ninth", "nine ladies dancing,\n"},
    {"tenth", "ten lords a-leaping,\n"},
    {"eleventh", "eleven pipers piping,\n"},
    {"twelfth", "twelve drummers drumming,\n"},
};
enum { DAYS = sizeof song / sizeof *song };

typedef struct text {
    char words[WORDS][16]; /* each word once; the end of a line is one, too */
    int known;
    int32_t tokens[LENGTH + 1]; /* places in words */
    int64_t length;
} text;

static int token_of(text *t, const char *word, size_t length) {
    int token = 0;
    while (token < t->known &&
           (strncmp(t->words[token], word, length) != 0 || t->words[token][length]))
        token++;
    if (token < t->known) return token;
    snprintf(t->words[token], sizeof t->words[token], "%.*s", (int)length, word);
    return t->known++;
}

/* Appends the words of a line. */
static void read_line(text *t, const char *line) {
    while (*line) {
        const size_t length = *line == '\n' ? 1 : strcspn(line, " \n");
        t->tokens[t->length++] = token_of(t, line, length);
        line += length + (line[length] == ' ');
    }
}

/* The verse of a day; what is left of the tokens is ends of lines. */
static void read_verse(text *t, int day) {
    t->length = 0;
    read_line(t, "On the"), read_line(t, song[day][0]);
    read_line(t, "day of Christmas\nmy true love sent to me\n");
    for (int i = day; i >= 0; i--) read_line(t, song[i][1]);
    while (t->length <= LENGTH) read_line(t, "\n");
}

/* x (LENGTH, DAYS) are the verses, y the word that follows each word. */
static wb_batch read_song(text *t) {
    static int32_t verses[DAYS][LENGTH + 1];
    for (int day = 0; day < DAYS; day++) {
        read_verse(t, day);
        memcpy(verses[day], t->tokens, sizeof verses[day]);
    }
    wb_array *all = wb_from(WB_I32, verses, LENGTH + 1, DAYS);
    return (wb_batch){.x = wb_slice(all, 0, 0, LENGTH, 1), .y = wb_slice(all, 0, 1, LENGTH + 1, 1)};
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

static bool is_end(const text *t, int64_t i) { return t->words[t->tokens[i]][0] == '\n'; }

static void print_word(const text *t, int64_t i) {
    const bool is_apart = i > 0 && !is_end(t, i) && !is_end(t, i - 1);
    printf("%s%s", is_apart ? " " : "", t->words[t->tokens[i]]);
}

/* Appends a word that the model has chosen; an empty line ends the verse. */
static bool on_word(void *user, int32_t word) {
    text *t = user;
    (void)word; /* wb_generate has written it to t->tokens */
    print_word(t, t->length++);
    return !(is_end(t, t->length - 1) && is_end(t, t->length - 2));
}

/* Goes on from these words to an empty line. */
static void sing(wb_layer *model, text *t, const char *words) {
    t->length = 0;
    read_line(t, words);
    for (int64_t i = 0; i < t->length; i++) print_word(t, i);
    (void)wb_generate(model, t->length, t->tokens, .most = LENGTH, .temperature = 0.5,
                      .each = on_word, .user = t);
}

int main(void) {
    static text t;
    wb_scope_open();
    wb_seed(1);
    const wb_batch verses = read_song(&t);
    wb_layer *model = wb_gpt2(.vocabulary = WORDS, .positions = LENGTH, .features = FEATURES,
                              .layers = 2, .heads = 4, .tied = false);
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 3e-3), model, .clip_total_norm = 1);
    printf("%d words, %lld parameters\n", t.known, (long long)wb_parameter_count(model));
    for (int step = 0; step <= STEPS && !wb_failed(); step++) {
        wb_scope_open();
        wb_array *l = wb_train_step(loss, model, &verses, NULL, adam);
        if (step % STEPS == 0) printf("step %d: loss %.1f\n", step, wb_item(l));
        wb_scope_close();
    }
    sing(model, &t, "On the seventh day");
    wb_free(adam), wb_free(model);
    wb_scope_close();
    return wb_report("19_gpt_text");
}
