/* An LSTM reads a nursery rhyme letter by letter and learns which one comes next. The verse of the
 * dog is kept from it; given the first words of that verse, it says the rest.
 *
 * | 2227 letters, 57856 parameters
 * | step 0: loss 4.9
 * | step 300: loss 0.1
 * | This is the dog
 * | That worried the cat
 * | That killed the rat
 * | That ate the malt
 * | That lay in the house that Jack built.
 * |
 */
#include <stdio.h>
#include <string.h>

#include <weber.h>

enum { LETTERS = 128, UNITS = 96, LENGTH = 64, BATCH = 32, STEPS = 300, MOST = 4096 };

/* "The House That Jack Built" (England, 18th century): who it is, and what it did to the one
 * before. */
static const char *const rhyme[][2] = {
    {"house that Jack built.", ""},
    {"malt", "lay in"},
    {"rat", "ate"},
    {"cat", "killed"},
    {"dog", "worried"},
    {"cow with the crumpled horn", "tossed"},
    {"maiden all forlorn", "milked"},
    {"man all tattered and torn", "kissed"},
    {"priest all shaven and shorn", "married"},
    {"cock that crowed in the morn", "waked"},
    {"farmer sowing his corn", "kept"},
    {"horse and the hound and the horn", "belonged to"},
};
enum { VERSES = sizeof rhyme / sizeof *rhyme, DOG = 4 };

/* The whole rhyme without the verse of the dog, as an array of letters. */
static wb_array *read_rhyme(void) {
    char text[MOST];
    int n = 0;
    for (int verse = 0; verse < VERSES; verse++) {
        if (verse == DOG) continue;
        n += snprintf(text + n, sizeof text - (size_t)n, "This is the %s\n", rhyme[verse][0]);
        for (int i = verse; i > 0; i--)
            n += snprintf(text + n, sizeof text - (size_t)n, "That %s the %s\n", rhyme[i][1],
                          rhyme[i - 1][0]);
        text[n++] = '\n';
    }
    return wb_from(WB_U8, text, n);
}

/* x (BATCH, LENGTH) pieces of the text, y the letter that follows each. */
static wb_batch pieces(wb_array *text) {
    const double starts = (double)(wb_count(text) - LENGTH);
    wb_array *start = wb_cast(wb_mul_number(wb_uniform(WB_F32, BATCH, 1), starts), WB_I64);
    wb_array *at = wb_add(start, wb_iota(WB_I64, 1, 1, LENGTH));
    return (wb_batch){.x = wb_gather(text, at, 0), .y = wb_gather(text, wb_add_number(at, 1), 0)};
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_reset(model); /* each piece begins anew */
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

/* Goes on after the words, letter by letter, to the end of the verse. */
static void say(wb_layer *model, const char *words, double temperature) {
    char text[MOST] = {0};
    int64_t length = snprintf(text, sizeof text, "%s", words), heard = 0;
    wb_reset(model);
    while (!strstr(text, "\n\n") && length < MOST - 1 && !wb_failed()) {
        wb_scope_open();
        const int64_t news = length - heard; /* the words, then one letter at a time */
        wb_array *logits = wb_apply(model, wb_from(WB_U8, text + heard, 1, news));
        wb_array *last = wb_slice(logits, 2, news - 1, news, 1); /* (LETTERS, 1, 1) */
        heard = length;
        text[length++] = (char)wb_item(wb_categorical(wb_mul_number(last, 1 / temperature), 0));
        wb_scope_close();
    }
    printf("%s", text);
}

int main(void) {
    wb_scope_open();
    wb_seed(1);
    wb_array *text = read_rhyme();
    wb_layer *model = wb_chain(wb_embedding(LETTERS, 16), wb_recur(wb_lstm_cell(16, UNITS)),
                               wb_dense(UNITS, LETTERS));
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 1e-2), model, .clip_total_norm = 1);
    printf("%lld letters, %lld parameters\n", (long long)wb_count(text),
           (long long)wb_parameter_count(model));
    for (int step = 0; step <= STEPS && !wb_failed(); step++) {
        wb_scope_open();
        wb_batch batch = pieces(text);
        wb_array *l = wb_train_step(loss, model, &batch, NULL, adam);
        if (step % STEPS == 0) printf("step %d: loss %.1f\n", step, wb_item(l));
        wb_scope_close();
    }
    say(model, "This is the dog", 0.5);
    wb_free(adam), wb_free(model);
    wb_scope_close();
    return wb_report("18_lstm_text");
}
