#!/usr/bin/env python3
"""Records what a GPU's special functions give, for all inputs.

    python3 tools/ptx/record_special_functions.py OUT [--blocks N] [--sections N]
    python3 tools/ptx/record_special_functions.py OUT --summary FILE

Needs NumPy, and libcuda.so.1 but for the second, which makes of a recording the golden file of the
tests. The first writes into the folder OUT:
  digests.json   per function and per 2^20 inputs a sum of mixed (input, result) pairs, over all 2^32
                 inputs; device, driver and date
  data_K.npz     all results for the exponents that hold each function's table, and samples over all
                 inputs, as differences compressed with bz2 (decode() gets them back)
"""

import argparse
import bz2
import ctypes
import datetime
import json
import multiprocessing
import pathlib

import numpy as np

HEAD = ".version 8.3\n.target sm_90a\n.address_size 64\n"
F32 = {name: f"{op}.f32 %f1, %f0;" for name, op in {
    "rcp_ftz": "rcp.approx.ftz", "rsqrt_ftz": "rsqrt.approx.ftz", "sqrt_ftz": "sqrt.approx.ftz",
    "lg2_ftz": "lg2.approx.ftz", "ex2_ftz": "ex2.approx.ftz", "sin_ftz": "sin.approx.ftz",
    "cos_ftz": "cos.approx.ftz", "tanh": "tanh.approx", "rcp": "rcp.approx", "rsqrt": "rsqrt.approx",
    "sqrt": "sqrt.approx", "lg2": "lg2.approx", "ex2": "ex2.approx", "sin": "sin.approx",
    "cos": "cos.approx"}.items()}
# the high word of f64, the low word made from it; the result's words xored
F64 = {"rcp_f64": "rcp.approx.ftz.f64", "rsqrt_f64_ftz": "rsqrt.approx.ftz.f64", "rsqrt_f64": "rsqrt.approx.f64"}
HALF = {"ex2_f16": "ex2.approx.f16", "ex2_bf16": "ex2.approx.ftz.bf16", "tanh_f16": "tanh.approx.f16",
        "tanh_bf16": "tanh.approx.bf16"}
# the second operand is made from the first
DIV = {"div_approx": "div.approx", "div_approx_ftz": "div.approx.ftz", "div_full": "div.full",
       "div_full_ftz": "div.full.ftz"}

SECTIONS = {  # the sign and exponent of inputs of which all 2^23 are kept
    "rcp_ftz": [127, 3], "rsqrt_ftz": [127, 128], "sqrt_ftz": [127, 128],
    "lg2_ftz": [126, 127, 128, 132, 125, 129, 140, 254],
    "ex2_ftz": [127, 126, 0x17E, 128, 121, 115, 0x17F, 132, 0x185],
    "sin_ftz": [127, 126, 125, 124, 128, 119, 123, 122, 121, 120, 117, 115, 112, 129, 130, 135, 0x17F, 140],
    "cos_ftz": [127, 126, 125, 128, 119, 124, 123, 122, 117, 115, 129, 130, 0x17F],
    "tanh": [126, 127, 125, 128, 129, 124, 123, 122, 130, 121, 120, 119, 118, 117, 116, 115, 114, 113, 112, 0x17F],
}


def apply_text(name):
    """PTX that makes %r2 of the word %r1."""
    if name in F32:
        return "mov.b32 %f0, %r1; " + F32[name] + " mov.b32 %r2, %f1;"
    if name in F64:
        return ("mul.lo.u32 %r3, %r1, 0x9e3779b1; mov.b64 %d8, {%r3, %r1}; "
                f"{F64[name]} %d9, %d8; mov.b64 {{%r3, %r4}}, %d9; xor.b32 %r2, %r3, %r4;")
    if name in HALF:
        return f"cvt.u16.u32 %h0, %r1; {HALF[name]} %h1, %h0; cvt.u32.u16 %r2, %h1;"
    return ("mul.lo.u32 %r3, %r1, 0x9e3779b1; shr.u32 %r4, %r3, 15; xor.b32 %r3, %r3, %r4; "
            "mul.lo.u32 %r3, %r3, 0x85ebca6b; shr.u32 %r4, %r3, 13; xor.b32 %r3, %r3, %r4; "
            f"mov.b32 %f0, %r1; mov.b32 %f2, %r3; {DIV[name]}.f32 %f1, %f0, %f2; mov.b32 %r2, %f1;")


