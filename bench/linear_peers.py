#!/usr/bin/env python3
"""Linear layers of other libraries beside Tilewright's, on a GPU: the same weights, one run.

    python3 bench/linear_peers.py --out peers.json
    python3 bench/linear_peers.py --repeat 1000            # are results bit-identical? no times
    tilewright bench linear --peers peers.json

Needs torch with CUDA and the Python package (./run builds it). Measured are torch's bf16 matmul, torch._scaled_mm
in FP8 (one scale for a tensor, one for a row; with and without fast accumulation), Tilewright through the
package, and what --plugin names, a shared library of yours:

    typedef struct linear_peer_weight {
      int64_t n, k;
      const void* bf16;                    // device, [n, k], what all formats were quantised from
      const void *fp4, *fp4_scales;        // NVFP4: [n, k/2] e2m1 pairs, [n, k/16] e4m3
      float fp4_global_scale;              // weight = e2m1 * e4m3 * this
      const void* fp8;                     // [n, k] e4m3
      const float* fp8_scales;             // [n/128, k/128]
    } linear_peer_weight;
    typedef struct linear_peer_args {
      int64_t m;
      const void* x;                       // bf16 [m, k]
      void* out;                           // bf16 [m, n]
      void* stream;                        // cudaStream_t
    } linear_peer_args;
    const char* linear_peer_name(int i);                             // of the i-th operator; NULL: no more
    int linear_peer_prepare(int i, const linear_peer_weight*, void** handle);
    int linear_peer_run(int i, void* handle, const linear_peer_args*);   // enqueues; 0 if all is well

Protocol: N(0,1) weights and activations; weights of every operator rotate over more than --rotate MB, so that
each call finds a cold cache; calls stand in a CUDA graph, one after another, and a sample is the time of the graph
over the number of calls (kernels with programmatic dependent launch overlap as they do in a model); one graph of
each operator in random order, again and again, so that a GPU that lowers its clocks does so for all. Each
result is compared with float64 products of the operands it was given, dequantised.
"""

import argparse
import ctypes
import math
import pathlib
import random
import statistics
import sys
import time

import peer_run

BYTES_PER_S, BF16_FLOPS, FP8_FLOPS = 4.3e12, 790e12, 1600e12  # of an H200, measured; FP8 without power limit
SHAPES = {"square": (7168, 7168), "flash_wq_b": (32768, 1024), "flash_wo_b": (4096, 8192),
          "flash_gate_up": (4096, 4096), "flash_wq_a": (1024, 4096), "flash_down": (4096, 2048),
          "pro_gate_up": (6144, 7168), "pro_down": (7168, 3072), "pro_wo_b": (7168, 16384)}
I64, F32, PTR = ctypes.c_int64, ctypes.c_float, ctypes.c_void_p


class PeerWeight(ctypes.Structure):
    _fields_ = [("n", I64), ("k", I64), ("bf16", PTR), ("fp4", PTR), ("fp4_scales", PTR),
                ("fp4_global_scale", F32), ("fp8", PTR), ("fp8_scales", PTR)]


class PeerArguments(ctypes.Structure):
    _fields_ = [("m", I64), ("x", PTR), ("out", PTR), ("stream", PTR)]


def prepare(package, weight, kind, activations):
    """The prepared weight of one of Weight's formats."""
    values, scales, factor = weight.stored(kind)
    return package.LinearWeight(package.Device(peer_run.DEVICE), format=kind, activations=activations, n=weight.n,
                                k=weight.k, values=values, scales=scales, global_scale=factor or 0)


