"""Writes include/tilewright/tilewright.h."""

import textwrap

from .description import Enum, Function, Handle, Operator, Struct

WIDTH = 100

BEGIN = """/* clang-format off */
/* Made by tools/make_c_api.py from tools/c_api; edit that.
 *
 * Tilewright for C99 and everything that calls C: the library libtilewright.so. Formulas, shapes
 * and rules of each member stand in the C++ header of the same operator (attention.h, linear.h,
 * moe.h, ...), under the same names.
 *
 * Every function that can fail returns a status; what went wrong is then the text of
 * tw_last_error(), of the calling thread. No call prints, exits or needs a current CUDA context.
 *
 *     tw_device* device;
 *     if (tw_device_open("auto", &device) != TW_OK) { puts(tw_last_error()); return 1; }
 *     tw_attention_problem problem;
 *     tw_attention_problem_init(&problem);
 *     problem.heads = problem.kv_heads = 16;
 *     problem.q_len = problem.kv_len = 4096;
 *     problem.head_dim = 128;
 *     problem.causal = 1;
 *     tw_attention* attention;
 *     if (tw_attention_create(device, &problem, &attention) != TW_OK) ...
 *     tw_attention_arguments arguments;
 *     tw_attention_arguments_init(&arguments);
 *     arguments.q = q; ...                                 // device addresses
 *     arguments.workspace = ...;                           // tw_attention_workspace_bytes() of it
 *     arguments.stream = stream;                           // CUstream or cudaStream_t
 *     if (tw_attention_run(attention, &arguments) != TW_OK) ...
 *
 * Structs grow: new members come at their end, and existing ones stay where they are. Every struct
 * begins with struct_bytes, its size in the header that the program was compiled with, which
 * tw_NAME_init() fills in beside the defaults, also of the structs inside of it. A program
 * compiled with an older header runs with a newer library; members that it does not know have their
 * defaults. One compiled with a newer header runs with an older library as long as the members that
 * this does not know are 0; else the call is refused.
 *
 * Functions that run an operator only enqueue work on the stream: they allocate nothing, wait for
 * nothing and may be captured in a CUDA graph. Several threads may call them if workspaces and
 * outputs differ. Texts of an operator are valid as long as the operator. */
#ifndef TILEWRIGHT_TILEWRIGHT_H
#define TILEWRIGHT_TILEWRIGHT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define %(api)s __attribute__((visibility("default")))
#else
#define %(api)s
#endif
"""

END = """
#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_TILEWRIGHT_H */
"""

THIN = """/* The C interface is one header now; this one remains for programs that include it. */
#include "tilewright/tilewright.h"
"""


def block(lines):
    """A comment of its own: one paragraph."""
    if not lines:
        return ""
    wrapped = textwrap.wrap(" ".join(lines), WIDTH - 6)
    return "/* " + "\n * ".join(wrapped) + " */\n"


def banner(title):
    return f"\n/* {'-' * (WIDTH - 6)}\n * {title}\n */\n"


def sentence(words, last="or"):
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" {last} " + words[-1]


def about(member):
    """What stands behind a member: its values, its comment, its default."""
    parts = []
    if member.enum == "tw_dtype":
        parts.append(sentence([name for name, _ in member.choices]))
    elif member.enum:
        listed = [name for name, _ in member.choices]
        parts.append(member.enum + (f": {sentence(listed)}" if member.kind.count("(") else ""))
    if member.comment:
        parts.append(member.comment)
    if member.default and not member.default.startswith("TW_ABSENT"):
        parts.append(f"default {member.default}")
    return "; ".join(parts)


def declare(members):
    """One line of the struct: members of one type."""
    first = members[0]
    kind, names = first.c_type, [m.name for m in members]
    if kind.endswith("*") and len(names) > 1:
        kind, names = kind[:-1], ["*" + name for name in names]
    line, comment = f"  {kind} {', '.join(names)};", about(first)
    if not comment:
        return line + "\n"
    if len(line) + len(comment) + 7 <= WIDTH:
        return f"{line} /* {comment} */\n"
    wrapped = textwrap.wrap(comment, WIDTH - 8)
    return "  /* " + "\n   * ".join(wrapped) + f" */\n{line}\n"


