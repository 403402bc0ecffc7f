/* Pickles of the protocols 0 to 5, as far as PyTorch's files need them: Lib/pickletools.py of
 * CPython lists the operations.
 *
 * Values lie on a stack; a mark, which is NULL there, begins the items of a list or dictionary.
 * The memo keeps values by number, so that one may be used again, also inside itself: that is
 * found at the end, and refused. While a container grows, `number` is the room that it has. */
#include "formats/pickle.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef struct machine {
    const wb_pickle *p;
    int64_t at; /* of the next byte */
    wb_record **stack;
    int64_t depth, capacity;
    wb_record **memo;
    int64_t memo_count, memo_capacity;
    wb_record **all; /* containers that grow */
    int64_t all_count, all_capacity;
    bool failed, is_done;
    bool is_full; /* the arena has no more memory, or the machine */
} machine;

void *wb_pickle_fault(const wb_pickle *pickle, int64_t at, const char *format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    (void)wb_file_fault(pickle->file, pickle->offset + at, "%s", text);
    return NULL;
}

#define FAIL(m, ...) ((m)->failed = true, (void)wb_pickle_fault((m)->p, (m)->at, __VA_ARGS__))

/* ---- bytes ---- */

static const unsigned char *take(machine *m, int64_t count) {
    if (m->failed || count < 0 || count > m->p->size_bytes - m->at) {
        if (!m->failed) FAIL(m, "the pickle is cut short");
        return NULL;
    }
    m->at += count;
    return m->p->bytes + m->at - count;
}

static int64_t take_number(machine *m, int size_bytes) {
    const unsigned char *at = take(m, size_bytes);
    uint64_t value = 0;
    for (int i = size_bytes; at && i-- > 0;) value = value << 8 | at[i];
    return (int64_t)value;
}

/* Up to the end of the line, without it. */
static const char *take_line(machine *m, int64_t *length) {
    const unsigned char *from = m->p->bytes + m->at;
    const unsigned char *end =
        m->failed ? NULL : memchr(from, '\n', (size_t)(m->p->size_bytes - m->at));
    if (!end) {
        if (!m->failed) FAIL(m, "a line of the pickle has no end");
        return NULL;
    }
    *length = end - from;
    m->at += *length + 1;
    return (const char *)from;
}

/* ---- values ---- */

static wb_record *made(machine *m, wb_record_kind kind) {
    if (m->failed) return NULL;
    wb_record *r = wb_record_new(&m->p->file->arena, kind);
    if (!r)
        m->failed = m->is_full = true;
    else
        r->offset = m->p->offset + m->at;
    return r;
}

static void push(machine *m, wb_record *value) {
    if (m->failed) return;
    if (!WB_GROW(m->stack, m->depth, m->capacity))
        m->failed = true;
    else
        m->stack[m->depth++] = value;
}

static wb_record *pop(machine *m) {
    if (m->failed) return NULL;
    if (m->depth > 0 && m->stack[m->depth - 1]) return m->stack[--m->depth];
    FAIL(m, "a value is missing on the pickle's stack");
    return NULL;
}

static wb_record *top(machine *m) {
    wb_record *value = pop(m);
    if (value) m->depth++;
    return value;
}

static char *text_of(machine *m, const void *bytes, int64_t length) {
    if (m->failed || !bytes) return NULL;
    if (memchr(bytes, 0, (size_t)length)) {
        FAIL(m, "a text has a zero byte");
        return NULL;
    }
    char *text = wb_arena_text(&m->p->file->arena, bytes, (size_t)length);
    if (!text) m->failed = m->is_full = true;
    return text;
}

static void push_text(machine *m, int64_t length) {
    const char *text = text_of(m, take(m, length), length);
    wb_record *r = text ? made(m, WB_RECORD_TEXT) : NULL;
    if (r) r->text = text;
    push(m, r);
}

static void push_number(machine *m, wb_record value) {
    wb_record *r = made(m, value.kind);
    if (r) value.offset = r->offset, *r = value;
    push(m, r);
}

static void push_integer(machine *m, int64_t value) {
    push_number(m, (wb_record){.kind = WB_RECORD_INTEGER, .integer = value});
}