def quantise_fp4(torch, w, kind):
    """Codes [n, k/2], scales [n, k/group] and the tensor's factor; nearest even as docs/02-formats.md says."""
    group = 16 if kind == "nvfp4" else 32
    n, k = w.shape
    blocks = w.float().reshape(n, k // group, group)
    amax = blocks.abs().amax(-1)
    if kind == "nvfp4":
        factor = (amax.max() / (6 * 448)).item()
        scales = (amax / 6 / factor).clamp(max=448).to(torch.float8_e4m3fn)
        step = scales.float() * factor
    else:
        factor, exponent = None, torch.floor(torch.log2(amax.clamp(min=2.0**-120))) - 2
        scales = (exponent + 127).to(torch.uint8)
        step = torch.exp2(exponent)
    x = blocks / step.clamp(min=1e-30).unsqueeze(-1)
    magnitude = x.abs()
    code = torch.zeros_like(x, dtype=torch.uint8)
    # Between two neighbours; a tie goes to the even code.
    for i, edge in enumerate((0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)):
        code += (magnitude > edge) if i % 2 == 0 else (magnitude >= edge)
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], device=w.device)
    exact = (table[code.long()] * torch.sign(x) * step.unsqueeze(-1)).reshape(n, k)
    code = (code | ((x < 0) & (code > 0)).to(torch.uint8) * 8).reshape(n, k)
    return (code[:, 0::2] | (code[:, 1::2] << 4)).contiguous(), scales.contiguous(), factor, exact