def kernels(name):
    registers = "  .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .f32 %f<4>;"
    apply = apply_text(name)
    return HEAD + f"""
.visible .entry map(.param .u64 in, .param .u64 out) {{
{registers}
  mov.u32 %r10, %tid.x; mov.u32 %r11, %ctaid.x; mad.lo.u32 %r10, %r11, 256, %r10;
  ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out];
  mul.wide.u32 %d2, %r10, 4; add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;
  ld.global.u32 %r1, [%d0];
  {apply}
  st.global.u32 [%d1], %r2;
  ret;
}}
// one CTA for each 2^20 inputs
.visible .entry digest(.param .u64 out) {{
{registers}
  mov.u32 %r10, %tid.x; mov.u32 %r11, %ctaid.x; shl.b32 %r1, %r11, 20; or.b32 %r1, %r1, %r10;
  mov.u64 %d5, 0; mov.u32 %r12, 0;
LOOP:
  {apply}
  // splitmix64's finish over the pair
  mov.b64 %d2, {{%r1, %r2}};
  shr.u64 %d3, %d2, 30; xor.b64 %d2, %d2, %d3; mul.lo.u64 %d2, %d2, 0xbf58476d1ce4e5b9;
  shr.u64 %d3, %d2, 27; xor.b64 %d2, %d2, %d3; mul.lo.u64 %d2, %d2, 0x94d049bb133111eb;
  shr.u64 %d3, %d2, 31; xor.b64 %d2, %d2, %d3;
  add.u64 %d5, %d5, %d2;
  add.u32 %r1, %r1, 256; add.u32 %r12, %r12, 1;
  setp.lt.u32 %p0, %r12, 4096;
  @%p0 bra LOOP;
  ld.param.u64 %d0, [out]; mul.wide.u32 %d1, %r11, 8; add.u64 %d0, %d0, %d1;
  red.global.add.u64 [%d0], %d5;
  ret;
}}
"""


def samples(count=1 << 16):
    """Words over all floats: half of them anywhere, half with exponents from -30 to 30, and specials."""
    state = np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    words = (state >> np.uint64(32)).astype(np.uint32)
    exponent = np.uint32(97) + (words >> np.uint32(23)) % np.uint32(61)
    near = (words & np.uint32(0x807FFFFF)) | exponent << np.uint32(23)
    words = np.where(np.arange(count) % 2 == 0, words, near).astype(np.uint32)
    special = [0, 1, 2, 0x7FFFFF, 0x800000, 0x800001, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x7E800000, 0x7E800001,
               0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0x42FC0000, 0x43000000]
    special += [w | 0x80000000 for w in special]
    words[:len(special)] = special
    return words


def mix(pairs):
    """splitmix64's finish, as in the digest kernel."""
    pairs = (pairs ^ (pairs >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    pairs = (pairs ^ (pairs >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return pairs ^ (pairs >> np.uint64(31))


def encode(words):
    words = words.view(np.uint32)
    step = np.diff(words, prepend=np.uint32(0)).view(np.int32)
    zigzag = ((step << 1) ^ (step >> 31)).view(np.uint32)
    planes = zigzag.view(np.uint8).reshape(-1, 4).T.tobytes()
    return np.frombuffer(bz2.compress(planes, 9), np.uint8)


def decode(blob):
    planes = np.frombuffer(bz2.decompress(blob.tobytes()), np.uint8).reshape(4, -1)
    zigzag = np.ascontiguousarray(planes.T).view(np.uint32).ravel()
    step = (zigzag >> np.uint32(1)) ^ (np.uint32(0) - (zigzag & np.uint32(1)))
    return np.cumsum(step, dtype=np.uint32)


class Gpu:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name, version = ctypes.create_string_buffer(100), ctypes.c_int()
        self.call("cuDeviceGetName", name, 100, device)
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.facts = {"device": name.value.decode(), "driver_api": version.value,
                      "date": datetime.date.today().isoformat()}
        kernel_driver = pathlib.Path("/proc/driver/nvidia/version")
        if kernel_driver.exists():
            self.facts["driver"] = kernel_driver.read_text().splitlines()[0]

    def call(self, name, *args):
        status = getattr(self.cuda, name)(*args)
        if status != 0:
            raise RuntimeError(f"{name} failed with {status}")

    def allocate(self, num_bytes):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(num_bytes))
        return address

    def functions(self, text):
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), text.encode())
        found = []
        for name in ("map", "digest"):
            function = ctypes.c_void_p()
            self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
            found.append(function)
        return found

    def launch(self, function, ctas, *buffers):
        params = (ctypes.c_void_p * len(buffers))(*[ctypes.addressof(b) for b in buffers])
        self.call("cuLaunchKernel", function, ctas, 1, 1, 256, 1, 1, 0, None, params, None)

    def put(self, address, array):
        self.call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))

    def get(self, address, array):
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), address, ctypes.c_size_t(array.nbytes))
        return array


