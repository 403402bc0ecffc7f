#!/usr/bin/env python3
"""generate.py DECLARATIONS SYMBOLS OUT: a C function for each public function, which calls it with arguments from calls.h.

DECLARATIONS is weber.h after the preprocessor, SYMBOLS docs/symbols.txt, OUT the C text.  A function that is exported but has
no declaration, a parameter of a type or meaning that is not known here, and a row below that names nothing are errors: so a new
public function is called as well, or somebody says here why it is not.
"""
import re
import sys

# ---- what is not called, and why ----

NOT_CALLED = {
    'wb_log_to': 'the harness listens itself',
    'wb_context_new': 'tests/array/test_context.c does, and frees it',
    'wb_context_enter': 'what the harness has made would be out of reach',
    'wb_share_array': 'its result is the caller\'s, and of no thread',
    'wb_take': 'the harness would not know whose the object is',
    'wb_give': 'what the harness has would be the scope\'s',
    'wb_open_memory': 'takes bytes, which the fuzz targets of the formats make',
    'wb_fail': 'records what the caller says',
    'wb_register_layer': 'takes a class, which stays for ever',
    'wb_register_function': 'takes a function, which stays for ever',
    'wb_layer_new': 'takes a class of the caller',
    'wb_layer_complete': 'of a struct that a forward function of the caller made',
    'wb_rule_make': 'takes a row of the caller',
    'wb_setting': 'only within the step of a rule',
    'wb_setting_rest': 'only within the step of a rule',
    'wb_setting_unbiased': 'only within the step of a rule',
    'wb_setting_is': 'only within the step of a rule',
    'wb_plot_curves_make': 'starts gnuplot',
    'wb_image_folder_open_make': 'tests/images/test_folder.c does',
    'wb_image_folder_count': 'tests/images/test_folder.c does',
    'wb_image_folder_path': 'tests/images/test_folder.c does',
    'wb_image_folder_labels': 'tests/images/test_folder.c does',
    'wb_image_folder_class': 'tests/images/test_folder.c does',
    'wb_image_folder_vocabulary': 'tests/images/test_folder.c does',
    'wb_tokenizer_load': 'the fuzz target tokenizer does',
    'wb_tokenizer_size': 'the fuzz target tokenizer does',
    'wb_tokenizer_id': 'tests/text/test_tokenizer.c does',
    'wb_tokenizer_token': 'tests/text/test_tokenizer.c does',
    'wb_encode_make': 'the fuzz target tokenizer does',
    'wb_decode_make': 'the fuzz target tokenizer does',
    'wb_generate_make': 'takes room for tokens; tests/layers/test_language.c does',
    'wb_distributed_initialize_make': 'joins a group for the life of the process',
}

# ---- what parameters mean that their type does not say: (function, parameter) or parameter -> provider ----

OBJECTS = {  # type -> suffix of the providers calls_SUFFIX and calls_give_SUFFIX
    'wb_array': 'array', 'wb_layer': 'layer', 'wb_loader': 'loader', 'wb_optimiser': 'optimiser',
    'wb_gradients': 'gradients', 'wb_parameters': 'parameters', 'wb_file': 'file', 'wb_csv': 'csv',
    'wb_schedule': 'schedule', 'wb_progress': 'progress', 'wb_text_entry': 'entry',
}
# void * that is an object of Weber's
ANY_OBJECT = {'object', 'objects', 'source', ('wb_gpu', 'x'), ('wb_cpu', 'x'), ('wb_device_of', 'x'), ('wb_to_desc', 'x')}
CONTEXT = {'context', 'user'}  # void * that is handed to functions of the caller

# makers of layers that take no layer over: they look at it, or copy it
BORROW = {'wb_clone', 'wb_share', 'wb_keep_layer', 'wb_map', 'wb_rebuild', 'wb_get_layer', 'wb_chain_at', 'wb_chain_get', 'wb_chain_slice',
          'wb_model_as', 'wb_parameter_tree', 'wb_state_tree', 'wb_load_model', 'wb_load_model_as', 'wb_parse_make', 'wb_averaged'}
# of those, what is not the caller's
BORROWED_RESULT = {'wb_get_layer', 'wb_chain_at', 'wb_chain_get'}
TAKES_LAYER = {('wb_chain_append', 'layer'), ('wb_list_append', 'object')}  # others that take one over

