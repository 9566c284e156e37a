#!/usr/bin/env python3
"""Attention kernels of other libraries beside Tilewright's, on a GPU: the same inputs, one run.

    python3 bench/attention_peers.py --out peers.json
    tilewright ladder --peers peers.json

Needs torch with CUDA and the Python package (./run builds it). Measured are torch's cuDNN and flash backends,
Tilewright through the package, and FlashAttention-3 where its package (`flash_attn_interface`) or vLLM's build
of it (`vllm.vllm_flash_attn`, made for packed sequences alone) can be imported: 16 bits only, called with the
same numbers as [batch, rows, heads, head_dim]. FlashAttention-3 is also measured if --fa3 names a shared
library of yours (not for values of another width, as --head-dims 192:128 has):

    typedef struct fa3_args {
      const void *q, *k, *v;               // device, [batch, heads, rows, head_dim], contiguous
      void* out;                           // the same shape as q
      float* lse;                          // [batch, heads, rows]
      int32_t batch, heads, q_len, kv_len, head_dim;
      int32_t is_causal, is_f16;           // else bf16
      float scale;
      void* stream;                        // cudaStream_t
    } fa3_args;
    int fa3_forward(const fa3_args*);      // enqueues; 0 if all is well, anything else: not supported

--dtype e4m3 rounds the inputs with a factor for each head (--all-forms: and for each block of tokens, for every
form of K7), and calls instead

    typedef struct fa3_fp8_args {
      const void *q, *k, *v;               // device, e4m3, head_dim contiguous
      void* out;                           // bf16
      float* lse;                          // [batch, heads, q_len]
      const float *q_descale, *k_descale, *v_descale;  // [batch, kv_heads]
      int32_t batch, heads, kv_heads, q_len, kv_len, head_dim, is_causal;
      float scale;
      int64_t q_strides[3], k_strides[3], v_strides[3], out_strides[3];  // elements: batch, row, head
      int32_t is_bf16, num_splits;         // 0, 1
      const int32_t *page_table, *seqused_k;  // null
      int64_t page_table_stride;           // 0
      int32_t page_size, num_pages;        // 0
      void* workspace;                     // fa3_workspace_bytes
      size_t workspace_bytes;
      void* stream;
    } fa3_fp8_args;
    int fa3_forward_any(const fa3_fp8_args*);
    size_t fa3_workspace_bytes(const fa3_fp8_args*);

Protocol: N(0,1) inputs; every timed call finds a cold L2 cache (256 MiB are written before it) and is enqueued
while the GPU waits; one call of each kernel in random order, again and again, so that a GPU that lowers its
clocks does so for all; times by events.
Every result is compared with float64 on sampled rows: max error, relative rms and cosine.
"""

import ctypes
import importlib
import math
import pathlib
import random
import re
import statistics
import sys

import peer_run

INPUTS = {"normal": "N(0,1)", "outlier": "N(0,1) + N(0,100) Bernoulli(0.001)"}
QUERY_BLOCK, KEY_BLOCK = 64, 128  # tokens with one factor
# A weight and a number are off by at most 2^-4 of themselves, evenly spread 3.6 % in the mean square; bf16 results
# and sums of 16 bits far less. A kernel that is wrong is off by far more.
FORMS_OF_K7 = tuple(  # name in the log, kernel, are values columns, factors, how sums are accumulated
    (f"k7{rows}{block}{tiles}", f"k7{tiles}", not rows, "block" if block else "head", "one_level")
    for rows in ("", "_rows") for block in ("", "_block") for tiles in ("", "_short")) + (
    ("k7_two_level", "k7", True, "head", "two_level"), ("k7_rows_two_level", "k7", False, "head", "two_level"))
FORMS_OF_PEERS = (("auto", "auto", True, "head", "one_level"),) + tuple(
    form for form in FORMS_OF_K7 if form[0] in ("k7", "k7_short", "k7_rows", "k7_rows_short", "k7_two_level"))
LIMITS = {"bf16": 2e-2, "f16": 2e-2, "e4m3": 6e-2}


class Fa3Arguments(ctypes.Structure):
    _fields_ = ([(n, ctypes.c_void_p) for n in ("q", "k", "v", "out", "lse")] +
                [(n, ctypes.c_int32) for n in ("batch", "heads", "q_len", "kv_len", "head_dim", "is_causal",
                                               "is_f16")] +
                [("scale", ctypes.c_float), ("stream", ctypes.c_void_p)])


