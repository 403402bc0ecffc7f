"""Reads C headers: words, the preprocessor, declarations. For scripts/api.

Headers are read as a C11 compiler on Linux sees them: conditions are decided and macros expanded, except WB_API, which says that a
function is public. Comments are kept, by file. What is not understood is refused, with its place.
"""
import collections
import json
import os
import re


class Refused(Exception):
    """What this script does not understand: file, line and what was expected."""


# ---- words: a file as a list of words, directives and comments ----

Token = collections.namedtuple("Token", "kind text file line gap hidden", defaults=(False, frozenset()))
Comment = collections.namedtuple("Comment", "first last text trailing")
Macro = collections.namedtuple("Macro", "name parameters variadic body file line last")

WORDS = re.compile(r"""
    (?P<directive>(?:(?<=\n)|\A)[ \t]*\#(?:\\\n|(?s:/\*.*?\*/)|[^\n])*)
  | (?P<comment>(?s:/\*.*?\*/)|//[^\n]*)
  | (?P<space>\s+|\\\n)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<mark>\.\.\.|\#\#|<<=?|>>=?|->|\+\+|--|[<>=!]=|&&|\|\||.)""", re.X)


def words_of(text, file, line=1):
    """The words of a text that begins on this line of the file."""
    gap = False
    for match in WORDS.finditer(text):
        if match.lastgroup != "space":
            yield Token(match.lastgroup, match.group(), file, line, gap)
        gap = match.lastgroup == "space"
        line += match.group().count("\n")


def text_of(words):
    return "".join(" " * word.gap + word.text for word in words).strip()


def plain(comment):
    """A comment's text, without its marks and stars; without stars, without the indent that all lines have in common."""
    text = comment[2:-2] if comment.startswith("/*") else comment[2:]
    lines = [line.rstrip() for line in text.split("\n")]
    indents = [len(line) - len(line.lstrip()) for line in lines[1:] if line]
    cut = re.compile(r"\s*\* ?" if all(re.match(r"\s*\*|$", line) for line in lines[1:]) else r" {%d}" % min(indents, default=0))
    return "\n".join([lines[0].strip()] + [cut.sub("", line, count=1) if cut.match(line) else line for line in lines[1:]]).strip()


# ---- the preprocessor ----