BATCH_RESULT = {'wb_next', 'wb_first', 'wb_batch_end'}  # whose batch is {0} at first

DIMENSION = {'dim', 'dims'}
TEXTS = {  # parameter -> kind of text for calls_text
    'path': 'PATH', 'from': 'PATH', 'to': 'PATH', 'checkpoint': 'PATH',
    'backend': 'BACKEND', 'transport': 'BACKEND', 'part': 'BACKEND',
}
PATHS_IN_MODELS = {'wb_get', 'wb_set', 'wb_get_layer', 'wb_gradients_get', 'wb_gradients_set', 'wb_optimiser_get', 'wb_optimiser_set', 'wb_optimiser_setting',
                   'wb_freeze', 'wb_thaw', 'wb_params_delete', 'wb_adjust_path', 'wb_record_get', 'wb_load_layer', 'wb_path_rule',
                   'wb_scheduled'}

NUMBERS = {'int', 'int64_t', 'unsigned', 'unsigned int', 'uint64_t', 'size_t', 'uint32_t', 'int32_t', 'uint8_t', 'long'}


OBJECT = re.compile(r'calls_(' + '|'.join(OBJECTS.values()) + r'|own_layer|object|own_object)\(')


class Unknown(Exception):
    pass


def words(text):
    return ' '.join(text.split())


def split(text):
    """At commas outside of parentheses."""
    parts, depth, part = [], 0, ''
    for c in text:
        depth += (c in '([{') - (c in ')]}')
        if c == ',' and depth == 0:
            parts.append(part)
            part = ''
        else:
            part += c
    return [words(p) for p in parts + [part] if p.strip()]


def declarator(text):
    """'const int64_t *sizes' -> ('const int64_t *', 'sizes', '')"""
    m = re.match(r'^(.*?)\(\*(\w+)\)\((.*)\)$', text)
    if m:
        return words(m.group(1)) + ' (*)(' + m.group(3) + ')', m.group(2), ''
    m = re.match(r'^(.*?[\s*])(\w+)((?:\[[^\]]*\])*)$', text)
    if not m:
        raise Unknown('cannot be read: ' + text)
    return words(m.group(1)).replace('* const', '*const'), m.group(2), m.group(3)


def begins(header, struct):
    """Whether the struct is a desc, which has defaults."""
    return any(member == 'start_' for _, member, _ in header.structs[struct])


def defaults_of(struct):
    return 'WB_DEFAULTS_' + re.sub('^wb_|_desc$', '', struct)


class Header:
    def __init__(self, text):
        text = text[text.index('WB_DTYPE_COUNT') - 400:]
        self.enums = set(re.findall(r'typedef enum \w* ?\{[^}]*\} (\w+);', text))
        self.structs = {}
        for m in re.finditer(r'typedef struct \w* ?\{(.*?)\} (\w+);', text, re.S):
            self.structs[m.group(2)] = self.members(m.group(1))
        self.callbacks = set(m.group(1) for m in re.finditer(r'typedef [\w *]*?\b(wb_\w+)\([^;]*\);', text))
        self.functions = {}
        for d in re.findall(r'__attribute__\(\(visibility\("default"\)\)\)\s*([^;{]*);', text):
            self.function(words(d))

    @staticmethod
    def members(body):
        list_ = []
        for line in body.split(';'):
            line = words(line)
            if not line:
                continue
            if '(*' in line:
                list_.append(declarator(line))
                continue
            first, *more = split(line)
            type_, name, array = declarator(first)
            list_.append((type_, name, array))
            base = type_.rstrip('* ')
            for m in more:
                stars = m.count('*')
                m = m.lstrip('* ')
                name, _, array = m.partition('[')
                list_.append((base + (' ' + '*' * stars if stars else ''), name.strip(), '[' + array if array else ''))
        return list_

    def function(self, text):
        text = re.sub(r'\s*__attribute__.*$', '', text)
        m = re.match(r'^(.*?)\(?\b(wb_\w+)\)?\s*\((.*)\)$', text)
        if m:
            parameters = [] if m.group(3) == 'void' else [declarator(p) for p in split(m.group(3)) if p != '...']
            self.functions[m.group(2)] = (words(m.group(1)), parameters)
            return
        type_, *names = text.replace(',', ' ').split()  # of a function type: wb_init a, b
        result, parameters = self.of_callback(type_)
        for name in names:
            self.functions[name] = (result, parameters)

    def of_callback(self, type_):
        known = {
            'wb_init': 'wb_array * f(int ndim, const int64_t *sizes, wb_dtype dtype)',
            'wb_init_with': 'wb_array * f(int ndim, const int64_t *sizes, wb_dtype dtype, double gain)',
            'wb_connection': 'wb_array * f(int count, wb_array *const *arrays)',
        }
        if type_ not in known:
            raise Unknown('functions of type ' + type_)
        m = re.match(r'^(.*?) f\((.*)\)$', known[type_])
        return m.group(1), [declarator(p) for p in split(m.group(2))]