class Fa3Fp8Arguments(ctypes.Structure):
    _fields_ = ([(n, ctypes.c_void_p) for n in ("q", "k", "v", "out", "lse", "q_descale", "k_descale",
                                                "v_descale")] +
                [(n, ctypes.c_int32) for n in ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim",
                                               "is_causal")] +
                [("scale", ctypes.c_float)] +
                [(n, ctypes.c_int64 * 3) for n in ("q_strides", "k_strides", "v_strides", "out_strides")] +
                [("is_bf16", ctypes.c_int32), ("num_splits", ctypes.c_int32), ("page_table", ctypes.c_void_p),
                 ("seqused_k", ctypes.c_void_p), ("page_table_stride", ctypes.c_int64),
                 ("page_size", ctypes.c_int32), ("num_pages", ctypes.c_int32), ("workspace", ctypes.c_void_p),
                 ("workspace_bytes", ctypes.c_size_t), ("stream", ctypes.c_void_p)])


class Rounded:
    """A tensor in e4m3 with a factor for each (batch, head of keys), or for each (batch, head, block of rows).
    Those of values in blocks are powers of two / 448."""

    def __init__(self, torch, x, kv_heads, block=None, is_value=False):
        batch, heads, rows, dim = x.shape
        if block is None:
            grouped = x.float().reshape(batch, kv_heads, heads // kv_heads, rows, dim)
            self.descale = (grouped.abs().amax(dim=(2, 3, 4)) / 448).contiguous()
            factor = self.descale[:, :, None, None, None]
        else:
            grouped = x.float().reshape(batch, heads, -1, min(block, rows), dim)
            amax = grouped.abs().amax(dim=(3, 4))
            self.descale = ((2 ** amax.log2().ceil() if is_value else amax) / 448).contiguous()
            factor = self.descale[:, :, :, None, None]
        self.descale_max = self.descale.reshape(batch, self.descale.shape[1], -1).amax(2).contiguous()
        codes = (grouped / factor).to(torch.float8_e4m3fn)
        self.codes = codes.reshape(x.shape).contiguous()
        self.exact = (codes.float() * factor).reshape(x.shape)

    def columns(self, torch):
        """Values as K7 likes them: a key is a column, slot 4q + 2h + c of 16 holds key 8h + 2q + c."""
        batch, heads, rows, dim = self.codes.shape
        columns = (rows + 15) // 16 * 16
        padded = torch.zeros(batch, heads, columns, dim, dtype=torch.uint8, device=self.codes.device)
        padded[:, :, :rows] = self.codes.view(torch.uint8)
        order = [8 * h + 2 * q + c for q in range(4) for h in range(2) for c in range(2)]
        groups = padded.reshape(batch, heads, -1, 16, dim)[:, :, :, order]
        return groups.reshape(batch, heads, -1, dim).transpose(2, 3).contiguous()


DTYPES = {"float16": "f16", "bfloat16": "bf16", "float8_e4m3fn": "e4m3"}


def prepare(torch, package, shape, q, k, v, out, lse, kernel, fp8=None):
    """A function that enqueues one run, the name of the kernel and the plan. `fp8`: operands are e4m3; the
    factors, whether values are columns, and the way to add up."""
    batch, heads, rows, dim = q.shape
    problem = {f"{field}_strides": {"batch": x.stride(0), "row": x.stride(2), "head": x.stride(1)}
               for field, x in (("q", q), ("k", k), ("v", v), ("out", out))}
    given = {"q": q, "k": k, "v": v, "out": out, "lse": lse}
    if fp8:
        problem["fp8"] = {"scales": fp8["scales"], "accumulation": fp8["accumulation"]}
        given |= fp8["descales"]
        if fp8["columns"]:
            del problem["v_strides"]
            problem["fp8"]["v_layout"] = "columns"
    op = package.Attention(package.Device(peer_run.DEVICE), causal=shape["causal"], batch=batch, heads=heads,
                           kv_heads=k.shape[1], q_len=rows, kv_len=k.shape[2], head_dim=dim,
                           value_dim=out.shape[3], has_lse=True,
                           kernel=kernel, dtype=DTYPES[str(q.dtype).removeprefix("torch.")], **problem)
    given["workspace"] = peer_run.workspace_of(torch, op, q)
    return lambda: op.run(**given), op.plan.kernel, op.plan.text


def exact_rows(torch, q, k, v, causal, count):
    """(batch, head, row, out in float64) for some rows."""
    chooser = random.Random(1)
    batch, heads, rows, dim = q.shape
    out = []
    for i in range(count):
        b, h = chooser.randrange(batch), chooser.randrange(heads)
        row = 0 if i == 0 else rows - 1 if i == 1 else chooser.randrange(rows)
        g = h // (heads // k.shape[1])
        end = row + 1 + k.shape[2] - rows if causal else k.shape[2]
        scores = k[b, g, :end].double() @ q[b, h, row].double() / math.sqrt(dim)
        out.append((b, h, row, torch.softmax(scores, 0) @ v[b, g, :end].double()))
    return out


def errors(torch, out, exact, limit):
    got = torch.stack([out[b, h, row].double() for b, h, row, _ in exact])
    want = torch.stack([x for _, _, _, x in exact])
    error = got - want
    relative = (error.norm() / want.norm()).item()
    return {"rows": len(exact), "max_abs": error.abs().max().item(), "relative_rms": relative,
            "cosine": (torch.nn.functional.cosine_similarity(got.flatten(), want.flatten(), 0)).item(),
            "worst_of_bound": relative / limit, "ok": bool(relative < limit)}


def whole_call(torch, module, causal, q, k, v):
    """FlashAttention-3's own interface."""
    return lambda: first_of(module.flash_attn_func(q, k, v, causal=causal))


def packed_call(torch, module, causal, q, k, v):
    """The same as packed sequences, as vLLM calls its build."""
    batch, rows = q.shape[:2]
    starts = torch.arange(batch + 1, dtype=torch.int32, device=q.device) * rows
    operands = [x.flatten(0, 1) for x in (q, k, v)]
    out = torch.empty(*operands[0].shape[:2], v.shape[3], dtype=q.dtype, device=q.device)
    words = {"cu_seqlens_k": starts, "causal": causal, "out": out, "fa_version": 3}

    def run():
        module.flash_attn_varlen_func(*operands, rows, starts, rows, **words)
        return out.reshape(batch, rows, *out.shape[1:])
    return run


def first_of(found):
    return found[0] if isinstance(found, (tuple, list)) else found


FA3_PACKAGES = (("fa3 package", "flash_attn_interface", whole_call),
                ("fa3 vllm", "vllm.vllm_flash_attn", packed_call))


def package_runners(torch, causal, q, k, v):
    """name -> (source, idea, function, plan), of FlashAttention-3's builds that can be imported."""
    found = {}
    operands = [x.transpose(1, 2).contiguous() for x in (q, k, v)]
    for name, module_name, make in FA3_PACKAGES:
        try:
            call = make(torch, importlib.import_module(module_name), causal, *operands)
        except Exception as error:  # one that does not work here is a line
            print(f"  without {module_name}: {type(error).__name__}: {str(error)[:120]}", file=sys.stderr)
            continue
        found[name] = (f"FlashAttention-3, {module_name}", "", lambda call=call: call().transpose(1, 2), None)
    return found


def runners(torch, args, package, fa3, shape, q, k, v):
    """name -> (source, idea, function that enqueues and returns its output, plan)."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    import torch.nn.functional as functional
    causal, out, found = shape["causal"], {}, {}
    version = torch.__version__

    def add_torch(name, backend, source):
        def run():
            with sdpa_kernel(backend):
                out[name] = functional.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                               enable_gqa=k.shape[1] != q.shape[1])
            return out[name]
        found[name] = (source, "", run, None)

    add_torch("cudnn", SDPBackend.CUDNN_ATTENTION, f"cuDNN {torch.backends.cudnn.version()} (torch {version})")
    add_torch("flash", SDPBackend.FLASH_ATTENTION, f"torch {version}, flash backend")
    found |= package_runners(torch, causal, q, k, v)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    if fa3 is not None and v.shape[3] == q.shape[3]:
        fa3_result = torch.empty_like(q)
        arguments = Fa3Arguments(q.data_ptr(), k.data_ptr(), v.data_ptr(), fa3_result.data_ptr(), lse.data_ptr(),
                                 q.shape[0], q.shape[1], q.shape[2], k.shape[2], q.shape[3], int(causal),
                                 int(q.dtype == torch.float16), 1 / math.sqrt(q.shape[3]), None)

        def run_fa3():
            arguments.stream = torch.cuda.current_stream().cuda_stream
            status = fa3.fa3_forward(ctypes.byref(arguments))
            if status:
                raise RuntimeError(f"fa3_forward returned {status}")
            return fa3_result
        run_fa3.keep = lse
        found["fa3"] = (f"FlashAttention-3, {pathlib.Path(args.fa3).name}", "", run_fa3, None)
    for kernel in args.kernels if package is not None else []:
        result = torch.full((*q.shape[:3], v.shape[3]), math.nan, dtype=q.dtype, device=q.device)
        try:
            run, name, plan = prepare(torch, package, shape, q, k, v, result, lse, kernel)
        except package.Error as refusal:
            print(f"  {kernel}: {refusal}", file=sys.stderr)
            continue
        found[kernel] = ("tilewright", f"chosen: {name}" if kernel == "auto" else "",
                         lambda run=run, result=result: (run(), result)[1], plan)
    return found


def fp8_runners(torch, args, package, fa3, shape, operands):
    """The same of e4m3 operands, `operands` by kind of factors: forms of K7, and FA3."""
    rounded = operands["head"]
    q, k, v = (x.codes for x in rounded)
    batch, heads, rows, dim = q.shape
    descales = [x.descale.data_ptr() for x in rounded]
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    found = {}
    if fa3 is not None:
        result = torch.empty(q.shape, dtype=torch.bfloat16, device=q.device)
        strides = [(ctypes.c_int64 * 3)(x.stride(0), x.stride(2), x.stride(1)) for x in (q, k, v, result)]
        a = Fa3Fp8Arguments(*(x.data_ptr() for x in (q, k, v, result, lse)), *descales, batch, heads, k.shape[1],
                            rows, k.shape[2], dim, int(shape["causal"]), 1 / math.sqrt(dim), *strides, 0, 1)
        fa3.fa3_workspace_bytes.restype = ctypes.c_size_t
        size = max(fa3.fa3_workspace_bytes(ctypes.byref(a)), 1)
        workspace = torch.zeros(size, dtype=torch.uint8, device=q.device)
        a.workspace, a.workspace_bytes = workspace.data_ptr(), workspace.numel()

        def run_fa3():
            a.stream = torch.cuda.current_stream().cuda_stream
            status = fa3.fa3_forward_any(ctypes.byref(a))
            if status:
                raise RuntimeError(f"fa3_forward_any returned {status}")
            return result
        run_fa3.keep = (lse, workspace)
        found["fa3"] = (f"FlashAttention-3, {pathlib.Path(args.fa3).name}", "", run_fa3, None)
    columns = {scales: of[2].columns(torch) for scales, of in operands.items()}
    for name, kernel, is_columns, scales, accumulation in forms_of(args) if package else ():
        of = operands[scales]
        out = torch.empty(q.shape, dtype=torch.bfloat16, device=q.device)
        fp8 = {"columns": is_columns, "scales": scales, "accumulation": accumulation,
               "descales": {"q_descale": of[0].descale, "k_descale": of[1].descale, "v_descale": of[2].descale,
                            "v_descale_max": of[2].descale_max}}
        try:
            values = columns[scales] if is_columns else of[2].codes
            run, _, plan = prepare(torch, package, shape, of[0].codes, of[1].codes, values, out, lse, kernel, fp8)
        except package.Error as refusal:
            print(f"  {name}: {refusal}", file=sys.stderr)
            continue
        if entry_form(plan) != name and kernel != "auto":  # stands in for a form that there is not
            continue
        found[name] = ("tilewright", accumulation, lambda run=run, out=out: (run(), out)[1], plan)
        found[name][2].scales = scales
    return found


def forms_of(args):
    return FORMS_OF_K7 if args.all_forms else FORMS_OF_PEERS


def entry_form(plan):
    """"k7_rows" of a plan that launches attention_k7_d64_rows."""
    found = re.search(r"attention_k7_d\d+(\w*)", plan)
    return "k7" + found[1] if found else ""


def measure(torch, args, found):
    """Microseconds: one call of each in random order, args.samples times."""
    peer_run.warm_up(torch)
    return peer_run.measure(torch, {name: run for name, (_, _, run, *_) in found.items()}, args.samples)


def draw(torch, inputs, shape):
    x = torch.randn(*shape, device="cuda")
    if inputs == "outlier":  # of FlashAttention-3's paper
        x += 10 * torch.randn(*shape, device="cuda") * (torch.rand(*shape, device="cuda") < 1e-3)
    return x


def visible(rows, causal):
    return rows * (rows + 1) / 2 if causal else rows * rows


def run_shape(torch, args, package, fa3, shape):
    n, dim, value_dim = shape["n"], shape["head_dim"], shape["value_dim"]
    batch, heads = max(args.tokens // n, 1), args.heads or max(args.hidden // dim, 1)
    kv_heads = max(heads // args.group, 1)
    dtype = torch.float16 if args.dtype == "f16" else torch.bfloat16
    torch.manual_seed(args.seed)
    q, k, v = (draw(torch, args.inputs, (batch, h, n, columns)).to(dtype)
               for h, columns in ((heads, dim), (kv_heads, dim), (kv_heads, value_dim)))
    if args.dtype == "e4m3":
        operands = {"head": [Rounded(torch, x, kv_heads) for x in (q, k, v)]}
        if args.all_forms:
            operands["block"] = [Rounded(torch, q, kv_heads, QUERY_BLOCK), Rounded(torch, k, kv_heads, KEY_BLOCK),
                                 Rounded(torch, v, kv_heads, KEY_BLOCK, is_value=True)]
        found = fp8_runners(torch, args, package, fa3, shape, operands)
        exact = {scales: exact_rows(torch, *(x.exact for x in of), shape["causal"], args.rows)
                 for scales, of in operands.items()}
    else:
        found = runners(torch, args, package, fa3, shape, q, k, v)
        exact = {"head": exact_rows(torch, q, k, v, shape["causal"], args.rows)}
    error, samples = {}, []
    for name in list(found):
        try:
            run = found[name][2]
            error[name] = errors(torch, run(), exact[getattr(run, "scales", "head")], LIMITS[args.dtype])
        except Exception as refusal:  # whatever a library refuses with
            print(f"  {name}: {(str(refusal).splitlines() or [type(refusal).__name__])[0]}", file=sys.stderr)
            del found[name]
    before = peer_run.clocks()
    times = measure(torch, args, found)
    after = peer_run.clocks()
    flops = 2 * (dim + value_dim) * batch * heads * visible(n, shape["causal"])
    mask = "causal" if shape["causal"] else "full"
    text = f"{mask} d{dim}{f':{value_dim}' if value_dim != dim else ''} n{n}"
    for name, (source, idea, _, plan) in found.items():
        samples.append({"case": text, "inputs": INPUTS[args.inputs], "source": source, "kernel": name,
                        "idea": idea,
                        "plan": plan, "flops": flops, "samples_us": times[name], "error": error[name],
                        "clocks_before": before, "clocks_after": after,
                        "problem": {"dtype": args.dtype, "batch": batch, "heads": heads, "kv_heads": kv_heads,
                                    "q_len": n, "kv_len": n, "head_dim": dim, "value_dim": value_dim,
                                    "causal": shape["causal"]}})
    rates = "  ".join(f"{x} {flops / statistics.median(times[x]) * 1e-6:.0f}" for x in found)
    print(f"{text:22} TFLOP/s: {rates}", flush=True)
    return samples


def parse():
    parser = peer_run.begin_parser(__doc__, "peers.json", 64, "rows")
    numbers = lambda text: [int(x) for x in text.split(",")]
    dims = lambda text: [tuple(int(x) for x in one.split(":")) for one in text.split(",")]
    parser.add_argument("--head-dims", type=dims, default=[(64,), (128,), (256,)],
                        help="192:128 are 192 of queries and keys and 128 of values (64,128,256)")
    parser.add_argument("--lengths", type=numbers, default=[512, 1024, 2048, 4096, 8192, 16384])
    parser.add_argument("--mask", choices=["full", "causal", "both"], default="both")
    parser.add_argument("--dtype", choices=["bf16", "f16", "e4m3"], default="bf16")
    parser.add_argument("--all-forms", action="store_true",
                        help="e4m3: every form of K7, what tools/make_attention_rates.py reads")
    parser.add_argument("--inputs", choices=list(INPUTS), default="normal")
    parser.add_argument("--group", type=int, default=1, help="query heads that share a head of keys (%(default)s)")
    parser.add_argument("--tokens", type=int, default=16384, help="batch * length (%(default)s)")
    parser.add_argument("--hidden", type=int, default=2048, help="heads * head_dim (%(default)s)")
    parser.add_argument("--heads", type=int, default=0, help="instead of --hidden")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs (%(default)s)")
    parser.add_argument("--kernels", type=lambda text: text.split(","), default=["auto"],
                        help="of Tilewright, e.g. auto,k5,k6 (auto)")
    parser.add_argument("--fa3", metavar="LIBRARY", help="shared library with fa3_forward, fa3_forward_any")
    return parser.parse_args()


def main():
    args = parse()
    torch = peer_run.import_torch()
    package = peer_run.open_package(args)
    fa3 = ctypes.CDLL(args.fa3) if args.fa3 else None
    log = peer_run.begin_log(torch, "attention", package,
                             cache="cold: 256 MiB are written before every timed run",
                             ceiling_tflops=1979 if args.dtype == "e4m3" else 989)
    for dim, *rest in args.head_dims:
        for causal in (False, True):
            if args.mask == ("full" if causal else "causal"):
                continue
            for n in args.lengths:
                shape = {"head_dim": dim, "value_dim": rest[0] if rest else dim, "causal": causal, "n": n}
                log["samples"] += run_shape(torch, args, package, fa3, shape)
    return peer_run.end_run(log, args.out)


if __name__ == "__main__":
    sys.exit(main())