class Preprocessor:
    """Reads headers into one list of words; keeps comments by file, macros, and the lines of directives."""

    def __init__(self, folder, defined=("__STDC_VERSION__ 201112L", "INT64_MAX 9223372036854775807",
                                        "INT64_MIN (-9223372036854775807 - 1)")):
        self.folder, self.words, self.macros = folder, [], {}
        self.comments, self.directives = collections.defaultdict(list), collections.defaultdict(list)
        self.seen = set()
        for text in defined:
            self.define(Token("directive", text, "", 0))
        self.given = set(self.macros)

    def read(self, file):
        """file is a path below the folder; one that is there is read, any other is a system header."""
        path = os.path.join(self.folder, file)
        if not os.path.isfile(path):
            return
        with open(path, encoding="utf-8") as opened:
            text = opened.read()
        states, line, pending = [], 0, []  # of each #if: [is this branch read, was one read, is the whole read]
        first_time = file not in self.seen
        self.seen.add(file)
        for word in words_of(text, file):
            reads = all(state[0] for state in states)
            if word.kind == "directive":
                self.emit(pending)
                pending = []
                self.directive(word, states, reads, first_time)
                line = word.line + word.text.count("\n")
            elif not reads:
                continue
            elif word.kind == "comment":
                last = word.line + word.text.count("\n")
                if first_time:
                    self.comments[file].append(Comment(word.line, last, plain(word.text), word.line == line))
            else:
                pending.append(word)
                line = word.line
        self.emit(pending)
        if states:
            raise Refused("%s: a condition is not closed" % file)

    def directive(self, word, states, reads, first_time):
        comments = re.findall(r"/\*.*?\*/", word.text, flags=re.S)
        text = re.sub(r"/\*.*?\*/", " ", word.text, flags=re.S).replace("\\\n", " ")
        name, rest = re.match(r"\s*#\s*(\w*)(.*)", text, flags=re.S).groups()
        rest = rest.strip()
        last = word.line + word.text.count("\n")
        if reads and first_time:
            self.directives[word.file].append((word.line, last))
            for comment in comments:
                self.comments[word.file].append(Comment(last, last, plain(comment), True))
        if name in ("if", "ifdef", "ifndef"):
            holds = reads and (self.holds(rest, word) if name == "if" else (rest in self.macros) == (name == "ifdef"))
            states.append([holds, holds, reads])
        elif name in ("elif", "else"):
            state = states[-1]
            state[0] = state[2] and not state[1] and (name == "else" or self.holds(rest, word))
            state[1] |= state[0]
        elif name == "endif":
            states.pop()
        elif not reads:
            return
        elif name == "define":
            self.define(Token("directive", rest, word.file, word.line), last)
        elif name == "undef":
            self.macros.pop(rest, None)
        elif name == "include":
            target = rest.strip('"<>')
            beside = os.path.join(os.path.dirname(word.file), target)
            self.read(beside if rest[0] == '"' and os.path.isfile(os.path.join(self.folder, beside)) else target)
        elif name not in ("pragma", "error", ""):
            raise Refused("%s:%d: #%s is not understood" % (word.file, word.line, name))

    def define(self, word, last=0):
        name, parameters, body = re.match(r"(\w+)(\([^)]*\))?(.*)", word.text, flags=re.S).groups()
        if parameters is not None:
            parameters = [p.strip() for p in parameters[1:-1].split(",") if p.strip()]
        variadic = bool(parameters) and parameters[-1] == "..."
        self.macros[name] = Macro(name, parameters[:-1] if variadic else parameters, variadic,
                                  list(words_of(body, word.file, word.line)), word.file, word.line, last)

    def holds(self, text, where):
        """Whether the condition of an #if is true."""
        text = re.sub(r"defined\s*(?:\(\s*(\w+)\s*\)|(\w+))",
                      lambda m: str(int((m.group(1) or m.group(2)) in self.macros)), text)
        words = self.expand(list(words_of(text, where.file, where.line)))
        return bool(value_of([Token("number", "0", w.file, w.line) if w.kind == "name" else w for w in words], {}))

    def emit(self, words):
        self.words += self.expand(words)

    def expand(self, words):
        """Macros replaced, by the algorithm of Dave Prosser: a word remembers the macros it came from. WB_API stays."""
        rest, done = list(reversed(words)), []
        while rest:
            word = rest.pop()
            macro = self.macros.get(word.text) if word.kind == "name" else None
            if not macro or word.text in word.hidden or word.text == "WB_API":
                done.append(word)
            elif macro.parameters is None:
                body = self.replace(macro, [], word.hidden | {macro.name}, word)
                rest += reversed(body)
            elif rest and rest[-1].text == "(":
                arguments, close = take_arguments(rest, word)
                body = self.replace(macro, arguments, (word.hidden & close.hidden) | {macro.name}, word)
                rest += reversed(body)
            else:
                done.append(word)
        return done

    def replace(self, macro, arguments, hidden, where):
        """The macro's body with arguments in place; words stand where the macro is used."""
        names = list(macro.parameters or [])
        if macro.variadic:
            tail = arguments[len(names):]
            joined = tail[0] if tail else []
            for more in tail[1:]:
                joined = joined + [Token("mark", ",", where.file, where.line)] + more
            arguments, names = arguments[:len(names)] + [joined], names + ["__VA_ARGS__"]
        elif names == [] and arguments == [[]]:
            arguments = []
        if len(arguments) != len(names):
            raise Refused("%s:%d: %s takes %d arguments, not %d" % (where.file, where.line, macro.name, len(names), len(arguments)))
        given, out, body, i = dict(zip(names, arguments)), [], macro.body, 0
        while i < len(body):
            word = body[i]
            pasted = i + 1 < len(body) and body[i + 1].text == "##"
            if word.text == "#" and macro.parameters is not None and i + 1 < len(body):
                i += 1
                out.append(Token("string", json.dumps(text_of(given[body[i].text])), where.file, where.line))
            elif word.text == "##":
                i += 1
                right = given.get(body[i].text, [body[i]])
                left = out.pop() if out else Token("name", "", where.file, where.line)
                if right:
                    out.append(next(words_of(left.text + right[0].text, where.file)))
                    out += right[1:]
                else:
                    out.append(left)
            elif word.text in given:
                out += given[word.text] if pasted else self.expand(given[word.text])
            else:
                out.append(word)
            i += 1
        return [w._replace(file=where.file, line=where.line, hidden=w.hidden | hidden) for w in out]


def take_arguments(rest, where):
    """The arguments of a macro from a list whose end comes first, and the closing parenthesis."""
    rest.pop()
    arguments, depth = [[]], 0
    while rest:
        word = rest.pop()
        if word.text == ")" and depth == 0:
            return arguments, word
        depth += (word.text in "([{") - (word.text in ")]}") if word.kind == "mark" else 0
        if word.text == "," and depth == 0:
            arguments.append([])
        else:
            arguments[-1].append(word)
    raise Refused("%s:%d: %s( is not closed" % (where.file, where.line, where.text))


