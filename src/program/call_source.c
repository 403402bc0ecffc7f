/* Collects the definitions, words, scratch memory and launches of a call, and joins them with the
 * fixed pieces into a source. Sizes are words where possible, so that calls of different sizes
 * share one compiled text. */
#include "program/call_source.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/functions.h"
#include "program/render.h"

enum {
    ALIGNMENT = 64,
    MOST_PLACES = 1 << 30 /* with 32 bits: adding a launch's items stays below 2^31 */
};

/* Types by name. Integers are computed without a sign: they wrap. */
static const struct {
    const char *stored, *real;
} types[WB_DTYPE_COUNT] = {
    [WB_F32] = {"f32", "f32"},   [WB_F64] = {"f64", "f64"}, [WB_F16] = {"f16", "f32"},
    [WB_BF16] = {"bf16", "f32"}, [WB_I32] = {"u32", "u32"}, [WB_I64] = {"u64", "u64"},
    [WB_U8] = {"u8", "u32"},     [WB_BOOL] = {"u8", "u32"},
};

wb_dtype wb_call_real(const wb_call *call) {
    return call->dtype == WB_F16 || call->dtype == WB_BF16 ? WB_F32 : call->dtype;
}

int64_t wb_call_real_bytes(const wb_call *call) { return call->dtype == WB_F64 ? 8 : 4; }

static bool is_half(wb_dtype dtype) { return dtype == WB_F16 || dtype == WB_BF16; }

/* An unsigned type of the same size, for copies. */
static wb_dtype bits_of(wb_dtype dtype) {
    const size_t size = wb_dtype_size(dtype);
    return size == 8 ? WB_I64 : size == 4 ? WB_I32 : size == 2 ? dtype : WB_U8;
}

/* ---- lines ---- */

wb_call_source wb_call_source_new(const wb_call *call, const wb_dialect *dialect) {
    wb_call_source s = {.call = call, .dialect = dialect};
    const bool copies = wb_call_row_of(call->kind).uses & WB_CALL_COPIES;
    const wb_dtype dtype = copies ? bits_of(call->dtype) : call->dtype;
    const char *stored = types[dtype].stored, *real = types[dtype].real;
    wb_call_constant(&s, "GROUP", dialect->group);
    wb_call_constant(&s, "SERIAL", dialect->is_serial);
    wb_call_constant(&s, "IN_F32", wb_call_real(call) == WB_F32);
    wb_text_add(&s.lines, "#define stored %s\n#define real %s\n", stored, real);
    wb_text_add(&s.lines, "#define stored_t wb_%s\n#define real_t wb_%s\n", stored, real);
    if (is_half(dtype))
        wb_text_add(
            &s.lines,
            "#define LOAD(p, i) wb_load_%s(p, i)\n#define STORE(p, i, x) wb_store_%s(p, i, x)\n",
            stored, stored);
    else
        wb_text_add(&s.lines, "#define LOAD(p, i) ((real_t)(p)[i])\n"
                              "#define STORE(p, i, x) (p)[i] = (stored_t)(x)\n");
    return s;
}

/* Number of a new word. */
static int32_t add_word(wb_call_source *s, int64_t value) {
    if (s->word_count == WB_CALL_WORDS) {
        s->lines.failed = true;
        return 0;
    }
    s->words[s->word_count] = value;
    return s->word_count++;
}

void wb_call_word(wb_call_source *s, const char *name, int64_t value) {
    wb_text_add(&s->lines, "#define %s ((integer)w.v[%d])\n", name, add_word(s, value));
}

void wb_call_word_at(wb_call_source *s, const char *name, int dimension, int64_t value) {
    wb_text_add(&s->lines, "#define %s_%d ((integer)w.v[%d])\n", name, dimension,
                add_word(s, value));
}

void wb_call_constant(wb_call_source *s, const char *name, int64_t value) {
    wb_text_add(&s->lines, "#define %s %lld\n", name, (long long)value);
}

void wb_call_constant_at(wb_call_source *s, const char *name, int dimension, int64_t value) {
    wb_text_add(&s->lines, "#define %s_%d %lld\n", name, dimension, (long long)value);
}

bool wb_call_keys(wb_call_source *s, const char *what) {
    const wb_dtype dtype = (wb_dtype)s->call->index.index_dtype;
    const char *name = wb_dtype_name(dtype);
    const bool is_long = dtype == WB_F64 || dtype == WB_I64;
    if (dtype == WB_F64 && !s->dialect->has_f64) {
        wb_text_release(&s->lines);
        (void)wb_fail_f64(what, s->dialect);
        return false;
    }
    wb_text_add(&s->lines, "#define KEY %s\n#define key_t wb_%s\n", name, name);
    wb_text_add(&s->lines, "#define ORDER(x) wb_order_%s(x)\n", name);
    wb_text_add(&s->lines, "#define order_t wb_%s\n", is_long ? "i64" : "i32");
    return true;
}

void wb_call_reaches(wb_call_source *s, int64_t count) {
    if (count > MOST_PLACES) s->is_wide = true;
}

void wb_call_scratch(wb_call_source *s, const char *name, int64_t size_bytes) {
    wb_text_add(&s->lines, "#define %s w.v[%d]\n", name, add_word(s, (int64_t)s->scratch_bytes));
    /* also if it has no elements, because the text names it */
    const int64_t more = wb_call_ceil(wb_call_most(size_bytes, 1), ALIGNMENT) * ALIGNMENT;
    s->scratch_bytes = s->scratch_bytes == SIZE_MAX /* out of memory still */
                           ? SIZE_MAX
                           : wb_bytes(wb_plus((int64_t)s->scratch_bytes, more));
}

/* ---- launches ---- */

