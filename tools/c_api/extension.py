"""Writes python/core/table.c: the C interface as the Python extension reads it (python/core/table.h)."""

from . import python_names as names
from .description import DescriptionError
from .header import plan_inputs

BEGIN = """/* clang-format off */
/* Made by tools/make_c_api.py from tools/c_api; edit that. */
#include "table.h"

#define COUNT(array) ((int)(sizeof array / sizeof array[0]))
"""
KINDS = {"i32": "I32", "i64": "I64", "u64": "U64", "f32": "F32", "f64": "F64", "size": "SIZE", "flag": "FLAG",
         "text": "TEXT"}
INPUT_KINDS = {"int32_t": "I32", "int64_t": "I64"}
ELEMENTS = {"float": "F32", "int32_t": "I32"}


def text(value):
    """A C string, a line of the source for each of its lines."""
    *lines, last = value.replace("\\", "\\\\").replace('"', '\\"').split("\n")
    return "\n    ".join([*(f'"{line}\\n"' for line in lines), f'"{last}"'])


class Words:
    """Arrays of words, each set of choices once."""

    def __init__(self, description):
        self.description, self.arrays = description, {}

    def of(self, member):
        key = tuple(names.choices(self.description, member))
        return self.arrays.setdefault(key, f"kWords{len(self.arrays)}")

    def write(self):
        made = ""
        for rows, name in self.arrays.items():
            made += f"static const Word {name}[] = {{" + ", ".join(f'{{"{w}", {v}}}' for w, v in rows)
            made += ", {NULL, 0}};\n"
        return made


def row(description, words, item, member):
    """A Member of the table."""
    place = f'"{names.of_member(member)}", KIND_%s, offsetof({item.name}, {member.name})'
    if member.enum:
        return "{" + place % "WORD" + f", .words = {words.of(member)}}}"
    if member.struct:
        return "{" + place % "STRUCT" + f", .inner = &kStruct_{member.struct}}}"
    if member.count:
        count = "" if member.count == "1" else f', .count = "{member.count}"'
        return "{" + place % "ARRAY" + f", .inner = &kStruct_{names.pointed(member)}{count}}}"
    if not member.kind.endswith("*"):
        return "{" + place % KINDS[member.kind.rstrip("?")] + "}"
    if member.name == "stream":
        return "{" + place % "STREAM" + "}"
    element = ELEMENTS.get(names.pointed(member))
    kind = "INPUT" if member.kind.startswith("const ") else "OUTPUT"
    return "{" + place % kind + (f", .element = ELEMENT_{element}" if element else "") + "}"


def struct(description, words, item):
    rows = [row(description, words, item, m) for m in item.members if m.kind != "reserved"]
    made = f"\nstatic void init_{item.name}(void* given) {{ {item.name}_init(given); }}\n"
    made += f"static const Member kMembers_{item.name}[] = {{\n  " + ",\n  ".join(rows) + "};\n"
    made += f"static PyObject* names_{item.name}[COUNT(kMembers_{item.name})];\n"
    made += f"static {item.name} defaults_{item.name};\n"
    return made + (f"static const Struct kStruct_{item.name} = {{\n"
                   f'  "{names.of(item.name)}", sizeof({item.name}), init_{item.name}, kMembers_{item.name},\n'
                   f"  COUNT(kMembers_{item.name}), names_{item.name}, &defaults_{item.name}}};\n")


def create(item):
    given = f"given, problem, ({item.name}**)handle" if item.problem else f"given, ({item.name}**)handle"
    unused = "" if item.problem else "  (void)problem;\n"
    return (f"static tw_status create_{item.name}(const void* given, const void* problem, void** handle) {{\n"
            f"{unused}  return {item.name}_{item.verb}({given});\n}}\n")


def plan(item):
    """What tw_NAME_plan() takes as a struct of its own, and the call."""
    name, given, members = f"inputs_{item.name}", [], []
    made = f"typedef struct {name} {{\n"
    sets = ""
    for kind, word, is_struct in plan_inputs(item):
        made += f"  {kind} {word};\n"
        given.append(("&" if is_struct else "") + f"in->{word}")
        place = f'"{word}", KIND_%s, offsetof({name}, {word})'
        if is_struct:
            sets += f" {kind}_init(&in->{word});"
            members.append("{" + place % "STRUCT" + f", .inner = &kStruct_{kind}}}")
        else:
            sets += f" in->{word} = 0;"
            members.append("{" + place % INPUT_KINDS[kind] + "}")
    made += f"}} {name};\nstatic void init_{name}(void* given) {{ {name}* in = given;{sets} }}\n"
    made += f"static const Member kMembers_{name}[] = {{\n  " + ",\n  ".join(members) + "};\n"
    made += f"static PyObject* names_{name}[COUNT(kMembers_{name})];\nstatic {name} defaults_{name};\n"
    made += (f"static const Struct kStruct_{name} = {{\n"
             f'  "{names.of(item.name)}Inputs", sizeof({name}), init_{name}, kMembers_{name},\n'
             f"  COUNT(kMembers_{name}), names_{name}, &defaults_{name}}};\n")
    made += f"static tw_status plan_{item.name}(const tw_device* device, const void* inputs, tw_plan** plan) {{\n"
    made += f"  const {name}* const in = inputs;\n"
    return made + f"  return {item.name}_plan(device, {', '.join(given)}, plan);\n}}\n"


