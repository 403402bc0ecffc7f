/* Checks that a dialect can express a program, and collects what its text needs: the layout, late
 * words, sizes and strides. The loops are printed by walk.c, reduction.c and expression.c. */
#include "program/render.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/functions.h"
#include "program/printer.h"

static bool is_power_of_two(int32_t x) { return x > 0 && (x & (x - 1)) == 0; }

wb_status wb_check_dialect(const wb_dialect *dialect) {
    enum { LEAST = 16, MOST = 256, MOST_OF_LONG_ROWS = 1024 };
    const int32_t group = dialect->group, least = dialect->is_serial ? 1 : LEAST;
    const int32_t warp = dialect->warp;
    if (group < least || group > MOST || !is_power_of_two(group))
        return wb_fail(WB_ERROR_ARGUMENT,
                       "%s: groups of %d items, expected a power of two from %d to %d",
                       dialect->name, group, least, MOST);
    const int32_t most = dialect->most_group;
    if (most != 0 && (most < group || most > MOST_OF_LONG_ROWS || !is_power_of_two(most)))
        return wb_fail(WB_ERROR_ARGUMENT,
                       "%s: up to %d items in a group, expected 0 or a power of two from %d to %d",
                       dialect->name, most, group, MOST_OF_LONG_ROWS);
    if (warp == 0 || (!dialect->is_serial && warp <= group && is_power_of_two(warp))) return WB_OK;
    return wb_fail(WB_ERROR_ARGUMENT,
                   "%s: warps of %d items, expected 0 or a power of two up to the group's %d",
                   dialect->name, warp, group);
}

wb_status wb_fail_f64(const char *operation, const wb_dialect *dialect) {
    return wb_fail(WB_ERROR_UNSUPPORTED,
                   "%s of f64: %s has no f64 on this device; use f32 (wb_cast), or the CPU",
                   operation, dialect->name);
}

static const char *const code_names[WB_CODE_COUNT] = {
#define WB_UNARY(name, ...)  [WB_CODE_##name] = #name,
#define WB_BINARY(name, ...) [WB_CODE_##name] = #name,
#include <weber/ops.def>
    [WB_CODE_select] = "select",    [WB_CODE_cast] = "cast",       [WB_CODE_load] = "load",
    [WB_CODE_store] = "store",      [WB_CODE_constant] = "number", [WB_CODE_late] = "late number",
    [WB_CODE_iota] = "iota",        [WB_CODE_uniform] = "uniform", [WB_CODE_normal] = "normal",
    [WB_CODE_sum] = "sum",          [WB_CODE_max_reduce] = "max",  [WB_CODE_spread] = "expand",
    [WB_CODE_side_sum] = "side sum"};

/* The instruction that computes in f64, else one that moves f64; NULL: there is none. */
static const char *f64_user(const wb_program *program) {
    const char *mover = NULL;
    for (int i = 0; i < program->ninstructions; i++) {
        const wb_instruction *n = &program->instructions[i];
        const bool is_f64 = n->type == WB_R_F64 || (n->code <= WB_CODE_cast && n->from == WB_R_F64);
        if (is_f64 && n->code <= WB_CODE_cast) return code_names[n->code];
        if (is_f64) mover = code_names[n->code];
    }
    for (int a = 0; a < program->naccesses && !mover; a++)
        if (program->accesses[a].argument != WB_NO_VALUE && program->accesses[a].dtype == WB_F64)
            mover = "load";
    return mover;
}

static wb_status check(const wb_program *program, const wb_dialect *dialect) {
    if (wb_check_dialect(dialect) != WB_OK) return WB_ERROR_ARGUMENT;
    const char *user = dialect->has_f64 ? NULL : f64_user(program);
    return user ? wb_fail_f64(user, dialect) : WB_OK;
}

/* ---- late words ---- */

static void use_late(wb_printer *p, int late) {
    for (int64_t i = 0; i < p->late_count; i++)
        if (p->late[i] == late) return;
    if (WB_GROW(p->late, p->late_count, p->late_capacity))
        p->late[p->late_count++] = (uint16_t)late;
    else
        p->failed = true;
}

int wb_late_word(const wb_printer *p, int late) {
    int at = 0;
    while (at < p->late_count && p->late[at] != late) at++;
    return p->buffers + at;
}

static bool is_random(const wb_instruction *i) {
    return i->code == WB_CODE_uniform || i->code == WB_CODE_normal;
}

static void collect_late(wb_printer *p) {
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        const wb_instruction *instruction = wb_instruction_at(p, i);
        if (instruction->code == WB_CODE_late) use_late(p, instruction->index);
        if (!is_random(instruction)) continue;
        use_late(p, (int)instruction->constant);
        use_late(p, (int)instruction->constant + 1);
    }
}

/* ---- what is the same everywhere ---- */

