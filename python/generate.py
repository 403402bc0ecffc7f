#!/usr/bin/env python3
"""generate.py API.json OUT.c OUT.pyi: the functions of the Python module, from what the headers declare.

Each public function becomes a Python function, is written by hand, or stands in tables.py with the reason why not; a function that is
none of these is an error, so that nothing is forgotten when Weber grows.
"""
import json
import keyword
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "weber"))

import tables  # noqa: E402
import _examples  # noqa: E402
import _words  # noqa: E402

LIMITS = {"WB_MAX_DIMS": 8}
LAYER_HEADERS = {"weber/layers.h", "weber/sequences.h"}
NOT_HEADERS = {"weber/plugin.h", "weber/transport.h", "weber/calls.h"}


class Unknown(Exception):
    """A function that no rule reaches."""


def spell(t):
    """A type of api.json as C, without const."""
    if t["kind"] == "name":
        return t["name"]
    if t["kind"] == "pointer":
        return spell(t["to"]) + " *"
    if t["kind"] == "array":
        return "%s[%s]" % (spell(t["of"]), t["length"])
    return t["kind"]


def python_name(name):
    return name + "_" if keyword.iskeyword(name) else name


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


class Argument:
    """One argument in Python: how it is converted, and what C gets."""

    def __init__(self, name, hint, setup, passed, usual=None, release=None, taken=None):
        """release: what ends it after the call; taken: what ends it if there is no call, since the call takes it over."""
        self.name, self.hint, self.setup, self.passed, self.usual = python_name(name), hint, setup, passed, usual
        self.release, self.taken = release, taken


# What is passed for a C type: conversion, stub's type. {n} is the C variable, {o} the Python object.
PLAIN = {
    "wb_array *": ("wb_array *{n} = py_array({o});", "ArrayLike"),
    "wb_layer *": ("wb_layer *{n} = py_layer({o});", "Layer"),
    "wb_optimiser *": ("wb_optimiser *{n} = py_handle({o}, Optimiser_type);", "Optimiser"),
    "wb_gradients *": ("wb_gradients *{n} = py_handle({o}, Gradients_type);", "Gradients"),
    "wb_schedule *": ("wb_schedule *{n} = py_handle({o}, Schedule_type);", "Schedule"),
    "wb_loader *": ("wb_loader *{n} = py_handle({o}, Loader_type);", "Loader"),
    "wb_device *": ("const wb_device *{n} = py_device({o});", "Device | str"),
    "double": ("const double {n} = py_real({o});", "float"),
    "bool": ("const bool {n} = py_truth({o});", "bool"),
    "int": ("const int {n} = py_int({o});", "int"),
    "int64_t": ("const int64_t {n} = py_integer({o});", "int"),
    "uint64_t": ("const uint64_t {n} = py_unsigned({o});", "int"),
    "char *": ("const char *{n} = py_text({o});", "str"),
    "wb_dtype": ("const wb_dtype {n} = py_dtype({o});", "DTypeLike"),
    "wb_rule": ("const wb_rule {n} = py_rule({o});", "Rule"),
    "wb_activation *": ("wb_activation *{n} = py_activation({o});", "Activation"),
    "wb_connection *": ("wb_connection *{n} = py_connection({o});", "Connection"),
}

# Members of descs: kind of the conversion, stub's type.
MEMBER_KINDS = {
    "wb_array *": ("ARRAY", "ArrayLike"), "wb_layer *": ("LAYER", "Layer"), "double": ("REAL", "float"), "int64_t": ("INT64", "int"),
    "int": ("INT", "int"), "uint64_t": ("UINT64", "int"), "bool": ("BOOL", "bool"), "char *": ("TEXT", "str"), "wb_dtype": ("DTYPE", "DTypeLike"),
    "wb_activation *": ("ACTIVATION", "Activation"), "wb_init *": ("INIT", "Initialiser"), "wb_device *": ("DEVICE", "Device | str"),
    "wb_rule": ("RULE", "Rule"), "unsigned": ("AXES", "int | Sequence[int]"),
}