class Writer:
    def __init__(self, header):
        self.header = header
        self.used = set()  # rows of the tables above
        self.filled = []   # structs, in the order of their functions
        self.fills = {}
        self.lines = []

    # ---- one value ----

    def text_of(self, where, name):
        if where in PATHS_IN_MODELS and name == 'path':
            self.used.add(where)
            return 'calls_text(c, CALLS_NAME)'
        if name in TEXTS:
            return f'calls_text(c, CALLS_{TEXTS[name]})'
        return 'calls_text(c, CALLS_NAME)'

    def object_of(self, where, base, name, owns):
        if base == 'wb_layer' and owns:
            return 'calls_own_layer(c)'
        return f'calls_{OBJECTS[base]}(c)'

    def value(self, where, type_, name, small, owns):
        """An expression for a parameter or member of a plain type, or None."""
        bare = type_.replace('const ', '').strip()
        h = self.header
        if bare in ('_Bool', 'bool'):
            return 'calls_flag(c)'
        if bare in ('double', 'float'):
            return 'calls_real(c)'
        if bare == 'char':
            return '(char)calls_small(c)'
        if bare in NUMBERS:
            kind = 'calls_dim' if name in DIMENSION else 'calls_small' if small else 'calls_size'
            return f'({bare}){kind}(c)'
        if bare in h.enums or (type_.startswith('wb_') and bare == 'wb_dtype'):
            return f'({bare})calls_choice(c)'
        if bare in ('char *',) and type_.startswith('const'):
            return self.text_of(where, name)
        if bare == 'FILE *':
            return 'calls_stream(c)'
        if bare == 'wb_device *':
            return 'calls_device(c)'
        if bare == 'wb_record *':
            return 'calls_record(c)'
        if bare == 'wb_batch *':
            return f'calls_batch(c, {str(where not in BATCH_RESULT).lower()})'
        m = re.match(r'^(wb_\w+) \*$', bare)
        if m and m.group(1) in OBJECTS:
            return self.object_of(where, m.group(1), name, owns)
        if m and m.group(1) in h.callbacks:
            return f'calls_flag(c) ? {m.group(1)}_stub : NULL'
        if bare == 'void *':
            for key in ((where, name), name):
                if key in ANY_OBJECT:
                    self.used.add(key)
                    return 'calls_own_object(c)' if owns else 'calls_object(c)'
            if name in CONTEXT:
                return 'NULL'
        if '(*)' in type_:
            return f'calls_flag(c) ? {self.stub_of(type_)} : NULL'
        return None

    @staticmethod
    def stub_of(type_):
        stubs = {
            'void (*)(wb_batch *batch, void *user)': 'map_stub',
            'wb_status (*)(const wb_batch_memory *batch, void *user)': 'prepare_stub',
            'void (*)(void *context)': 'release_context_stub',
        }
        if type_ not in stubs:
            raise Unknown('function pointers ' + type_)
        return stubs[type_]

    # ---- structs ----

    def fill(self, name):
        if name in self.fills:
            return
        self.fills[name] = None
        out = []
        owns = name in ('wb_recurrence_desc', 'wb_weight_norm_desc')
        for type_, member, array in self.header.structs[name]:
            if member.endswith('_'):
                continue
            out += self.fill_member(name, type_, member, array, owns)
        self.fills[name] = out
        self.filled.append(name)

    def fill_member(self, struct, type_, member, array, owns):
        bare = type_.replace('const ', '').strip()
        target = f's->{member}'
        if (struct, member) == ('wb_attention_desc', 'weights'):
            return [f'    if (calls_gives(c, CALLS_NUMBER)) {target} = calls_results(c, 1);']
        if (struct, member) in (('wb_distributed_desc', 'devices'), ('wb_loader_desc', 'images')):
            return []
        if bare == 'wb_rule':
            return [f'    if (calls_gives(c, CALLS_OBJECT)) {target} = calls_rule(c);']
        if bare in self.header.structs and not array:
            self.fill(bare)
            begun = f'{target} = ({bare}){{{defaults_of(bare)}.start_ = WB_MADE_}}, ' if begins(self.header, bare) else ''
            return [f'    if (calls_gives(c, {self.kind_of(bare)})) {begun}fill_{bare}(c, &{target});']
        if array:
            count = f'(int)(sizeof {target} / sizeof *{target})'
            if bare in self.header.structs:
                self.fill(bare)
                return [f'    for (int i = 0; i < {count} && calls_goes_on(c, {self.kind_of(bare)}, i); i++) fill_{bare}(c, &{target}[i]);']
            value = self.value(struct, type_, member, False, owns)
            if value is None:
                raise Unknown(f'{struct}.{member}: {type_}{array}')
            loop = f'    for (int i = 0; i < {count} && calls_goes_on(c, CALLS_NUMBER, i); i++)'
            if array.count('[') == 1:
                return [f'{loop} {target}[i] = {value};']
            inner = f'(int)(sizeof *{target} / sizeof **{target})'
            return [f'{loop}', f'        for (int j = 0; j < {inner} && calls_goes_on(c, CALLS_NUMBER, j); j++) {target}[i][j] = {value};']
        value = self.value(struct, type_, member, member in ('threads', 'numobs', 'epochs', 'micro_batches', 'zero', 'ndim'), owns)
        if value is None:
            raise Unknown(f'{struct}.{member}: {type_}')
        kind = ('CALLS_OBJECT' if OBJECT.match(value) else 'CALLS_TEXT' if value.startswith('calls_text')
                else 'CALLS_FUNCTION' if '_stub' in value else 'CALLS_NUMBER')
        return [f'    if (calls_gives(c, {kind})) {target} = {value};']

    def kind_of(self, struct):
        return 'CALLS_OBJECT' if 'CALLS_OBJECT' in ''.join(self.fills[struct]) else 'CALLS_NUMBER'

    # ---- functions ----

    def call(self, name):
        result, parameters = self.header.functions[name]
        makes_layer = result == 'wb_layer *'
        if name in BORROW:
            self.used.add(name)
        pointers = [t for t, n, a in parameters if re.search(r'\*\*$|\*const \*$|^(float|double|int64_t) \*$', t)
                    or t in ('wb_group *', 'wb_memory_holder *') or n in ('numbers', 'data')]
        small = bool(pointers)
        before, arguments, after = [], [], []
        list_count = None
        for i, (type_, parameter, _) in enumerate(parameters):
            owns = (makes_layer and name not in BORROW) or (name, parameter) in TAKES_LAYER
            if (name, parameter) in TAKES_LAYER:
                self.used.add((name, parameter))
            following = parameters[i + 1][0] if i + 1 < len(parameters) else ''
            line, list_count = self.argument(name, type_, parameter, following, small, owns, list_count, after)
            before.append(line)
            arguments.append(parameter + '_')
        call = f'({name})({", ".join(arguments)})'
        return before + ['    calls_ready(c);', self.give(name, result, call)] + after

    LISTS = {  # type of a list -> its element, its provider
        'wb_array *const *': ('wb_array *', 'calls_arrays'), 'wb_array **': ('wb_array *', None),
        'const int64_t *': ('int64_t', 'calls_sizes'), 'const double *': ('double', 'calls_reals'),
        'const char *const *': ('const char *', 'calls_texts'),
    }

    def argument(self, where, type_, name, following, small, owns, list_count, after):
        """The line that declares the argument, and the name of the count that lists after it have."""
        bare = type_.replace('const ', '').strip()
        variable = name + '_'
        h = self.header
        counts = bare in ('int', 'int64_t') and (
            following in ('wb_array *const *', 'wb_layer *const *', 'void *const *', 'const int64_t *', 'const double *',
                          'const char *const *', 'const wb_named *', 'const wb_rule *', 'const wb_schedule_part *')
            or (where, name) in (('wb_scan_make', 'ncarries'), ('wb_splitobs_make', 'count'), ('wb_unstack', 'count')))
        if counts:
            kind = 'calls_rank' if following == 'const int64_t *' else 'calls_length'
            return f'    const {bare} {variable} = ({bare}){kind}(c);', variable
        if type_ == 'wb_array *const *':
            return f'    wb_array *const *{variable} = calls_arrays(c, (int){list_count or 0});', list_count
        if type_ == 'wb_layer *const *':
            return f'    wb_layer *const *{variable} = calls_own_layers(c, (int){list_count});', list_count
        if type_ == 'void *const *':
            return f'    void *const *{variable} = calls_own_objects(c, (int){list_count});', list_count
        if type_ == 'wb_array **' and (where, name) == ('wb_scan_make', 'carries'):
            return f'    wb_array **{variable} = calls_carries(c, (int){list_count});', list_count
        if type_ == 'wb_array **':
            return f'    wb_array **{variable} = calls_results(c, CALLS_MOST_RESULTS);', list_count
        if type_ == 'wb_layer **':
            after.append(f'    if ({variable}) calls_give_layer(c, *{variable});')
            return f'    wb_layer *{name}_result = NULL, **{variable} = calls_flag(c) ? &{name}_result : NULL;', list_count
        if type_ == 'wb_gradients **':
            after.append(f'    if ({variable}) calls_give_gradients(c, *{variable});')
            return f'    wb_gradients *{name}_result = NULL, **{variable} = calls_flag(c) ? &{name}_result : NULL;', list_count
        if type_ == 'const int64_t *':
            kind = 'calls_dims' if name in DIMENSION else 'calls_sizes'
            return f'    const int64_t *{variable} = {kind}(c);', list_count
        if type_ == 'const double *':
            return f'    const double *{variable} = calls_reals(c);', list_count
        if type_ == 'const char *const *':
            return f'    const char *const *{variable} = calls_texts(c);', list_count
        if type_ in ('const void *', 'void *') and name in ('numbers', 'data'):
            return f'    {type_}{variable} = calls_memory(c);', list_count
        if type_ in ('void *', 'double *', 'float *') and name == 'out':
            return f'    {type_}{variable} = calls_room(c);', list_count
        if type_ == 'char *':
            return f'    char *{variable} = calls_room(c);', list_count
        if type_ == 'size_t':
            return f'    const size_t {variable} = calls_room_bytes(c);', list_count
        if type_ == 'int64_t *':
            return f'    int64_t {name}_result = 0, *{variable} = calls_flag(c) ? &{name}_result : NULL;', list_count
        if type_ in ('wb_group *', 'wb_memory_holder *'):
            base = type_[:-2]
            if base == 'wb_group':
                after.append(f'    for (int i = 0; i < CALLS_MOST_RESULTS; i++) calls_give_array(c, {name}_room[i].places);')
            return (f'    {base} {name}_room[CALLS_MOST_RESULTS] = {{0}}, *{variable} = calls_flag(c) ? {name}_room : NULL;', list_count)
        m = re.match(r'^(const )?(wb_\w+) \*$', type_)
        if m and m.group(2) in ('wb_named', 'wb_rule', 'wb_schedule_part'):
            item = f'{name}_room[i] = calls_rule(c)'
            if m.group(2) != 'wb_rule':
                self.fill(m.group(2))
                item = f'fill_{m.group(2)}(c, &{name}_room[i])'
            return (f'    {m.group(2)} {name}_room[CALLS_MOST_LENGTH] = {{0}};\n'
                    f'    const {m.group(2)} *{variable} = calls_flag(c) ? {name}_room : NULL;\n'
                    f'    for (int i = 0; {variable} && i < CALLS_MOST_LENGTH && i < {list_count}; i++) {item};', list_count)
        if m and m.group(2) in ('wb_parameter', 'wb_module', 'wb_properties', 'wb_choice'):
            return f'    {m.group(2)} {name}_room = {{0}}, *{variable} = calls_flag(c) ? &{name}_room : NULL;', list_count
        if m and m.group(2) in ('wb_patience', 'wb_throttle', 'wb_early_stopping', 'wb_plateau', 'wb_standstill'):
            self.fill(m.group(2))
            begun = f'{{{defaults_of(m.group(2))}.start_ = WB_MADE_}}' if begins(h, m.group(2)) else '{0}'
            return (f'    {m.group(2)} {name}_room = {begun}, *{variable} = calls_flag(c) ? &{name}_room : NULL;\n'
                    f'    fill_{m.group(2)}(c, &{name}_room);', list_count)
        if bare in h.structs and type_ == bare:
            if bare == 'wb_rule':
                return f'    const wb_rule {variable} = calls_rule(c);', list_count
            self.fill(bare)
            begun = f'{{{defaults_of(bare)}.start_ = WB_MADE_}}' if begins(h, bare) else '{0}'
            return f'    {bare} {variable} = {begun};\n    fill_{bare}(c, &{variable});', list_count
        value = self.value(where, type_, name, small, owns)
        if value is None:
            raise Unknown(f'{where}: {type_} {name}')
        if '(*)' in type_:
            return f'    {type_.replace("(*)", f"(*{variable})")} = {value};', list_count
        space = '' if type_.endswith('*') else ' '
        return f'    {type_}{space}{variable} = {value};', list_count

    def takes_objects(self, lines):
        text = '\n'.join(lines)
        filled = ''.join(self.fills[name] and '\n'.join(self.fills[name]) for name in re.findall(r'fill_(\w+)', text))
        return bool(OBJECT.search(text) or OBJECT.search(filled) or 'CALLS_OBJECT' in filled
                    or re.search(r'calls_(arrays|carries|own_layers|own_objects|batch)\(', text))

    def give(self, name, result, call):
        bare = result.replace('const ', '').strip()
        m = re.match(r'^(wb_\w+) \*$', bare)
        if m and m.group(1) in OBJECTS:
            if name in BORROWED_RESULT:
                return f'    calls_look_at_layer(c, {call});'
            return f'    calls_give_{OBJECTS[m.group(1)]}(c, {call});'
        if bare == 'wb_record *':
            return f'    calls_give_record(c, {call});'
        if bare == 'wb_rule':
            return f'    calls_give_rule(c, {call});'
        if name == 'wb_read_begin':
            return f'    calls_give_read(c, x_, {call});'
        if name in ('wb_gpu', 'wb_cpu', 'wb_to_make'):
            return f'    calls_give_object(c, {call});'
        if bare == 'wb_evaluation':
            return f'    calls_give_array(c, {call}.confusion);'
        if bare == 'wb_status':
            return f'    calls_give_status(c, {call});'
        return f'    (void){call};'