static void push_bool(machine *m, int value) {
    push_number(m, (wb_record){.kind = WB_RECORD_BOOL, .boolean = value});
}

static void push_real(machine *m, double value) {
    push_number(m, (wb_record){.kind = WB_RECORD_REAL, .real = value});
}

/* Big-endian, as no other number. */
static void push_double(machine *m, int unused) {
    (void)unused;
    const unsigned char *at = take(m, 8);
    uint64_t bits = 0;
    double value;
    for (int i = 0; at && i < 8; i++) bits = bits << 8 | at[i];
    memcpy(&value, &bits, sizeof value);
    push_real(m, value);
}

/* Two's complement, of any length; what i64 cannot hold becomes a real number. */
static void push_long(machine *m, int64_t length) {
    const unsigned char *at = take(m, length);
    if (!at) return;
    const bool is_negative = length > 0 && at[length - 1] & 0x80;
    uint64_t value = is_negative ? UINT64_MAX : 0;
    bool fits = true;
    double real = 0;
    for (int64_t i = length; i-- > 0;) {
        real = real * 256 + (is_negative ? at[i] - 255 : at[i]);
        if (i < 8)
            value = value << 8 | at[i];
        else
            fits = fits && at[i] == (is_negative ? 0xFF : 0);
    }
    if (is_negative) real -= 1;
    fits = fits && is_negative == ((int64_t)value < 0);
    if (fits)
        push_integer(m, (int64_t)value);
    else
        push_real(m, real);
}

/* "12", "12L", "01" and "00", which are true and false. */
static void push_decimal(machine *m, int is_real) {
    int64_t length = 0;
    char text[64];
    const char *line = take_line(m, &length);
    if (!line) return;
    if (!is_real && length == 2 && line[0] == '0' && (line[1] == '0' || line[1] == '1')) {
        push_bool(m, line[1] == '1');
        return;
    }
    if (!is_real && length > 0 && line[length - 1] == 'L') length--;
    const bool fits = length > 0 && length < (int64_t)sizeof text;
    char *end = text;
    if (fits) memcpy(text, line, (size_t)length);
    text[fits ? length : 0] = 0;
    errno = 0;
    const double real = strtod(text, &end);
    const bool is_number = fits && end == text + length;
    errno = 0;
    const long long whole = strtoll(text, &end, 10);
    const bool is_whole = fits && end == text + length;
    if (!(is_real ? is_number : is_whole))
        FAIL(m, is_real ? "a number is expected" : "a whole number is expected");
    else if (is_real || errno == ERANGE)
        push_real(m, real);
    else
        push_integer(m, whole);
}

static void push_global(machine *m, const char *module, int64_t module_length, const char *name,
                        int64_t name_length) {
    char both[200];
    if (m->failed || !module || !name) return;
    const int used = snprintf(both, sizeof both, "%.*s.%.*s", (int)module_length, module,
                              (int)name_length, name);
    if (used >= (int)sizeof both) {
        FAIL(m, "the name of a function or class is too long");
        return;
    }
    wb_record *r = made(m, WB_RECORD_OPAQUE);
    if (r) r->type = text_of(m, both, used), r->text = "";
    push(m, r);
}

static void push_named_global(machine *m, int unused) {
    (void)unused;
    int64_t module_length = 0, name_length = 0;
    const char *module = take_line(m, &module_length), *name = take_line(m, &name_length);
    if (module_length < 100 && name_length < 100)
        push_global(m, module, module_length, name, name_length);
    else if (!m->failed)
        FAIL(m, "the name of a function or class is too long");
}

static void push_stacked_global(machine *m, int unused) {
    (void)unused;
    const wb_record *name = pop(m), *module = pop(m);
    if (m->failed) return;
    if (name->kind != WB_RECORD_TEXT || module->kind != WB_RECORD_TEXT ||
        strlen(name->text) >= 100 || strlen(module->text) >= 100)
        FAIL(m, "the name of a function or class must be two short texts");
    else
        push_global(m, module->text, (int64_t)strlen(module->text), name->text,
                    (int64_t)strlen(name->text));
}

/* ---- containers ---- */

