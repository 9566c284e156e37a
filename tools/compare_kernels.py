#!/usr/bin/env python3
"""Compares the kernels of two builds, entry by entry: is it the same machine code?

  tools/compare_kernels.py BEFORE AFTER [--json]

BEFORE and AFTER are folders `kernels` of builds (build/release/kernels). Entries are matched by name and target,
wherever their files lie. An entry is the same if its machine code, registers and shared memory are; line tables,
names of source files and debug information do not count. Exit status 1 if an entry differs, is missing or new.
"""

import argparse
import json
import pathlib
import struct
import sys

EM_CUDA = 190
SHT_NOBITS = 8
EIFMT_SVAL, EIATTR_REGCOUNT = 4, 0x2f


def sections(cubin):
    """name -> bytes, or size of nothing but zeros, of an ELF file of 64 bits."""
    data = cubin.read_bytes()
    if data[:5] != b"\x7fELF\x02" or struct.unpack_from("<H", data, 18)[0] != EM_CUDA:
        raise SystemExit(f"compare_kernels: {cubin} is no cubin")
    table, = struct.unpack_from("<Q", data, 40)
    size, count, names_at = struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    names = data[headers[names_at][4]:][:headers[names_at][5]]
    return {text_at(names, name): length if kind == SHT_NOBITS else data[offset:offset + length]
            for name, kind, _, _, offset, length, _, _, _, _ in headers}


def text_at(table, offset):
    return table[offset:table.index(b"\0", offset)].decode()


def registers(parts):
    """entry -> registers of a thread, from the attributes of .nv.info."""
    symbols, strings, info = parts[".symtab"], parts[".strtab"], parts[".nv.info"]
    names = [text_at(strings, struct.unpack_from("<I", symbols, at)[0]) for at in range(0, len(symbols), 24)]
    found, at = {}, 0
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        if form == EIFMT_SVAL and attribute == EIATTR_REGCOUNT:
            symbol, count = struct.unpack_from("<II", info, at + 4)
            found[names[symbol]] = count
        at += 4 + (size if form == EIFMT_SVAL else 0)
    return found


def entries(folder):
    """(target, entry) -> what makes its machine code."""
    found = {}
    for cubin in sorted(folder.rglob("*.cubin")):
        target = cubin.name.split(".")[-2]
        parts = sections(cubin)
        of_all = {name: part for name, part in parts.items() if name in (".nv.constant3", ".nv.global.init")}
        for name, code in parts.items():
            if not name.startswith(".text."):
                continue
            entry = name[len(".text."):]
            found[target, entry] = {
                "code": code, "registers": registers(parts)[entry], "shared": parts.get(f".nv.shared.{entry}", 0),
                "constants": [parts.get(f".nv.constant{bank}.{entry}", b"") for bank in (0, 2)],
                "of all entries": of_all}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--json", action="store_true", help="print one JSON value instead of text")
    args = parser.parse_args()
    before, after = entries(args.before), entries(args.after)
    if not before or not after:
        sys.exit(f"compare_kernels: no .cubin below {args.before if not before else args.after}; "
                 "name the folder `kernels` of a build")
    missing = sorted(before.keys() - after.keys())
    new = sorted(after.keys() - before.keys())
    differs = []
    for key in sorted(before.keys() & after.keys()):
        parts = [part for part in before[key] if before[key][part] != after[key][part]]
        if parts:
            differs.append((key, parts, len(before[key]["code"]) // 16, len(after[key]["code"]) // 16))
    if args.json:
        print(json.dumps({"same": len(before.keys() & after.keys()) - len(differs),
                          "differs": [{"target": k[0], "entry": k[1], "parts": p, "instructions_before": b,
                                       "instructions_after": a} for k, p, b, a in differs],
                          "missing": missing, "new": new}))
    else:
        for key, parts, was, now in differs:
            print(f"differs  {key[0]}  {key[1]}: {', '.join(parts)}; {was} -> {now} instructions")
        for word, keys in (("missing", missing), ("new", new)):
            for key in keys:
                print(f"{word:<8} {key[0]}  {key[1]}")
        print(f"{len(before.keys() & after.keys()) - len(differs)} entries with the same machine code, "
              f"{len(differs)} differ, {len(missing)} missing, {len(new)} new")
    return 1 if differs or missing or new else 0


if __name__ == "__main__":
    sys.exit(main())
