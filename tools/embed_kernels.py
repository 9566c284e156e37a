#!/usr/bin/env python3
"""Build step for the kernels: assembles PTX with ptxas, and writes the tables of embedded images.

  embed_kernels.py assemble --ptxas PTXAS --target sm_90a FILE.ptx
      -> FILE.cubin, FILE.ptxas, and both images packed: FILE.ptx.z, FILE.cubin.z
  embed_kernels.py embed --folder DIR --toolkit 13.0.88 NAME.TARGET...
      -> DIR/images.S, DIR/table.cpp
  embed_kernels.py embed --folder DIR --toolkit 13.0.88 --test NAME.TARGET [--test ...] NAME.TARGET...
      -> DIR/test_images.S: the images of --test alone; DIR/test_table.cpp: a table of all
"""

import argparse
import pathlib
import re
import struct
import subprocess
import sys
import zlib

ENTRY = re.compile(r"^\s*(?:\.visible\s+)?\.entry\s+([\w$]+)", re.M)
TENSOR = re.compile(r"^\s*(?:@!?%?\w+\s+)?(?:wgmma\.mma_async|mma\.sync|tcgen05\.mma)", re.M)
COMPILED = re.compile(r"Compiling entry function '([^']+)' for '(\w+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(?:, used (\d+) barriers)?(.*)")
SHARED = re.compile(r"(\d+) bytes smem")


def assemble(args):
    """Runs ptxas -v, keeps its report and packs the images. Warnings, as of spills, stay visible in the build, and
    so does what ptxas calls information: that it makes products of wgmma wait for each other (C7510 and on)."""
    ptx = args.file
    result = subprocess.run([args.ptxas, "-v", f"-arch={args.target}", str(ptx), "-o",
                             str(ptx.with_suffix(".cubin"))], capture_output=True, text=True)
    report = result.stdout + result.stderr
    loud = [line for line in report.splitlines() if re.search("warning|error|serialized", line, re.I)]
    if result.returncode or loud:
        print("\n".join(loud) or report, file=sys.stderr)
    ptx.with_suffix(".ptxas").write_text(report)
    if result.returncode == 0:
        pack(ptx)
        pack(ptx.with_suffix(".cubin"))
    return result.returncode


def entry_body(ptx, name):
    """Text of one entry: from its name to the next entry (inline assembly has closing braces in column 0)."""
    start = re.search(rf"\.entry\s+{re.escape(name)}\b", ptx).end()
    following = ENTRY.search(ptx, start)
    return ptx[start:following.start() if following else len(ptx)]


def facts(report):
    """entry -> registers, stack, spill stores and loads, shared bytes, barriers, from ptxas -v."""
    table, entry = {}, None
    for line in report.splitlines():
        if match := COMPILED.search(line):
            entry = table.setdefault(match[1], dict(registers=0, stack=0, spill_stores=0, spill_loads=0,
                                                    shared=0, barriers=0))
        elif entry is not None and (match := STACK.search(line)):
            entry["stack"], entry["spill_stores"], entry["spill_loads"] = map(int, match.groups())
        elif entry is not None and (match := USED.search(line)):
            entry["registers"], entry["barriers"] = int(match[1]), int(match[2] or 0)
            shared = SHARED.search(match[3])
            entry["shared"] = int(shared[1]) if shared else 0
    return table


ROW = ('    {{"{entry}", "{stem}", "{target}", packed({symbol}_ptx, {symbol}_ptx_end, {ptx_bytes}),\n'
       '     packed({symbol}_cubin, {symbol}_cubin_end, {cubin_bytes}),\n'
       '     {{{registers}, {shared}, {stack}, {spill_stores}, '
       '{spill_loads}, {barriers}, {tensor}}}}},\n')


def without_ptx_text(cubin):
    """A cubin whose copy of its PTX, which ptxas adds for debuggers, is zeros: half of its packed bytes, and the
    text is embedded anyway. Nothing else changes, line tables included, and nothing moves.
    """
    data = bytearray(cubin)
    section_at, = struct.unpack_from("<Q", data, 0x28)
    section_bytes, sections, names = struct.unpack_from("<3H", data, 0x3a)
    names_at, = struct.unpack_from("<Q", data, section_at + names * section_bytes + 0x18)
    for header in range(section_at, section_at + sections * section_bytes, section_bytes):
        name_at = names_at + struct.unpack_from("<I", data, header)[0]
        if data[name_at:data.index(0, name_at)].endswith(b".nv_debug_ptx_txt"):
            begin, size = struct.unpack_from("<QQ", data, header + 0x18)
            data[begin:begin + size] = bytes(size)
    return bytes(data)


