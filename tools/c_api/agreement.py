"""What the description has to agree with: the members of the C++ structs, and the previous header."""

import re


def drop_last(description, struct):
    """Takes the last member off a struct, or the last two if they have 4 bytes each."""
    size = 0
    while size < 8:
        size += description.bytes_of(struct.members.pop())[0]


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", re.sub(r"//[^\n]*", "", text), flags=re.S)


def top_level(body):
    """The statements of a struct's body, without what stands in braces inside."""
    statements, depth, current = [], 0, ""
    for character in body:
        depth += (character == "{") - (character == "}")
        if character == ";" and depth == 0:
            statements.append(current.strip())
            current = ""
        else:
            current += character
    return statements


def cpp_members(text, name):
    """Names of the members of `struct NAME` in the order of the header; None if it is not there."""
    match = re.search(rf"\bstruct {name} \{{(.*?)^\}};", text, re.S | re.M)
    if not match:
        return None
    names = []
    for statement in top_level(match[1]):
        plain = re.sub(r"\{[^{}]*\}", "", statement)
        plain = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", plain))
        if "(" in re.sub(r"=[^,]*", "", plain) or plain.startswith(("struct", "using", "enum")):
            continue
        parts = [re.sub(r"=.*", "", part).strip() for part in plain.split(",")]
        names += [re.search(r"(\w+)$", part)[1] for part in parts if part]
    return names


def names_of(members):
    """Names of the C++ members that hold these, each once."""
    return list(dict.fromkeys(m.cpp.partition(".")[0] for m in members if m.kind != "reserved"))


def with_cpp(description, folder):
    """Every member of a C++ struct is in C, in the same order: under its name, `-> name`, or member by member as
    `-> name.part`. What a later version appended to the C struct may stand anywhere in the C++ one."""
    headers = {path: without_comments(path.read_text()) for path in sorted(folder.glob("*.h"))}
    for struct in description.structs.values():
        if not struct.cpp:
            continue
        found = [members for text in headers.values() if (members := cpp_members(text, struct.cpp)) is not None]
        cpp = found[0] if found else None
        ours = names_of(struct.members)
        first = names_of(struct.members[:struct.in_order or None])
        if cpp is None:
            yield f"{struct.name}: no public header has a struct {struct.cpp}"
        elif missing := [name for name in cpp if name not in ours]:
            yield f"{struct.name} lacks {', '.join(missing)} of {struct.cpp}; append it to tools/c_api"
        elif unknown := [name for name in ours if name not in cpp]:
            yield f"{struct.name}: {struct.cpp} has no {', '.join(unknown)}"
        elif first != (order := [name for name in cpp if name in first]):
            yield f"{struct.name}: {struct.cpp} has the order {', '.join(order)}, not {', '.join(first)}"


def c_structs(text):
    """struct -> its declarations, (type, name), of a header that header.py wrote."""
    found = {}
    for match in re.finditer(r"typedef struct (\w+) \{(.*?)\} \1;", without_comments(text), re.S):
        members = []
        for statement in top_level(match[2]):
            kind, names = re.fullmatch(r"((?:const )?\w+\*?) (.+)", " ".join(statement.split())).groups()
            for name in names.split(", "):
                members.append((kind + "*" if name.startswith("*") else kind, name.lstrip("*")))
        found[match[1]] = members
    return found


def c_enumerators(text):
    return dict(re.findall(r"^  (TW_\w+) = (-?\d+)", text, re.M))


def c_functions(text, api="TW_API"):
    """name -> declaration, without blanks that depend on the width."""
    found = {}
    for match in re.finditer(rf"^{api} ([^;]+);", without_comments(text), re.M):
        declaration = " ".join(match[1].split())
        found[re.search(r"(\w+)\(", declaration)[1]] = declaration
    return found


def with_previous(text, path):
    """What would break a program that was compiled with the previous header."""
    previous = path.read_text()
    ours = c_structs(text)
    for name, members in c_structs(previous).items():
        if name not in ours:
            yield f"struct {name} is gone; programs compiled with the previous header use it"
            continue
        for number, member in enumerate(members):
            if ours[name][number:number + 1] != [member]:
                yield f"{name}: {' '.join(member)} moved or is gone; new members come at the end"
                break
    for kind, today, before in (("enumerator", c_enumerators(text), c_enumerators(previous)),
                                ("function", c_functions(text), c_functions(previous))):
        for name, value in before.items():
            if today.get(name) != value:
                yield f"{kind} {name} is not what it is in the previous header, {value}"
