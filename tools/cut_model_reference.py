#!/usr/bin/env python3
"""Cuts the operands of single operators out of a reference file: tests/golden/dsv4/operands.safetensors.

    python3 tools/cut_model_reference.py FOLDER     # with reference.safetensors and the weights it was made with

Takes what can be checked without the weights: attention from its cache rows, lists and sinks; routing from its
scores; streams from their mixes; scores of the indexer from its keys and queries; both modes where both matter.
"""

import json
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

PROMPT = "p200"
QUANT = ("q", "kv_fp8", "kv_scale", "kv_rope", "comp_fp8", "comp_scale", "comp_rope", "idx_q", "idx_k", "idx_w",
         "idx_scores", "idx_selected", "lse", "attn_o", "attn_o_inv_rope", "router_scores", "router_ids",
         "router_weights", "attn_mix", "ffn_mix", "attn_out", "moe_out", "streams_mid", "streams")
LAYERS = (0, 1, 2)  # one of each kind
WEIGHTS = ("attn.attn_sink", "ffn.gate.bias", "ffn.gate.tid2eid")


def raw_tensors(path):
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            yield name, entry["dtype"], entry["shape"], raw[8 + size + first:8 + size + last]


def main():
    folder = pathlib.Path(sys.argv[1])
    out = ROOT / "tests" / "golden" / "dsv4" / "operands.safetensors"
    wanted = {f"{PROMPT}.quant.layers.{n}.{name}": f"layers.{n}.{name}" for n in LAYERS for name in QUANT}
    wanted |= {f"{PROMPT}.positions": "positions", f"{PROMPT}.input_ids": "input_ids"}
    kept = [(wanted[name], kind, shape, blob)
            for name, kind, shape, blob in raw_tensors(folder / "reference.safetensors") if name in wanted]
    weights = {f"layers.{n}.{name}" for n in LAYERS for name in WEIGHTS}
    for file in sorted(folder.glob("model-*.safetensors")):
        kept += [tensor for tensor in raw_tensors(file) if tensor[0] in weights]
    widths = {"I64": 8, "F32": 4, "I32": 4, "I16": 2, "BF16": 2, "U8": 1}
    header, offset = {}, 0
    kept.sort(key=lambda tensor: (-widths[tensor[1]], tensor[0]))
    for name, kind, shape, blob in kept:
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [offset, offset + len(blob)]}
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensor[3] for tensor in kept))
    print(f"{out}: {len(kept)} tensors, {out.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
