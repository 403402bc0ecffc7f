/* PCRE2, opened by its name. Its classes differ from Oniguruma's, for which the expressions of
 * tokenizers are written, and are written out: \s (PCRE2 has U+180E, too), \w (which has marks
 * there) and \h (which is a hexadecimal digit there). */
#include "text/regex.h"

#include <string.h>

#include "base/error.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/text.h"

enum {
    MULTILINE = 0x400, /* ^ and $ at each line, as in Ruby */
    NEVER_BACKSLASH_C = 0x100000,
    UCP = 0x20000,
    UTF = 0x80000,
    NO_UTF_CHECK = 0x40000000,
    NO_MATCH = -1,
    NO_MEMORY = -48,
    NO_MEMORY_TO_COMPILE = 121,
    LEAST_STEPS = 100000, /* of one search: (a+)+$ ends */
    STEPS_OF_A_BYTE = 20,
    MOST_KIBIBYTES = 64 << 10
};

static bool open_library(wb_regex_library *library) {
    static const char *const names[] = {"libpcre2-8.so.0", "libpcre2-8.0.dylib", NULL};
    const wb_library_function functions[] = {
        {"pcre2_compile_8", &library->compile},
        {"pcre2_code_free_8", &library->code_free},
        {"pcre2_match_data_create_8", &library->match_data_create},
        {"pcre2_match_data_free_8", &library->match_data_free},
        {"pcre2_match_8", &library->match},
        {"pcre2_get_ovector_pointer_8", &library->ovector},
        {"pcre2_match_context_create_8", &library->match_context_create},
        {"pcre2_match_context_free_8", &library->match_context_free},
        {"pcre2_set_match_limit_8", &library->set_match_limit},
        {"pcre2_set_heap_limit_8", &library->set_heap_limit},
        {"pcre2_get_error_message_8", &library->error_message},
        {NULL, NULL},
    };
    wb_library pcre2 = {names, "PCRE2", "libpcre2-8-0", functions, NULL};
    return library->compile || wb_library_open(&pcre2, NULL, "its regular expression") == WB_OK;
}

void wb_regex_library_close(wb_regex_library *library) {
    while (library->all) {
        wb_regex *regex = library->all;
        library->all = regex->next;
        library->code_free(regex->code);
        wb_release(regex);
    }
    *library = (wb_regex_library){.all = NULL};
}

/* ---- from Oniguruma's syntax ---- */

static const char *class_of(char letter) {
    switch (letter) {
    case 's':
        return "\\t-\\r\\x{85}\\p{Z}";
    case 'w':
        return "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}";
    case 'h':
        return "0-9a-fA-F";
    default:
        return NULL;
    }
}

/* What the two read differently and no tokenizer needs. */
static const char *foreign(const char *at, size_t left, bool in_class) {
    if (in_class && left >= 2 && at[0] == '&' && at[1] == '&') return "&& in brackets";
    if (in_class && at[0] == '[' && (left < 2 || at[1] != ':')) return "brackets in brackets";
    if (in_class || left < 3 || at[0] != '(' || at[1] != '?') return NULL;
    const size_t flags = strspn(at + 2, "imsx-");
    return memchr(at + 2, 'm', flags) ? "the flag m" : NULL;
}

/* The pattern with those classes written out; a class that is negated within brackets stays. NULL,
 * or what is not translated. */
static const char *translate(wb_text *out, const char *pattern, size_t bytes) {
    bool in_class = false;
    for (size_t i = 0; i < bytes; i++) {
        const char c = pattern[i], next = i + 1 < bytes ? pattern[i + 1] : 0;
        if (c != '\\') {
            const char *why = foreign(pattern + i, bytes - i, in_class);
            if (why) return why;
            if (c == '[') in_class = true;
            if (c == ']') in_class = false;
            wb_text_byte(out, c);
            continue;
        }
        const bool is_negated = next == 'S' || next == 'W' || next == 'H';
        const char *class = class_of(is_negated ? (char)(next - 'A' + 'a') : next);
        i++;
        if (class && !in_class)
            wb_text_add(out, "[%s%s]", is_negated ? "^" : "", class);
        else if (class && !is_negated)
            wb_text_put(out, class);
        else {
            wb_text_byte(out, c);
            if (i < bytes) wb_text_byte(out, next);
        }
    }
    return NULL;
}