def packed_name(path):
    return path.with_name(path.name + ".z")


def pack(path):
    """FILE -> FILE.z. Level 6: the images are 3 % larger than at level 9, which takes four times as long."""
    data = path.read_bytes()
    if path.suffix == ".cubin":
        data = without_ptx_text(data)
    packed_name(path).write_bytes(zlib.compress(data, 6))


def image_symbol(spec):
    return "tilewright_image_" + re.sub(r"\W", "_", spec)


def image(folder, spec, kind):
    """Path of the "ptx" or "cubin" of NAME.TARGET."""
    base = folder / spec
    return base.with_name(f"{base.name}.{kind}")


def write_images(folder, specs, out):
    """The assembly that holds the packed images."""
    assembly = ['    .section .rodata, "a"\n']
    for spec in specs:
        symbol = image_symbol(spec)
        for kind in ("ptx", "cubin"):
            assembly.append(f"    .balign 64\n    .global {symbol}_{kind}\n    .global {symbol}_{kind}_end\n"
                            f"{symbol}_{kind}:\n    .incbin \"{packed_name(image(folder, spec, kind))}\"\n"
                            f"{symbol}_{kind}_end:\n    .byte 0\n")
    assembly.append('    .section .note.GNU-stack, "", @progbits\n')
    out.write_text("".join(assembly))


def table_rows(folder, specs):
    rows, seen = [], {}
    for spec in specs:
        bytes_of_kind = {f"{kind}_bytes": image(folder, spec, kind).stat().st_size
                         for kind in ("ptx", "cubin")}
        stem, target = spec.rsplit(".", 1)
        base = folder / spec
        ptx = base.with_name(base.name + ".ptx").read_text()
        report = facts(base.with_name(base.name + ".ptxas").read_text())
        for entry in ENTRY.findall(ptx):
            if (entry, target) in seen:
                sys.exit(f"embed_kernels: entry {entry} for {target} is defined in {seen[entry, target]} and in "
                         f"{stem}; kernel names must be unique")
            if entry not in report:
                sys.exit(f"embed_kernels: ptxas reported nothing about {entry} in {spec}")
            seen[entry, target] = stem
            tensor = "true" if TENSOR.search(entry_body(ptx, entry)) else "false"
            rows.append(ROW.format(entry=entry, stem=stem, target=target, symbol=image_symbol(spec),
                                   tensor=tensor, **bytes_of_kind, **report[entry]))
    return sorted(rows)


def write_table(folder, specs, toolkit, out):
    declarations = [f"extern const char {image_symbol(spec)}_{kind}[], {image_symbol(spec)}_{kind}_end[];\n"
                    for spec in specs for kind in ("ptx", "cubin")]
    out.write_text(
        "// Made by tools/embed_kernels.py.\n#include \"device/kernel_registry.h\"\n\n"
        'extern "C" {\n' + "".join(declarations) + "}\n\nnamespace tilewright::device {\n\nnamespace {\n\n"
        "PackedBytes packed(const char* begin, const char* end, std::size_t size_bytes) {\n"
        "  return {{begin, static_cast<std::size_t>(end - begin)}, size_bytes};\n}\n\n"
        "const KernelImage kImages[] = {\n" + "".join(table_rows(folder, specs)) + "};\n\n}  // namespace\n\n"
        "std::span<const KernelImage> kernel_images() { return kImages; }\n"
        f"const char* kernel_toolkit() {{ return \"{toolkit}\"; }}\n\n"
        "}  // namespace tilewright::device\n")


def embed(args):
    prefix = "test_" if args.test else ""
    write_images(args.folder, args.test or args.specs, args.folder / f"{prefix}images.S")
    write_table(args.folder, args.specs + args.test, args.toolkit, args.folder / f"{prefix}table.cpp")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("assemble")
    command.add_argument("--ptxas", required=True)
    command.add_argument("--target", required=True)
    command.add_argument("file", type=pathlib.Path)
    command.set_defaults(run=assemble)
    command = commands.add_parser("embed")
    command.add_argument("--folder", type=pathlib.Path, required=True)
    command.add_argument("--toolkit", required=True)
    command.add_argument("--test", action="append", default=[], help="an image for tests alone; writes test_*")
    command.add_argument("specs", nargs="*")
    command.set_defaults(run=embed)
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