def value_of(words, names):
    """The value of a constant expression; ValueError where it is none."""
    text = ""
    for word in words:
        if word.kind == "number":
            text += " " + re.sub(r"(?<=[\da-fA-F])[uUlL]+$", "", word.text)
        elif word.kind == "name" and word.text in names:
            text += " (%r)" % names[word.text]
        elif word.kind == "mark" and word.text in "+ - * / % ( ) << >> & | ^ ~ < > <= >= == != && || !".split():
            text += {"/": "//", "&&": " and ", "||": " or ", "!": " not "}.get(word.text, word.text)
        elif word.kind == "string" and len(words) == 1:
            return json.loads(word.text) if word.text[0] == '"' else ord(word.text[1])
        else:
            raise ValueError(word.text)
    try:
        return eval(text, {"__builtins__": {}})  # numbers and operators alone
    except (SyntaxError, TypeError) as error:
        raise ValueError(text) from error


# ---- the parser: declarations as dictionaries ----

BUILTIN = set("void char short int long float double signed unsigned _Bool bool".split())
KNOWN = {"size_t", "ptrdiff_t", "intptr_t", "uintptr_t", "FILE", "va_list", "wchar_t"} | {
    "%sint%d_t" % (sign, bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}
QUALIFIERS = {"const", "volatile", "restrict"}
Declared = collections.namedtuple("Declared", "name type file first last inline exported")


def name_type(name, const=False):
    return {"kind": "name", "name": name, **({"const": True} if const else {})}


def spelled(type_, name=""):
    """A declaration in C, "const int64_t *sizes"."""
    kind = type_["kind"]
    if kind == "pointer":
        inner = "*" + ("const " if type_.get("const") else "") + name
        return spelled(type_["to"], "(%s)" % inner if type_["to"]["kind"] in ("function", "array") else inner.rstrip())
    if kind == "array":
        return spelled(type_["of"], "%s[%s]" % (name, "" if type_["length"] is None else type_["length"]))
    if kind == "function":
        inside = [spelled(p["type"], p["name"] or "") for p in type_["parameters"]] + ["..."] * type_["variadic"]
        return spelled(type_["returns"], "%s(%s)" % (name, ", ".join(inside) or "void"))
    word = type_["name"] if kind == "name" else "%s {...}" % kind
    return (("const " if type_.get("const") else "") + word + (" " + name if name else "")).strip()


class Parser:
    """The declarations among a preprocessor's words."""

    def __init__(self, preprocessor):
        self.source, self.words, self.at = preprocessor, preprocessor.words, 0
        self.functions, self.aliases, self.structs, self.enums, self.tags = [], {}, [], [], {}
        self.numbers, self.places = {}, collections.defaultdict(list)
        while self.at < len(self.words):
            self.declaration()

    # words

    def peek(self, ahead=0):
        return self.words[self.at + ahead] if self.at + ahead < len(self.words) else Token("end", "", "the end", 0)

    def next(self):
        self.at += 1
        return self.words[self.at - 1]

    def accept(self, *texts):
        return self.next() if self.peek().text in texts else None

    def want(self, text):
        word = self.peek()
        if word.text != text:
            raise Refused("%s:%d: %r is expected, not %r" % (word.file, word.line, text, word.text))
        return self.next()

    def balanced(self):
        """What stands inside the parentheses, brackets or braces that begin here."""
        first, depth = self.at + 1, 0
        while True:
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(self.peek().text, 0)
            if self.next().kind == "end":
                raise Refused("a bracket is not closed")
            if depth == 0:
                return self.words[first:self.at - 1]

    def constant(self, words):
        try:
            return value_of(self.source.expand(words), self.numbers)
        except ValueError as error:
            raise Refused("%s:%d: not a constant: %s" % (words[0].file, words[0].line, error)) from None

    # types

    def is_type(self, word):
        return word.text in BUILTIN | KNOWN | QUALIFIERS | {"struct", "union", "enum"} or word.text in self.aliases

    def specifiers(self):
        """The type before the declarators, and the words that say how they are stored."""
        words, stored, const, type_ = [], set(), False, None
        while True:
            word = self.peek()
            if word.text in ("typedef", "static", "inline", "extern", "WB_API", "__extension__", "_Noreturn"):
                stored.add(self.next().text)
            elif word.text in ("__attribute__", "_Alignas"):
                self.next()
                self.balanced()
            elif word.text in QUALIFIERS:
                const |= self.next().text == "const"
            elif word.text in ("struct", "union"):
                type_ = self.struct()
            elif word.text == "enum":
                type_ = self.enum()
            elif word.text in BUILTIN:
                words.append(self.next().text)
            elif type_ is None and not words and self.is_type(word):
                type_ = name_type(self.next().text)
            else:
                break
        if words:
            words = ["bool" if w == "_Bool" else w for w in words if w != "int" or len(words) == 1]
            type_ = name_type(" ".join(sorted(words, key=lambda w: w not in ("signed", "unsigned"))))
        if type_ is None:
            raise Refused("%s:%d: a type is expected, not %r" % (self.peek().file, self.peek().line, self.peek().text))
        return ({**type_, "const": True} if const else type_), stored

    def struct(self):
        kind, tag = self.next().text, self.next() if self.peek().kind == "name" else None
        if self.peek().text != "{":
            self.tags.setdefault(tag.text, None)
            return name_type("%s %s" % (kind, tag.text))
        first, members = self.want("{"), []
        while not self.accept("}"):
            members += self.members()
        body = {"kind": kind, "members": members}
        if not tag:
            return body
        self.tags[tag.text] = body
        self.structs.append((tag.text, body, first.file, (tag or first).line))
        return name_type("%s %s" % (kind, tag.text))

    def members(self):
        first, found = self.peek(), []
        base, _ = self.specifiers()
        while not self.accept(";"):
            name, type_ = self.declarator(base)
            found.append({"name": name, "type": type_})
            if self.accept(":"):
                found[-1]["bits"] = self.constant([self.next()])
            self.accept(",")
        if not found:
            found.append({"name": None, "type": base})
        last = self.words[self.at - 1].line
        for i, member in enumerate(found):
            member.update(line=first.line, at=(first.file, first.line, last, i, [m["name"] for m in found]))
        return found

    def enum(self):
        self.next()
        tag = self.next() if self.peek().kind == "name" else None
        if self.peek().text != "{":
            return name_type("enum %s" % tag.text)
        first, values, value = self.next(), [], -1
        while not self.accept("}"):
            word = self.next()
            value += 1
            if self.accept("="):
                end = self.at
                while self.words[end].text not in (",", "}"):
                    end += 1
                value, self.at = self.constant(self.words[self.at:end]), end
            self.numbers[word.text] = value
            values.append({"name": word.text, "value": value, "line": word.line, "at": (word.file, word.line, word.line)})
            self.accept(",")
        self.enums.append([tag and tag.text, values, first.file, (tag or first).line])
        return name_type("enum %s" % tag.text) if tag else name_type("int")

    # declarators

    def declarator(self, base):
        while self.accept("*"):
            base = {"kind": "pointer", "to": base}
            while self.peek().text in QUALIFIERS:
                if self.next().text == "const":
                    base["const"] = True
        if self.peek().text == "(" and (self.peek(1).text in ("*", "(") or
                                        self.peek(1).kind == "name" and not self.is_type(self.peek(1))):
            inside = self.at + 1
            self.balanced()
            base, end = self.suffixes(base), None
            end, self.at = self.at, inside
            name, type_ = self.declarator(base)
            self.want(")")
            self.at = end
            return name, type_
        name = self.next().text if self.peek().kind == "name" else None
        return name, self.suffixes(base)

    def suffixes(self, base):
        if self.peek().text == "[":
            words = self.balanced()
            length = self.constant(words) if words else None
            return {"kind": "array", "length": length, "of": self.suffixes(base)}
        if self.peek().text == "(":
            return {"kind": "function", "returns": base, **self.parameters()}
        while self.peek().text == "__attribute__":
            self.next()
            self.balanced()
        return base

    def parameters(self):
        self.want("(")
        found, variadic = [], False
        while not self.accept(")"):
            if self.accept("..."):
                variadic = True
                continue
            base, _ = self.specifiers()
            name, type_ = self.declarator(base)
            if type_["kind"] in ("array", "function"):
                type_ = {"kind": "pointer", "to": type_.get("of", type_)}
            if type_ != name_type("void"):
                found.append({"name": name, "type": type_})
            self.accept(",")
        return {"parameters": found, "variadic": variadic}

    # declarations

    def named(self, base, first, enums):
        """The type of a typedef; a struct or enum without a tag gets the name that comes now."""
        name = self.peek().text
        if "members" in base:
            self.tags[name] = base
            self.structs.append((name, {k: base[k] for k in ("kind", "members")}, first.file, first.line))
            return name_type("%s %s" % (base["kind"], name))
        if len(self.enums) > enums and self.enums[-1][0] is None:
            self.enums[-1][0] = name
            return name_type("enum %s" % name)
        return base

    def declaration(self):
        if self.accept(";"):
            return
        first, found, enums = self.peek(), [], len(self.enums)
        base, stored = self.specifiers()
        while not self.accept(";"):
            found.append(self.declarator(self.named(base, first, enums) if "typedef" in stored else base))
            if found[-1][0] is None:
                raise Refused("%s:%d: a name is expected, not %r" % (first.file, first.line, self.peek().text))
            if self.peek().text == "{":
                self.balanced()
                break
            if self.peek().text != ";":
                self.want(",")
        last = self.words[self.at - 1].line
        self.places[first.file].append((first.line, last))
        for name, type_ in found:
            declared = Declared(name, type_, first.file, first.line, last, "inline" in stored, "WB_API" in stored)
            if "typedef" in stored:
                self.aliases[name] = declared
            else:
                self.functions.append(declared)
