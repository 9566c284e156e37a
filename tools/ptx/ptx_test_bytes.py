"""What the generators of tests/ptx share that give data as bytes: kernels, their headers, files."""

import pathlib
import re
import struct

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "ptx"
LANES = 32
files = {}

PREAMBLE = """  .reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<400>; .reg .f32 %f<16>; .reg .b64 %d<100>;
  mov.u32 %r390, %tid.x;
  ld.param.u64 %d93, [in];
  ld.param.u64 %d94, [out];
  mul.wide.u32 %d90, %r390, 8; add.s64 %d91, %d93, %d90; add.s64 %d92, %d94, %d90;
  setp.eq.u32 %p15, %r390, 0;
"""


def rows_of(data):
    """Bytes as lists of 32 words, with zeros at the end."""
    data = bytes(data)
    data += bytes(-len(data) % (8 * LANES))
    words = struct.unpack(f"<{len(data) // 8}Q", data)
    return [words[i:i + LANES] for i in range(0, len(words), LANES)]


def words_line(prefix, words):
    same = len(set(words)) == 1
    return prefix + " ".join(hex(w) for w in (words[:1] if same else words))


def case(file, name, body, inputs, outputs, threads=32, cluster=1, maps=(), machine=None, module="",
         directives="", target="sm_90a", grid=0):
    """Adds a kernel to a file. inputs, outputs: bytes. module: text before it, {k} is its name."""
    kernel = re.sub(r"\W", "_", name)
    lines = [f"// test: {kernel}"]
    if threads != 32: lines.append(f"// threads: {threads}")
    if cluster != 1: lines.append(f"// cluster: {cluster}")
    if grid: lines.append(f"// grid: {grid}")
    lines += [f"// map: {m}" for m in maps]
    lines += [words_line("// in: ", row) for row in rows_of(inputs)]
    lines += [words_line("// out: ", row) for row in rows_of(outputs)]
    params = "".join(f", .param .align 64 .b8 map{i}[128]" for i in range(len(maps)))
    body = "\n".join("  " + line.strip() for line in body.strip().splitlines())
    if module: lines.append(module.strip())
    lines.append(f".visible .entry {kernel}(.param .u64 in, .param .u64 out{params})\n{directives}"
                 f"{{\n{PREAMBLE}{body}\n  ret;\n}}\n")
    files.setdefault((file, machine, target), []).append("\n".join(lines))


def write_files(generator):
    for (name, machine, target), kernels in files.items():
        header = f"// {name}: made by tools/ptx/{generator}, which says how the results are found.\n"
        if machine: header += f"// machine: {machine}\n"
        version = "9.0" if target == "sm_100a" else "8.6" if target == "sm_100" else "8.4"
        header += f".version {version}\n.target {target}\n.address_size 64\n\n"
        (OUT / f"{name}.ptx").write_text(header + "\n".join(kernels))
