#!/usr/bin/env python3
"""Makes tests/golden/dsv4/tiny.safetensors, the second witness for the float64 model. Needs numpy.

A DeepSeek-V4 forward pass that follows the formulas and not the C++ code: whole sequences at once, masks
instead of lists, complex numbers for rotations, a Kronecker product for the Hadamard matrix, every expert for
every token. Weights come from a checkpoint folder: bf16, fp32, FP8 in blocks of 128 x 128, MXFP4, NVFP4.

    python3 tools/golden/make_model_golden.py              # bundled model, its prompt, the golden file
    python3 tools/golden/make_model_golden.py --model DIR --text FILE --bytes 200 --prompt p200 \\
        --positions 0,3,127,199 --layers=-1,0,1,2,3,4,5 --check reference.safetensors

Modes and tensor names are those of a reference file (docs/06-deepseek-v4.md): `exact` rounds nothing, `quant`
rounds what a serving cache stores. --check compares with such a file instead of writing one.
"""

import argparse
import json
import pathlib
import struct
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "examples" / "models" / "tiny-dsv4"
GOLDEN = ROOT / "tests" / "golden" / "dsv4" / "tiny.safetensors"
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


# --- files ----------------------------------------------------------------------------------------

def read_safetensors(path):
    """name -> (type name, array); types that numpy lacks stay unsigned integers."""
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    kinds = {"F32": "<f4", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "U8": "u1", "I8": "u1",
             "F8_E4M3": "u1", "F8_E8M0": "u1"}
    tensors = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__":
            continue
        first, last = entry["data_offsets"]
        data = np.frombuffer(raw[8 + size + first:8 + size + last], kinds[entry["dtype"]])
        tensors[name] = entry["dtype"], data.reshape(entry["shape"])
    return tensors


def write_safetensors(path, tensors):
    kinds = {"<f4": "F32", "<i4": "I32", "<i2": "I16", "|u1": "U8"}
    header, blobs, offset = {}, [], 0
    for name, array in sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0])):
        blob = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": kinds[array.dtype.str], "shape": list(array.shape),
                        "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


# --- number formats -------------------------------------------------------------------------------

