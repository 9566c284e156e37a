#!/usr/bin/env python3
"""Build step for the kernels: assembles PTX with ptxas, and writes the table of embedded images.

  embed_kernels.py assemble --ptxas PTXAS --target sm_90a FILE.ptx   -> FILE.cubin, FILE.ptxas
  embed_kernels.py embed --folder DIR --toolkit 13.0.88 [--test NAME.TARGET]... NAME.TARGET...
      -> DIR/NAME.TARGET.ptx.z, DIR/NAME.TARGET.cubin.z; DIR/images.S, DIR/table.cpp of what ships, and
         DIR/test_images.S, DIR/test_table.cpp: the images for tests, and a table of both
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
    """Runs ptxas -v; keeps its report. Warnings (spills among them) stay visible in the build."""
    ptx = args.file
    result = subprocess.run([args.ptxas, "-v", f"-arch={args.target}", str(ptx), "-o",
                             str(ptx.with_suffix(".cubin"))], capture_output=True, text=True)
    report = result.stdout + result.stderr
    loud = [line for line in report.splitlines() if "warning" in line.lower() or "error" in line.lower()]
    if result.returncode or loud:
        print("\n".join(loud) or report, file=sys.stderr)
    ptx.with_suffix(".ptxas").write_text(report)
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


def pack(path):
    """FILE -> FILE.z, and the size of FILE. Best compression: it is done once, undone in each process."""
    data = path.read_bytes()
    if path.suffix == ".cubin":
        data = without_ptx_text(data)
    packed = path.with_name(path.name + ".z")
    packed.write_bytes(zlib.compress(data, 9))
    return packed, len(data)


def image_symbol(spec):
    return "tilewright_image_" + re.sub(r"\W", "_", spec)


def embed_images(folder, specs, out):
    """Packs the images and writes the assembly that holds them; spec -> sizes."""
    assembly, sizes = ['    .section .rodata, "a"\n'], {}
    for spec in specs:
        base, symbol, sizes[spec] = folder / spec, image_symbol(spec), {}
        for kind in ("ptx", "cubin"):
            path, sizes[spec][f"{kind}_bytes"] = pack(base.with_name(base.name + "." + kind))
            assembly.append(f"    .balign 64\n    .global {symbol}_{kind}\n    .global {symbol}_{kind}_end\n"
                            f"{symbol}_{kind}:\n    .incbin \"{path}\"\n{symbol}_{kind}_end:\n    .byte 0\n")
    assembly.append('    .section .note.GNU-stack, "", @progbits\n')
    out.write_text("".join(assembly))
    return sizes


def table_rows(folder, sizes):
    rows, seen = [], {}
    for spec, bytes_of_kind in sizes.items():
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


def write_table(folder, sizes, toolkit, out):
    declarations = [f"extern const char {image_symbol(spec)}_{kind}[], {image_symbol(spec)}_{kind}_end[];\n"
                    for spec in sizes for kind in ("ptx", "cubin")]
    out.write_text(
        "// Made by tools/embed_kernels.py.\n#include \"device/kernel_registry.h\"\n\n"
        'extern "C" {\n' + "".join(declarations) + "}\n\nnamespace tilewright::device {\n\nnamespace {\n\n"
        "PackedBytes packed(const char* begin, const char* end, std::size_t size_bytes) {\n"
        "  return {{begin, static_cast<std::size_t>(end - begin)}, size_bytes};\n}\n\n"
        "const KernelImage kImages[] = {\n" + "".join(table_rows(folder, sizes)) + "};\n\n}  // namespace\n\n"
        "std::span<const KernelImage> kernel_images() { return kImages; }\n"
        f"const char* kernel_toolkit() {{ return \"{toolkit}\"; }}\n\n"
        "}  // namespace tilewright::device\n")


def embed(args):
    folder = args.folder
    shipped = embed_images(folder, args.specs, folder / "images.S")
    write_table(folder, shipped, args.toolkit, folder / "table.cpp")
    tests = embed_images(folder, args.test, folder / "test_images.S")
    write_table(folder, shipped | tests, args.toolkit, folder / "test_table.cpp")
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
    command.add_argument("--test", action="append", default=[], help="an image for tests alone")
    command.add_argument("specs", nargs="*")
    command.set_defaults(run=embed)
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
