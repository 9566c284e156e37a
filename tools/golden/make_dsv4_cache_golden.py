#!/usr/bin/env python3
"""Cuts tests/golden/dsv4/cache_rows.safetensors out of a trained small DeepSeek-V4 with reference activations.

    make_dsv4_cache_golden.py FOLDER OUT      FOLDER has config.json, model*.safetensors, reference.safetensors

For three layers and the selected positions of prompt p700: the projection W_kv x (float64, stored as float32), the
norm's weight, and what the reference's quantised mode has in its cache.
"""
import json
import struct
import sys
from pathlib import Path

import numpy as np

TYPES = {"F32": "<f4", "U8": "u1", "BF16": "<u2", "I32": "<i4"}
LAYERS = (0, 1, 2)


class Safetensors:
    def __init__(self, path):
        self.bytes = Path(path).read_bytes()
        (size,) = struct.unpack("<Q", self.bytes[:8])
        self.header = json.loads(self.bytes[8:8 + size])
        self.base = 8 + size

    def __getitem__(self, name):
        entry = self.header[name]
        begin, end = (self.base + offset for offset in entry["data_offsets"])
        return np.frombuffer(self.bytes[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])


def bf16_to_float64(codes):
    return (codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def write(path, tensors):
    header, data = {}, b""
    for name, (dtype, array) in tensors.items():
        raw = np.ascontiguousarray(array).astype(TYPES[dtype]).tobytes()
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def main(folder, out):
    folder = Path(folder)
    index = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    files = {name: Safetensors(folder / name) for name in sorted(set(index.values()))}
    weight = lambda name: files[index[name]][name]
    reference = Safetensors(folder / "reference.safetensors")
    positions = reference["p700.positions"]
    tensors = {"positions": ("I32", positions)}
    for layer in LAYERS:
        at = f"p700.quant.layers.{layer}."
        x = reference[at + "attn_in"].astype(np.float64)
        kv = x @ bf16_to_float64(weight(f"layers.{layer}.attn.wkv.weight")).T
        tensors[f"{layer}.kv_in"] = ("F32", kv)
        tensors[f"{layer}.norm"] = ("BF16", weight(f"layers.{layer}.attn.kv_norm.weight"))
        tensors[f"{layer}.kv"] = ("BF16", reference[at + "kv"])
        for name, dtype in (("kv_fp8", "U8"), ("kv_scale", "U8"), ("kv_rope", "BF16")):
            tensors[f"{layer}.{name}"] = (dtype, reference[at + name][positions])
    write(out, tensors)


if __name__ == "__main__":
    main(*sys.argv[1:])