class Weight:
    """One of the weights that are rotated, in every format."""

    def __init__(self, torch, n, k, seed):
        self.torch, self.n, self.k = torch, n, k
        generator = torch.Generator(device="cuda").manual_seed(seed)
        self.bf16 = torch.randn(n, k, device="cuda", generator=generator, dtype=torch.float32).to(torch.bfloat16)
        self.fp4 = {}
        padded = torch.nn.functional.pad(self.bf16.float(), (0, -k % 128, 0, -n % 128))
        blocks = padded.reshape(padded.shape[0] // 128, 128, padded.shape[1] // 128, 128)
        self.fp8_scales = (blocks.abs().amax((1, 3)) / 448).clamp(min=1e-12)
        scaled = blocks / self.fp8_scales[:, None, :, None]
        self.fp8 = scaled.reshape(padded.shape)[:n, :k].contiguous().to(torch.float8_e4m3fn)

    def quantised(self, kind):
        if kind not in self.fp4:
            self.fp4[kind] = quantise_fp4(self.torch, self.bf16, kind)[:3]
        return self.fp4[kind]

    def stored(self, kind):
        if kind == "bf16":
            return self.bf16, None, None
        return (self.fp8, self.fp8_scales, None) if kind == "fp8" else self.quantised(kind)

    def exact(self, kind):
        """What the format stands for, in float64."""
        if kind == "bf16":
            return self.bf16.double()
        if kind == "fp8":
            scales = self.fp8_scales.double().repeat_interleave(128, 0).repeat_interleave(128, 1)
            return self.fp8.double() * scales[:self.n, :self.k]
        return quantise_fp4(self.torch, self.bf16, kind)[3].double()


class Operator:
    """One way to do it: prepared weights, and a call that enqueues with the weight number i."""

    def __init__(self, name, source, weight_bytes, is_fp8, call, exact, tolerance, idea="", plan=None, close=None):
        self.name, self.source, self.weight_bytes, self.is_fp8 = name, source, weight_bytes, is_fp8
        self.call, self.exact, self.tolerance, self.idea, self.plan = call, exact, tolerance, idea, plan
        self.close = close or (lambda: None)
        self.graph, self.calls, self.samples, self.mhz, self.error = None, 0, [], [], None


def fp8_rows(torch, x):
    scale = x.float().abs().amax(-1, keepdim=True).clamp(min=1e-12) / 448
    return (x.float() / scale).to(torch.float8_e4m3fn), scale


def torch_operators(torch, weights, x, out):
    """bf16 and the four forms of torch._scaled_mm. x and w are quantised beforehand."""
    n, k, version = weights[0].n, weights[0].k, f"torch {torch.__version__}"
    exact_x = x.double()
    found = [Operator("bf16", version, 2 * n * k, False,
                      lambda i: torch.mm(x, weights[i].bf16.t(), out=out),
                      lambda: exact_x @ weights[0].exact("bf16").t(), 6e-3, "cuBLAS")]
    x_row, x_row_scale = fp8_rows(torch, x)
    x_scale = (x.float().abs().max() / 448).clamp(min=1e-12)
    x_tensor = (x.float() / x_scale).to(torch.float8_e4m3fn)
    rows = [fp8_rows(torch, w.bf16) for w in weights]
    tensors = []
    for w in weights:
        scale = w.bf16.float().abs().max() / 448
        tensors.append(((w.bf16.float() / scale).to(torch.float8_e4m3fn), scale))
    forms = {"tensor": (x_tensor, x_scale, tensors), "row": (x_row, x_row_scale, rows)}
    for form, (a, a_scale, b) in forms.items():
        for fast in (True, False):
            def call(i, a=a, a_scale=a_scale, b=b, fast=fast):
                scale = b[i][1] if b[i][1].dim() == 0 else b[i][1].t()
                return torch._scaled_mm(a, b[i][0].t(), scale_a=a_scale, scale_b=scale,
                                        out_dtype=torch.bfloat16, use_fast_accum=fast)

            def exact(a=a, a_scale=a_scale, b=b):
                return (a.double() * a_scale.double()) @ (b[0][0].double() * b[0][1].double()).t()
            found.append(Operator(f"fp8_{form}" + ("_fast" if fast else ""), version, n * k, True, call, exact,
                                  2e-2 if fast else 6e-3, "cuBLASLt" if form == "tensor" else "CUTLASS, by rows"))
    return found


def operand_order(p):
    """As in formats/packed_weight.h: the element of 64 whose FP8 activation stands at byte p."""
    return 16 * (p // 4 % 4) + 2 * (p // 16) + (p & 1) + (p & 2) * 4


def given_fp8(torch, x, kind):
    """x as the FP8 kernels read it, its scales, and what both stand for; k a multiple of 128."""
    m, k = x.shape
    if kind == "fp8":
        blocks = x.float().reshape(m, k // 128, 128)
        scale = blocks.abs().amax(-1, keepdim=True).clamp(min=1e-4) / 448
        codes = (blocks / scale).to(torch.float8_e4m3fn)
        exact = (codes.double() * scale.double()).reshape(m, k)
        codes = codes.reshape(m, k)
        scales = torch.nn.functional.pad(scale.squeeze(-1).t(), (0, -m % 4)).contiguous()
    else:
        codes, scales = fp8_rows(torch, x)
        exact = codes.double() * scales.double()
    order = torch.tensor([64 * (i // 64) + operand_order(i % 64) for i in range(k)], device=x.device)
    return codes.view(torch.uint8)[:, order].contiguous(), scales, exact


def our_operator(torch, package, prepared, weights, kind, activations, kernel, x, out, is_given=False):
    """Tilewright with a weight format; bf16 in (or FP8 that was quantised beforehand), bf16 out."""
    problem = {"m": x.shape[0], "kernel": kernel}
    given, exact_x = {"x": x, "out": out}, x.double
    if is_given:
        given["x"], given["x_scales"], exact = given_fp8(torch, x, kind)
        problem["x_dtype"] = "e4m3"
        exact_x = lambda: exact
    ops = [package.Linear(weight, **problem) for weight in prepared]
    given["workspace"] = peer_run.workspace_of(torch, ops[0], x)

    def call(i):
        ops[i].run(**given)
        return out

    def close():
        given.clear()
        ops.clear()
    is_fp8 = activations == "fp8"
    name = {"bf16": "w16", "fp8": "w8", "mxfp4": "w4mx", "nvfp4": "w4"}[kind] + ("a8" if is_fp8 else "a16")
    if is_given:
        name += "_given"
    if kernel != "auto":
        name += f":{kernel}"
    return Operator(name, "tilewright", prepared[0].bytes, is_fp8, call,
                    lambda: exact_x() @ weights[0].exact(kind).t(), 5e-2 if is_fp8 else 3e-3,
                    f"chosen: {ops[0].plan.kernel}", ops[0].plan.text, close)


class Plugin:
    """The operators of --plugin."""

    def __init__(self, path):
        self.lib, self.path = ctypes.CDLL(path), pathlib.Path(path).name
        self.lib.linear_peer_name.restype = ctypes.c_char_p

    def operators(self, torch, weights, x, out):
        found, i = [], 0
        while (name := self.lib.linear_peer_name(i)) is not None:
            operator = self.operator(torch, weights, x, out, i, name.decode())
            found += [operator] if operator else []
            i += 1
        return found

    def operator(self, torch, weights, x, out, index, name):
        handles = []
        for w in weights:
            codes, scales, factor = w.quantised("nvfp4")
            given, handle = PeerWeight(w.n, w.k, w.bf16.data_ptr(), codes.data_ptr(), scales.data_ptr(), factor,
                                       w.fp8.data_ptr(), w.fp8_scales.data_ptr()), PTR()
            if self.lib.linear_peer_prepare(index, ctypes.byref(given), ctypes.byref(handle)):
                return None
            handles.append(handle)
        arguments = PeerArguments(x.shape[0], x.data_ptr(), out.data_ptr(), None)

        def call(i):
            arguments.stream = torch.cuda.current_stream().cuda_stream
            if self.lib.linear_peer_run(index, handles[i], ctypes.byref(arguments)):
                raise RuntimeError(f"{name} does not do m = {x.shape[0]}")
            return out
        kind = "fp8" if "fp8" in name else "nvfp4"
        return Operator(name, self.path, weights[0].n * weights[0].k * (1 if kind == "fp8" else 0.5625),
                        "a8" in name or "fp8" in name, call, lambda: x.double() @ weights[0].exact(kind).t(), 6e-2)


def errors(torch, got, want, tolerance):
    got = got.double()
    error = got - want
    relative = (error.norm() / want.norm().clamp(min=1e-300)).item()
    # A wrong tile hides in the mean: the worst row and column block of 16 x 64 has to be right as well.
    rows, cols = -(-got.shape[0] // 16), -(-got.shape[1] // 64)
    pad = (0, cols * 64 - got.shape[1], 0, rows * 16 - got.shape[0])
    tile = lambda x: torch.nn.functional.pad(x * x, pad).reshape(rows, 16, cols, 64).sum((1, 3))
    worst = torch.nan_to_num((tile(error) / tile(want).clamp(min=1e-300)).sqrt(), nan=1e300).max().item()
    cosine = torch.nn.functional.cosine_similarity(got.flatten(), want.flatten(), 0).item()
    is_ok = relative <= tolerance and worst <= 3 * tolerance
    return {"max_abs": error.abs().max().item(), "relative_rms": relative, "worst_tile_rms": worst,
            "cosine": cosine, "tolerance": tolerance, "ok": bool(is_ok)}


def capture(torch, operator, num_weights, calls):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        operator.call(0)
    torch.cuda.current_stream().wait_stream(stream)
    operator.graph, operator.calls = torch.cuda.CUDAGraph(), calls
    with torch.cuda.graph(operator.graph):
        for i in range(calls):
            operator.call(i % num_weights)


def measure(torch, args, operators):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    clocks = peer_run.SmClocks(torch)
    for sample in range(args.samples + 2):  # the first two warm up
        for operator in random.sample(operators, len(operators)):
            torch.cuda._sleep(200000)  # so that the graph is queued when its time begins
            clocks.begin()
            begin.record()
            operator.graph.replay()
            end.record()
            clocks.end()
            torch.cuda.synchronize()
            if sample >= 2:
                operator.mhz.append(clocks.mhz())
                operator.samples.append(1e3 * begin.elapsed_time(end) / operator.calls)


def repeat(torch, args, operator):
    """Whether every repetition gives the bits of the first."""
    first = operator.call(0).clone()
    wrong = torch.zeros((), dtype=torch.int64, device="cuda")
    for _ in range(args.repeat):
        wrong += (operator.call(0).view(torch.int16) != first.view(torch.int16)).any()
    return int(wrong.item())


def floor_us(operator, m, n, k):
    x_bytes = (1 if operator.is_fp8 else 2) * m * k
    bytes_moved = operator.weight_bytes + x_bytes + 2 * m * n
    flops = 2 * m * n * k / (FP8_FLOPS if operator.is_fp8 else BF16_FLOPS)
    return 1e6 * max(bytes_moved / BYTES_PER_S, flops), bytes_moved


def all_kernels(package, weight, m):
    """The kernels that could do m rows. One for few rows at thousands of them would only cost time."""
    candidates = [each for each in package.Linear(weight, m=m).plan.candidates if each.is_possible]
    least = min(each.cost_us for each in candidates)
    return [each.name for each in candidates if each.cost_us < 8 * least]


def operators_for(torch, args, package, plugin, prepared, weights, x, out):
    found = [] if args.no_torch else torch_operators(torch, weights, x, out)
    for (kind, activations), ready in prepared.items():
        kernels = all_kernels(package, ready[0], x.shape[0]) if args.kernels == ["all"] else args.kernels
        for kernel in kernels:
            try:
                found.append(our_operator(torch, package, ready, weights, kind, activations, kernel, x, out))
                if activations == "fp8" and kernel in ("auto", "all"):
                    found.append(our_operator(torch, package, ready, weights, kind, activations, kernel, x, out,
                                              True))
            except package.Error as refusal:
                print(f"  {kind} {kernel}: {str(refusal).splitlines()[0]}", file=sys.stderr)
    if plugin is not None:
        found += plugin.operators(torch, weights, x, out)
    return found


def check(torch, operators):
    """Those that work; each with its error."""
    working = []
    for operator in operators:
        try:
            got = operator.call(0).clone()
            torch.cuda.synchronize()
            operator.error = errors(torch, got, operator.exact(), operator.tolerance)
            working.append(operator)
        except RuntimeError as refusal:
            print(f"  {operator.name}: {str(refusal).splitlines()[0]}", file=sys.stderr)
    return working


def run_case(torch, args, package, plugin, prepared, weights, name, m):
    n, k = weights[0].n, weights[0].k
    torch.manual_seed(1 + m)
    x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    every = operators_for(torch, args, package, plugin, prepared, weights, x, out)
    operators, samples = check(torch, every), []
    before = peer_run.clocks()
    if args.repeat:
        for operator in operators:
            operator.error["differing_repetitions"] = repeat(torch, args, operator)
    else:
        calls = max(args.calls if m <= 512 else args.calls // 4, len(weights))
        for operator in operators:
            capture(torch, operator, len(weights), calls)
        measure(torch, args, operators)
    after = peer_run.clocks()
    texts = []
    for operator in operators:
        floor, moved = floor_us(operator, m, n, k)
        samples.append({"case": f"{name} m{m}", "inputs": "N(0,1)", "source": operator.source,
                        "kernel": operator.name, "idea": operator.idea, "plan": operator.plan,
                        "flops": 2 * m * n * k, "bytes": moved, "floor_us": floor,
                        "samples_us": operator.samples, "samples_mhz": operator.mhz, "error": operator.error,
                        "calls_per_graph": operator.calls, "clocks_before": before, "clocks_after": after,
                        "problem": {"shape": name, "m": m, "n": n, "k": k}})
        mark = "" if operator.error["ok"] else " WRONG"
        if args.repeat:
            wrong = operator.error["differing_repetitions"]
            texts.append(f"{operator.name} {'same' if wrong == 0 else f'{wrong} DIFFER'}{mark}")
        else:
            texts.append(f"{operator.name} {statistics.median(operator.samples):.2f}{mark}")
    print(f"{name:13} m {m:5}  {'' if args.repeat else 'us: '}{'  '.join(texts)}", flush=True)
    for operator in every:
        operator.graph = None
        operator.close()
    return samples


def run_shape(torch, args, package, plugin, name):
    n, k = SHAPES[name]
    count = 1 if args.repeat else max(2, math.ceil(args.rotate * 1e6 / (0.5625 * n * k)))
    weights = [Weight(torch, n, k, 1000 + i) for i in range(count)]
    prepared = {}
    begin = time.perf_counter()
    for wanted in args.ours if package is not None else []:
        kind, activations = wanted.split("-")
        key = kind, "fp8" if activations == "a8" else "bf16"
        try:
            prepared[key] = [prepare(package, w, *key) for w in weights]
        except package.Error as refusal:
            print(f"  {wanted}: {refusal}", file=sys.stderr)
    seconds = time.perf_counter() - begin
    moved = sum(weight.bytes for ready in prepared.values() for weight in ready)
    print(f"{name}: n {n}, k {k}, {count} weights; prepared at {moved / max(seconds, 1e-9) * 1e-9:.2f} GB/s",
          flush=True)
    samples = []
    for m in args.tokens:
        samples += run_case(torch, args, package, plugin, prepared, weights, name, m)
    del weights, prepared
    torch.cuda.empty_cache()
    return samples


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     epilog="More at the beginning of this file.")
    numbers = lambda text: [int(x) for x in text.split(",")]
    words = lambda text: text.split(",")
    parser.add_argument("--out", default="peers.json", help="log to write (%(default)s)")
    parser.add_argument("--shapes", type=words, default=list(SHAPES), help="of " + ", ".join(SHAPES))
    parser.add_argument("--tokens", type=numbers, help="rows of x",
                        default=[1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024,
                                 2048, 4096, 8192])
    parser.add_argument("--ours", type=words, default=["nvfp4-a16", "nvfp4-a8", "mxfp4-a16", "fp8-a8", "bf16-a16"],
                        help="FORMAT-a16 or FORMAT-a8, of bf16, fp8, mxfp4, nvfp4 (%(default)s)")
    parser.add_argument("--kernels", type=words, default=["auto"],
                        help="of Tilewright (auto); all: each that could")
    parser.add_argument("--samples", type=int, default=15, help="timed graphs of each (%(default)s)")
    parser.add_argument("--calls", type=int, default=24, help="calls in a graph; a fourth above m = 512")
    parser.add_argument("--rotate", type=float, default=170, help="MB of 4-bit weights that rotate (%(default)s)")
    parser.add_argument("--repeat", type=int, default=0, metavar="N", help="compare the bits of N repetitions")
    peer_run.add_library_options(parser)
    parser.add_argument("--no-torch", action="store_true", help="without torch's own operators")
    parser.add_argument("--plugin", metavar="LIBRARY", help="shared library with linear_peer_name, ...")
    return parser.parse_args()


def is_good(error):
    return error["ok"] and error.get("differing_repetitions", 0) == 0


def main():
    args = parse()
    torch = peer_run.import_torch("Without one, `tilewright linear` runs on the simulator.")
    package = peer_run.open_package(args)
    plugin = Plugin(args.plugin) if args.plugin else None
    log = peer_run.begin_log(torch, "linear", package,
                             cache=f"cold: weights rotate over more than {args.rotate:g} MB of 4-bit ones",
                             floor={"bytes_per_s": BYTES_PER_S, "bf16_flops": BF16_FLOPS, "fp8_flops": FP8_FLOPS})
    for name in args.shapes:
        log["samples"] += run_shape(torch, args, package, plugin, name)
    peer_run.write_log(log, args.out)
    return 0 if all(is_good(sample["error"]) for sample in log["samples"]) else 1


if __name__ == "__main__":
    sys.exit(main())
