"""Reads the description of the C interface, tools/c_api/*.txt.

    section TITLE
    enum NAME [: C++ type] [prefix P]        then lines  ENUMERATOR = VALUE [C++ enumerator] [| comment]
    struct NAME [: C++ type]                 then lines  KIND name, ... [-> C++ member] [= default] [| comment]
    handle NAME
    operator NAME : C++ class, word          then lines  create | plan | text | size | double | call
    function DECLARATION
    | a comment of the item it stands under

An operator has NAME_plan(device, problem, plan), which calls plan_NAME() of C++. `plan of STRUCT word` puts a
struct before the problem; `plan with STRUCT word` one behind it, `plan with TYPE name, ...` numbers.

A struct without a C++ type is converted by hand. Kinds of members:

    i32 i64 u64 f32 f64 size    as they are
    flag                        int32_t, bool in C++
    f64? f32?                   0 leaves the default of the C++ member
    text                        const char*; NULL leaves the default
    dtype(A B) dtype?(A B)      int32_t, one of these tw_dtype; with ? also TW_ABSENT
    enum E(A B:kOther) as T     int32_t, of these enumerators (all, if none are listed), as C++ type T
    struct S                    a struct inside of the struct
    TYPE*                       an address
    TYPE*[MEMBER] TYPE*[1]      of an array: as many as another member says, or one
    ... -> name.part            a member of a struct inside of the C++ struct
    reserved                    int32_t that fills up the struct: its end may hold no padding
    appended                    no member: those below came with a later version, so not in the order of C++
"""

import pathlib
import re
from dataclasses import dataclass, field

FILES = ("device", "plan", "attention", "linear", "deepseek_v4", "sample", "layout", "formats", "tokenizer", "llm")
FOLDER = pathlib.Path(__file__).resolve().parent
# Generated sources: one file a family, of these sections. Others declare functions alone.
FAMILIES = {"Plans": "plan", "Attention": "attention", "Preparing e4m3 operands of attention": "attention",
            "Merging partial results of attention": "attention",
            "Lists of the keys that a mask shows": "sparse_attention",
            "Attention whose values are keys as well": "sparse_attention",
            "Decode attention": "decode", "New keys and values in caches": "decode",
            "Linear layers": "linear", "Block-scaled linear layers": "linear",
            "Quantising": "quantize", "Mixture of experts": "moe",
            "DeepSeek-V4: sparse attention over paged caches": "sparse_attention",
            "DeepSeek-V4: rows of caches, lists of them, compressors": "cache",
            "DeepSeek-V4: lightning indexer": "indexer", "DeepSeek-V4: hyper-connections": "hyper_connection",
            "Sampling": "sample", "Tokenizer": "tokenizer", "Language models": "llm"}
PLAIN = {"i32": ("int32_t", 4), "i64": ("int64_t", 8), "u64": ("uint64_t", 8), "f32": ("float", 4),
         "f64": ("double", 8), "size": ("size_t", 8), "flag": ("int32_t", 4), "reserved": ("int32_t", 4)}
ENUM_KIND = re.compile(r"enum (?P<enum>\w+)(?:\((?P<only>[^)]*)\))?(?: as (?P<cpp>\w+))?$")
DTYPE_KIND = re.compile(r"dtype(?P<may_be_absent>\??)\((?P<only>[^)]*)\)$")


class DescriptionError(Exception):
    pass


@dataclass
class Enum:
    name: str
    cpp: str
    prefix: str
    comment: list = field(default_factory=list)
    rows: list = field(default_factory=list)  # (enumerator, value, C++ enumerator, comment)

    def spelled(self, enumerator):
        return self.prefix + enumerator

    def cpp_name(self, enumerator):
        row = next((row for row in self.rows if row[0] == enumerator), None)
        if row is None:
            raise DescriptionError(f"{self.name} has no enumerator {enumerator}")
        return row[2] or "k" + "".join(word.capitalize() for word in enumerator.split("_"))


@dataclass
class Member:
    kind: str
    name: str
    cpp: str
    default: str
    comment: str
    first: bool  # of its line
    choices: list = field(default_factory=list)  # (C enumerator, C++ enumerator)
    cpp_enum: str = ""
    enum: str = ""
    struct: str = ""
    count: str = ""  # of an array: the member that has its length, or "1"

    @property
    def c_type(self):
        if self.struct:
            return self.struct
        if self.kind.endswith("*"):
            return self.kind
        if self.kind == "text":
            return "const char*"
        return PLAIN[self.kind.rstrip("?")][0] if self.kind.rstrip("?") in PLAIN else "int32_t"


