"""How the C interface is called in Python: classes, words of enumerations, signatures, doc strings."""

import keyword
import pathlib
import re
import textwrap

from .description import Function, Handle, Operator

def of(name):
    """tw_attention_prepare -> AttentionPrepare"""
    return "".join(part[:1].upper() + part[1:] for part in name.removeprefix("tw_").split("_"))


def of_member(member):
    """`in` is a word of Python."""
    return member.name + "_" if keyword.iskeyword(member.name) else member.name


def word(enumerator):
    return enumerator.lower()


def choices(description, member):
    """(word, value) of each enumerator that a member takes."""
    enum = description.enums[member.enum]
    values = {enum.spelled(name): (word(name), value) for name, value, _, _ in enum.rows}
    listed = [values[name] for name, _ in member.choices]
    if member.kind.startswith("dtype?"):
        listed.append(values["TW_ABSENT"])
    return listed


def pointed(member):
    """The type that an address is of."""
    return member.kind.removeprefix("const ").rstrip("*")


def default(description, member):
    """As Python's signature has it; None: of a pointer or a struct."""
    if member.enum:
        values = {v: w for w, v in choices(description, member)}
        spelled = {description.enums[member.enum].spelled(row[0]): row[1]
                   for row in description.enums[member.enum].rows}
        value = spelled.get(member.default, 0) if member.default else 0
        return repr(values.get(value, next(iter(values.values()))))
    if member.struct or member.kind == "text" or member.kind.endswith("*"):
        return "None"
    if member.kind == "flag":
        return "True" if member.default == "1" else "False"
    if member.kind.rstrip("?") in ("f32", "f64"):
        return repr(float(member.default or 0))
    return member.default if re.fullmatch(r"-?\d+", member.default or "") else "0"


class Weights:
    """A handle that tw_NAME_prepare() makes, in the form of an operator without calls."""

    verb = "prepare"
    on = "tw_device"
    calls = ()

    def __init__(self, item, source, comment):
        self.name, self.problem, self.comment = item.name, source, comment
        self.queries = [("size_t", "bytes", "", "of the prepared weights on the device")]


def classes(description):
    """Operators, and before them the weights that some are made on."""
    found = []
    functions = {item.name: item for item in description.of(Function)}
    for item in description.of(Handle):
        prepare = functions.get(f"{item.name}_prepare")
        if prepare:
            source = re.search(r"const (tw_\w+)\* source", prepare.parameters)[1]
            found.append(Weights(item, source, prepare.comment))
    for item in description.of(Operator):
        item.verb = "create"
        found.append(item)
    return found


def members(item):
    return [m for m in item.members if m.kind != "reserved"]


def signature(description, item, first):
    parts = [f"{of_member(m)}={default(description, m)}" for m in members(item)] if item else []
    return f"({', '.join([*first, *(['*'] if parts else []), *parts])})"


def pythonic(description, comment):
    """A comment of the C interface with the words of Python."""
    for enum in description.enums.values():
        for name, *_ in enum.rows:
            ours = of(name.lower()) if enum.name == "tw_status" else repr(word(name))
            comment = re.sub(rf"\b{enum.spelled(name)}\b", ours, comment)
    return comment.replace("NULL", "None")


def about(description, member):
    """What the documentation says of a member: its type, its words, its comment."""
    parts = []
    if member.enum:
        parts.append(", ".join(repr(w) for w, _ in choices(description, member)))
    if member.struct or member.count:
        inner = description.structs[member.struct or pointed(member)]
        parts.append(("a list of " if member.count and member.count != "1" else "") + "{" +
                     ", ".join(of_member(m) for m in members(inner)) + "}")
    elif member.kind.endswith("*") and member.name != "stream":
        element = {"float": "float32 ", "int32_t": "int32 "}.get(pointed(member), "")
        parts.append(element + ("tensor, written" if not member.kind.startswith("const") else "tensor"))
    if member.comment and member.name != "stream":
        parts.append(pythonic(description, member.comment))
    if member.name == "stream":
        parts.append("None: PyTorch's current stream, else the default one")
    return "; ".join(parts)


def member_lines(description, item):
    lines = []
    for member in members(item):
        note = about(description, member)
        text = f"{of_member(member)}: {note}" if note else of_member(member)
        lines += textwrap.wrap(text, 92, initial_indent="  ", subsequent_indent="      ")
    return lines


def document(head, comment, description, item):
    lines = textwrap.wrap(pythonic(description, " ".join(comment)), 92)
    lines += ([""] if lines else []) + member_lines(description, item) if item else []
    return f"{head}\n--\n\n" + "\n".join(lines)


def problem_of(description, item):
    return description.structs[item.problem] if item.problem else None


def class_doc(description, item):
    problem, on = problem_of(description, item), "device" if item.on == "tw_device" else item.on_word
    return document(of(item.name) + signature(description, problem, [on, "/"]), item.comment, description, problem)


def call_doc(description, item, method, arguments, comment):
    head = method + signature(description, arguments, ["$self", "/"])
    return document(head, [comment[0].upper() + comment[1:] + "."] if comment else [], description, arguments)


def query_doc(name, comment):
    return comment[0].upper() + comment[1:] + "." if comment else ""


# Methods that python/core/functions.c adds to what the description says.
EXTRA_STUBS = {
    "Indexer": '''    def workspace_bytes(self, tokens: int, batch: int) -> int:
        """Of a call; 0 if a number makes no sense."""
        ...
''',
    "IndexerLogits": '''    def workspace_bytes(self, tokens: int, batch: int) -> int:
        """Of a call; 0 if a number makes no sense. Without pages the batch does not count."""
        ...
''',
    "KvCache": '''    def bytes(self) -> int:
        """Of all pages: what the caller allocates."""
        ...
''',
    "AttentionPrepare": '''    def sizes(self) -> dict[str, int]:
        """What its results need: bytes of values, numbers of scales, workspace_bytes."""
        ...
'''}
EXPORTED = ("Device", "Buffer", "Operator", "attention_signs", "quantize_on_host", "quantize_sizes", "rope_table")
STUB_BEGIN = (pathlib.Path(__file__).resolve().parent / "stub_begin.pyi").read_text()
