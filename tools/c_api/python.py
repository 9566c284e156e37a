"""Writes bench/tilewright_c.py: the C interface for ctypes."""

import re
import textwrap

from .description import Function, Operator
from .header import operator_functions

BEGIN = '''# Made by tools/make_c_api.py from tools/c_api; edit that.
"""The C interface of libtilewright.so for ctypes: structs, constants and the types of its functions."""

import ctypes


def load(path):
    """The library, with types for all functions."""
    lib = ctypes.CDLL(str(path))
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def make(lib, kind, **members):
    """A struct with its defaults and these members; {...} sets members of a struct inside."""
    made = kind()
    _set_sizes(made)
    getattr(lib, f"{kind.__name__}_set_defaults")(ctypes.byref(made))
    _set(made, members)
    return made


def _set(struct, members):
    known = {field[0] for field in struct._fields_}
    for name, value in members.items():
        if name not in known:
            raise AttributeError(f"{type(struct).__name__} has no member {name}")
        if isinstance(value, dict):
            _set(getattr(struct, name), value)
        else:
            setattr(struct, name, value)


def _set_sizes(struct):
    struct.struct_bytes = ctypes.sizeof(struct)
    for name, kind in struct._fields_:
        if issubclass(kind, ctypes.Structure):
            _set_sizes(getattr(struct, name))

'''
SCALARS = {"int32_t": "c_int32", "int64_t": "c_int64", "uint64_t": "c_uint64", "float": "c_float", "int": "c_int",
           "double": "c_double", "size_t": "c_size_t", "tw_status": "c_int"}


def python_type(description, c_type):
    """Of a member, a parameter or a result."""
    kind = re.sub(r"^const ", "", c_type.strip())
    if kind == "void":
        return "None"
    if kind == "char*":
        return "ctypes.c_char_p"
    if kind in SCALARS:
        return f"ctypes.{SCALARS[kind]}"
    if kind in description.structs:
        return kind
    pointed = kind[:-1]
    if pointed in description.structs:
        return f"ctypes.POINTER({pointed})"
    if pointed == "size_t":
        return "ctypes.POINTER(ctypes.c_size_t)"
    return "ctypes.POINTER(ctypes.c_void_p)" if pointed.endswith("*") else "ctypes.c_void_p"


def member_type(description, member):
    return "ctypes.c_void_p" if member.kind.endswith("*") else python_type(description, member.c_type)


def structs(description):
    for item in description.structs.values():
        yield f"\nclass {item.name}(ctypes.Structure):\n    _fields_ = [\n"
        yield '        ("struct_bytes", ctypes.c_size_t),\n'
        for member in item.members:
            yield f'        ("{member.name}", {member_type(description, member)}),\n'
        yield "    ]\n\n"


def functions(description):
    for item in description.structs.values():
        yield "None", f"{item.name}_set_defaults", [f"{item.name}*"]
    for item in description.items:
        if isinstance(item, Function):
            parameters = [] if item.parameters == "void" else item.parameters.split(", ")
            yield item.result, item.name, [re.sub(r" ?\w+$", "", p) for p in parameters]
        elif isinstance(item, Operator):
            for _, result, name, parameters in operator_functions(item):
                yield result, name, [re.sub(r" ?\w+$", "", p) for p in parameters]


def write(description):
    text = BEGIN
    for enum in description.enums.values():
        text += f"\n# {enum.name}\n"
        text += "".join(f"{enum.spelled(name)} = {value}\n" for name, value, _, _ in enum.rows)
    text += "\n" + "".join(structs(description)) + "\nFUNCTIONS = {\n"
    for result, name, parameters in functions(description):
        kinds = ", ".join(python_type(description, p) for p in parameters)
        result = result if result == "None" else python_type(description, result)
        line = f'    "{name}": ({result}, [{kinds}]),\n'
        if len(line) > 115:
            wrapped = textwrap.fill(kinds + "]),", 115, initial_indent=" " * 8, subsequent_indent=" " * 8,
                                    break_on_hyphens=False)
            line = f'    "{name}": ({result}, [\n{wrapped}\n'
        text += line
    return text + "}\n"