def main():
    with open(sys.argv[1]) as f:
        header = Header(f.read())
    with open(sys.argv[2]) as f:
        symbols = f.read().split()
    writer = Writer(header)
    faults, calls = [], []
    for name in symbols:
        if name not in header.functions:
            faults.append(f'{name} is exported, but weber.h does not declare it')
        elif name not in NOT_CALLED:
            try:
                calls.append((name, writer.call(name)))
            except Unknown as e:
                faults.append(f'{name}: tests/calls/generate.py does not know {e}')
    for name in header.functions:
        if name not in symbols:
            faults.append(f'{name} is declared, but docs/symbols.txt does not list it')
    rows = set(NOT_CALLED) | BORROW | BORROWED_RESULT
    faults += [f'tests/calls/generate.py names {n}, which there is not' for n in sorted(rows) if n not in symbols]
    faults += [f'tests/calls/generate.py names {n}, which there is not' for n in sorted(map(str, TAKES_LAYER - writer.used))]
    if faults:
        sys.exit('\n'.join(faults))
    with open(sys.argv[3], 'w') as out:
        out.write('/* Written by tests/calls/generate.py. */\n#include "calls/calls.h"\n')
        for name in writer.filled:
            out.write(f'\nstatic void fill_{name}(calls *c, {name} *s) {{\n    (void)c;\n')
            out.write('\n'.join(writer.fills[name]) + '\n}\n')
        for name, lines in calls:
            out.write(f'\nstatic void call_{name}(calls *c) {{\n    (void)c;\n' + '\n'.join(lines) + '\n}\n')
        out.write('\nconst calls_row calls_rows[] = {\n')
        out.writelines(f'    {{"{name}", call_{name}, {str(writer.takes_objects(lines)).lower()}}},\n' for name, lines in calls)
        out.write(f'}};\nconst int calls_count = {len(calls)};\n')


if __name__ == '__main__':
    main()