static bool is_still(const wb_printer *p, const wb_instruction *i) {
    const wb_layout *l = &p->layout;
    if (i->row || i->code == WB_CODE_store || i->code == WB_CODE_spread || wb_is_reduction(i))
        return false;
    if (i->code != WB_CODE_load && i->code != WB_CODE_iota && !is_random(i)) return true;
    const wb_access *access = &l->program.accesses[i->index];
    return !wb_access_varies(l, access, false) && !wb_access_varies(l, access, true);
}

static void find_uniform(wb_printer *p) {
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        const wb_instruction *instruction = wb_instruction_at(p, i);
        p->is_uniform[i] = is_still(p, instruction);
        for (int k = 0; k < 3; k++)
            if (instruction->in[k] != WB_NO_VALUE && !p->is_uniform[instruction->in[k]])
                p->is_uniform[i] = false;
    }
}

/* ---- numbers ---- */

__attribute__((format(printf, 4, 5))) static void add_number(wb_printer *p, bool is_place,
                                                             int64_t value, const char *format,
                                                             ...) {
    if (!WB_GROW(p->numbers, p->number_count, p->number_capacity)) {
        p->failed = true;
        return;
    }
    wb_number_word *number = &p->numbers[p->number_count++];
    number->value = value, number->is_place = is_place;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(number->name, sizeof number->name, format, arguments);
    va_end(arguments);
}

/* Offsets, and strides other than 0 and 1: those are part of the text. */
static void add_access_numbers(wb_printer *p) {
    static const uint8_t sizes[WB_DTYPE_COUNT] = {
#define X(NAME, name, bytes, type) [WB_##NAME] = bytes,
        WB_DTYPE_LIST(X)
#undef X
    };
    const wb_layout *l = &p->layout;
    for (int a = 0; a < l->program.naccesses; a++) {
        const wb_access *access = &l->program.accesses[a];
        const bool is_memory = access->argument != WB_NO_VALUE;
        add_number(p, !is_memory,
                   is_memory ? access->offset * sizes[access->dtype] : access->offset, "o%d", a);
        for (int d = 0; d < l->program.ndim && !l->is_linear[a]; d++)
            if (access->strides[d] != 0 && access->strides[d] != 1)
                add_number(p, true, access->strides[d], "s%d_%d", a, d);
    }
}

/* Sizes by which positions are found: of all dimensions but the last of a kind. */
static void add_sizes(wb_printer *p) {
    const wb_layout *l = &p->layout;
    for (int d = 0; d < l->program.ndim; d++) {
        const bool is_column = wb_is_column(l, d);
        const uint32_t kind = is_column ? l->column_dims : ~l->column_dims;
        const uint32_t behind = kind & ((1u << l->program.ndim) - 1) & ~((2u << d) - 1);
        const bool of_tile = l->walk == WB_WALK_TILES && d == 0;
        if (of_tile || (behind && (!is_column || l->decodes)))
            add_number(p, true, l->program.sizes[d], "n%d", d);
    }
}

/* As late values are: the bits of a double. */
static void add_constants(wb_printer *p) {
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        const wb_instruction *instruction = wb_instruction_at(p, i);
        int64_t bits;
        if (instruction->code != WB_CODE_constant || wb_is_literal(instruction)) continue;
        memcpy(&bits, &instruction->constant, sizeof bits);
        add_number(p, false, bits, "u%d", i);
    }
}

static void add_numbers(wb_printer *p) {
    const wb_layout *l = &p->layout;
    add_constants(p);
    add_access_numbers(p);
    add_sizes(p);
    add_number(p, true, l->columns, "columns");
    if (l->is_map || l->is_split) add_number(p, true, l->chunk, "chunk");
    if (wb_is_guarded(l) || l->is_split) add_number(p, true, l->rows, "rows");
    if (l->walk == WB_WALK_TILES)
        add_number(p, true, (l->program.sizes[0] + WB_TILE_ROWS - 1) / WB_TILE_ROWS, "tiles");
    if (l->is_split) {
        add_number(p, true, l->row_units, "row_units");
        add_number(p, true, l->chunks, "chunks");
        add_number(p, false, l->rows * l->chunks * 8, "part");
    }
    if (!p->dialect->is_serial || l->is_map) return;
    add_number(p, true, l->units, "units");
    add_number(p, true, l->per_item, "per");
}

/* Parameters have room for 1024 bytes everywhere: pointers, and the block. */
static void choose_literals(wb_printer *p) {
    enum { WORDS = 100, PARAMETERS = 120 };
    const int64_t words = p->buffers + p->late_count + p->number_count;
    p->are_literals = words > WORDS || words + p->buffers > PARAMETERS;
}

/* ---- the source ---- */

static int reduction_count(const wb_program *program) {
    int count = 0;
    for (int i = 0; i < program->ninstructions; i++)
        count += wb_is_reduction(&program->instructions[i]);
    return count;
}

static int word_count(const wb_printer *p) {
    const int64_t numbers = p->are_literals ? 0 : p->number_count;
    return (int)(p->buffers + p->late_count + numbers);
}

/* Words of a job are its first group, its buffers and its block; one word in front counts the
 * jobs. */
