#!/usr/bin/env python3
"""Attention of new tokens over caches: other libraries beside Tilewright's, on a GPU, the same inputs, one run.

    python3 bench/decode_peers.py --out decode-peers.json

Needs torch with CUDA and the Python package (./run builds it). Measured are torch's cuDNN and flash backends
over contiguous bf16 caches, and Tilewright through the package over the same caches, over
pages of 16 tokens in random order, and over the caches rounded to e4m3; FlashAttention-3 over the bf16 caches if
--fa3 names a shared library with the function that bench/attention_peers.py describes (is_bf16 = 1,
num_splits = 0).

Protocol: N(0,1) inputs, two ways to time. Alone (samples_us): every timed call finds a cold L2 cache, code
included (256 MiB are written before it); one call of each in random order, again and again; times by events. In
a graph (graph_samples_us), as inference engines decode: a CUDA graph of 24 calls that take sets of caches in
turn, so that none of them is in the L2 cache; time of the graph over 24. Every result is compared with float64
on sampled heads.
"""

import ctypes
import math
import pathlib
import random
import statistics
import sys

import attention_peers
import peer_run

# batch, keys, heads, heads of keys, head_dim
CASES = [(1, 256, 32, 8, 128), (1, 1024, 32, 8, 128), (1, 4096, 32, 8, 128), (1, 16384, 32, 8, 128),
         (1, 65536, 32, 8, 128), (8, 1024, 32, 8, 128), (8, 4096, 32, 8, 128), (32, 4096, 32, 8, 128),
         (32, 8192, 32, 8, 128), (16, 2048, 32, 32, 128), (4, 16384, 16, 1, 128), (32, 8192, 32, 8, 64),
         (16, 8192, 16, 4, 256)]
# e4m3 keys and values are converted exactly, so only sums and the result in bf16 round.
LIMIT = 2e-2
PAGE = 16
CALLS, COLD_BYTES = 24, 200 << 20  # of a graph; of all sets of the smallest caches


def prepare(torch, package, q, k, v, length, table=None, descales=None):
    """A function that enqueues one run and returns its output, and the plan. q [batch, 1, heads, dim]; caches
    [batch, length, kv_heads, dim], or pages of them and `table`; `descales` of e4m3."""
    problem = {"batch": q.shape[0], "q_len": q.shape[1], "heads": q.shape[2], "head_dim": q.shape[3],
               "kv_heads": k.shape[2]}
    if descales:
        problem |= {"kv_dtype": "e4m3", "descale": "head"}
    if table is None:
        problem["max_len"] = length
    else:
        problem |= {"page_size": k.shape[1], "num_pages": k.shape[0], "max_pages": table.shape[1]}
    op = package.AttentionDecode(package.Device(peer_run.DEVICE), **problem)
    out = torch.empty_like(q)
    given = {"q": q, "k_cache": k, "v_cache": v, "out": out, "workspace": peer_run.workspace_of(torch, op, q),
             "lengths": torch.full((q.shape[0],), length, dtype=torch.int32, device=q.device)}
    if table is not None:
        given["block_table"] = table
    if descales:
        given["k_descale"], given["v_descale"] = descales

    def run():
        op.run(**given)
        return out.transpose(1, 2)

    return run, op.plan.text


