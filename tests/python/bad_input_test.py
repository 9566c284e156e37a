"""Wrong calls: each gets one sentence that names the argument, the values and the way out."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import tilewright
from bf16 import random_bf16
from tilewright import _core

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.fixture(scope="module")
def op(dev):
    return tilewright.Attention(dev, batch=2, heads=4, kv_heads=2, q_len=8, kv_len=12, head_dim=64, has_lse=True)


@pytest.fixture
def given():
    rng = np.random.default_rng(0)
    return {"q": random_bf16(rng, 2, 8, 4, 64), "k": random_bf16(rng, 2, 12, 2, 64),
            "v": random_bf16(rng, 2, 12, 2, 64), "out": random_bf16(rng, 2, 8, 4, 64),
            "lse": np.zeros((2, 4, 8), np.float32)}


def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array


class Stream:
    """As PyTorch's, of a device that is not there."""

    cuda_stream, device_index = 0, 7


@pytest.mark.parametrize("change, kind, text", [
    ({"q": lambda a: a.astype(np.float32)}, tilewright.InvalidArgument,
     r"Attention.run: q is a ndarray, f32 \(2, 8, 4, 64\), .*; the problem says bf16 \(2, 8, 4, 64\)"),
    ({"q": lambda a: a.view(np.float16)}, tilewright.InvalidArgument, "q is .* f16 .*; the problem says bf16"),
    ({"k": lambda a: a[:, :, :, :32]}, tilewright.InvalidArgument, "k is .* it is too short: the problem says"),
    ({"v": lambda a: a[:1]}, tilewright.InvalidArgument, r"v is .* too short: .* \(1536, 128, 64, 1\), 6144"),
    ({"out": lambda a: np.zeros((2, 4, 8, 64), np.uint16).transpose(0, 2, 1, 3)}, tilewright.InvalidArgument,
     r"out is .* strides \(2048, 64, 512, 1\), .* with strides \(2048, 256, 64, 1\): give it the strides"),
    ({"out": frozen}, tilewright.InvalidArgument, "out is .*; it is written, but it is read-only"),
    ({"lse": lambda a: a.astype(np.float64)}, tilewright.InvalidArgument, "lse is .* f64 .*; expected float32"),
    ({"lse": lambda a: a[0]}, tilewright.InvalidArgument, "lse is .* too short"),
    ({"lse": lambda a: None}, tilewright.InvalidArgument, "the address of lse is null"),
    ({"q": lambda a: a.tolist()}, TypeError, "q is a list; expected a tensor"),
    ({"q": lambda a: "q"}, TypeError, "q is a str; expected a tensor"),
    ({"q": lambda a: object()}, TypeError, "q is a object; expected a tensor"),
    ({"q": lambda a: -1}, TypeError, "an address"),
    ({"stream": lambda a: "0"}, TypeError, "stream = '0'; expected a stream of PyTorch or CuPy"),
    ({"nothing": lambda a: 1}, TypeError, "there is no nothing; there are q, k, v, out, lse"),
], ids=lambda v: next(iter(v)) if isinstance(v, dict) else "")
def test_call(op, given, change, kind, text):
    arguments = given | {name: make(given.get(name)) for name, make in change.items()}
    with pytest.raises(kind, match=text):
        op.run(**arguments)


def test_a_refusal_lists_what_was_given(op, given):
    with pytest.raises(tilewright.InvalidArgument) as caught:
        op.run(**(given | {"lse": None}))
    assert "\ngiven\n  q: a ndarray, u16 (2, 8, 4, 64), strides (2048, 256, 64, 1), on host\n" in str(caught.value)


def test_positional_arguments_are_refused(op, given):
    with pytest.raises(TypeError, match=r"Attention.run\(\) takes its arguments by name"):
        op.run(given["q"])


