#!/usr/bin/env python3
"""Writes the linker's version script of libtilewright.so: what the public headers declare, and nothing else.

  make_exports.py --out FILE HEADER...

C functions are known by their prefix. Of C++ the script lists mangled names, one line for each function that a
header of namespace tilewright declares without a body; what follows the name, its arguments, is left open but
for a first argument of a public type, by which overloads such as to_string() are told from those inside.
"""

import argparse
import pathlib
import re
import sys

NAMESPACE = "tilewright"
TYPE = re.compile(r"\b(class|struct)\s+(\w+)\s*(?:final\s*)?(?::[^:].*)?$", re.S)
ENUM = re.compile(r"\benum\s+(?:class\s+)?(\w+)")
FUNCTION = re.compile(r"(operator\s*\S+?|~?\w+)\s*\((.*)", re.S)


def source(text):
    """The text without comments, preprocessor lines, strings and `extern "C"` blocks' braces."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', text)
    return re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.M)


def declarations(text):
    """(enclosing scopes, declaration, whether a body follows) of a header, in order."""
    scopes, start = [], 0
    text = source(text)
    for at, character in enumerate(text):
        if character not in "{};":
            continue
        head = re.sub(r"^\s*(?:(?:public|private|protected)\s*:\s*)+", "", text[start:at]).strip()
        start = at + 1
        if character == "}":
            scopes.pop()
            continue
        if head:
            yield list(scopes), head, character == "{"
        if character == "{":
            name = re.match(r"namespace\s+(\w+)$", head)
            kind = TYPE.search(head) if not ENUM.search(head) and "(" not in head else None
            scopes.append(name[1] if name else kind[2] if kind else None)


def encoded(name):
    return f"{len(name)}{name}"


def first_argument(arguments, types):
    """Mangled form of the first argument as far as it is a public type, else nothing."""
    match = re.match(r"\s*(const\s+)?(\w+)\s*(&?)\s*\w*\s*[,)=]", arguments)
    if not match or match[2] not in types:
        return ""
    return ("R" if match[3] else "") + ("K" if match[1] and match[3] else "") + f"NS_{encoded(match[2])}E"


def function_pattern(scopes, head, types):
    match = FUNCTION.search(head)
    if not match or "=" in head[:match.start()] or re.match(r"(template|using|typedef|friend)\b", head):
        return None
    if re.search(r"=\s*(default|delete)$|^(constexpr|inline)\b", head):
        return None
    name, arguments = match[1].replace(" ", ""), match[2]
    if len(scopes) == 1:
        # A function that returns strings has a tag of the library's ABI behind its name.
        end = "B*E" if "std::string" in head[:match.start()] else "E"
        return f"_ZN{encoded(NAMESPACE)}{encoded(name)}{end}{first_argument(arguments, types)}*"
    scope = encoded(NAMESPACE) + encoded(scopes[1])
    if name == scopes[1] or name == "~" + scopes[1]:
        return f"_ZN{scope}{'D' if name[0] == '~' else 'C'}[0-9]*"
    if name == "operator=":
        return f"_ZN{scope}aS*"
    const = "K" if re.search(r"\)\s*const\b", arguments) else ""
    return f"_ZN{const}{scope}{encoded(name)}[EB]*"


def patterns(headers):
    found = [d for header in headers for d in declarations(header.read_text())]
    types = {match[1] for _, head, _ in found if (match := ENUM.search(head))}
    types |= {match[2] for _, head, _ in found if (match := TYPE.search(head))}
    out = set()
    for scopes, head, has_body in found:
        if scopes[:1] != [NAMESPACE] or len(scopes) > 2 or None in scopes:
            continue
        if len(scopes) == 1 and has_body and (match := TYPE.search(head)) and match[1] == "class":
            out |= {f"_ZT{kind}N{encoded(NAMESPACE)}{encoded(match[2])}E" for kind in "ISV"}
        elif not has_body and (pattern := function_pattern(scopes, head, types)):
            out.add(pattern)
    return sorted(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("headers", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    lines = patterns(args.headers)
    if not lines:
        sys.exit("make_exports: the headers declare nothing; pass include/tilewright/*.h")
    names = "".join(f"    {line};\n" for line in ["tw_*", *lines])
    args.out.write_text("/* Made by tools/make_exports.py from include/tilewright/. */\n"
                        f"{{\n  global:\n{names}  local: *;\n}};\n")


if __name__ == "__main__":
    main()