@dataclass
class Struct:
    name: str
    cpp: str  # "": converted by hand
    comment: list = field(default_factory=list)
    members: list = field(default_factory=list)
    in_order: int = 0  # so many members, reserved ones among them, stand in the order of C++; 0: all


@dataclass
class Function:
    result: str
    name: str
    parameters: str
    comment: list = field(default_factory=list)


@dataclass
class Handle:
    name: str
    comment: list = field(default_factory=list)


@dataclass
class Operator:
    name: str
    cpp: str
    word: str
    comment: list = field(default_factory=list)
    problem: str = ""
    problem_word: str = "problem"
    on: str = "tw_device"
    on_word: str = "device"
    plan_of: tuple = ()  # (struct, word) before the problem
    plan_with: list = field(default_factory=list)  # (struct or type, word) behind it
    queries: list = field(default_factory=list)  # (C type, name, expression, comment)
    calls: list = field(default_factory=list)    # (method, struct, comment)

    def read_line(self, line, comment):
        if match := re.fullmatch(r"create(?: (\w+))?(?: as (\w+))?(?: on (\w+) (\w+))?", line):
            problem, word, on, on_word = match.groups()
            self.problem, self.problem_word = problem or "", word or "problem"
            self.on, self.on_word = on or self.on, on_word or self.on_word
        elif match := re.fullmatch(r"plan of (\w+) (\w+)", line):
            self.plan_of = match.groups()
        elif match := re.fullmatch(r"plan with (.+)", line):
            self.plan_with = [tuple(part.split(" ")) for part in match[1].split(", ")]
        elif match := re.fullmatch(r"(text|size|double) (\w+) = (.+)", line):
            kind = {"text": "const char*", "size": "size_t", "double": "double"}[match[1]]
            self.queries.append((kind, match[2], match[3], comment))
        elif match := re.fullmatch(r"call (\w+) (\w+)", line):
            self.calls.append((match[1], match[2], comment))
        else:
            raise DescriptionError(f"{self.name}: cannot read {line!r}")


@dataclass
class Rule:
    """What a tensor of a call is: a line of tensors.txt."""

    argument: str
    dtype: str
    extents: list
    strides: str = ""
    conditions: list = field(default_factory=list)


def read_rules(path):
    """operator -> rules of its first call."""
    found, name = {}, ""
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(" "):
            name = line.partition(".")[0]
            continue
        match = re.fullmatch(r"(\w+) ([\w|]+) \[([^]]+)\](?: by (\w+))?((?: if [!\w-]+)*)", line.strip())
        if not match:
            raise DescriptionError(f"cannot read {line!r}")
        rule = Rule(match[1], match[2], match[3].split(), match[4] or "", match[5].split(" if ")[1:])
        found.setdefault(name, []).append(rule)
    return found


