"""A C library for Python by ctypes, from its api.json alone (docs/api-json.md): types, functions, constants."""
import ctypes
import json

PLAIN = {"char": ctypes.c_char, "signed char": ctypes.c_byte, "unsigned char": ctypes.c_ubyte, "bool": ctypes.c_bool,
         "int": ctypes.c_int, "unsigned": ctypes.c_uint, "long": ctypes.c_long, "unsigned long": ctypes.c_ulong,
         "float": ctypes.c_float, "double": ctypes.c_double, "size_t": ctypes.c_size_t, "void": None,
         **{"%sint%d_t" % (sign, bits): getattr(ctypes, "c_%sint%d" % (sign, bits)) for sign in ("", "u") for bits in (8, 16, 32, 64)}}
WRITTEN = {"true": True, "INT64_MIN": -2**63}  # what defaults of descs are but numbers


class Library:
    def __init__(self, path, description):
        with open(description, encoding="utf-8") as opened:
            self.api = json.load(opened)
        if self.api["schema"] != 1:
            raise ValueError("%s has schema %r, not 1" % (description, self.api["schema"]))
        self.functions = {f["name"]: f for f in self.api["functions"]}
        self.structs = {s["name"]: s for s in self.api["structs"]}
        self.enums = {e["name"] for e in self.api["enums"]}
        self.aliases = {a["name"]: a["type"] for a in self.api["aliases"]}
        self.made = {}
        self.constants = {c["name"]: c["value"] for c in self.api["constants"]}
        self.constants.update((v["name"], v["value"]) for e in self.api["enums"] for v in e["values"])
        self.loaded = ctypes.CDLL(path)

    def type_of(self, type_):
        kind, name = type_["kind"], type_.get("name")
        if kind == "pointer":
            return ctypes.c_char_p if type_["to"] == {"kind": "name", "name": "char", "const": True} else ctypes.c_void_p
        if kind == "array":
            return self.type_of(type_["of"]) * type_["length"]
        if name in self.structs:
            return self.struct(name)
        if name in self.aliases:
            return self.type_of(self.aliases[name])
        return ctypes.c_int if name in self.enums else PLAIN[name]

    def struct(self, name):
        if name not in self.made:
            fields = [(m["name"], self.type_of(m["type"])) for m in self.structs[name]["members"]]
            self.made[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
        return self.made[name]

    def __getattr__(self, name):
        """A function that checks its arguments, or the value of a constant."""
        if name in self.constants:
            return self.constants[name]
        described = self.functions[name]
        function = getattr(self.loaded, name)
        function.argtypes = [self.type_of(p["type"]) for p in described["parameters"]]
        function.restype = self.type_of(described["returns"])
        setattr(self, name, function)
        return function

    def make(self, maker, *arguments, **settings):
        """Calls a maker whose last parameter is a struct with settings: make("wb_dense_make", out=3)."""
        described = self.functions[maker]["parameters"][-1]["type"]
        desc = self.type_of(described)()
        desc.start_ = b"]"  # WB_MADE_
        for member in self.structs[described["name"]]["members"]:
            if str(member["written"]).startswith("WB_NOT_GIVEN_("):  # a desc within this one
                getattr(desc, member["name"]).start_ = b"^"
            elif member["written"]:
                value = WRITTEN.get(member["written"]) or float(member["written"])
                setattr(desc, member["name"], type(getattr(desc, member["name"]))(value))
        for key, value in settings.items():
            setattr(desc, key, value)
        return getattr(self, maker)(*arguments, desc)

    def address(self, name):
        """A function as a value, for a member or parameter that wants a pointer to it."""
        return ctypes.cast(getattr(self.loaded, name), ctypes.c_void_p)