static wb_record *container(machine *m, wb_record_kind kind) {
    wb_record *r = made(m, kind);
    if (r && !WB_GROW(m->all, m->all_count, m->all_capacity)) m->failed = true;
    if (m->failed) return NULL;
    return m->all[m->all_count++] = r;
}

/* Doubles the room. */
static bool reserve(machine *m, wb_record *r) {
    enum { LEAST = 4 };
    wb_arena *arena = &m->p->file->arena;
    if (r->count < r->number) return true;
    const int64_t room = r->number ? 2 * r->number : LEAST;
    const bool has_names = r->kind == WB_RECORD_MAP;
    wb_record **children = wb_arena_list(arena, room, sizeof *children);
    const char **names = has_names ? wb_arena_list(arena, room, sizeof *names) : NULL;
    if (!children || (has_names && !names)) {
        m->failed = m->is_full = true;
        return false;
    }
    if (r->count) memcpy(children, r->children, sizeof *children * (size_t)r->count);
    if (r->count && has_names) memcpy(names, r->names, sizeof *names * (size_t)r->count);
    r->children = children, r->names = names, r->number = room;
    return true;
}

static const char *key_of(machine *m, const wb_record *key) {
    char text[32];
    if (key->kind == WB_RECORD_TEXT) return key->text;
    if (key->kind != WB_RECORD_INTEGER) {
        FAIL(m, "the key of a dictionary must be a text or a whole number, but is %s",
             wb_record_noun(key));
        return NULL;
    }
    const int length = snprintf(text, sizeof text, "%lld", (long long)key->integer);
    return text_of(m, text, length);
}

static void append(machine *m, wb_record *to, wb_record *value, const char *name) {
    if (m->failed || !reserve(m, to)) return;
    if (name) to->names[to->count] = name;
    to->children[to->count++] = value;
}

/* Where the last mark is; -1: there is none. */
static int64_t marked(machine *m) {
    int64_t at = m->depth;
    while (at > 0 && m->stack[at - 1]) at--;
    if (at == 0 && !m->failed) FAIL(m, "a mark is missing on the pickle's stack");
    return m->failed ? -1 : at;
}

static void add_items(machine *m, wb_record *to, int64_t from) {
    const bool is_map = to->kind == WB_RECORD_MAP;
    if (is_map && (m->depth - from) % 2 != 0) FAIL(m, "a dictionary's last key has no value");
    for (int64_t i = from; i < m->depth && !m->failed; i += 1 + is_map) {
        const char *name = is_map ? key_of(m, m->stack[i]) : NULL;
        append(m, to, m->stack[i + is_map], name);
    }
}

/* A new container of all above the mark, which goes. */
static void collect(machine *m, int kind) {
    const int64_t from = marked(m);
    wb_record *r = from < 0 ? NULL : container(m, (wb_record_kind)kind);
    if (!r) return;
    add_items(m, r, from);
    m->depth = from - 1;
    push(m, r);
}

/* All above the mark goes into the container below it. */
static void extend(machine *m, int kind) {
    const int64_t from = marked(m);
    if (from < 0) return;
    wb_record *to = from >= 2 ? m->stack[from - 2] : NULL;
    if (!to || to->kind != kind || wb_is_global(to)) {
        FAIL(m, kind == WB_RECORD_MAP ? "items need a dictionary" : "items need a list");
        return;
    }
    add_items(m, to, from);
    m->depth = from - 1;
}

/* The last `count` values as a tuple. */
static void tuple(machine *m, int count) {
    wb_record *r = container(m, WB_RECORD_LIST), *values[3] = {NULL};
    for (int i = count; i-- > 0;) values[i] = pop(m);
    for (int i = 0; i < count && !m->failed; i++) append(m, r, values[i], NULL);
    push(m, r);
}

/* ---- the memo ---- */

static void put(machine *m, int64_t number) {
    wb_record *value = top(m);
    if (!value) return;
    if (number < 0 || number > m->p->size_bytes) {
        FAIL(m, "the memo has no place of number %lld", (long long)number);
        return;
    }
    if (!wb_reserve((void **)&m->memo, &m->memo_capacity, sizeof *m->memo, number + 1)) {
        m->failed = true;
        return;
    }
    while (m->memo_count <= number) m->memo[m->memo_count++] = NULL;
    m->memo[number] = value;
}

