/* Cuts functions.txt into blocks, one function each, and puts those in front of a text that it
 * names, directly or through others. Each is inside #ifndef, so that texts can be compiled
 * together. */
#include "program/functions.h"

#include <pthread.h>
#include <string.h>

#include <src/program/functions.txt.h>

enum { MOST_FUNCTIONS = 128 };

/* A block of functions.txt: what it defines, and which others it names. */
typedef struct function {
    const char *name, *text;
    size_t name_size, text_size;
    bool is_macro;
    uint64_t names[MOST_FUNCTIONS / 64]; /* bit k: function k is named */
} function;

static function functions[MOST_FUNCTIONS];
static int function_count;

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static const char *end_of_word(const char *at, const char *end) {
    while (at < end && is_letter(*at)) at++;
    return at;
}

static int function_named(const char *name, size_t size) {
    for (int i = 0; i < function_count; i++)
        if (functions[i].name_size == size && memcmp(functions[i].name, name, size) == 0) return i;
    return -1;
}

/* Marks the functions that a text names. */
static void mark_named(const char *at, const char *end, uint64_t *names) {
    while (at < end) {
        const char *word = at;
        at = end_of_word(at, end);
        if (at == word) {
            at++;
            continue;
        }
        const int i = function_named(word, (size_t)(at - word));
        if (i >= 0) names[i / 64] |= 1ull << i % 64;
    }
}

static const char *after_comment(const char *at, const char *end) {
    if (at + 1 >= end || at[0] != '/' || at[1] != '*') return at;
    const char *close = strstr(at, "*/\n");
    return close && close + 3 < end ? close + 3 : end;
}

/* The word after "#define ", else the word before the first parenthesis. */
static function read_block(const char *at, const char *end) {
    static const char define[] = "#define ";
    at = after_comment(at, end);
    function f = {.text = at, .text_size = (size_t)(end - at)};
    if (f.text_size == 0) return f;
    f.is_macro = strncmp(at, define, sizeof define - 1) == 0;
    const char *word_end;
    if (f.is_macro) {
        f.name = at + sizeof define - 1;
        word_end = end_of_word(f.name, end);
    } else {
        word_end = memchr(at, '(', f.text_size);
        for (f.name = word_end; f.name > at && is_letter(f.name[-1]);) f.name--;
    }
    f.name_size = (size_t)(word_end - f.name);
    return f;
}

static void read_functions(void) {
    const char *at = functions_text;
    while (at && *at && function_count < MOST_FUNCTIONS) {
        const char *end = strstr(at, "\n\n");
        const function f = read_block(at, end ? end : functions_text + sizeof functions_text - 2);
        if (f.text_size) functions[function_count++] = f;
        at = end ? end + 2 : NULL;
    }
    for (int i = 0; i < function_count; i++)
        mark_named(functions[i].text, functions[i].text + functions[i].text_size,
                   functions[i].names);
}

static void add_function(wb_text *text, const function *f) {
    const int name_size = (int)f->name_size, size = (int)f->text_size;
    wb_text_add(text, "#ifndef %.*s\n", name_size, f->name);
    if (!f->is_macro)
        wb_text_add(text, "#define %.*s %.*s\n", name_size, f->name, name_size, f->name);
    wb_text_add(text, "%.*s\n#endif\n", size, f->text);
}

void wb_functions_add(wb_text *text, const char *body) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, read_functions);
    uint64_t names[MOST_FUNCTIONS / 64] = {0};
    mark_named(body, body + strlen(body), names);
    for (int i = function_count - 1; i >= 0; i--) /* each names only earlier ones */
        if (names[i / 64] >> i % 64 & 1)
            for (size_t k = 0; k < sizeof names / sizeof *names; k++)
                names[k] |= functions[i].names[k];
    for (int i = 0; i < function_count; i++)
        if (names[i / 64] >> i % 64 & 1) add_function(text, &functions[i]);
}