# What is returned: the call that wraps it, stub's type.
RESULTS = {
    "wb_array *": ("py_give_array(%s)", "Array"), "wb_layer *": ("py_give(Layer_type, %s)", "Layer"),
    "wb_optimiser *": ("py_give(Optimiser_type, %s)", "Optimiser"), "wb_gradients *": ("py_give(Gradients_type, wb_take(%s))", "Gradients"),
    "wb_schedule *": ("py_give(Schedule_type, %s)", "Schedule"), "wb_loader *": ("py_give(Loader_type, %s)", "Loader"),
    "wb_status": ("py_give_status(%s)", "None"), "wb_rule": ("py_give_rule(%%s, %s, args, nargs, kwnames)", "Rule"), "double": ("py_give_object(PyFloat_FromDouble(%s))", "float"),
    "bool": ("py_give_object(PyBool_FromLong(%s))", "bool"), "char *": ("py_give_text(%s)", "str | None"),
    "wb_device *": ("py_give_device(%s)", "Device"), "wb_device * *": ("py_give_devices(%s)", "list[Device]"),
    "char * *": ("py_give_texts(%s)", "list[str]"),
    **{t: ("py_give_object(PyLong_FromLongLong((long long)(%s)))", "int") for t in ("int", "int64_t", "size_t")},
}
OUT_NAMES = {"positions", "images", "labels"}


