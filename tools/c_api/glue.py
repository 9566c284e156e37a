"""Writes src/ops/c_api/convert/*.h and operators/*.cpp: from C structs to the problems and arguments of C++."""

from .description import Operator, Struct
from .header import operator_functions, plan_inputs

HEADERS = {"plan": (), "attention": ("attention", "attention_merge", "attention_prepare"),
           "decode": ("attention_decode",),
           "linear": ("block_scaled_linear", "linear"), "quantize": ("quantize",), "moe": ("moe",),
           "sparse_attention": ("latent_attention", "mask_lists", "sparse_attention"),
           "cache": ("cache_writer", "compressor"),
           "indexer": ("indexer", "indexer_logits"), "hyper_connection": ("hyper_connection",),
           "sample": ("sample",), "tokenizer": ("tokenizer",), "llm": ("llm",)}

CONVERT_BEGIN = """// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Structs of the C interface, %s: shape, defaults, and what they mean in C++.
#pragma once

%s

#include <cstddef>

namespace tilewright::c_api {
"""

CONVERT_ALL = """// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every struct of the C interface.
#pragma once

%s
"""

OPERATORS_BEGIN = """// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Functions of the C interface, %s; those of another form are in the folder above.
#include "ops/c_api/handles.h"
#include "ops/c_api/plan.h"

namespace c_api = tilewright::c_api;
"""

HANDLES_BEGIN = """// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// What the handles of the operators of the C interface are.
#pragma once

#include "ops/c_api/convert/all.h"
#include "ops/c_api/operator.h"
"""


def shape(description, item):
    text = f"\ntemplate <>\nstruct Version<{item.name}> {{\n"
    if item.cpp:
        text += f"  using Cpp = {item.cpp};\n"
    text += f'  static constexpr const char* kName = "{item.name}";\n'
    inner = [f'{{offsetof({item.name}, {m.name}), &Version<{m.struct}>::kShape, "{m.name}"}}'
             for m in item.members if m.struct]
    if inner:
        text += f"  static constexpr Inner kInner[] = {{{', '.join(inner)}}};\n"
    text += f"  static constexpr Shape kShape = {{kName, sizeof({item.name}), {'kInner' if inner else '{}'}}};\n"
    text += f"  static {item.name} defaults() {{\n    {item.name} c = {{}};\n    c.struct_bytes = sizeof c;\n"
    for member in item.members:
        if member.struct:
            text += f"    c.{member.name} = Version<{member.struct}>::defaults();\n"
        elif member.default:
            text += f"    c.{member.name} = {member.default};\n"
    return text + "    return c;\n  }\n};\n"


def convert_member(member):
    c, p = f"c.{member.name}", f"p.{member.cpp}"
    if member.struct:
        return f'assign({c}, {p}, at.in("{member.name}"));'
    if member.enum:
        choices = ", ".join(f'{{{name}, {member.cpp_enum}::{cpp}, "{name}"}}' for name, cpp in member.choices)
        absent = f"if ({c} != TW_ABSENT) " if member.kind.startswith("dtype?") else ""
        return f'{absent}{p} = choose<{member.cpp_enum}>({c}, {{{choices}}}, at, "{member.name}");'
    if member.kind == "text":
        return f"if ({c} != nullptr) {p} = {c};"
    if member.kind.endswith("?"):
        return f"if ({c} != 0) {p} = {c};"
    return f"{p} = {c} != 0;" if member.kind == "flag" else f"{p} = {c};"


def conversion(item):
    members = [m for m in item.members if m.kind != "reserved"]
    at = " at" if any(m.struct or m.enum for m in members) else ""
    head = f"inline void assign(const {item.name}& c, {item.cpp}& p, const Where&{at}) {{\n"
    lines = ["  " + convert_member(m) for m in members]
    return "\n" + head + "\n".join(lines) + "\n}\n"


def write_convert(description, family):
    """The header of a family; others of which it has structs inside are included."""
    includes = [f"ops/c_api/convert/{other}.h" for other in description.used_families(family)]
    includes.append("ops/c_api/convert/versions.h")
    includes += [f"tilewright/{name}.h" for name in (*HEADERS[family], "tilewright")]
    text = CONVERT_BEGIN % (family.replace("_", " "), "\n".join(f'#include "{name}"' for name in includes))
    for item in description.of(Struct, family):
        text += shape(description, item)
        if item.cpp:
            text += conversion(item)
    return text + "\n}  // namespace tilewright::c_api\n"


def write_all(description):
    return CONVERT_ALL % "\n".join(f'#include "ops/c_api/convert/{name}.h"' for name in description.families())


def write_handles(description):
    text = HANDLES_BEGIN
    for item in description.of(Operator):
        text += f"\nstruct {item.name} : tilewright::c_api::Made<tilewright::{item.cpp}> {{\n"
        text += "  using Made::Made;\n};\n"
    return text


def body_of_query(item, result, expression):
    if expression == "plan_text()":
        return f"return c_api::plan_text({item.word});"
    if result == "const char*":
        return f'return {item.word} == nullptr ? "" : {item.word}->op.{expression}.c_str();'
    return f"return {item.word} == nullptr ? 0 : {item.word}->op.{expression};"


def write_operators(description, family):
    text = OPERATORS_BEGIN % family.replace("_", " ")
    for item in description.of(Struct, family):
        text += (f"\nvoid {item.name}_set_defaults({item.name}* given) {{\n"
                 f"  c_api::set_defaults(given);\n}}\n")
    for item in description.of(Operator, family):
        functions = {name: (result, ", ".join(parameters))
                     for _, result, name, parameters in operator_functions(item)}

        def define(name, body):
            result, parameters = functions[f"{item.name}_{name}"]
            return f"\n{result} {item.name}_{name}({parameters}) {{\n  {body}\n}}\n"

        given = f', {item.problem_word}, "{item.problem_word}"' if item.problem else ""
        text += define("create", f'return c_api::create_on("{item.name}_create", {item.on_word}, "{item.on_word}"'
                                 f'{given}, {item.word}, "{item.word}");')
        inputs = [f'c_api::Given<{kind}>{{{name}, "{name}"}}' if is_struct else name
                  for kind, name, is_struct in plan_inputs(item)]
        make = f"tilewright::plan_{item.name.removeprefix('tw_')}"
        text += define("plan", f'return c_api::plan("{item.name}_plan", device, plan, '
                               f"[](const auto&... given) {{ return {make}(given...); }}, {', '.join(inputs)});")
        text += define("destroy", f"delete {item.word};")
        for result, name, expression, _ in item.queries:
            text += define(name, body_of_query(item, result, expression))
        for method, _, _ in item.calls:
            text += define(method, f'return c_api::call("{item.name}_{method}", {item.word}, "{item.word}", '
                                   f"arguments, [](const auto& op, const auto& a) {{ op.{method}(a); }});")
    return text
