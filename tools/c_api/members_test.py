"""Writes tests/ops/c_api/members/*: each member of C, set alone, is found in C++, and nothing else changes."""

from .description import Struct

BEGIN = """// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every member of the structs of the C interface, %s, set alone to a value of its own: the C++ struct has
// it there, and nowhere else. Defaults are those of C++.
%s

#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {
namespace {
"""

CHANGES_BEGIN = """// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Which members of C++ structs differ, %s, under their names in C.
#pragma once

#include "ops/c_api/convert/%s.h"
%s#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {
"""

END = """
}  // namespace
}  // namespace tilewright::c_api
"""


def changed_function(item):
    """`changed(a, b)`: the members of the C++ struct that differ."""
    members = [m for m in item.members if m.kind != "reserved"]
    head = f"inline Changes changed_{item.name}(const {item.cpp}& x, const {item.cpp}& y) {{\n"
    lines = []
    for m in members:
        if m.struct:
            lines.append(f'  append(found, "{m.name}.", changed_{m.struct}(x.{m.cpp}, y.{m.cpp}));')
        else:
            lines.append(f'  if (x.{m.cpp} != y.{m.cpp}) found.push_back("{m.name}");')
    return "\n" + head + "  Changes found;\n" + "\n".join(lines) + "\n  return found;\n}\n"


def sentinel(member, number):
    """(C value, the same in C++) pairs that are not the default."""
    if member.enum:
        return [(name, f"{member.cpp_enum}::{cpp}") for name, cpp in member.choices
                if name != (member.default or member.choices[0][0])]
    if member.kind == "flag":
        value = "0" if member.default == "1" else "1"
        return [(value, "true" if value == "1" else "false")]
    if member.kind == "text":
        return [(f'"sentinel {number}"',) * 2]
    if member.kind.rstrip("?") == "f64":
        return [(f"{number}.25",) * 2]
    if member.kind.rstrip("?") == "f32":
        return [(f"{number}.25f",) * 2]
    if member.kind.endswith("*"):
        return [(f"at<{member.kind[:-1]}>({number})",) * 2]
    return [(str(1000 + number),) * 2]


def leaves(description, item, c="", cpp=""):
    """(path in C, path in C++, member) of every member, also of structs inside."""
    for member in item.members:
        if member.kind == "reserved":
            continue
        if member.struct:
            yield from leaves(description, description.structs[member.struct], f"{c}{member.name}.",
                              f"{cpp}{member.cpp}.")
        else:
            yield c + member.name, cpp + member.cpp, member


def check(path, cpp_path, value, wanted):
    found = f"p.{cpp_path} == {wanted}"
    return f'  test.sets("{path}", [](auto& c) {{ c.{path} = {value}; }}, [](const auto& p) {{ return {found}; }});\n'


def test_of(description, item):
    text = f"\nTEST(CApiMembers, {item.name}) {{\n"
    text += f"  const Members<{item.name}, {item.cpp}> test({item.name}_init, changed_{item.name});\n"
    text += "  test.has_the_defaults();\n"
    for number, (path, cpp_path, member) in enumerate(leaves(description, item), 1):
        for value, wanted in sentinel(member, number):
            text += check(path, cpp_path, value, wanted)
        if member.enum:
            text += f'  test.refuses("{path}", [](auto& c) {{ c.{path} = 77; }});\n'
    return text + "}\n"


def write_changes(description, family):
    """Which members of two C++ structs differ, by their names in C."""
    used = "\n".join(f'#include "tests/ops/c_api/members/{other}.h"' for other in description.used_families(family))
    text = CHANGES_BEGIN % (family.replace("_", " "), family, used + "\n" if used else "")
    for item in description.of(Struct, family):
        if item.cpp:
            text += changed_function(item)
    return text + "\n}  // namespace tilewright::c_api\n"


def write(description, family):
    text = BEGIN % (family.replace("_", " "), f'#include "tests/ops/c_api/members/{family}.h"')
    for item in description.of(Struct, family):
        if item.cpp:
            text += test_of(description, item)
    return text + END
