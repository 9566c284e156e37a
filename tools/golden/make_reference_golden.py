#!/usr/bin/env python3
"""Makes tests/golden/reference/*.json, the second witness for src/reference. Needs numpy.

Nothing here follows the C++ code: whole arrays instead of loops, masks instead of skipped keys, the
sink as one more column, complex numbers for rotations, Kronecker products for Hadamard matrices,
all experts for all tokens in the MoE. Arithmetic is numpy.longdouble (64-bit significand on
x86-64), so the expected values carry about three digits more than the code under test.

Inputs are multiples of 1/16 or 1/64, hence short in decimal and exact in binary. Infinities and NaN
are written as the strings "inf", "-inf" and "nan". With --check nothing is written; the exit status
is 1 if a file differs from what would be written by more than the last digits.
"""

import json
import pathlib
import sys

import golden_files
import numpy as np

REAL = np.longdouble
COMPLEX = np.clongdouble
DEFAULT_DIR = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "reference"


def draw(rng, *shape, spread=1.0, grid=16):
    """Normal numbers rounded to multiples of 1/grid."""
    return (np.rint(rng.normal(0, spread, shape) * grid) / grid).astype(REAL)


def log_sum_exp(x, axis=-1):
    """ln(sum(exp(x))), also of nothing (-inf) and of infinities."""
    peak = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    peak = np.where(np.isfinite(peak), peak, 0)
    with np.errstate(divide="ignore"):
        return np.squeeze(peak, axis) + np.log(np.sum(np.exp(x - peak), axis=axis))


# --- attention ------------------------------------------------------------------------------------

def attend_sequence(p, q, k, v):
    """out, lse, lse_with_sink of q [heads, q, d], k [heads, kv, d], v [heads, kv, dv]."""
    heads, q_len, _ = q.shape
    kv_len = k.shape[1]
    s = np.matmul(q, np.swapaxes(k, 1, 2)) * REAL(p["scale"])
    if p["softcap"] > 0:
        s = p["softcap"] * np.tanh(s / REAL(p["softcap"]))
    # distance[i, j] > 0: key j lies behind query i, whose position is i + kv_len - q_len
    distance = np.arange(kv_len)[None, :] - (np.arange(q_len)[:, None] + kv_len - q_len)
    right = 0 if p["causal"] else p["window_right"] if p["window_right"] >= 0 else np.inf
    left = p["window_left"] if p["window_left"] >= 0 else np.inf
    s = np.where((distance <= right) & (distance >= -left), s, -np.inf)
    sink = np.array(p["sink"] if p["sink"] else [-np.inf] * heads, dtype=REAL)
    column = np.broadcast_to(sink[:, None, None], (heads, q_len, 1))
    lse_with_sink = log_sum_exp(np.concatenate([s, column], axis=-1))
    shift = np.where(np.isneginf(lse_with_sink), 0, lse_with_sink)
    return np.matmul(np.exp(s - shift[..., None]), v), log_sum_exp(s), lse_with_sink