class Description:
    """All items in order, titles of sections (str) among them."""

    def __init__(self, folder=FOLDER):
        self.items, self.enums, self.structs = [], {}, {}
        for name in FILES:
            for number, line in enumerate((folder / f"{name}.txt").read_text().splitlines(), 1):
                try:
                    self.read_line(line)
                except DescriptionError as error:
                    raise DescriptionError(f"tools/c_api/{name}.txt:{number}: {error}") from None
        for struct in self.structs.values():
            self.layout(struct)
        self.rules = read_rules(folder / "tensors.txt")

    def read_line(self, line):
        if not line.strip():
            return
        if line.startswith("| "):
            self.items[-1].comment.append(line[2:])
        elif line.startswith("  "):
            text, _, comment = line.strip().partition(" | ")
            self.read_row(self.items[-1], text, comment)
        else:
            self.items.append(self.begin(*line.split(" ", 1)))

    def begin(self, word, rest):
        if word == "section":
            return rest
        if word == "handle":
            return Handle(rest)
        if word == "enum" and (match := re.fullmatch(r"(\w+)(?: : (\w+))?(?: prefix (\w+))?", rest)):
            self.enums[match[1]] = Enum(match[1], match[2] or "", match[3] or match[1].upper() + "_")
            return self.enums[match[1]]
        if word == "struct" and (match := re.fullmatch(r"(\w+)(?: : (\w+))?", rest)):
            self.structs[match[1]] = Struct(match[1], match[2] or "")
            return self.structs[match[1]]
        if word == "operator" and (match := re.fullmatch(r"(\w+) : (\w+) (\w+)", rest)):
            return Operator(*match.groups())
        if word == "function" and (match := re.fullmatch(r"(.+?\*?) ?(tw_\w+)\((.*)\)", rest)):
            return Function(*match.groups())
        raise DescriptionError(f"cannot read {word} {rest}")

    def read_row(self, item, text, comment):
        if isinstance(item, Enum):
            match = re.fullmatch(r"(\w+) = (-?\d+)(?: (\w+))?", text)
            if not match:
                raise DescriptionError(f"cannot read the enumerator {text!r}")
            item.rows.append((match[1], int(match[2]), match[3] or "", comment))
        elif isinstance(item, Struct):
            item.members += self.read_members(item, text, comment)
        elif isinstance(item, Operator):
            item.read_line(text, comment)
        else:
            raise DescriptionError(f"a row {text!r} of no enum, struct or operator")

    def read_members(self, struct, text, comment):
        if text == "appended":
            struct.in_order = len(struct.members)
            return []
        if text == "reserved":
            count = sum(m.kind == "reserved" for m in struct.members)
            return [Member("reserved", "reserved" + (str(count + 1) if count else ""), "", "", comment, True)]
        match = re.fullmatch(r"(?P<head>.+?)(?: -> (?P<cpp>[\w.]+))?(?: = (?P<default>\S+))?", text)
        head = re.fullmatch(r"(?P<kind>.+[\w)?*\]]) (?P<names>\w+(?:, \w+)*)", match["head"])
        if not head:
            raise DescriptionError(f"cannot read the member {text!r}")
        kind, names = head["kind"], head["names"].split(", ")
        members = [Member(kind, name, match["cpp"] or name, match["default"] or "", comment, i == 0)
                   for i, name in enumerate(names)]
        for member in members:
            self.understand(member)
        return members

    def understand(self, member):
        """The choices of an enumeration, the struct of a struct, the length of an array."""
        if match := re.fullmatch(r"(.+\*)\[(\w+)\]", member.kind):
            member.kind, member.count = match.groups()
        if match := DTYPE_KIND.match(member.kind):
            member.enum, member.cpp_enum, only = "tw_dtype", "DType", match["only"].split()
        elif match := ENUM_KIND.match(member.kind):
            member.enum = match["enum"]
            if member.enum not in self.enums:
                raise DescriptionError(f"no enum {member.enum}")
            enum = self.enums[member.enum]
            member.cpp_enum = match["cpp"] or enum.cpp
            only = (match["only"] or " ".join(row[0] for row in enum.rows)).split()
        elif match := re.fullmatch(r"struct (\w+)", member.kind):
            if match[1] not in self.structs:
                raise DescriptionError(f"no struct {match[1]}")
            member.struct = match[1]
            return
        elif member.kind.rstrip("?") in PLAIN or member.kind == "text" or member.kind.endswith("*"):
            return
        else:
            raise DescriptionError(f"no kind {member.kind!r}")
        enum = self.enums[member.enum]
        for word in only:
            name, _, cpp = word.partition(":")
            member.choices.append((enum.spelled(name), cpp or enum.cpp_name(name)))
        member.default = member.default or (enum.spelled(only[0]) if not enum.rows[0][1] == 0 or
                                            only[0] != enum.rows[0][0] else "")

    def bytes_of(self, member):
        if member.struct:
            return self.layout(self.structs[member.struct]), 8
        size = PLAIN[member.kind.rstrip("?")][1] if member.kind.rstrip("?") in PLAIN else 8
        if member.enum:
            size = 4
        return size, size

    def layout(self, struct):
        """Bytes of a struct. Its end may hold no padding: a member that is appended later must not lie where an
        older program left whatever its compiler put there."""
        at = 8
        for member in struct.members:
            size, alignment = self.bytes_of(member)
            at = (at + alignment - 1) // alignment * alignment + size
        if at % 8:
            raise DescriptionError(f"{struct.name} ends with 4 bytes of padding; end it with `reserved`")
        return at

    def of(self, kind, family=None):
        """Items of a kind in order: all, or those of a family's sections."""
        found, section = [], None
        for item in self.items:
            section = item if isinstance(item, str) else section
            if isinstance(item, kind) and family in (None, FAMILIES.get(section)):
                found.append(item)
        return found

    def families(self):
        """Names of generated files, in order."""
        return list(dict.fromkeys(FAMILIES.values()))

    def used_families(self, family):
        """Families before this one whose structs stand inside of its own."""
        inner = {m.struct for item in self.of(Struct, family) for m in item.members if m.struct}
        return [other for other in self.families()[:self.families().index(family)]
                if inner & {item.name for item in self.of(Struct, other)}]