def enum(item):
    rows = []
    for number, (name, value, _, comment) in enumerate(item.rows):
        line = f"  {item.spelled(name)} = {value}" + ("," if number < len(item.rows) - 1 else "")
        rows.append(line + (f" /* {comment} */" if comment else ""))
    return "\n" + block(item.comment) + f"typedef enum {item.name} {{\n" + "\n".join(rows) + f"\n}} {item.name};\n"


def sizes_of(description, struct, path="given->"):
    """The lines that fill in struct_bytes, also of the structs inside."""
    lines = [f"  {path}struct_bytes = sizeof {'*given' if path == 'given->' else path.rstrip('.')};"]
    for member in struct.members:
        if member.struct:
            lines += sizes_of(description, description.structs[member.struct], f"{path}{member.name}.")
    return lines


def struct(item):
    groups = []
    for member in item.members:
        if member.first:
            groups.append([])
        groups[-1].append(member)
    text = "\n" + block(item.comment) + f"typedef struct {item.name} {{\n  size_t struct_bytes;\n"
    return text + "".join(declare(group) for group in groups) + f"}} {item.name};\n"


def init(description, item, api):
    name = item.name
    text = "\n" + function(api, "void", f"{name}_set_defaults", [f"{name}* given"])
    text += f"static inline void {name}_init({name}* given) {{\n  if (given == NULL) return;\n"
    return text + "\n".join(sizes_of(description, item)) + f"\n  {name}_set_defaults(given);\n}}\n"


def function(api, result, name, parameters):
    head = f"{api} {result} {name}("
    line = head + ", ".join(parameters) + ");"
    if len(line) <= WIDTH:
        return line + "\n"
    lines, indent = [head], " " * len(head)
    for number, parameter in enumerate(parameters):
        text = parameter + (", " if number < len(parameters) - 1 else ");")
        if len(lines[-1]) + len(text.rstrip()) > WIDTH:
            lines.append(indent)
        lines[-1] += text
    return "\n".join(line.rstrip() for line in lines) + "\n"


def plan_inputs(item):
    """(C type, name, whether it is a struct) of what NAME_plan() takes between device and plan."""
    if item.plan_of:
        yield *item.plan_of, True
    if item.problem:
        yield item.problem, item.problem_word, True
    for kind, name in item.plan_with:
        yield kind, name, kind.startswith("tw_")


def operator_functions(item):
    """(comment, result, name, parameters) of all functions of an operator."""
    parameters = [f"const {item.on}* {item.on_word}"]
    if item.problem:
        parameters.append(f"const {item.problem}* {item.problem_word}")
    yield "", "tw_status", f"{item.name}_create", [*parameters, f"{item.name}** {item.word}"]
    inputs = [f"const {kind}* {name}" if is_struct else f"{kind} {name}" for kind, name, is_struct in plan_inputs(item)]
    yield "", "tw_status", f"{item.name}_plan", ["const tw_device* device", *inputs, "tw_plan** plan"]
    yield "", "void", f"{item.name}_destroy", [f"{item.name}* {item.word}"]
    given = f"const {item.name}* {item.word}"
    for result, name, _, comment in item.queries:
        yield comment, result, f"{item.name}_{name}", [given]
    for method, kind, comment in item.calls:
        yield comment, "tw_status", f"{item.name}_{method}", [given, f"const {kind}* arguments"]


def operator(item, api):
    text = "\n" + block(item.comment) + f"typedef struct {item.name} {item.name};\n"
    for comment, result, name, parameters in operator_functions(item):
        text += block([comment[0].upper() + comment[1:] + "."] if comment else []) + \
            function(api, result, name, parameters)
    return text


def write(description, api="TW_API"):
    text = BEGIN % {"api": api}
    for item in description.items:
        if isinstance(item, str):
            text += banner(item)
        elif isinstance(item, Enum):
            text += enum(item)
        elif isinstance(item, Struct):
            text += struct(item)
        elif isinstance(item, Handle):
            text += "\n" + block(item.comment) + f"typedef struct {item.name} {item.name};\n"
        elif isinstance(item, Operator):
            text += operator(item, api)
        elif isinstance(item, Function):
            text += block(item.comment) + function(api, item.result, item.name, item.parameters.split(", "))
    text += banner("tw_NAME_init() of every struct: sizes, then defaults, which the library fills in")
    text += "".join(init(description, item, api) for item in description.structs.values())
    return text + END