class Generator:
    def __init__(self, api):
        self.functions = [f for f in api["functions"] if f["header"] not in NOT_HEADERS]
        self.structs = {s["name"]: s for s in api["structs"]}
        self.enums = {e["name"]: e for e in api["enums"] if e["name"]}
        self.operations = {o["name"]: o for o in api["operations"]}
        self.used_enums, self.code, self.rows, self.stubs = {}, [], [], []
        self.without = {n: why for why, names in tables.NOT_FOR_PYTHON.items() for n in names}
        self.makers = {f["name"][:-5] for f in self.functions if f["name"].endswith("_make")}
        self.array_methods = []

    # ---- names, documentation ----

    def name_of(self, f):
        base = f["name"][3:].removesuffix("_make")
        if f["name"] in tables.NAMES:
            return tables.NAMES[f["name"]]
        makes = spell(f["returns"])
        if makes == "wb_rule" or (makes == "wb_layer *" and f["header"] in LAYER_HEADERS):
            return tables.CAPITALS.get(base, "".join(part.capitalize() for part in base.split("_")))
        return python_name(base)

    def doc_of(self, f):
        if f["name"] in tables.DOCS:
            return tables.DOCS[f["name"]]
        operation = self.operations.get(f["operation"] or "")
        doc = operation["doc"] if operation else f["entry"] or f["doc"]
        return _words.documentation(doc or self.same_doc(f), self.name_in_text)

    def name_in_text(self, c):
        """The Python name of a function of C."""
        for f in self.functions:
            if f["name"] in (c, c + "_make"):
                return self.name_of(f)
        return c[3:]

    def same_doc(self, f):
        """The comment of the short form, for a _make without one."""
        short = [g["doc"] for g in self.functions if g["name"] == f["name"].removesuffix("_make")]
        return short[0] if short else ""

    # ---- arguments ----

    def enum_names(self, name):
        """The enum's values as words: WB_AGG_MEAN is "mean"."""
        values = [v["name"] for v in self.enums[name]["values"]]
        prefix = re.match(r"WB_(?:[A-Z]+_)?", values[0])[0]
        while not all(v.startswith(prefix) for v in values):
            prefix = prefix[:prefix[:-1].rindex("_") + 1]
        self.used_enums[name] = [v[len(prefix):].lower() for v in values]
        return self.used_enums[name]

    def arguments_of(self, f):
        """Arguments, then arrays that C returns through pointers, then the desc or None."""
        found, outs, desc, i, ps = [], [], None, 0, f["parameters"]
        while i < len(ps):
            name, t = ps[i]["name"], spell(ps[i]["type"])
            after = (ps[i + 1]["name"], spell(ps[i + 1]["type"])) if i + 1 < len(ps) else (None, None)
            o = "a[%d]" % len(found)
            if t == "int" and after[1] == "int64_t *":
                found.append(self.list_argument(f, after[0], o, found))
                i += 2
                continue
            if t in ("int", "int64_t") and after[1] == "wb_array * *" and after[0] not in OUT_NAMES:
                n = after[0]
                found.append(Argument(n, "Sequence[ArrayLike]", "py_array_list %s = py_arrays(%s);" % (n, o), "%s.count, %s.at" % (n, n),
                                      release="PyMem_Free(%s.at);" % n))
                i += 2
                continue
            if t == "int64_t" and after[1] == "wb_layer * *":
                found.append(Argument("*layers", "Layer | Activation", "py_layer_list layers = py_layers(%s);" % o, "layers.count, layers.at",
                                      release="PyMem_Free(layers.at);"))
                i += 2
                continue
            if t.endswith("_desc"):
                desc = t
            elif t == "wb_array * *" and name in OUT_NAMES:
                outs.append(name)
            elif name == "dim" and t == "int":
                found.append(self.axis_argument(f, o, found))
            elif t in self.enums and t != "wb_dtype":
                words = self.enum_names(t)
                found.append(Argument(name, "Literal[%s]" % ", ".join(map(quoted, words)),
                                      "const %s %s = (%s)py_choice(%s, %s_names);" % (t, name, t, o, t), name, '"%s"' % words[0]))
            elif t == "wb_layer *" and "takes" in self.ownership(f, name):
                found.append(Argument(name, "Layer", "wb_layer *%s = py_layer_reference(%s);" % (name, o), name, taken="wb_free(%s);" % name))
            elif t in PLAIN:
                setup, hint = PLAIN[t]
                found.append(Argument(name, hint, setup.format(n="x_" + name, o=o), "x_" + name))
            else:
                raise Unknown("parameter %s %s" % (t, name))
            i += 1
        for argument in found:
            argument.usual = tables.OMITTED.get((f["name"], argument.name), argument.usual)
        return found, outs, desc

    @staticmethod
    def ownership(f, name):
        """"takes" if a maker of layers takes over the layer that it is given."""
        if (f["name"], name) in tables.TAKES:
            return "takes"
        return "takes" if f["header"] in LAYER_HEADERS and spell(f["returns"]) == "wb_layer *" and name in ("layer", "cell", "forward", "backward") else ""

    @staticmethod
    def axes_of(found):
        """How axes are converted: checked, where the first argument is the array that has them."""
        of_array = found and found[0].hint == "ArrayLike"
        return "_of(%s, {0})".format(found[0].passed) if of_array else "(%s)"

    def list_argument(self, f, name, o, found):
        if name == "dims":
            public = "axes" if f["name"] == "wb_permute_make" else "axis"
            return Argument(public, "int | Sequence[int]", "py_list dims = py_axes%s;" % (self.axes_of(found) % o), "dims.count, dims.at")
        if f["header"] == "weber/schedules.h":
            return Argument(name, "Sequence[int]", "py_list %s = py_numbers(%s);" % (name, o), "%s.count, %s.at" % (name, name))
        if name in ("sizes", "times", "x_sizes", "w_sizes"):
            public = "shape" if "sizes" in name else "repetitions"
            return Argument(public, "int | Sequence[int]", "py_list %s = py_sizes(%s);" % (name, o), "%s.count, %s.at" % (name, name))
        raise Unknown("list named " + name)

    def axis_argument(self, f, o, found):
        if f["name"] == "wb_unsqueeze":
            return Argument("axis", "int", "const int dim = py_new_axis(%s, wb_ndim(x_x));" % o, "dim")
        return Argument("axis", "int", "const int dim = py_axis%s;" % (self.axes_of(found) % o), "dim")

    def members_of(self, desc, makes_layer):
        rows = []
        for m in self.structs[desc]["members"]:
            name, t = m["name"], spell(m["type"])
            if name == "start_":
                continue
            usual = {"true": "True", "false": "False", None: "None"}.get(m["written"], m["written"])
            list_of = re.fullmatch(r"(int64_t|double)\[(.*)\]", t)
            most, words = 0, None
            if (desc, name) in tables.CHOICES or (t in self.enums and t != "wb_dtype"):
                enum = tables.CHOICES.get((desc, name), t)
                words = self.enum_names(enum)
                kind, hint, usual = "CHOICE", "Literal[%s]" % ", ".join(map(quoted, words)), '"%s"' % words[0]
                words = enum + "_names"
            elif re.fullmatch(r"char \*\[\d+\]", t):
                kind, hint, most = "TEXTS", "str | Sequence[str]", int(t[t.index("[") + 1:-1])
            elif list_of and name in tables.PADDINGS:
                kind, hint, most = "PADDING", "int | Sequence[int]", 3
            elif list_of:
                most = int(LIMITS.get(list_of[2], list_of[2]))
                integers = list_of[1] == "int64_t"
                kind = ("SIZES" if integers else "SCALES") if name not in tables.IN_ORDER else ("NUMBERS" if integers else "REALS")
                hint = "int | Sequence[int]" if integers else "float | Sequence[float]"
            elif name == "dim" and t == "int64_t":
                kind, hint, name, usual = "AXIS", "int", "axis", "-1" if usual == "None" else usual
            elif t in MEMBER_KINDS:
                kind, hint = MEMBER_KINDS[t]
                if kind == "LAYER" and not makes_layer:
                    kind = "LAYER_LENT"
                if kind == "AXES":
                    name = "axis"
            else:
                continue
            if (usual or "").startswith("{"):
                usual = "(%s)" % usual[1:-1]
            if usual in ("INT64_MIN", "NAN") or (usual or "").startswith("WB_"):
                usual = "None"
            rows.append((kind, most, m["name"], python_name(tables.MEMBERS.get(name, name)), hint, usual, words))
        return rows

    # ---- functions ----

    def emit(self, f):
        name, returns = self.name_of(f), spell(f["returns"])
        arguments, outs, desc = self.arguments_of(f)
        reduction = tables.REDUCTIONS.get(f["name"])
        if reduction is not None:
            return self.emit_reduction(f, name, reduction)
        if f["name"] in tables.TURNED or f["name"] in tables.WRAPPED:
            name = "_" + (f["name"][3:].removesuffix("_make") if returns == "wb_layer *" else name)
        members = self.members_of(desc, returns == "wb_layer *") if desc else []
        star = any(a.name.startswith("*") for a in arguments)
        if star and arguments[-1].name != "*layers":
            raise Unknown("layers before another argument")
        if returns not in RESULTS and not (returns == "void" and not outs):
            raise Unknown("returns " + returns)
        names = [a.name.lstrip("*") for a in arguments] + [m[3] for m in members]
        first = len(arguments)
        required = next((i for i, a in enumerate(arguments) if a.usual is not None), first)
        if desc and required == first:
            required += self.required_members(f, desc, members)
        positional = first + sum(1 for _ in self.leading(members)) if desc else len(names)
        body = ["static PyObject *py_%s(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {" % f["name"][3:],
                "    (void)module;"]
        if star:
            body += ["    (void)kwnames;", "    PyObject *a[%d];" % len(names),
                     "    if (!py_bind_rest(%s, %d, args, nargs, kwnames, a)) return NULL;" % (quoted(name), len(names))]
        elif names:
            body += ["    static const char *const names[] = {%s};" % ", ".join(map(quoted, names)), "    PyObject *a[%d];" % len(names),
                     "    static const py_signature signature = {%s, names, %d, %d, %d};" % (quoted(name), len(names), required, positional),
                     "    if (!py_bind(&signature, args, nargs, kwnames, a)) return NULL;"]
        else:
            body += ["    (void)args, (void)kwnames;", "    if (nargs) return py_takes_nothing(%s);" % quoted(name)]
        body.append("    if (!py_open()) return NULL;")
        for a in arguments:
            usual = a.usual if a.usual is not None else None
            if usual is not None and usual != "None":
                at = re.search(r"a\[\d+\]", a.setup)[0]
                body.append("    PyObject *usual_%s = py_usual(%s, %s);" % (a.name, at, quoted(usual)))
                body.append("    " + a.setup.replace(at, "usual_" + a.name))
                a.release = "%s Py_XDECREF(usual_%s);" % (a.release or "", a.name)
            else:
                body.append("    " + a.setup)
        passed = self.passed(f, arguments, outs, desc)
        if desc:
            body += ["    %s desc = WB_DESC(%s, WB_NO_MORE);" % (desc, desc[3:-5]),
                     "    py_fill(&desc, members_%s, %d, a + %d);" % (desc, len(members), first)]
            self.used_descs[desc] = members
        release = " ".join(a.release for a in arguments if a.release)
        given_up = " ".join([a.taken for a in arguments if a.taken] + [release] * bool(release))
        body.append("    if (PyErr_Occurred()) {\n        %s\n        return py_fail();\n    }" % given_up if given_up else "    if (PyErr_Occurred()) return py_fail();")
        body += ["    wb_array *%s = NULL;" % o for o in outs]
        call = "(%s)(%s)" % (f["name"], ", ".join(passed))
        if f["owner"] == "borrowed" and returns == "wb_layer *":
            call = "wb_keep_layer(%s)" % call
        hint = self.results(body, f, returns, call, outs, release, star)
        body.append("}")
        self.code += body
        shown = [(a.name, a.hint, a.usual, i >= required) for i, a in enumerate(arguments)]
        shown += [(m[3], m[4], m[5], first + i >= required) for i, m in enumerate(members)]
        self.add_row(f, name, shown, positional, hint)
        first_name = arguments[0].name if arguments else ""
        if returns == "wb_array *" and not name.startswith("_") and not desc and not star and first_name in ("x", "a", "logits") and arguments[0].hint == "ArrayLike":
            self.array_methods.append((name, f["name"][3:]))

    used_descs = {}

    @staticmethod
    def leading(members):
        """Members that may be given by position: those before the first switch, array, initialiser or type."""
        for i, m in enumerate(members):
            if m[0] in ("BOOL", "INIT", "DTYPE", "CHOICE", "AXES") or (m[0] == "ARRAY" and m[2] not in ("x", "q", "k", "v", "p", "y")):
                return
            yield m

    def required_members(self, f, desc, members):
        if desc == "wb_loss_desc":
            return 2
        docs = {m["name"]: m for m in self.structs[desc]["members"]}
        if f["header"] in ("weber/rules.h", "weber/schedules.h"):
            return 0
        count = 0
        for m in members:
            if m[0] not in ("ARRAY", "INT64", "SIZES", "LAYER") or docs[m[2]]["default"] or docs[m[2]]["written"] or desc in ("wb_window_desc", "wb_scale_desc"):
                break
            count += 1
            if m[0] != "INT64":
                if desc in ("wb_conv_desc", "wb_conv_transpose_desc"):
                    return 3
                break
        return count

    @staticmethod
    def passed(f, arguments, outs, desc):
        result, k, i, ps = [], 0, 0, f["parameters"]
        while i < len(ps):
            if ps[i]["name"] in outs:
                result.append("&" + ps[i]["name"])
            elif spell(ps[i]["type"]) == desc:
                result.append("desc")
            else:
                result.append(arguments[k].passed)
                i += ", " in arguments[k].passed
                k += 1
            i += 1
        return result

    def results(self, body, f, returns, call, outs, release, star):
        c_type = f["declaration"].split(f["name"])[0].strip().lstrip("(").strip()
        computes = f["name"] in tables.RELEASES or any(p["name"] == "path" and f["header"] in ("weber/state.h", "weber/data.h", "weber/observations.h") for p in f["parameters"]) or outs[:1] == ["images"]
        if returns == "void":
            body += ["    %s;" % call, "    %s" % release if release else "", "    return py_give_status(WB_OK);"]
            return "None"
        wrap, hint = RESULTS[returns]
        if returns == "wb_rule":
            wrap = wrap % quoted(self.name_of(f))
        if computes:
            body += ["    PyThreadState *const others = PyEval_SaveThread();", "    %s result = %s;" % (c_type, call), "    PyEval_RestoreThread(others);"]
        elif release or outs:
            body.append("    %s result = %s;" % (c_type, call))
        if release:
            body.append("    " + release)
        stored = computes or release or outs
        if outs:
            arrays = (["result"] if returns == "wb_array *" else []) + outs
            if returns == "wb_status":
                body.append("    if (result != WB_OK) return py_fail();")
            body.append("    return py_give_arrays(%d, (wb_array *[]){%s});" % (len(arrays), ", ".join(arrays)))
            return "tuple[%s]" % ", ".join(["Array"] * len(arrays))
        value = "result" if stored else call
        body.append("    return %s;" % (wrap % value))
        return hint

    def emit_reduction(self, f, name, settings):
        """Settings before keepdims, as C has them; but dtype, that of the sums, is last."""
        extra = list(settings.values())
        types = "dtype" in extra
        names = ["x", "axis"] + ["keepdims"] * types + extra + ["keepdims"] * (not types)
        keepdims, own = names.index("keepdims"), names.index(extra[0]) if extra else None
        c = f["name"]
        call = "%s(x, %%sr.dims.count, r.dims.at)" % c
        before = after = ""
        if "correction" in extra:
            before = "    const double correction = py_given_real(a[%d], 0);" % own
            after = "py_corrected(%s, &r, x, correction, %s)" % (call % "false, ", "true" if "std" in c else "false")
        elif "ord" in extra:
            before, after = "    const double ord = py_given_real(a[%d], 2);" % own, call % "ord, "
        else:
            before, after = "    x = py_of_type(x, a[%d]);" % own if types else "", call % ""
            after = "py_of_type(%s, a[%d])" % (after, own) if types else after
        self.code += [
            "static PyObject *py_%s(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {" % c[3:], "    (void)module;",
            "    static const char *const names[] = {%s};" % ", ".join(map(quoted, names)), "    PyObject *a[%d];" % len(names),
            "    static const py_signature signature = {%s, names, %d, 1, %d};" % (quoted(name), len(names), len(names)),
            "    if (!py_bind(&signature, args, nargs, kwnames, a)) return NULL;", "    if (!py_open()) return NULL;",
            "    wb_array *x = py_array(a[0]);", "    const py_reduced r = py_reduce(x, a[1], a[%d]);" % keepdims, before,
            "    if (PyErr_Occurred()) return py_fail();", "    return py_give_array(py_drop(%s, &r));" % after, "}"]
        hints = {"axis": ("int | Sequence[int] | None", "None"), "correction": ("float", "0"), "ord": ("float", "2.0"), "dtype": ("DTypeLike", "None"),
                 "keepdims": ("bool", "False")}
        shown = [("x", "ArrayLike", None, False)] + [(n, *hints[n], True) for n in names[1:]]
        self.add_row(f, name, shown, len(names), "Array")
        self.array_methods.append((name, c[3:]))

    def add_row(self, f, name, shown, positional, hint):
        text, stub = [], []
        for i, (n, h, usual, optional) in enumerate(shown):
            if i == positional and not any(s[0].startswith("*") for s in shown):
                text.append("*")
                stub.append("*")
            value = "=" + (usual or "None") if optional else ""
            text.append(n + value)
            stub.append("%s: %s%s%s" % (n, h, " | None" if value == "=None" and "None" not in h else "", " = ..." if optional else ""))
        doc = self.doc_of(f)
        signature = "%s(%s)\n--\n\n%s" % (name, ", ".join(["$module"] + text), doc)
        self.rows.append('    {%s, (PyCFunction)(void *)py_%s, METH_FASTCALL | METH_KEYWORDS,\n     %s},' % (quoted(name), f["name"][3:], quoted(signature)))
        self.stubs.append((name, stub, hint, doc))

    def all(self):
        missing = []
        for f in self.functions:
            name = f["name"]
            if name.endswith("_") or name in tables.BY_HAND or name in self.without or f["callback"] in ("wb_init", "wb_connection"):
                continue
            if name[3:] and (name in self.makers or name.removesuffix("_with") in {g["name"] for g in self.functions} - {name}) and name != "wb_rrelu_with" and not f["callback"] == "wb_init_with":
                continue  # a short form of the function beside it
            try:
                self.emit(f)
            except Unknown as why:
                missing.append("%s: %s" % (f["declaration"], why))
        names = [name for name, *_ in self.stubs]
        missing += ["%s: two functions have this name" % n for n in sorted(set(names)) if names.count(n) > 1]
        if missing:
            sys.exit("neither generated nor in tables.py:\n  " + "\n  ".join(missing))

    def named(self, test, type_name, table):
        rows = [(self.name_of(f), f["name"]) for f in self.functions if test(f)]
        return ["const py_function_row %s[] = {" % table] + ["    {%s, (void (*)(void))(%s)}," % (quoted(n), c) for n, c in rows] + ["    {NULL, NULL}};"], [n for n, _ in rows]

    def write_c(self, path):
        one = lambda f: spell(f["returns"]) == "wb_array *" and [spell(p["type"]) for p in f["parameters"]] == ["wb_array *"]
        activations, self.activation_names = self.named(one, "wb_activation", "py_activations")
        inits, self.init_names = self.named(lambda f: f["callback"] == "wb_init", "wb_init", "py_inits")
        connections, self.connection_names = self.named(lambda f: f["callback"] == "wb_connection", "wb_connection", "py_connections")
        lines = ["/* Generated by python/generate.py from api.json. */", '#include "binding.h"', ""]
        for name, words in sorted(self.used_enums.items()):
            lines.append("static const char *const %s_names[] = {%s, NULL};" % (name, ", ".join(map(quoted, words))))
        for desc, members in sorted(self.used_descs.items()):
            rows = ["    {PY_%s, %d, offsetof(%s, %s), %s, %s}," % (k, most, desc, c, quoted(n), words or "NULL") for k, most, c, n, _, _, words in members]
            lines += ["static const py_member members_%s[] = {" % desc] + rows + ["};"]
        lines += self.code + ["PyMethodDef py_generated[] = {"] + self.rows + ["    {NULL, NULL, 0, NULL}};"]
        for name, c in self.array_methods:
            lines += ["static PyObject *method_%s(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {" % c,
                      "    return py_method(py_%s, self, args, nargs, kwnames);" % c, "}"]
        lines += ["PyMethodDef py_array_methods[] = {"]
        lines += ["    {%s, (PyCFunction)(void *)method_%s, METH_FASTCALL | METH_KEYWORDS, NULL}," % (quoted(n), c) for n, c in self.array_methods]
        lines += ["    {NULL, NULL, 0, NULL}};", "const py_example py_examples[] = {"]
        lines += ["    {%s, %s}," % (quoted(n), quoted(text)) for n, text in _examples.EXAMPLES.items()]
        lines += ["    {NULL, NULL}};"] + activations + inits + connections
        with open(path, "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")

    def write_stub(self, path):
        """hand.pyi, with the generated methods of Array in it, then the generated functions."""
        by_name = {name: (arguments, hint) for name, arguments, hint, _ in self.stubs}
        methods = ["    def %s(%s) -> %s: ..." % (n, ", ".join(["self"] + by_name[n][0][1:]), by_name[n][1]) for n, _ in self.array_methods]
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "hand.pyi"), encoding="utf-8") as file:
            hand = file.read().replace("    # METHODS\n", "\n".join(methods) + "\n")
        lines = ['"""Made by python/generate.py of hand.pyi and api.json."""', hand]
        lines += ["%s: Initialiser" % name for name in self.init_names] + ["%s: Connection" % name for name in self.connection_names]
        for name, arguments, hint, doc in self.stubs:
            text = doc.replace("\\", "\\\\").replace("\"\"\"", "'''") + (" " if doc.endswith("\"") else "")
            lines += ["def %s(%s) -> %s:" % (name, ", ".join(arguments), hint), '    """%s"""' % text, "    ..."]
        with open(path, "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        generator = Generator(json.load(file))
    generator.all()
    generator.write_c(sys.argv[2])
    generator.write_stub(sys.argv[3])
    print("%d functions generated" % len(generator.rows))


if __name__ == "__main__":
    main()