static int32_t most_jobs(const wb_printer *p, const wb_program *program) {
    const int32_t words = p->dialect->job_bytes / (int32_t)sizeof(int64_t);
    if (!program->is_update || words == 0 || wb_layout_launches(&p->layout) != 1) return 0;
    const int32_t most = (words - 1) / (1 + p->buffers + word_count(p));
    return most > 1 ? most : 0;
}

static void print_kernels(wb_printer *p, int launches) {
    bool *needed = wb_alloc((size_t)p->layout.program.ninstructions * sizeof *needed + 1);
    if (!needed) {
        p->failed = true;
        return;
    }
    wb_print(p, "WB_WORDS(" WB_NAME_BLANK "_words, %d)\n", word_count(p));
    if (p->most_jobs)
        wb_print(p, "WB_JOBS(" WB_NAME_BLANK "_jobs, " WB_NAME_BLANK "_words, %d, %d)\n",
                 p->buffers, p->most_jobs);
    for (int launch = 0; launch < launches; launch++) wb_print_kernel(p, launch, needed);
    wb_release(needed);
}

/* The functions, then the kernels that use them, named by the hash of all of it. */
static char *finish_text(wb_printer *p, uint64_t *hash) {
    wb_text whole = {.data = NULL};
    char name[sizeof WB_NAME_BLANK];
    if (p->text.data && !p->text.failed) {
        wb_functions_add(&whole, p->text.data);
        wb_text_add(&whole, "%s", p->text.data);
    }
    if (p->failed || p->text.failed || whole.failed || !whole.data) {
        wb_text_release(&whole);
        return NULL;
    }
    *hash = wb_text_hash(0, whole.data);
    (void)snprintf(name, sizeof name, "k%016llx", (unsigned long long)*hash);
    for (char *at = whole.data; (at = strstr(at, WB_NAME_BLANK));)
        memcpy(at, name, sizeof name - 1);
    return whole.data;
}

static bool fill_lists(wb_source *s, const wb_printer *p) {
    s->word_count = word_count(p);
    s->words = wb_alloc(((size_t)s->word_count + 1) * sizeof *s->words);
    s->late_count = (int32_t)p->late_count;
    s->late = wb_alloc(((size_t)p->late_count + 1) * sizeof *s->late);
    if (!s->words || !s->late) return false;
    s->first_offset = 0;
    s->first_late = p->buffers;
    for (int64_t i = 0; i < p->late_count; i++) s->late[i] = p->late[i];
    for (int i = p->buffers + s->late_count, k = 0; i < s->word_count; i++, k++)
        s->words[i] = p->numbers[k].value;
    return true;
}

static bool fill(wb_source *s, wb_printer *p) {
    const wb_layout *l = &p->layout;
    uint64_t hash;
    s->launch_count = wb_layout_launches(l);
    s->buffer_count = p->buffers;
    s->group = l->group;
    s->most_jobs = p->most_jobs;
    if (l->is_split)
        s->scratch_bytes = wb_bytes(l->rows * l->chunks * 8 * reduction_count(&l->program));
    print_kernels(p, s->launch_count);
    s->text = finish_text(p, &hash);
    if (!s->text || !fill_lists(s, p)) return false;
    s->key = wb_text_hash(wb_text_hash(0, p->dialect->prelude ? p->dialect->prelude : ""), s->text);
    for (int i = 0; i < s->launch_count; i++) {
        (void)snprintf(s->launches[i].entry, sizeof s->launches[i].entry, "k%016llx_%d",
                       (unsigned long long)hash, i);
        s->launches[i].groups =
            wb_layout_groups(l, p->dialect, l->is_split && i == l->program.phases);
    }
    return true;
}

static bool prepare(wb_printer *p, const wb_program *program) {
    p->is_uniform = wb_alloc((size_t)program->ninstructions * sizeof *p->is_uniform + 1);
    p->is_loaded = wb_alloc((size_t)program->ninstructions * sizeof *p->is_loaded + 1);
    if (!p->is_uniform || !p->is_loaded || !wb_layout_make(&p->layout, program, p->dialect))
        return false;
    p->buffers = program->narguments + p->layout.is_split;
    find_uniform(p);
    collect_late(p);
    add_numbers(p);
    choose_literals(p);
    p->most_jobs = most_jobs(p, program);
    return !p->failed;
}

wb_source *wb_render(const wb_program *program, const wb_dialect *dialect) {
    if (check(program, dialect) != WB_OK) return NULL;
    wb_printer p = {.dialect = dialect};
    wb_source *source = wb_alloc(sizeof *source);
    if (source && !(prepare(&p, program) && fill(source, &p))) {
        wb_source_release(source);
        source = NULL;
    }
    wb_layout_release(&p.layout);
    wb_text_release(&p.text);
    wb_release(p.numbers);
    wb_release(p.late);
    wb_release(p.is_uniform);
    wb_release(p.is_loaded);
    return source;
}

void wb_source_release(wb_source *source) {
    if (!source) return;
    wb_release(source->text);
    wb_release(source->words);
    wb_release(source->late);
    wb_release(source);
}
