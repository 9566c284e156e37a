"""Devices, buffers, what is known of tensors of other libraries, and how the package begins and ends."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import tilewright
from tilewright import _core


def test_device_says_what_it_is(dev):
    assert dev.is_simulated and dev.ordinal is None and dev.spec == "sim:h200"
    assert "132 SMs" in dev.description
    assert repr(dev) == "tilewright.Device('sim:h200')"
    assert dev.driver_function("cuMemAlloc_v2") and dev.driver_function("cuNothing") is None
    dev.synchronize()


def test_device_is_closed_by_with():
    with tilewright.Device("sim:b200") as device:
        buffer = tilewright.empty(device, 16, "f32")
    with pytest.raises(tilewright.InvalidArgument, match=r"Device\('sim:b200'\) is closed"):
        device.synchronize()
    buffer.fill(0)
    assert not buffer.numpy().any()


def test_unknown_device_names_those_there_are():
    with pytest.raises(tilewright.InvalidArgument, match="sim:h200, sim:b200 or sim:b300"):
        tilewright.Device("sim:h300")


def test_device_is_pickled_by_its_name(dev):
    assert pickle.loads(pickle.dumps(dev)).spec == "sim:h200"


@pytest.mark.parametrize("word, dtype", [("f32", np.float32), ("f16", np.float16), ("i32", np.int32),
                                         ("u8", np.uint8)])
def test_buffer_round_trip(dev, word, dtype):
    values = np.arange(24).reshape(2, 3, 4).astype(dtype)
    buffer = tilewright.empty(dev, (2, 3, 4), word)
    buffer.upload(values)
    assert buffer.shape == (2, 3, 4) and buffer.dtype == word and buffer.nbytes == values.nbytes
    assert (buffer.numpy() == values).all()
    assert bytes(buffer.download(4, 8)) == values.tobytes()[4:12]


def test_bfloat16_comes_back_as_ml_dtypes(dev):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.arange(8).astype(ml_dtypes.bfloat16)
    buffer = tilewright.empty(dev, 8, ml_dtypes.bfloat16)
    buffer.upload(values)
    assert buffer.dtype == "bf16" and buffer.numpy().dtype == values.dtype
    assert (buffer.numpy() == values).all()


def test_buffers_on_a_simulator_have_no_dlpack(dev):
    with pytest.raises(BufferError, match=r"buffer.numpy\(\) copies"):
        tilewright.empty(dev, 4, "f32").__dlpack__()


@pytest.mark.parametrize("call, kind, text", [
    (lambda b: b.upload(np.zeros(99, np.float32)), tilewright.InvalidArgument, "396"),
    (lambda b: b.upload(np.zeros((4, 4), np.float32)[:, ::2]), tilewright.InvalidArgument, "contiguous"),
    (lambda b: b.upload(b"", offset=-1), tilewright.InvalidArgument, "offset = -1"),
    (lambda b: b.download(99), tilewright.InvalidArgument, "the buffer has 64 bytes"),
    (lambda b: b.download(0, 99), tilewright.InvalidArgument, "the buffer has 64 bytes"),
    (lambda b: b.fill(256), tilewright.InvalidArgument, "expected a byte"),
    (lambda b: b.upload("text"), TypeError, "source is a str"),
    (lambda b: tilewright.empty(b.device, (-1,)), tilewright.InvalidArgument, "negative extent"),
    (lambda b: tilewright.empty(b.device, (1,) * 9), tilewright.InvalidArgument, "9 dimensions; at most 8"),
    (lambda b: tilewright.empty(b.device, 4, "f12"), tilewright.InvalidArgument, "dtype = 'f12'"),
    (lambda b: tilewright.empty(b.device, 1 << 62, "f64"), MemoryError, "more bytes"),
    (lambda b: tilewright.empty(b.device, 1 << 50, "u8"), tilewright.OutOfMemory, "1125899906842624"),
    (lambda b: tilewright.empty("sim:h200", 4), TypeError, "expected a tilewright.Device"),
])
def test_what_a_buffer_refuses(dev, call, kind, text):
    with pytest.raises(kind, match=text):
        call(tilewright.empty(dev, 16, "f32"))


def test_view_knows_the_span_of_a_view():
    array = np.zeros((6, 8), np.float32)
    view = _core.view(array[1:5:2, ::-1])
    assert view["shape"] == (2, 8) and view["strides"] == (16, -1)
    assert view["begin"] == array.ctypes.data + 32 and view["bytes"] == (16 + 8) * 4
    assert view["place"] == "host" and not view["is_contiguous"]


def test_view_takes_the_buffer_protocol():
    assert _core.view(b"abc")["is_read_only"] and _core.view(b"abc")["bytes"] == 3
    assert _core.view(memoryview(bytearray(8)).cast("f"))["dtype"] == "f32"


def test_view_takes_torch_tensors():
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(4, 6, dtype=torch.bfloat16)[:, 2:]
    view = _core.view(tensor)
    assert (view["dtype"], view["shape"], view["strides"]) == ("bf16", (4, 4), (6, 1))
    assert view["address"] == tensor.data_ptr()
    assert _core.view(torch.nn.Parameter(torch.zeros(3)))["dtype"] == "f32"
    assert _core.describe(tensor) == "a Tensor, bf16 (4, 4), strides (6, 1), on host"


def test_a_library_with_dlpack_alone_is_understood():
    class Other:
        def __init__(self):
            self.array = np.zeros((2, 3), np.int32)

        def __dlpack__(self, **kwargs):
            return self.array.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    view = _core.view(Other())
    assert (view["dtype"], view["shape"], view["place"]) == ("i32", (2, 3), "host")


def run_python(text):
    return subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)


def test_the_child_of_a_fork_is_told():
    done = run_python("""
import os, sys, tilewright
device = tilewright.Device("sim:h200")
buffer = tilewright.empty(device, 4)
if os.fork() == 0:
    for call in (device.synchronize, lambda: buffer.fill(0), lambda: tilewright.Device("sim:h200")):
        try:
            call()
        except RuntimeError as error:
            print(error, flush=True)
    os._exit(0)
os.wait()
device.synchronize()
print("parent goes on")
""")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("child of a fork") == 3 and "spawn" in done.stdout
    assert done.stdout.endswith("parent goes on\n")


def test_objects_that_live_until_the_end_do_no_harm():
    done = run_python("""
import tilewright
class Holder: pass
holder = Holder()
holder.me = holder
holder.device = tilewright.Device("sim:h200")
holder.buffer = tilewright.empty(holder.device, 1 << 20)
""")
    assert (done.returncode, done.stdout) == (0, "")


def test_import_takes_little_and_brings_little():
    done = run_python("""
import sys, time
modules = set(sys.modules)
before = time.process_time()
import tilewright
assert time.process_time() - before < 0.030, time.process_time() - before
assert not {"torch", "numpy", "typing", "dataclasses", "inspect"} & (set(sys.modules) - modules)
""")
    assert done.returncode == 0, done.stdout