static void get(machine *m, int64_t number) {
    if (m->failed) return;
    if (number < 0 || number >= m->memo_count || !m->memo[number])
        FAIL(m, "nothing was kept as number %lld of the memo", (long long)number);
    else
        push(m, m->memo[number]);
}

static int64_t line_number(machine *m) {
    int64_t length = 0, value = 0;
    const char *line = take_line(m, &length);
    for (int64_t i = 0; line && i < length; i++) {
        if (line[i] < '0' || line[i] > '9' || value > m->p->size_bytes) {
            FAIL(m, "the memo has no place of number %.*s", (int)(length < 40 ? length : 40), line);
            return -1;
        }
        value = 10 * value + line[i] - '0';
    }
    return value;
}

/* ---- what is called ---- */

/* A dictionary of nothing or, as Python 2 has it, of a list of pairs. */
static wb_record *ordered(machine *m, const wb_record *arguments) {
    wb_record *map = container(m, WB_RECORD_MAP);
    const wb_record *pairs = arguments->count ? arguments->children[0] : NULL;
    const bool is_list = !pairs || (arguments->count == 1 && pairs->kind == WB_RECORD_LIST);
    if (map && !is_list) FAIL(m, "an OrderedDict must be made of a list of pairs");
    for (int64_t i = 0; map && pairs && i < pairs->count && !m->failed; i++) {
        const wb_record *pair = pairs->children[i];
        const bool is_pair = pair->kind == WB_RECORD_LIST && pair->count == 2;
        if (!is_pair) FAIL(m, "an OrderedDict must be made of a list of pairs");
        const char *name = is_pair ? key_of(m, pair->children[0]) : NULL;
        if (name) append(m, map, pair->children[1], name);
    }
    return m->failed ? NULL : map;
}

static void reduce(machine *m, int unused) {
    (void)unused;
    wb_record *arguments = pop(m), *function = pop(m);
    if (m->failed) return;
    if (!wb_is_global(function) || arguments->kind != WB_RECORD_LIST) {
        FAIL(m, "a function and a tuple of arguments are expected");
        return;
    }
    wb_record *value = strcmp(function->type, "collections.OrderedDict") == 0
                           ? ordered(m, arguments)
                           : m->p->call(m->p, function->type, arguments, m->at);
    if (!value) m->failed = true;
    push(m, value);
}

/* The attributes of an object that is read are its items; those of a dictionary, such as the
 * versions of a state_dict's layers, are dropped. */
static void build(machine *m, int unused) {
    (void)unused;
    const wb_record *state = pop(m);
    wb_record *object = top(m);
    if (m->failed || (object->kind == WB_RECORD_MAP && !object->type)) return;
    if (object->kind != WB_RECORD_MAP || state->kind != WB_RECORD_MAP) {
        FAIL(m, "an object's attributes (%s) are not read",
             object->type ? object->type : "of a value");
        return;
    }
    object->type = NULL;
    for (int64_t i = 0; i < state->count; i++)
        append(m, object, state->children[i], state->names[i]);
}

/* An object of a class. */
static void new_object(machine *m, int has_names) {
    if (has_names) (void)pop(m);
    const wb_record *arguments = pop(m), *class_ = pop(m);
    if (m->failed) return;
    const bool is_read = m->p->is_object && wb_is_global(class_) && !has_names &&
                         arguments->kind == WB_RECORD_LIST && !arguments->count &&
                         m->p->is_object(m->p, class_->type);
    wb_record *object = is_read ? container(m, WB_RECORD_MAP) : NULL;
    if (object) object->type = class_->type;
    if (!is_read)
        FAIL(m, "an object of %s is not read; in Python, save its state_dict()",
             wb_is_global(class_) ? class_->type : "a class");
    push(m, object);
}

static void persistent(machine *m, int unused) {
    (void)unused;
    wb_record *key = pop(m);
    wb_record *value = key ? m->p->persistent(m->p, key, m->at) : NULL;
    if (!value) m->failed = true;
    push(m, value);
}