def queries(item):
    made, rows = "", []
    kinds = {"const char*": "text", "size_t": "size", "double": "number"}
    for result, name, _, comment in item.queries:
        made += f"static {result} {name}_{item.name}(const void* handle) {{\n"
        made += f"  return {item.name}_{name}(handle);\n}}\n"
        doc = names.query_doc(name, comment)
        rows.append(f'{{"{name}", {text(doc)}, .{kinds[result]} = {name}_{item.name}}}')
    if rows:
        made += f"static const Query kQueries_{item.name}[] = {{\n  " + ",\n  ".join(rows) + "};\n"
    return made


def calls(description, item):
    made, rows = "", []
    for method, kind, comment in item.calls:
        made += (f"static tw_status {method}_{item.name}(const void* handle, const void* arguments) {{\n"
                 f"  return {item.name}_{method}(handle, arguments);\n}}\n")
        doc = names.call_doc(description, item, method, description.structs[kind], comment)
        what = f"{names.of(item.name)}.{method}"
        rows.append(f'{{"{method}", "{what}", {text(doc)},\n   &kStruct_{kind}, {method}_{item.name}}}')
    if rows:
        made += f"static const Call kCalls_{item.name}[] = {{\n  " + ",\n  ".join(rows) + "};\n"
    return made


def rule(description, item, rule):
    """A Rule of the table."""
    problem = {m.name: m for m in description.structs[item.problem].members}
    arguments = names.members(description.structs[item.calls[0][1]])
    members = [m.name for m in arguments]
    if rule.argument not in members:
        raise DescriptionError(f"tensors.txt: {item.name} has no argument {rule.argument}")

    def at(name):
        if name not in problem:
            raise DescriptionError(f"tensors.txt: {item.problem} has no member {name}")
        return f"offsetof({item.problem}, {name})"

    name, _, otherwise = rule.dtype.partition("|")
    dtype = f".dtype = TW_{name}" if name.isupper() else f".dtype_offset = {at(name)}"
    if otherwise:
        dtype += f", .dtype_otherwise = {at(otherwise)}"
    def extent(e):
        first, _, otherwise = e.partition("|")
        number, offset = (first, 0) if first.isdigit() else (0, at(first))
        return f"{{{offset}, {number}, {at(otherwise) if otherwise else 0}}}"

    extents = ", ".join(extent(e) for e in rule.extents)
    parts = [f".member = {members.index(rule.argument)}", dtype, f".extents = {{{extents}}}",
             f".num_extents = {len(rule.extents)}"]
    if rule.strides:
        is_struct = problem[rule.strides].struct == "tw_strides"
        parts.append(f".strides = STRIDES_{'STRUCT' if is_struct else 'ROW'}")
        parts.append(f".strides_offset = {at(rule.strides)}")
        # Of [batch, row, head] alone the last extent has a stride, too.
        has_head_dim = not is_struct or len(rule.extents) != 3 or rule.extents[-1].endswith("head_dim")
        parts.append(f".is_last_contiguous = {str(has_head_dim).lower()}")
    flags = []
    for condition in rule.conditions:
        name = condition.lstrip("!")
        if name == "16-bit":
            parts.append(".is_16_bit = true")
            continue
        offset = at(name)
        flags.append(f"{{FLAG_{'CLEAR' if condition != name else 'SET'}, "
                     f"{str(problem[name].kind == 'i64').lower()}, {offset}}}")
    if flags:
        parts.append(f".flags = {{{', '.join(flags)}}}")
    return "{" + ", ".join(parts) + "}"


def rules(description, item):
    rows = [rule(description, item, r) for r in description.rules.get(item.name, ())]
    return f"static const Rule kRules_{item.name}[] = {{\n  " + ",\n  ".join(rows) + "};\n" if rows else ""


def class_row(description, item):
    problem = f"&kStruct_{item.problem}" if item.problem else "NULL"
    made = f'  {{"{names.of(item.name)}",\n    {text(names.class_doc(description, item))},\n'
    inputs = f"&kStruct_inputs_{item.name}, plan_{item.name}" if item.calls else "NULL, NULL"
    made += f'    "{names.of(item.on)}", {problem}, {inputs},\n    create_{item.name}, destroy_{item.name},\n'
    given = {"Queries": item.queries, "Rules": description.rules.get(item.name), "Calls": item.calls}
    arrays = [f"k{rows}_{item.name}" if there else "" for rows, there in given.items()]
    return made + "    " + ", ".join(f"{name}, COUNT({name})" if name else "NULL, 0" for name in arrays) + "},\n"


def write(description):
    words, classes = Words(description), names.classes(description)
    body = "".join(struct(description, words, item) for item in description.structs.values())
    for item in classes:
        body += f"\n{create(item)}"
        body += f"static void destroy_{item.name}(void* handle) {{ {item.name}_destroy(handle); }}\n"
        body += (plan(item) if item.calls else "") + queries(item) + rules(description, item)
        body += calls(description, item)
    body += "\nconst Class kClasses[] = {\n" + "".join(class_row(description, item) for item in classes) + "};\n"
    body += "const int kNumClasses = COUNT(kClasses);\n\nconst Struct* const kStructs[] = {\n"
    body += "".join(f"  &kStruct_{name},\n" for name in description.structs)
    body += "".join(f"  &kStruct_inputs_{item.name},\n" for item in classes if item.calls) + "};\n"
    body += "const int kNumStructs = COUNT(kStructs);\n\n"
    arguments = sorted({kind for item in classes for _, kind, _ in item.calls})
    body += "".join(f"_Static_assert(sizeof({kind}) <= sizeof(AnyArguments), \"make it larger\");\n"
                    for kind in arguments)
    return BEGIN + "\n" + words.write() + body