def bf16(x):
    """Through fp32, nearest even both times."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return (bits << 16).astype(np.uint32).view(np.float32).astype(np.float64)


def e4m3_values():
    codes = np.arange(128)
    exponent, mantissa = codes >> 3, codes & 7
    return np.where(exponent == 0, mantissa * 2.0**-9, (1 + mantissa / 8) * 2.0**(exponent - 7.0))


E4M3 = e4m3_values()


def nearest(x, grid):
    """Codes on a rising grid of magnitudes; a tie goes to the even code, the top takes what is beyond."""
    magnitude = np.abs(x)
    high = np.clip(np.searchsorted(grid, magnitude), 1, len(grid) - 1)
    low = high - 1
    to_low, to_high = magnitude - grid[low], grid[high] - magnitude
    return np.where((to_low < to_high) | ((to_low == to_high) & (low % 2 == 0)), low, high)


def ceil_log2(x):
    fraction, exponent = np.frexp(x.astype(np.float32))
    return exponent - (fraction == 0.5)


def fp8_blocks(x):
    """codes, scale bytes and values of rows in blocks of 64 with power-of-two scales."""
    blocks = x.reshape(*x.shape[:-1], -1, 64)
    amax = np.maximum(np.abs(blocks).max(-1).astype(np.float32), np.float32(1e-4))
    exponent = ceil_log2(amax * np.float32(1 / 448))
    scaled = blocks * 2.0**-exponent[..., None]
    codes = nearest(scaled, E4M3[:127])
    values = np.copysign(E4M3[codes], blocks) * 2.0**exponent[..., None]
    codes = codes + 128 * np.signbit(blocks)
    return (codes.reshape(x.shape).astype(np.uint8), (exponent + 127).astype(np.uint8), values.reshape(x.shape))


def fp4_blocks(x):
    blocks = x.reshape(*x.shape[:-1], -1, 32)
    amax = np.maximum(np.abs(blocks).max(-1).astype(np.float32), np.float32(6 * 2.0**-126))
    scale = 2.0**ceil_log2(amax * np.float32(1 / 6))[..., None]
    return (np.copysign(E2M1[nearest(blocks / scale, E2M1)], blocks) * scale).reshape(x.shape)


class Checkpoint:
    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.tensors = {}
        for file in sorted(folder.glob("*.safetensors")):
            self.tensors.update(read_safetensors(file))

    def plain(self, name):
        kind, data = self.tensors[name]
        if kind == "BF16":
            return (data.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return data.astype(np.float64)

    def __call__(self, name):
        kind, data = self.tensors[name]
        if kind in ("BF16", "F32"):
            return self.plain(name)
        stem = name.removesuffix(".weight")
        scale_name = next(n for n in (stem + ".weight_scale", stem + ".scale") if n in self.tensors)
        scale_kind, scale = self.tensors[scale_name]
        factor = 2.0**(scale.astype(np.float64) - 127) if scale_kind != "F8_E4M3" else E4M3[scale & 127]
        if kind == "F8_E4M3":
            values = np.copysign(E4M3[data & 127], np.where(data >= 128, -1.0, 1.0))
            factor = np.kron(factor.reshape(factor.shape[0], -1), np.ones((128, 128)))
            return values * factor[:data.shape[0], :data.shape[1]]
        codes = np.stack([data & 15, data >> 4], -1).reshape(data.shape[0], -1)
        values = E2M1[codes & 7] * np.where(codes >= 8, -1.0, 1.0)
        values = values * np.repeat(factor, codes.shape[1] // factor.shape[1], 1)
        if stem + ".weight_scale_2" in self.tensors:
            # fp32 in the order element * scale * tensor scale, as dequantising kernels do.
            tensor_scale = np.float32(self.tensors[stem + ".weight_scale_2"][1])
            values = (values.astype(np.float32) * tensor_scale).astype(np.float64)
        return values


# --- the model ------------------------------------------------------------------------------------

def norm(x, weight=1.0, eps=1e-6):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def frequencies(config, ratio):
    pair = np.arange(32)
    if ratio == 0:
        return config["rope_theta"]**(-pair / 32.0)
    theta, yarn = config["compress_rope_theta"], config["rope_scaling"]
    plain = theta**(-pair / 32.0)
    longest = yarn["original_max_position_embeddings"] / (2 * np.pi)
    low, high = (64 * np.log(longest / yarn[beta]) / (2 * np.log(theta)) for beta in ("beta_fast", "beta_slow"))
    low, high = max(np.floor(low), 0), min(np.ceil(high), 63)
    ramp = np.clip((pair - low) / (high - low), 0, 1)
    return plain / yarn["factor"] * ramp + plain * (1 - ramp)


def turn(x, positions, freqs, sign=1):
    """Rotates the last 64 of x [tokens, ..., dim]."""
    phase = np.exp(sign * 1j * positions[:, None] * freqs)
    phase = phase.reshape(len(positions), *[1] * (x.ndim - 2), 32)
    z = (x[..., -64::2] + 1j * x[..., -63::2]) * phase
    out = x.copy()
    out[..., -64::2], out[..., -63::2] = z.real, z.imag
    return out


class Model:
    def __init__(self, checkpoint, mode, layers):
        self.w, self.c, self.is_quant, self.layers = checkpoint, checkpoint.config, mode == "quant", layers
        self.stages = {}
        hadamard = np.ones((1, 1))
        while len(hadamard) < 128:
            hadamard = np.kron(hadamard, [[1, 1], [1, -1]])
        self.hadamard = hadamard / np.sqrt(128)

    def round(self, x):
        return bf16(x) if self.is_quant else x

    def keep(self, layer, name, value):
        if layer in self.layers:
            self.stages[name if layer < 0 else f"layers.{layer}.{name}"] = value

    def mix(self, x, prefix):
        flat = x.reshape(len(x), -1)
        m = flat @ self.w(prefix + "_fn").T / np.sqrt((flat * flat).mean(-1, keepdims=True) + 1e-6)
        base, scale = self.w(prefix + "_base"), self.w(prefix + "_scale")
        if len(base) == 4:
            return sigmoid(m * scale[0] + base) + 1e-6
        eps = self.c["hc_eps"]
        pre = sigmoid(m[:, :4] * scale[0] + base[:4]) + eps
        post = 2 * sigmoid(m[:, 4:8] * scale[1] + base[4:8])
        c = (m[:, 8:] * scale[2] + base[8:]).reshape(-1, 4, 4)
        c = np.exp(c - c.max(2, keepdims=True))
        c = c / c.sum(2, keepdims=True) + eps
        c = c / (c.sum(1, keepdims=True) + eps)
        for _ in range(self.c["hc_sinkhorn_iters"] - 1):
            c = c / (c.sum(2, keepdims=True) + eps)
            c = c / (c.sum(1, keepdims=True) + eps)
        return pre, post, c

    def cache_row(self, layer, name, rows):
        """What attention reads of rows that go to a cache."""
        if not self.is_quant:
            return rows
        codes, scales, values = fp8_blocks(rows[:, :448])
        for part, value in (("fp8", codes), ("scale", scales), ("rope", rows[:, 448:])):
            self.keep(layer, f"{name}_{part}", value)
        return np.concatenate([values, rows[:, 448:]], 1)

    def compress(self, x, prefix, ratio, dim, freqs):
        tokens = len(x) // ratio * ratio
        ape = self.w(prefix + "ape")
        v = (x[:tokens] @ self.w(prefix + "wkv.weight").T).reshape(-1, ratio, ape.shape[1])
        s = (x[:tokens] @ self.w(prefix + "wgate.weight").T).reshape(-1, ratio, ape.shape[1]) + ape
        if ape.shape[1] == 2 * dim:  # the first half waits for the next group
            def shifted(a, fill):
                before = np.concatenate([np.full((1, ratio, dim), fill), a[:-1, :, :dim]])[:len(a)]
                return np.concatenate([before, a[:, :, dim:]], 1)
            v, s = shifted(v, 0.0), shifted(s, -np.inf)
        if len(v) == 0:
            return np.zeros((0, dim))
        p = np.exp(s - s.max(1, keepdims=True))
        pooled = self.round((p * v).sum(1) / p.sum(1))
        rows = self.round(norm(pooled, self.w(prefix + "norm.weight")))
        return self.round(turn(rows, np.arange(len(rows)) * ratio, freqs))

    def index(self, layer, x, qr, prefix, positions, freqs):
        heads = self.c["index_n_heads"]
        q = (qr @ self.w(prefix + "wq_b.weight").T).reshape(len(x), heads, 128)
        q = self.round(turn(q, positions, freqs))
        k = self.compress(x, prefix + "compressor.", 4, 128, freqs)
        q, k = self.round(q @ self.hadamard), self.round(k @ self.hadamard)
        if self.is_quant:
            q, k = fp4_blocks(q), fp4_blocks(k)
        weight = x @ self.w(prefix + "weights_proj.weight").T / np.sqrt(128.0 * heads)
        scores = (np.maximum(np.einsum("thd,jd->thj", q, k), 0) * weight[:, :, None]).sum(1)
        visible = np.arange(len(k)) < (positions[:, None] + 1) // 4
        scores = np.where(visible, scores, -np.inf)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :self.c["index_topk"]]
        chosen = np.zeros_like(visible)
        np.put_along_axis(chosen, order, True, 1)
        chosen &= visible
        selected = np.full((len(x), self.c["index_topk"]), -1)
        for t, row in enumerate(chosen):
            ids = np.flatnonzero(row)
            selected[t, :len(ids)] = ids
        for name, value in (("idx_q", q), ("idx_k", k), ("idx_w", weight), ("idx_scores", scores),
                            ("idx_selected", selected)):
            self.keep(layer, name, value)
        return chosen

    def attention(self, layer, x):
        w, p, ratio = self.w, f"layers.{layer}.attn.", self.c["compress_ratios"][layer]
        heads, groups = self.c["num_attention_heads"], self.c["o_groups"]
        positions = np.arange(len(x))
        freqs = frequencies(self.c, ratio)
        qr = norm(x @ w(p + "wq_a.weight").T, w(p + "q_norm.weight"))
        q = norm((qr @ w(p + "wq_b.weight").T).reshape(len(x), heads, 512))
        q = self.round(turn(q, positions, freqs))
        kv = self.round(turn(norm(x @ w(p + "wkv.weight").T, w(p + "kv_norm.weight")), positions, freqs))
        for name, value in (("qr", qr), ("q", q), ("kv", kv)):
            self.keep(layer, name, value)
        keys = self.cache_row(layer, "kv", kv)
        distance = positions[:, None] - positions
        mask = (distance >= 0) & (distance < self.c["sliding_window"])
        if ratio:
            comp = self.compress(x, p + "compressor.", ratio, 512, freqs)
            if not self.is_quant:
                self.keep(layer, "comp", comp)
            keys = np.concatenate([keys, self.cache_row(layer, "comp", comp)])
            seen = np.arange(len(comp)) < (positions[:, None] + 1) // ratio
            if ratio == 4:
                seen = self.index(layer, x, qr, p + "indexer.", positions, freqs)
            mask = np.concatenate([mask, seen], 1)
        s = np.where(mask[:, None], np.einsum("thd,jd->thj", q, keys) / np.sqrt(512), -np.inf)
        peak = s.max(-1, keepdims=True)
        e = np.exp(s - peak)
        total = e.sum(-1, keepdims=True)
        self.keep(layer, "lse", (peak + np.log(total))[..., 0])
        o = np.einsum("thj,jd->thd", e / (total + np.exp(w(p + "attn_sink")[:, None] - peak)), keys)
        self.keep(layer, "attn_o", o)
        o = turn(o, positions, freqs, -1)
        self.keep(layer, "attn_o_inv_rope", o[..., 448:])
        wo_a = w(p + "wo_a.weight").reshape(groups, -1, heads // groups * 512)
        z = np.einsum("tgi,gri->tgr", o.reshape(len(x), groups, -1), wo_a)
        return z.reshape(len(x), -1) @ w(p + "wo_b.weight").T

    def expert(self, x, prefix, weight):
        limit = self.c["swiglu_limit"]
        gate = np.minimum(x @ self.w(prefix + ".w1.weight").T, limit)
        up = np.clip(x @ self.w(prefix + ".w3.weight").T, -limit, limit)
        return (gate * sigmoid(gate) * up * weight[:, None]) @ self.w(prefix + ".w2.weight").T

    def moe(self, layer, x, ids):
        p, topk = f"layers.{layer}.ffn.", self.c["num_experts_per_tok"]
        logits = x @ self.w(p + "gate.weight").T
        scores = np.sqrt(np.maximum(logits, 0) + np.log1p(np.exp(-np.abs(logits))))
        if layer < self.c["num_hash_layers"]:
            chosen = self.w.tensors[p + "gate.tid2eid"][1][ids]
        else:
            chosen = np.argsort(-(scores + self.w(p + "gate.bias")), axis=1, kind="stable")[:, :topk]
        weights = np.take_along_axis(scores, chosen, 1)
        weights = weights / weights.sum(1, keepdims=True) * self.c["routed_scaling_factor"]
        for name, value in (("router_scores", scores), ("router_ids", chosen), ("router_weights", weights)):
            self.keep(layer, name, value)
        out = self.expert(x, p + "shared_experts", np.ones(len(x)))
        for e in range(self.c["n_routed_experts"]):
            out = out + self.expert(x, f"{p}experts.{e}", (weights * (chosen == e)).sum(1))
        return out

    def run(self, ids):
        x = np.repeat(self.w("embed.weight")[ids][:, None], 4, 1)
        for layer in range(self.c["num_hidden_layers"]):
            for part in ("attn", "ffn"):
                pre, post, comb = self.mix(x, f"layers.{layer}.hc_{part}")
                self.keep(layer, part + "_mix", np.concatenate([pre, post, comb.reshape(-1, 16)], 1))
                y = norm((pre[:, :, None] * x).sum(1), self.w(f"layers.{layer}.{part}_norm.weight"))
                self.keep(layer, part + "_in", y)
                f = self.attention(layer, y) if part == "attn" else self.moe(layer, y, ids)
                self.keep(layer, "attn_out" if part == "attn" else "moe_out", f)
                x = post[:, :, None] * f[:, None] + np.einsum("tjk,tjh->tkh", comb, x)
                self.keep(layer, "streams_mid" if part == "attn" else "streams", x)
        weights = self.mix(x, "hc_head")
        self.keep(-1, "head_mix", weights)
        y = norm((weights[:, :, None] * x).sum(1), self.w("norm.weight"))
        self.keep(-1, "final_norm", y)
        self.keep(-1, "logits", y @ self.w("head.weight").T)


ALL_ROWS = ("logits", "fp8", "scale", "rope", "comp", "idx_k", "idx_selected", "router_ids", "router_weights")


def has_all_rows(name):
    last = name.rsplit(".", 1)[-1]
    return last in ALL_ROWS or last.split("_")[-1] in ("fp8", "scale") or last in ("kv_rope", "comp_rope")


def check(tensors, path):
    wrong = 0
    for name, (kind, expected) in read_safetensors(path).items():
        if name not in tensors:
            continue
        if kind == "BF16":
            expected = (expected.astype(np.uint32) << 16).view(np.float32)
        actual, expected = tensors[name].astype(np.float64), expected.astype(np.float64)
        if name.endswith("router_ids"):
            actual, expected = np.sort(actual), np.sort(expected)
        with np.errstate(invalid="ignore"):
            difference = np.where(actual == expected, 0, np.abs(actual - expected)).max(initial=0)
        if not difference <= 1e-4:
            wrong += 1
            print(f"{name}: {difference}")
    print(f"{len(tensors)} tensors, {wrong} differ by more than 1e-4")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, default=MODEL)
    parser.add_argument("--text", type=pathlib.Path, default=MODEL / "prompt.txt")
    parser.add_argument("--bytes", type=int, default=144)
    parser.add_argument("--prompt", default="p144")
    parser.add_argument("--positions", default="5,23,127,143")
    parser.add_argument("--layers", default="-1,0,1,2", help="whose stages are kept; -1: of the whole model")
    parser.add_argument("--out", type=pathlib.Path, default=GOLDEN)
    parser.add_argument("--check", type=pathlib.Path)
    args = parser.parse_args()
    ids = np.frombuffer(args.text.read_bytes()[:args.bytes], np.uint8).astype(np.int64)
    positions = np.array([int(p) for p in args.positions.split(",")])
    tensors = {f"{args.prompt}.input_ids": ids.astype(np.uint8),
               f"{args.prompt}.positions": positions.astype("<i4")}
    checkpoint = Checkpoint(args.model)
    for mode in ("exact", "quant"):
        model = Model(checkpoint, mode, [int(n) for n in args.layers.split(",")])
        model.run(ids)
        for name, value in model.stages.items():
            value = value if has_all_rows(name) else value[positions]
            if value.dtype == np.float64:
                value = value.astype("<f4")
            elif value.dtype != np.uint8:
                value = value.astype("<i2" if name.endswith("idx_selected") else "<i4")
            tensors[f"{args.prompt}.{mode}.{name}"] = value
    if args.check:
        return check(tensors, args.check)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    write_safetensors(args.out, tensors)
    print(f"{args.out}: {len(tensors)} tensors, {args.out.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(min(main(), 1))