static void set_item(machine *m, int kind) {
    const bool has_key = kind == WB_RECORD_MAP;
    wb_record *value = pop(m), *key = has_key ? pop(m) : NULL, *to = top(m);
    if (m->failed) return;
    if ((int)to->kind != kind) {
        FAIL(m, has_key ? "an item needs a dictionary" : "an item needs a list");
        return;
    }
    append(m, to, value, has_key ? key_of(m, key) : NULL);
}

/* ---- operations ---- */

static void push_none(machine *m, int unused) {
    (void)unused;
    push(m, made(m, WB_RECORD_NULL));
}

/* Of four bytes with a sign, of fewer without. */
static void take_integer(machine *m, int bytes) {
    const int64_t value = take_number(m, bytes);
    push_integer(m, bytes == 4 ? (int32_t)value : value);
}

static void take_long(machine *m, int bytes) { push_long(m, take_number(m, bytes)); }
static void take_text(machine *m, int bytes) { push_text(m, take_number(m, bytes)); }

static void push_container(machine *m, int kind) { push(m, container(m, (wb_record_kind)kind)); }

/* In the memo, by the number that follows in so many bytes; 0: as a line; -1: the next one. */
static void put_by(machine *m, int bytes) {
    put(m, bytes > 0 ? take_number(m, bytes) : bytes == 0 ? line_number(m) : m->memo_count);
}

static void get_by(machine *m, int bytes) {
    get(m, bytes > 0 ? take_number(m, bytes) : line_number(m));
}

static void check_protocol(machine *m, int newest) {
    if (take_number(m, 1) > newest) FAIL(m, "its protocol is newer than %d", newest);
}

/* Such as the length of a frame, which is not needed. */
static void skip(machine *m, int bytes) { (void)take_number(m, bytes); }

static void mark(machine *m, int unused) {
    (void)unused;
    push(m, NULL);
}

static void drop(machine *m, int unused) {
    (void)unused;
    (void)pop(m);
}

static void stop(machine *m, int unused) {
    (void)unused;
    m->is_done = true;
}

/* Their names in Python's pickletools. */
static const struct {
    unsigned char code;
    void (*run)(machine *m, int argument);
    int argument;
} operations[] = {
    {'N', push_none, 0},                   /* NONE */
    {0x88, push_bool, true},               /* NEWTRUE */
    {0x89, push_bool, false},              /* NEWFALSE */
    {'K', take_integer, 1},                /* BININT1 */
    {'M', take_integer, 2},                /* BININT2 */
    {'J', take_integer, 4},                /* BININT */
    {0x8a, take_long, 1},                  /* LONG1 */
    {0x8b, take_long, 4},                  /* LONG4 */
    {'I', push_decimal, false},            /* INT */
    {'L', push_decimal, false},            /* LONG */
    {'F', push_decimal, true},             /* FLOAT */
    {'G', push_double, 0},                 /* BINFLOAT */
    {0x8c, take_text, 1},                  /* SHORT_BINUNICODE */
    {'X', take_text, 4},                   /* BINUNICODE */
    {'U', take_text, 1},                   /* SHORT_BINSTRING, a text of Python 2 */
    {'T', take_text, 4},                   /* BINSTRING */
    {0x8d, take_text, 8},                  /* BINUNICODE8 */
    {'}', push_container, WB_RECORD_MAP},  /* EMPTY_DICT */
    {']', push_container, WB_RECORD_LIST}, /* EMPTY_LIST */
    {')', push_container, WB_RECORD_LIST}, /* EMPTY_TUPLE */
    {'d', collect, WB_RECORD_MAP},         /* DICT */
    {'l', collect, WB_RECORD_LIST},        /* LIST */
    {'t', collect, WB_RECORD_LIST},        /* TUPLE */
    {0x85, tuple, 1},                      /* TUPLE1 */
    {0x86, tuple, 2},                      /* TUPLE2 */
    {0x87, tuple, 3},                      /* TUPLE3 */
    {'u', extend, WB_RECORD_MAP},          /* SETITEMS */
    {'e', extend, WB_RECORD_LIST},         /* APPENDS */
    {'s', set_item, WB_RECORD_MAP},        /* SETITEM */
    {'a', set_item, WB_RECORD_LIST},       /* APPEND */
    {'q', put_by, 1},                      /* BINPUT */
    {'r', put_by, 4},                      /* LONG_BINPUT */
    {'p', put_by, 0},                      /* PUT */
    {0x94, put_by, -1},                    /* MEMOIZE */
    {'h', get_by, 1},                      /* BINGET */
    {'j', get_by, 4},                      /* LONG_BINGET */
    {'g', get_by, 0},                      /* GET */
    {'(', mark, 0},                        /* MARK */
    {'0', drop, 0},                        /* POP */
    {'c', push_named_global, 0},           /* GLOBAL */
    {0x93, push_stacked_global, 0},        /* STACK_GLOBAL */
    {'R', reduce, 0},                      /* REDUCE */
    {'b', build, 0},                       /* BUILD */
    {'Q', persistent, 0},                  /* BINPERSID */
    {0x81, new_object, false},             /* NEWOBJ */
    {0x92, new_object, true},              /* NEWOBJ_EX */
    {0x80, check_protocol, 5},             /* PROTO */
    {0x95, skip, 8},                       /* FRAME */
    {'.', stop, 0},                        /* STOP */
};