def add_tilewright(torch, package, found, q, k, v):
    """Caches of bf16, the same in pages, and rounded. k and v are [batch, kv_heads, length, dim]."""
    rows = q.transpose(1, 2).contiguous()
    batch, kv_heads, length, dim = k.shape
    caches = [x.transpose(1, 2).contiguous() for x in (k, v)]
    pages = batch * ((length + PAGE - 1) // PAGE)
    table = torch.randperm(pages, device=q.device).to(torch.int32).reshape(batch, -1).contiguous()
    paged = [torch.zeros(pages, PAGE, kv_heads, dim, dtype=x.dtype, device=q.device) for x in caches]
    for pool, x in zip(paged, caches):
        pool[table.flatten().long()] = x.reshape(pages, PAGE, kv_heads, dim)
    rounded = [attention_peers.Rounded(torch, x, kv_heads) for x in (k, v)]
    codes = [x.codes.transpose(1, 2).contiguous() for x in rounded]
    forms = {"bf16": ((*caches,), {}), f"bf16, pages of {PAGE}": ((*paged,), {"table": table}),
             "e4m3": ((*codes,), {"descales": [x.descale for x in rounded]})}
    exact = {"e4m3": [x.exact for x in rounded]}
    for form, (stored, more) in forms.items():
        run, plan = prepare(torch, package, rows, *stored, length, **more)
        found[f"tilewright {form}"] = ("tilewright", run, plan, exact.get(form, (k, v)))


def add_peers(torch, args, fa3, found, q, k, v):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    import torch.nn.functional as functional

    def add(name, backend, source):
        def run():
            with sdpa_kernel(backend):
                return functional.scaled_dot_product_attention(q, k, v, enable_gqa=k.shape[1] != q.shape[1])
        found[name] = (source, run, None, (k, v))

    add("cudnn bf16", SDPBackend.CUDNN_ATTENTION,
        f"cuDNN {torch.backends.cudnn.version()} (torch {torch.__version__})")
    add("flash bf16", SDPBackend.FLASH_ATTENTION, f"torch {torch.__version__}, flash backend")
    if fa3 is None:
        return
    out = torch.empty_like(q)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    strides = [(ctypes.c_int64 * 3)(x.stride(0), x.stride(2), x.stride(1)) for x in (q, k, v, out)]
    a = attention_peers.Fa3Fp8Arguments(*(x.data_ptr() for x in (q, k, v, out, lse)), None, None, None, q.shape[0],
                                        q.shape[1], k.shape[1], 1, k.shape[2], q.shape[3], 0,
                                        1 / math.sqrt(q.shape[3]), *strides, 1, 0)
    fa3.fa3_workspace_bytes.restype = ctypes.c_size_t
    workspace = torch.zeros(max(fa3.fa3_workspace_bytes(ctypes.byref(a)), 1), dtype=torch.uint8, device=q.device)
    a.workspace, a.workspace_bytes = workspace.data_ptr(), workspace.numel()

    def run():
        a.stream = torch.cuda.current_stream().cuda_stream
        status = fa3.fa3_forward_any(ctypes.byref(a))
        if status:
            raise RuntimeError(f"fa3_forward_any returned {status}")
        return out
    run.keep = (lse, workspace)
    found["fa3 bf16"] = (f"FlashAttention-3, {pathlib.Path(args.fa3).name}", run, None, (k, v))


def error_of(torch, out, q, k, v, count):
    chooser = random.Random(1)
    got, want = [], []
    for _ in range(count):
        b, h = chooser.randrange(q.shape[0]), chooser.randrange(q.shape[1])
        g = h // (q.shape[1] // k.shape[1])
        weights = torch.softmax(k[b, g].double() @ q[b, h, 0].double() / math.sqrt(q.shape[3]), 0)
        want.append(weights @ v[b, g].double())
        got.append(out[b, h, 0].double())
    got, want = torch.stack(got), torch.stack(want)
    relative = ((got - want).norm() / want.norm()).item()
    return {"rows": count, "max_abs": (got - want).abs().max().item(), "relative_rms": relative,
            "ok": bool(relative < LIMIT)}


def draw_set(torch, args, package, fa3, case):
    """Queries and a set of caches, and what runs over them: name -> (source, function, plan, keys and values)."""
    batch, length, heads, kv_heads, dim = case
    q, k, v = (torch.randn(batch, h, n, dim, device="cuda", dtype=torch.bfloat16)
               for h, n in ((heads, 1), (kv_heads, length), (kv_heads, length)))
    found = {}
    add_peers(torch, args, fa3, found, q, k, v)
    if package is not None:
        add_tilewright(torch, package, found, q, k, v)
    return q, found


def measure_graphs(torch, args, runs):
    """Microseconds a call, in graphs of CALLS calls that take the sets in turn; graphs in random order. `runs`:
    name -> a function for each set."""
    graphs, times = {}, {name: [] for name in runs}
    for name, functions in runs.items():
        functions[0]()
        torch.cuda.synchronize()
        graphs[name] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[name]):
            for i in range(CALLS):
                functions[i % len(functions)]()
    peer_run.warm_up(torch)
    for sample in range(args.samples + 1):  # the first pays for uploading
        for name in random.sample(list(graphs), len(graphs)):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graphs[name].replay()
            end.record()
            end.synchronize()
            if sample > 0:
                times[name].append(1e3 * begin.elapsed_time(end) / CALLS)
    return times


def run_case(torch, args, package, fa3, case):
    batch, length, heads, kv_heads, dim = case
    torch.manual_seed(1)
    bf16_bytes = 4 * batch * length * kv_heads * dim
    # The rounded caches are half as large, and all of them together are to be far larger than the L2 cache.
    sets = [draw_set(torch, args, package, fa3, case)
            for _ in range(min(max(-(-COLD_BYTES * 2 // bf16_bytes), 1), CALLS))]
    q, found = sets[0]
    error = {}
    for name in list(found):
        try:
            error[name] = error_of(torch, found[name][1](), q, *found[name][3], args.rows)
        except RuntimeError as refusal:
            print(f"  {name}: {str(refusal).splitlines()[0]}", file=sys.stderr)
            del found[name]
    times = attention_peers.measure(torch, args, {name: (None, None, found[name][1]) for name in found})
    in_graph = measure_graphs(torch, args, {name: [other[name][1] for _, other in sets] for name in found})
    text, samples = f"{batch} x {length}, {heads}/{kv_heads} heads of {dim}", []
    for name, (source, run, plan, _) in found.items():
        kv_bytes = bf16_bytes // 2 if name.endswith("e4m3") else bf16_bytes
        samples.append({"case": text, "inputs": "N(0,1)", "source": source, "kernel": name, "plan": plan,
                        "kv_bytes": kv_bytes, "samples_us": times[name], "graph_samples_us": in_graph[name],
                        "graph_sets": len(sets), "error": error[name],
                        "problem": {"batch": batch, "q_len": 1, "kv_len": length, "heads": heads,
                                    "kv_heads": kv_heads, "head_dim": dim}})
    for key, what in (("samples_us", "alone"), ("graph_samples_us", "graph")):
        print(f"{text:34} {what} us (GB/s): " + "  ".join(
            f"{s['kernel']} {statistics.median(s[key]):.1f} "
            f"({s['kv_bytes'] / statistics.median(s[key]) * 1e-3:.0f})" for s in samples), flush=True)
    return samples


def parse():
    parser = peer_run.begin_parser(__doc__, "decode-peers.json", 16, "heads")
    parser.add_argument("--fa3", metavar="LIBRARY", help="shared library with fa3_forward_any")
    return parser.parse_args()


def main():
    args = parse()
    torch = peer_run.import_torch()
    package = peer_run.open_package(args)
    fa3 = ctypes.CDLL(args.fa3) if args.fa3 else None
    log = peer_run.begin_log(torch, "decode", package, cache="cold: 256 MiB are written before every timed run")
    for case in CASES:
        log["samples"] += run_case(torch, args, package, fa3, case)
    return peer_run.end_run(log, args.out)


if __name__ == "__main__":
    sys.exit(main())