void wb_call_launch(wb_call_source *s, const char *entry, int64_t groups) {
    wb_launch *launch = &s->launches[s->launch_count++];
    (void)snprintf(launch->entry, sizeof launch->entry, "%s", entry);
    launch->groups = wb_call_most(groups, 1);
}

void wb_call_launch_items(wb_call_source *s, const char *entry, int64_t items, int64_t each) {
    enum { MOST_GROUPS = 16384, SERIAL_GROUPS = 64 };
    const int64_t group = s->dialect->is_serial ? 1 : s->dialect->group;
    const int64_t most = s->dialect->is_serial ? SERIAL_GROUPS : MOST_GROUPS;
    wb_call_launch(s, entry, wb_call_least(wb_call_ceil(items, group * each), most));
}

/* ---- the whole ---- */

static int buffers_of(const wb_call_source *s, int arguments) {
    return arguments + (s->scratch_bytes > 0);
}

/* The parameters of every kernel, and how they are read. */
static void add_parameters(wb_call_source *s, int arguments, wb_text *text) {
    const int buffers = buffers_of(s, arguments);
    wb_text_add(text, "#define PARAMETERS ");
    for (int i = 0; i < buffers; i++) wb_text_add(text, "WB_BUFFER(%d, b%d), ", i, i);
    if (s->uses_status) wb_text_add(text, "WB_STATUS(%d, status), ", buffers);
    wb_text_add(text, "WB_BLOCK(%d, k_words, w)\n", buffers + s->uses_status);
    for (int i = 0; i < arguments; i++)
        wb_text_add(text, "#define ARGUMENT_%d(type) WB_POINTER(type, b%d, w.v[%d])\n", i, i,
                    s->word_count + i);
    if (buffers > arguments)
        wb_text_add(text, "#define SCRATCH(type, at) WB_POINTER(type, b%d, w.v[%d] + (at))\n",
                    arguments, s->word_count + arguments);
    wb_text_add(text, "WB_WORDS(k_words, %d)\n", s->word_count + buffers);
    wb_text_add(text, "#define integer wb_%s\n#define INTEGER %s\n", s->is_wide ? "i64" : "i32",
                s->is_wide ? "i64" : "i32");
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Appends text with `k_` at the beginning of words replaced. */
static void add_renamed(wb_text *to, const char *text, uint64_t hash) {
    while (*text) {
        size_t size = 0;
        while (is_letter(text[size])) size++;
        if (size > 2 && text[0] == 'k' && text[1] == '_')
            wb_text_add(to, "k%016llx_%.*s", (unsigned long long)hash, (int)size - 2, text + 2);
        else if (size > 0)
            wb_text_add(to, "%.*s", (int)size, text);
        text += size;
        for (size = 0; text[size] && !is_letter(text[size]);) size++;
        wb_text_add(to, "%.*s", (int)size, text);
        text += size;
    }
}

static void end_definitions(wb_text *to, const char *text) {
    static const char define[] = "#define ";
    for (const char *line = strstr(text, define); line; line = strstr(line, define)) {
        line += sizeof define - 1;
        int size = 0;
        while (is_letter(line[size])) size++;
        wb_text_add(to, "#undef %.*s\n", size, line);
    }
}

/* The body, renamed by its hash, after the functions that it uses. NULL: out of memory. */
static char *join(const wb_text *body, wb_launch *launches, int32_t launch_count) {
    wb_text text = {.data = NULL};
    if (body->failed || !body->data) return NULL;
    const uint64_t hash = wb_text_hash(0, body->data);
    wb_functions_add(&text, body->data);
    add_renamed(&text, body->data, hash);
    end_definitions(&text, body->data);
    for (int32_t i = 0; i < launch_count; i++) {
        char entry[sizeof launches->entry];
        (void)snprintf(entry, sizeof entry, "k%016llx_%.12s", (unsigned long long)hash,
                       launches[i].entry + 2);
        memcpy(launches[i].entry, entry, sizeof entry);
    }
    if (!text.failed) return text.data;
    wb_text_release(&text);
    return NULL;
}

static char *text_of(wb_call_source *s, int arguments, const char *const *texts) {
    wb_text body = {.data = NULL};
    add_parameters(s, arguments, &body);
    wb_text_add(&body, "%s", s->lines.data ? s->lines.data : "");
    for (int i = 0; texts[i]; i++) wb_text_add(&body, "%s", texts[i]);
    if (s->lines.failed) body.failed = true;
    char *text = join(&body, s->launches, s->launch_count);
    wb_text_release(&body);
    return text;
}

static wb_source *release(wb_source *source, char *text) {
    if (source) wb_release(source->words);
    wb_release(source);
    wb_release(text);
    return NULL;
}

wb_source *wb_call_source_finish(wb_call_source *s, int arguments, const char *const *texts) {
    const int buffers = buffers_of(s, arguments);
    char *text = text_of(s, arguments, texts);
    wb_text_release(&s->lines);
    wb_source *source = text ? wb_alloc(sizeof *source) : NULL;
    if (source) source->words = wb_alloc(sizeof(int64_t) * (size_t)(s->word_count + buffers));
    if (!source || !source->words) return release(source, text);
    memcpy(source->words, s->words, sizeof(int64_t) * (size_t)s->word_count);
    memcpy(source->launches, s->launches, sizeof source->launches);
    source->text = text;
    source->key = wb_text_hash(wb_text_hash(0, s->dialect->prelude), text);
    source->launch_count = s->launch_count;
    source->buffer_count = buffers;
    source->word_count = s->word_count + buffers;
    source->first_offset = source->first_late = s->word_count;
    source->scratch_bytes = s->scratch_bytes;
    source->group = s->dialect->group;
    source->uses_status = s->uses_status;
    return source;
}