static void step(machine *m) {
    const unsigned char *code = take(m, 1);
    const size_t count = sizeof operations / sizeof *operations;
    size_t i = 0;
    if (!code) return;
    while (i < count && operations[i].code != *code) i++;
    if (i < count)
        operations[i].run(m, operations[i].argument);
    else
        FAIL(m, "operation %#x of a pickle is not supported: it makes more than plain values",
             *code);
}

/* ---- cycles and depth ---- */

typedef struct visit {
    wb_record *record;
    int64_t next;
} visit;

/* Each container below the root, and how deep it is; one that contains itself is refused. `number`
 * is -1 while a record is open, and its depth plus 1 afterwards. */
static bool measure(machine *m, wb_record *root) {
    visit *stack = wb_alloc(sizeof *stack * (WB_RECORD_DEPTH + 1));
    int64_t depth = 1;
    if (!stack) return false;
    stack[0] = (visit){root, 0};
    root->number = -1;
    while (depth > 0 && !m->failed) {
        visit *v = &stack[depth - 1];
        if (v->next == v->record->count) {
            v->record->number = v->record->depth + 1;
            depth--;
            if (depth > 0 && stack[depth - 1].record->depth <= v->record->depth)
                stack[depth - 1].record->depth = v->record->depth + 1;
            continue;
        }
        wb_record *child = v->record->children[v->next++];
        if (child->number < 0)
            FAIL(m, "a value contains itself");
        else if (child->number > 0 && v->record->depth < child->number)
            v->record->depth = (int32_t)child->number;
        else if (child->number == 0 && depth < WB_RECORD_DEPTH)
            child->number = -1, stack[depth++] = (visit){child, 0};
        if (!m->failed && (child->number == 0 || v->record->depth >= WB_RECORD_DEPTH))
            FAIL(m, "values are nested deeper than %d", WB_RECORD_DEPTH);
    }
    wb_release(stack);
    return !m->failed;
}

wb_record *wb_pickle_read(const wb_pickle *pickle) {
    machine m = {.p = pickle};
    while (!m.failed && !m.is_done) step(&m);
    wb_record *root = pop(&m);
    for (int64_t i = 0; i < m.all_count; i++) {
        m.all[i]->number = 0;
        if (m.all[i]->kind == WB_RECORD_MAP) m.all[i]->type = NULL;
    }
    if (pickle->end) *pickle->end = m.at;
    if (root && !measure(&m, root)) root = NULL;
    if (root) wb_record_forget_numbers(root);
    wb_release(m.stack);
    wb_release(m.memo);
    wb_release(m.all);
    if (m.is_full && wb_error_status() == WB_ERROR_FORMAT) {
        wb_clear_error();
        (void)wb_pickle_fault(pickle, m.at,
                              "there are more values than a file of this size may have");
    }
    return m.failed ? NULL : root;
}