@pytest.mark.parametrize("change, kind, text", [
    ({"dtype": "bf17"}, tilewright.InvalidArgument, "Attention: dtype = 'bf17'; expected 'bf16', 'f16' or 'e4m3'"),
    ({"dtype": np.float32}, tilewright.InvalidArgument, "expected 'bf16', 'f16' or 'e4m3'"),
    ({"heads": 1.5}, TypeError, "Attention: heads = 1.5; expected an int"),
    ({"heads": 1 << 70}, tilewright.InvalidArgument, "it does not fit into the 64 bits"),
    ({"causal": "yes"}, TypeError, "causal = 'yes'; expected True or False"),
    ({"scale": "1"}, TypeError, "scale = '1'; expected a number"),
    ({"kernel": 6}, TypeError, "kernel = 6; expected a word or None"),
    ({"kernel": "k\0"}, TypeError, "kernel = .*; expected a word or None"),
    ({"q_strides": {"rows": 1}}, TypeError, "there is no q_strides.rows; there are batch, row, head"),
    ({"q_strides": (1, 2, 3, 4)}, tilewright.InvalidArgument, "has 4 values; Strides has 3 members"),
    ({"q_strides": 3}, TypeError, "q_strides = 3; expected a dict of its members, or a tuple"),
    ({"fp8": {"scales": "row"}}, tilewright.InvalidArgument, "fp8.scales = 'row'; expected 'tensor', 'head' or"),
    ({"head_dim": 63}, tilewright.InvalidArgument, "head_dim = 63; .* Pad with zeros"),
    ({"headdim": 64}, TypeError, "there is no headdim; there are dtype, batch"),
], ids=lambda v: next(iter(v)) if isinstance(v, dict) else "")
def test_problem(dev, change, kind, text):
    with pytest.raises(kind, match=text):
        tilewright.Attention(dev, **({"heads": 1, "q_len": 4, "kv_len": 4, "head_dim": 64} | change))


@pytest.mark.parametrize("on, text", [("sim:h200", "expected a tilewright.Device, got 'sim:h200'"),
                                      (None, "expected a tilewright.Device, got None")])
def test_operators_are_made_on_devices(on, text):
    with pytest.raises(TypeError, match=text):
        tilewright.Attention(on, heads=1)


def test_layers_are_made_on_weights(dev):
    with pytest.raises(TypeError, match=r"Linear: expected a tilewright.LinearWeight, got tilewright.Device"):
        tilewright.Linear(dev, m=3)


def test_a_buffer_of_another_device(op, given):
    with tilewright.Device("sim:b200") as other:
        buffer = tilewright.empty(other, (2, 8, 4, 64), "bf16")
        with pytest.raises(tilewright.InvalidArgument, match="q is a Buffer, .* on sim:b200; the operator is on"):
            op.run(**(given | {"q": buffer}))


def test_a_copy_is_counted(op, given):
    before = tilewright.numpy.copied_bytes()
    tilewright.numpy.run(op, **given)
    sizes = sum(array.nbytes for array in given.values())
    assert tilewright.numpy.copied_bytes() - before == sizes + given["out"].nbytes + given["lse"].nbytes


def test_a_closed_device_makes_nothing():
    device = tilewright.Device("sim:h200")
    device.close()
    with pytest.raises(tilewright.InvalidArgument, match="is closed"):
        tilewright.RmsNorm(device, rows=1, cols=128)


def test_tensors_that_require_grad_are_taken(op, given):
    """There is no autograd at this level; tilewright.torch refuses what has no backward."""
    torch = pytest.importorskip("torch")
    q = torch.zeros(2, 8, 4, 64, dtype=torch.bfloat16, requires_grad=True)
    _core.read_call(op, q=q)


def test_a_stream_of_another_device_is_named():
    """Simulated streams have no number of a device to compare."""
    try:
        device = tilewright.Device("cuda:0")
    except tilewright.Error as error:
        pytest.skip(f"Gpu: {error}")
    with pytest.raises(tilewright.InvalidArgument, match="of cuda:7; the operator is on cuda:0"):
        tilewright.RmsNorm(device, rows=1, cols=128).run(stream=Stream())