BLOCKS = [0x3F8, 0xBF0]  # of which the tests check all inputs, 2^20 from this << 20


def summarize(folder, path):
    """Per function: the sum over each 2^26 inputs, those of BLOCKS, and the sum over the samples."""
    digests = json.loads((folder / "digests.json").read_text())
    archives = [np.load(p) for p in sorted(folder.glob("data_*.npz"))]
    data = {key: archive for archive in archives for key in archive.files}
    golden = {key: value for key, value in digests.items() if isinstance(value, str)}
    golden["blocks"], golden["functions"] = BLOCKS, {}
    for name in [*F32, *F64, *HALF, *DIV]:
        key = f"{name}.all" if name in HALF else f"{name}.samples"
        inputs = np.arange(1 << 16, dtype=np.uint32) if name in HALF else samples()
        pairs = inputs.astype(np.uint64) | decode(data[key][key]).astype(np.uint64) << np.uint64(32)
        entry = {"samples": f"{int(mix(pairs).sum(dtype=np.uint64)):016x}"}
        if name in digests:
            sums = [int(x, 16) for x in digests[name]]
            entry["blocks"] = [digests[name][block] for block in BLOCKS]
            entry["all"] = [f"{sum(sums[i:i + 64]) % (1 << 64):016x}" for i in range(0, 4096, 64)]
        golden["functions"][name] = entry
    path.write_text(json.dumps(golden, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--blocks", type=int, default=4096, help="digests over the first N times 2^20 inputs")
    parser.add_argument("--sections", type=int, default=99, help="keep at most N sections of each function")
    parser.add_argument("--summary", type=pathlib.Path)
    args = parser.parse_args()
    if args.summary:
        summarize(args.out, args.summary)
        return
    args.out.mkdir(parents=True, exist_ok=True)
    gpu = Gpu()
    words_in, words_out, sums = gpu.allocate(4 << 23), gpu.allocate(4 << 23), gpu.allocate(8 * 4096)
    digests, jobs = dict(gpu.facts), []
    for name in [*F32, *F64, *HALF, *DIV]:
        run, digest = gpu.functions(kernels(name))

        def results(words):
            gpu.put(words_in, words)
            gpu.launch(run, len(words) // 256, words_in, words_out)
            return gpu.get(words_out, np.zeros(len(words), np.uint32))

        if name in HALF:
            jobs.append((f"{name}/all", results(np.arange(1 << 16, dtype=np.uint32))))
            continue
        jobs.append((f"{name}/samples", results(samples())))
        if name in ("rcp_f64", "rsqrt_f64_ftz"):
            for high in (0x3FF, 0x400):
                words = (np.uint32(high) << np.uint32(20)) + np.arange(1 << 20, dtype=np.uint32)
                jobs.append((f"{name}/{high}", results(words)))
        for high in SECTIONS.get(name, [])[:args.sections]:
            words = (np.uint32(high) << np.uint32(23)) + np.arange(1 << 23, dtype=np.uint32)
            jobs.append((f"{name}/{high}", results(words)))
        gpu.put(sums, np.zeros(4096, np.uint64))
        gpu.launch(digest, args.blocks, sums)
        digests[name] = [f"{x:016x}" for x in gpu.get(sums, np.zeros(4096, np.uint64))[:args.blocks]]
    (args.out / "digests.json").write_text(json.dumps(digests))
    with multiprocessing.get_context("fork").Pool() as pool:
        blobs = dict(zip([job[0] for job in jobs], pool.map(encode, [job[1] for job in jobs], 1)))
    files = []  # of at most 15 MiB
    rank = {f"{name}/{high}": i for name, highs in SECTIONS.items() for i, high in enumerate(highs)}
    for key, blob in sorted(blobs.items(), key=lambda item: rank.get(item[0], 0)):
        print(f"{key}: {len(blob)}", end="; ")
        fits = [f for f in files if sum(len(b) for b in f.values()) + len(blob) < 15 << 20]
        if not fits:
            files.append({})
        (fits or files[-1:])[0][key] = blob
    for index, members in enumerate(files):
        np.savez(args.out / f"data_{index}.npz", **{k.replace("/", "."): v for k, v in members.items()})
    print(f"{len(files)} files")


if __name__ == "__main__":
    main()