static void *compile(const wb_regex_library *library, const char *pattern, size_t bytes) {
    wb_text text = {.data = NULL};
    int error = 0;
    size_t place = 0;
    void *code = NULL;
    char message[160] = "";
    const char *why = translate(&text, pattern, bytes);
    if (!why && wb_text_status(&text) == WB_OK) {
        code = library->compile((const uint8_t *)(text.data ? text.data : ""), text.size,
                                MULTILINE | UCP | UTF | NEVER_BACKSLASH_C, &error, &place, NULL);
        if (!code) (void)library->error_message(error, (uint8_t *)message, sizeof message);
        why = message;
    }
    if (!code && wb_text_status(&text) == WB_OK)
        (void)wb_fail(error == NO_MEMORY_TO_COMPILE ? WB_ERROR_MEMORY : WB_ERROR_FORMAT,
                      "the regular expression \"%.*s\" cannot be used: %s",
                      bytes > 200 ? 200 : (int)bytes, pattern, why);
    wb_text_release(&text);
    return code;
}

wb_regex *wb_regex_new(wb_regex_library *library, const char *pattern, size_t bytes) {
    if (!open_library(library)) return NULL;
    void *code = compile(library, pattern, bytes);
    wb_regex *regex = code ? wb_alloc(sizeof *regex) : NULL;
    if (!regex) {
        if (code) library->code_free(code);
        return NULL;
    }
    *regex = (wb_regex){.library = library, .code = code, .next = library->all};
    return library->all = regex;
}

/* ---- searches ---- */

static bool prepare(const wb_regex_library *library, wb_match *match) {
    if (match->data && match->context) return true;
    match->library = library;
    if (!match->data) match->data = library->match_data_create(1, NULL);
    if (!match->context) match->context = library->match_context_create(NULL);
    if (match->data && match->context) {
        (void)library->set_heap_limit(match->context, MOST_KIBIBYTES);
        return true;
    }
    (void)wb_fail(WB_ERROR_MEMORY, "there is no memory for a regular expression");
    return false;
}

static uint32_t limit_of(size_t bytes) {
    const size_t most = (UINT32_MAX - LEAST_STEPS) / STEPS_OF_A_BYTE;
    return LEAST_STEPS + STEPS_OF_A_BYTE * (uint32_t)(bytes < most ? bytes : most);
}

bool wb_regex_find(const wb_regex *regex, wb_match *match, const char *text, size_t bytes,
                   size_t at, int64_t *begin, int64_t *end) {
    const wb_regex_library *library = regex->library;
    *end = -1;
    if (!prepare(library, match)) return false;
    (void)library->set_match_limit(match->context, limit_of(bytes));
    const int found = library->match(regex->code, (const uint8_t *)text, bytes, at, NO_UTF_CHECK,
                                     match->data, match->context);
    if (found >= 0) {
        const size_t *places = library->ovector(match->data);
        /* \K in a lookahead can make it begin behind its end, and before `at` */
        if (places[0] >= at && places[1] >= places[0] && places[1] <= bytes) {
            *begin = (int64_t)places[0], *end = (int64_t)places[1];
            return true;
        }
    }
    if (found == NO_MATCH) return *end = 0, false;
    char why[160] = "it moves its own beginning by \\K";
    if (found < 0) (void)library->error_message(found, (uint8_t *)why, sizeof why);
    (void)wb_fail(found == NO_MEMORY ? WB_ERROR_MEMORY : WB_ERROR_FORMAT,
                  "a regular expression of the tokenizer was given up: %s", why);
    return false;
}

void wb_match_release(wb_match *match) {
    if (match->data) match->library->match_data_free(match->data);
    if (match->context) match->library->match_context_free(match->context);
    *match = (wb_match){.data = NULL};
}
