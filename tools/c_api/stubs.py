"""Writes python/tilewright/_core.pyi: types and documentation of the extension for editors and mypy."""

import textwrap

from . import python_names as names

NUMBERS = {"f32": "float", "f64": "float"}
RESULTS = {"const char*": "str", "size_t": "int", "double": "float"}


def struct_type(description, name):
    return f"{names.of(name)} | tuple[Any, ...]"


def member_type(description, member):
    """Of a member as a caller gives it."""
    if member.enum:
        words = ", ".join(f'"{word}"' for word, _ in names.choices(description, member))
        return f"Literal[{words}]" + (" | DType" if member.enum == "tw_dtype" else "")
    if member.struct:
        return struct_type(description, member.struct)
    if member.count:
        inner = names.of(names.pointed(member))
        return f"Sequence[{inner}] | None" if member.count != "1" else f"{inner} | Sequence[{inner}] | None"
    if member.name == "stream":
        return "Stream | None"
    if member.kind.endswith("*"):
        return "Tensor | None"
    kind = member.kind.rstrip("?")
    return {"flag": "bool", "text": "str | None"}.get(kind, NUMBERS.get(kind, "int"))


def comment(lines, indent):
    """A doc string."""
    text = textwrap.dedent("\n".join(lines).strip("\n"))
    if not text:
        return ""
    quoted = '"""' + text.replace("\\", "\\\\") + ('"""' if "\n" not in text else '\n"""')
    return textwrap.indent(quoted, " " * indent) + "\n"


def parameters(description, item, first):
    """Lines of a parameter list."""
    lines = [*first]
    for member in names.members(item) if item else []:
        default = names.default(description, member)
        kind = member_type(description, member)
        if default == "None" and "None" not in kind:
            default = "..."
        lines.append(f"{names.of_member(member)}: {kind} = {default}")
    return "".join(f"        {line},\n" for line in lines)


def typed_dict(description, item):
    made = f"class {names.of(item.name)}(TypedDict, total=False):\n"
    made += comment([*item.comment, "", *names.member_lines(description, item)], 4)
    for member in names.members(item):
        made += f"    {names.of_member(member)}: {member_type(description, member)}\n"
    return made + "\n"


def function_doc(text):
    """A doc string without the signature in front, which CPython reads."""
    return text.split("\n--\n", 1)[1].strip("\n").split("\n")


def operator(description, item):
    problem = names.problem_of(description, item)
    made = f"class {names.of(item.name)}(Operator):\n"
    made += comment(function_doc(names.class_doc(description, item)), 4)
    on = "device" if item.on == "tw_device" else item.on_word
    star = ["*"] if problem else []
    head = ["cls", f"{on}: {names.of(item.on)}", "/", *star]
    made += f"    def __new__(\n{parameters(description, problem, head)}    ) -> Self: ...\n"
    for result, name, _, about in item.queries:
        made += f"    @property\n    def {name}(self) -> {RESULTS[result]}:\n"
        made += comment([names.query_doc(name, about)], 8) + "        ...\n"
    for method, kind, about in item.calls:
        arguments = description.structs[kind]
        made += f"    def {method}(\n{parameters(description, arguments, ['self', '*'])}    ) -> None:\n"
        made += comment(function_doc(names.call_doc(description, item, method, arguments, about)), 8)
        made += "        ...\n"
    return made + names.EXTRA_STUBS.get(names.of(item.name), "") + "\n"


def inner_structs(description):
    """Structs inside of structs, and what lies in arrays: those that callers write as dicts."""
    found = set()
    for item in description.structs.values():
        for member in item.members:
            if member.struct or member.count:
                found.add(member.struct or names.pointed(member))
    return [item for name, item in description.structs.items() if name in found]


def write(description):
    text = names.STUB_BEGIN
    text += "".join(typed_dict(description, item) for item in inner_structs(description))
    classes = names.classes(description)
    text += "".join(operator(description, item) for item in classes)
    exported = [*names.EXPORTED, *(names.of(item.name) for item in classes)]
    return text + "__all__ = [\n" + "".join(f'    "{name}",\n' for name in exported) + "]\n"