def test_a_simulator_that_is_missing_is_named(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_SIM_LIBRARY", "/nowhere/libcuda.so.1")
    with pytest.raises(tilewright.Error, match="/nowhere/libcuda.so.1"):
        tilewright.Device("sim:h200")


def test_a_driver_that_is_missing_is_named():
    try:
        tilewright.Device("cuda:63").close()
    except tilewright.Error as error:
        assert "cuda:63" in str(error) and ("driver" in str(error) or "GPU" in str(error))


# Loaded before the program: files outside of one folder are no drivers. A real one of this machine is looked for
# in the usual places when the first that is found does not do.
HIDES_DRIVERS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
void* dlopen(const char* path, int flags) {
  void* (*const next)(const char*, int) = (void* (*)(const char*, int))dlsym(RTLD_NEXT, "dlopen");
  const char* const only = getenv("ONLY_DRIVER");
  if (path == NULL || only == NULL || strstr(path, "/libcuda.so.1") == NULL) return next(path, flags);
  return next(strncmp(path, only, strlen(only)) == 0 ? path : "/nowhere/libcuda.so.1", flags);
}
"""


def test_a_driver_that_is_too_old_is_named(tmp_path):
    """A library with the name of the driver that says CUDA 11.4."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    old = "int cuDriverGetVersion(int* v) { *v = 11040; return 0; }\n"
    sources = {"libcuda.so.1": old, "hides.so": HIDES_DRIVERS}
    for name, text in sources.items():
        source = tmp_path / f"{name}.c"
        source.write_text(text)
        subprocess.run(["gcc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", tmp_path / name, source, "-ldl"],
                       check=True)
    preloaded = " ".join(filter(None, (str(tmp_path / "hides.so"), os.environ.get("LD_PRELOAD"))))
    done = subprocess.run([sys.executable, "-c", "import tilewright; tilewright.Device('cuda:0')"],
                          env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "LD_PRELOAD": preloaded,
                               "ONLY_DRIVER": str(tmp_path)}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 1, done.stdout
    last = done.stdout.strip().splitlines()[-1]
    assert "tilewright._errors" in last and "it implements CUDA 11.4; Tilewright needs 1" in last, last
    assert "Update the driver" in last, last


def test_memory_that_was_freed_is_named():
    """The simulator knows what belongs to nobody; on a GPU nobody does. The context is broken behind it."""
    done = subprocess.run([sys.executable, "-c", """
import tilewright
device = tilewright.Device("sim:h200")
op = tilewright.RmsNorm(device, rows=1, cols=128, x_dtype="f32", has_weight=False)
x, out = tilewright.empty(device, 128, "f32"), tilewright.empty(device, 128, "bf16")
address = x.address
del x
try:
    op.run(x=address, out=out)
    device.synchronize()
except tilewright.DeviceError as error:
    print(error, hex(address))
"""], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout and "A kernel failed" in done.stdout
    address = done.stdout.split()[-1]
    assert f"inside the 512-byte allocation at {address} made by cuMemAlloc, which was freed" in done.stderr


def test_a_tensor_that_requires_grad_says_so_where_a_result_is_written():
    torch = pytest.importorskip("torch")
    import tilewright.torch as tt

    tt.set_device("sim:h200")
    q = torch.zeros(1, 4, 2, 64, dtype=torch.bfloat16)
    with pytest.raises(RuntimeError, match="attention_out writes to tensors .* requires grad; call it"):
        tt.attention(q.clone().requires_grad_(), q, q, out=torch.empty_like(q))
    out = tt.attention(q.clone().requires_grad_(), q, q)
    with pytest.raises(NotImplementedError, match="attention has no backward; call it under torch.no_grad"):
        out.float().sum().backward()