def gather(p, array, b):
    """The keys (or values) of sequence b as [heads, kv, dim], whatever the storage."""
    if p["page_size"]:
        rows = array[np.array(p["page_table"])[b].clip(0)].reshape(-1, *array.shape[2:])
        rows = rows[:p["kv_len"]]
    elif p["cu_seqlens_kv"]:
        rows = array[p["cu_seqlens_kv"][b]:p["cu_seqlens_kv"][b + 1]]
    else:
        rows = array[b]
    if p["kv_lens"]:
        rows = rows[:p["kv_lens"][b]]
    return np.repeat(rows, p["heads"] // p["kv_heads"], axis=1).swapaxes(0, 1)


def attention(p, q, k, v):
    results = []
    for b in range(p["batch"]):
        q_b = q[p["cu_seqlens_q"][b]:p["cu_seqlens_q"][b + 1]] if p["cu_seqlens_q"] else q[b]
        out, lse, with_sink = attend_sequence(p, q_b.swapaxes(0, 1), gather(p, k, b),
                                              gather(p, v, b))
        results.append((out.swapaxes(0, 1), lse, with_sink))
    outs, lses, with_sinks = zip(*results)
    if p["cu_seqlens_q"]:
        return np.concatenate(outs), np.concatenate(lses, 1), np.concatenate(with_sinks, 1)
    return np.stack(outs), np.stack(lses), np.stack(with_sinks)


ATTENTION_DEFAULTS = dict(batch=1, heads=2, kv_heads=2, q_len=0, kv_len=0, head_dim=8, v_head_dim=8,
                          scale=0.25, softcap=0.0, causal=False, window_left=-1, window_right=-1,
                          sink=[], cu_seqlens_q=[], cu_seqlens_kv=[], kv_lens=[], page_table=[],
                          page_size=0)
INF = float("inf")
ATTENTION_CASES = {
    "plain": dict(batch=2, q_len=5, kv_len=7),
    "causal, fewer queries than keys": dict(q_len=5, kv_len=9, causal=True),
    "causal, more queries than keys": dict(q_len=7, kv_len=4, causal=True),
    "no keys at all": dict(q_len=2, kv_len=0, sink=[0.5, -INF]),
    "window to both sides": dict(batch=2, q_len=7, kv_len=9, window_left=2, window_right=1),
    "window to the left, causal": dict(q_len=8, kv_len=8, window_left=2, causal=True),
    "window of the query's own position, more queries than keys":
        dict(q_len=6, kv_len=4, window_left=0, window_right=0),
    "softcap": dict(q_len=4, kv_len=6, softcap=1.5, scale=1.0),
    "sinks": dict(heads=5, kv_heads=5, q_len=3, kv_len=6, sink=[0.75, -2.5, 30.0, INF, -INF]),
    "three query heads per KV head, wider values":
        dict(heads=6, kv_heads=2, q_len=3, kv_len=6, head_dim=4, v_head_dim=7),
    "one KV head, narrower values, default scale":
        dict(heads=4, kv_heads=1, q_len=3, kv_len=5, head_dim=16, v_head_dim=4, scale=None),
    "scores in the thousands": dict(q_len=4, kv_len=6, scale=400.0),
    "negative scale": dict(q_len=3, kv_len=4, scale=-0.5),
    "packed, empty sequences, causal":
        dict(batch=5, causal=True, cu_seqlens_q=[0, 3, 3, 4, 8, 10],
             cu_seqlens_kv=[0, 5, 9, 9, 11, 18]),
    "packed with lengths, window": dict(batch=3, cu_seqlens_q=[0, 2, 5, 6], kv_lens=[4, 2, 0],
                                        cu_seqlens_kv=[0, 4, 9, 12], window_left=1, window_right=2),
    "dense with lengths, causal": dict(batch=3, q_len=2, kv_len=8, kv_lens=[8, 1, 5], causal=True),
    "paged, one length": dict(batch=2, q_len=2, kv_len=7, page_size=4, num_pages=5, causal=True,
                              page_table=[[4, 1], [0, 3]]),
    "paged with lengths and sink, grouped heads, causal":
        dict(batch=3, heads=4, kv_heads=2, q_len=3, page_size=3, num_pages=7, causal=True,
             kv_lens=[8, 0, 4], sink=[0.25, 1.0, -1.0, 2.0],
             page_table=[[5, 0, 6], [-1, -1, -1], [2, 3, -1]]),
    "list of keys per query: pages of one key":
        dict(batch=4, heads=3, kv_heads=1, q_len=1, head_dim=12, v_head_dim=12, page_size=1,
             num_pages=9, kv_lens=[3, 5, 1, 0], sink=[0.0, 1.5, -0.5],
             page_table=[[8, 0, 3, -1, -1], [1, 2, 3, 4, 5], [7, -1, -1, -1, -1], [-1] * 5]),
    "everything at once":
        dict(batch=3, heads=4, kv_heads=2, head_dim=6, v_head_dim=5, scale=0.75, softcap=2.0,
             causal=True, window_left=3, sink=[0.5, -0.25, 1.25, -INF], cu_seqlens_q=[0, 4, 5, 8],
             kv_lens=[9, 6, 2], page_size=4, num_pages=6,
             page_table=[[3, 5, 0], [1, 4, -1], [2, -1, -1]]),
}


def attention_shapes(p):
    q = [p["cu_seqlens_q"][-1]] if p["cu_seqlens_q"] else [p["batch"], p["q_len"]]
    kv = [p["batch"], p["kv_len"]]
    if p["cu_seqlens_kv"]:
        kv = [p["cu_seqlens_kv"][-1]]
    if p["page_size"]:
        kv = [p["num_pages"], p["page_size"]]
    return (q + [p["heads"], p["head_dim"]], kv + [p["kv_heads"], p["head_dim"]],
            kv + [p["kv_heads"], p["v_head_dim"]])


def attention_cases(rng):
    for name, changes in ATTENTION_CASES.items():
        p = ATTENTION_DEFAULTS | changes
        has_scale = p["scale"] is not None
        if not has_scale:
            p["scale"] = 1 / np.sqrt(REAL(p["head_dim"]))
        if p["page_size"] and p["kv_lens"]:
            p["kv_len"] = max(p["kv_lens"])
        q, k, v = (draw(rng, *shape) for shape in attention_shapes(p))
        out, lse, lse_with_sink = attention(p, q, k, v)
        if not has_scale:
            del p["scale"]
        p.pop("num_pages", None)
        yield dict(name=name, **p, q=q, k=k, v=v, out=out, lse=lse, lse_with_sink=lse_with_sink)


# --- linear, SwiGLU, MoE --------------------------------------------------------------------------

def linear_cases(rng):
    for m, n, k in [(1, 1, 1), (3, 5, 7), (4, 6, 33)]:
        x, w, bias = draw(rng, m, k), draw(rng, n, k), draw(rng, n)
        yield dict(m=m, n=n, k=k, x=x, w=w, bias=bias, out=np.einsum("ik,jk->ij", x, w) + bias,
                   magnitude=np.einsum("ik,jk->ij", abs(x), abs(w)))


def swiglu(gate, up, limit, alpha=1, up_offset=0):
    g = np.where(gate > limit, REAL(limit), gate)
    u = np.maximum(np.minimum(up, REAL(limit)), -REAL(limit))
    half = REAL(alpha) * g / 2
    return g * np.exp(half) / (2 * np.cosh(half)) * (u + up_offset)


def swiglu_cases(rng):
    for limit, alpha, up_offset in [(INF, 1.0, 0.0), (10.0, 1.0, 0.0), (7.0, 1.702, 1.0)]:
        gate, up = draw(rng, 40, spread=7), draw(rng, 40, spread=7)
        yield dict(limit=limit, alpha=alpha, up_offset=up_offset, gate=gate, up=up,
                   out=swiglu(gate, up, limit, alpha, up_offset))


def mlp_all_experts(x, w, options):
    """Every expert on every token: [tokens, experts, hidden], before the down bias."""
    gate = np.einsum("th,eih->tei", x, w["gate"]) + w["gate_bias"]
    up = np.einsum("th,eih->tei", x, w["up"]) + w["up_bias"]
    return np.einsum("tei,ehi->teh", swiglu(gate, up, **options), w["down"])


def draw_mlp(rng, experts, inter, hidden, has_bias):
    w = dict(gate=draw(rng, experts, inter, hidden), up=draw(rng, experts, inter, hidden),
             down=draw(rng, experts, hidden, inter))
    for name, dim in [("gate_bias", inter), ("up_bias", inter), ("down_bias", hidden)]:
        w[name] = draw(rng, experts, dim) if has_bias else np.zeros((experts, dim), REAL)
    return w


def moe_case(rng, name, ids, experts, hidden, inter, shared_inter, has_bias, before_down, options):
    ids = np.array(ids)
    x, weights = draw(rng, len(ids), hidden), abs(draw(rng, *ids.shape, spread=0.5, grid=64))
    routed = draw_mlp(rng, experts, inter, hidden, has_bias)
    # share[t, e]: sum of the weights with which token t visits expert e; visits[t, e]: how often
    hits = ids[..., None] == np.arange(experts)
    share, visits = (hits * weights[..., None]).sum(1), hits.sum(1).astype(REAL)
    out = (np.einsum("te,teh->th", share, mlp_all_experts(x, routed, options))
           + np.matmul(visits if before_down else share, routed["down_bias"]))
    case = dict(name=name, tokens=len(ids), hidden=hidden, inter=inter, experts=experts,
                topk=ids.shape[1], shared_inter=shared_inter, weight_before_down=before_down)
    case |= options | dict(x=x, ids=ids, weights=weights)
    case |= {f"routed_{key}": array for key, array in routed.items() if array.any()}
    if shared_inter:
        shared = draw_mlp(rng, 1, shared_inter, hidden, has_bias)
        out += (mlp_all_experts(x, shared, options) + shared["down_bias"])[:, 0]
        case |= {f"shared_{key}": array for key, array in shared.items() if array.any()}
    return case | dict(out=out)


def moe_cases(rng):
    v4, oss = dict(limit=2.0, alpha=1.0, up_offset=0.0), dict(limit=3.0, alpha=1.702, up_offset=1.0)
    yield moe_case(rng, "DeepSeek-V4 style", [[0, 3], [2, 1], [3, 2], [1, 0], [2, 3]], experts=4,
                   hidden=6, inter=5, shared_inter=7, has_bias=False, before_down=True, options=v4)
    yield moe_case(rng, "gpt-oss style", [[4, 0, 2], [1, 2, 3], [0, 1, 4]], experts=5, hidden=4,
                   inter=6, shared_inter=0, has_bias=True, before_down=False, options=oss)
    yield moe_case(rng, "dropped slots, biases", [[-1, 1], [0, -1], [-1, -1]], experts=2, hidden=4,
                   inter=3, shared_inter=2, has_bias=True, before_down=True, options=v4)


# --- router and top-k -----------------------------------------------------------------------------

def best(values, k):
    """Indices by falling value, then rising index; NaN last together with -inf."""
    values = np.where(np.isnan(values), -np.inf, values)
    order = np.lexsort((np.arange(len(values)), -values))[:k]
    return np.concatenate([order, np.full(max(k - len(values), 0), -1)]).astype(int)


def router_case(rng, score, tokens, experts, topk, normalize, scale, has_bias, is_hash):
    logits = draw(rng, tokens, experts, spread=3)
    logits[:, 1] = logits[:, 0]  # ties
    scores = (np.exp(logits - log_sum_exp(logits)[:, None]) if score == "softmax"
              else np.sqrt(np.logaddexp(REAL(0), logits)))
    bias = draw(rng, experts, spread=0.5) if has_bias else np.zeros(0, REAL)
    case = dict(score=score, tokens=tokens, experts=experts, topk=topk, normalize=normalize,
                scale=scale, logits=logits, bias=bias)
    if is_hash:
        table = np.argsort(rng.random((9, experts)), axis=1)[:, :topk]
        token_ids = rng.integers(0, 9, tokens)
        ids = table[token_ids]
        case |= dict(table=table, token_ids=token_ids)
    else:
        ids = np.array([best(row, topk) for row in (scores + bias if has_bias else scores)])
    weights = np.take_along_axis(scores, ids, axis=1)
    if normalize:
        weights = weights / weights.sum(1, keepdims=True)
    return case | dict(ids=ids, weights=weights * REAL(scale), scores=scores)


def router_cases(rng):
    yield router_case(rng, "softmax", 5, 8, 3, True, 1.0, False, False)
    yield router_case(rng, "softmax", 4, 6, 6, False, 0.5, True, False)
    yield router_case(rng, "sqrt_softplus", 6, 16, 6, True, 1.5, True, False)
    yield router_case(rng, "sqrt_softplus", 6, 8, 2, True, 2.5, False, True)
    yield router_case(rng, "softmax", 3, 5, 2, False, 1.0, False, True)


def top_k_cases(rng):
    rows = [draw(rng, 20, grid=2), draw(rng, 6), np.zeros(5, REAL), np.zeros(0, REAL),
            np.array([np.nan, 1, -np.inf, np.inf, np.nan, 1, -3], REAL)]
    for row, k in [(rows[0], 7), (rows[0], 20), (rows[1], 0), (rows[1], 9), (rows[2], 3),
                   (rows[3], 2), (rows[4], 3), (rows[4], 7), (rows[4], 8)]:
        yield dict(k=k, values=row, indices=best(row, k))


# --- normalisation, rotations, Hadamard -----------------------------------------------------------

def rms_norm_cases(rng):
    for rows, dim, eps, has_weight in [(3, 16, 1e-6, True), (6, 8, 1e-6, False), (2, 5, 0.5, True)]:
        x, weight = draw(rng, rows, dim), draw(rng, dim) if has_weight else np.zeros(0, REAL)
        out = x * np.sqrt(REAL(dim) / (np.square(x).sum(1, keepdims=True) + dim * REAL(eps)))
        yield dict(rows=rows, dim=dim, eps=eps, x=x, weight=weight,
                   out=out * weight if has_weight else out)


def frequencies(rotary_dim, theta):
    return np.exp(np.log(REAL(theta)) * -np.arange(0, rotary_dim, 2).astype(REAL) / rotary_dim)


def yarn_frequencies(rotary_dim, theta, factor, original, beta_fast, beta_slow):
    # pair i makes original * f_i / (2 pi) turns; solving for i where that is beta
    two_pi = 8 * np.arctan(REAL(1))
    pair = [np.log(original / (two_pi * beta)) / np.log(REAL(theta)) * rotary_dim / 2
            for beta in (beta_fast, beta_slow)]
    low, high = max(np.floor(pair[0]), 0), min(np.ceil(pair[1]), rotary_dim - 1)
    assert low <= high
    index = np.arange(rotary_dim // 2).astype(REAL)
    keep = (index <= low).astype(REAL) if low == high else \
        1 - np.minimum(np.maximum((index - low) / (high - low), 0), 1)
    plain = frequencies(rotary_dim, theta)
    return plain * (keep + (1 - keep) / REAL(factor))


def frequency_cases(_):
    for rotary_dim, theta in [(64, 1e4), (64, 1.6e5), (32, 5e5), (2, 1e4)]:
        yield dict(rotary_dim=rotary_dim, theta=theta, frequencies=frequencies(rotary_dim, theta))
    for rotary_dim, theta, *yarn in [(64, 1.6e5, 16, 65536, 32, 1), (128, 1e6, 4, 32768, 32, 1),
                                     (64, 1e4, 40, 4096, 32, 1), (16, 1e4, 8, 16, 32, 1),
                                     (16, 1e4, 8, 6, 32, 1), (8, 10.0, 2, 1000, 32, 1e-3)]:
        keys = ("factor", "original_max_pos", "beta_fast", "beta_slow")
        yield dict(rotary_dim=rotary_dim, theta=theta, **dict(zip(keys, map(float, yarn))),
                   frequencies=yarn_frequencies(rotary_dim, theta, *yarn))


def rope_cases(rng):
    sizes = [(3, 2, 8, 8, False), (3, 2, 12, 8, False), (4, 1, 10, 6, True), (2, 2, 4, 0, False)]
    for tokens, heads, head_dim, rotary_dim, is_inverse in sizes:
        x = draw(rng, tokens, heads, head_dim)
        positions = np.sort(rng.integers(0, 1000, tokens))
        given = frequencies(rotary_dim, 1e4).astype(float) if rotary_dim else np.zeros(0)
        angle = positions[:, None].astype(REAL) * given.astype(REAL) * (-1 if is_inverse else 1)
        pairs = np.ascontiguousarray(x[..., head_dim - rotary_dim:]).view(COMPLEX)
        turned = pairs * (np.cos(angle) + 1j * np.sin(angle))[:, None, :]
        out = np.concatenate([x[..., :head_dim - rotary_dim],
                              np.ascontiguousarray(turned).view(REAL)], axis=-1)
        yield dict(tokens=tokens, heads=heads, head_dim=head_dim, rotary_dim=rotary_dim,
                   is_inverse=is_inverse, x=x, positions=positions, frequencies=given, out=out)


def hadamard_cases(rng):
    for rows, dim, scale, has_signs in [(2, 1, 1.0, False), (3, 2, 1.0, False), (2, 8, 0.5, True),
                                        (2, 64, 0.125, True), (1, 128, 128**-0.5, False)]:
        matrix = np.ones((1, 1), REAL)
        while len(matrix) < dim:
            matrix = np.kron(np.array([[1, 1], [1, -1]], REAL), matrix)
        x, signs = draw(rng, rows, dim), rng.choice([-1, 1], dim) if has_signs else np.zeros(0)
        signed = x * signs.astype(REAL) if has_signs else x
        yield dict(rows=rows, dim=dim, scale=scale, x=x, signs=signs,
                   out=np.matmul(signed, matrix) * REAL(scale))


# --- files ----------------------------------------------------------------------------------------

OPERATORS = {
    "attention": attention_cases, "linear": linear_cases, "swiglu": swiglu_cases, "moe": moe_cases,
    "router": router_cases, "top_k": top_k_cases, "rms_norm": rms_norm_cases,
    "rope_frequencies": frequency_cases, "rope": rope_cases, "hadamard": hadamard_cases,
}


def plain(value):
    """Lists and numbers that JSON knows, arrays flattened in row-major order."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(x) for x in np.asarray(value).reshape(-1)]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if not np.isfinite(number):
            return str(number)
        return int(number) if number == int(number) and abs(number) < 2**53 else number
    return value


def text_of(seed, make_cases):
    cases = [{key: plain(value) for key, value in case.items()}
             for case in make_cases(np.random.default_rng(seed))]
    lines = [",\n ".join(f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}"
                         for key, value in case.items()) for case in cases]
    return "[{" + "},\n{".join(lines) + "}]\n"


def same(a, b):
    """Equal, up to the last digits of floating-point numbers."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, float) or isinstance(b, float):
        return isinstance(a, (int, float)) and isinstance(b, (int, float)) \
            and abs(a - b) <= 1e-14 * (1 + abs(a))
    return a == b


def texts():
    for seed, (name, make_cases) in enumerate(OPERATORS.items()):
        yield f"{name}.json", text_of(seed, make_cases)


if __name__ == "__main__":
    sys.exit(golden_files.write_or_compare(
        __doc__, __file__, DEFAULT_DIR, texts(), lambda old, new: same(json.loads(old), json.loads(new))))
