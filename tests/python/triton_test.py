"""Triton's kernels on the simulated driver: the plugin runs triton_cases.py, unmodified, as a user would."""

import os
import pathlib
import subprocess
import sys
import time
from importlib.metadata import entry_points
from xml.etree import ElementTree

import pytest

import tilewright

HERE = pathlib.Path(__file__).resolve().parent
CASES = HERE / "triton_cases.py"
triton = pytest.importorskip("triton")
torch = pytest.importorskip("torch")
simulated = pytest.importorskip("tilewright.sim.triton")
is_known = any(triton.__version__.startswith(f"{known}.") for known in simulated.SUPPORTED)
needs_known = pytest.mark.skipif(not is_known, reason=f"Triton {triton.__version__} is not one of those known")

if is_known:
    import triton.language as tl

    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


# Newer compilers put in the fence that is missing.
has_missing_fence = triton.__version__.startswith("3.6.")
WRONG = {  # test -> what its failure says, and the line of the kernel that it names
    "test_wrong_race": ("race on global", "# races with the line above"),
    "test_wrong_fence": ("proxy: missing proxy fence on shared", "# what has no fence"),
    "test_wrong_mask": ("mem: illegal global read of 16 bytes", "tl.store(out + at, tl.load(x + at, mask=mask) +"),
    "test_wrong_read": ("init: an undefined value is stored", "tl.store(out + at, tl.load(x + at, mask=mask) +"),
    "test_wrong_result": ("AssertionError|assert", None),
    "test_wrong_benchmark": ("times of the simulator say nothing about a GPU", None),
}


def line_of(text):
    return next(number for number, line in enumerate(CASES.read_text().splitlines(), 1) if text in line)


def run_pytest(tmp_path, *words):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "XDG_CACHE_HOME": str(tmp_path / "cache"),
                                "PYTHONDONTWRITEBYTECODE": "1"}
    # The package of a build folder has no entry points.
    plugin = [] if entry_points(group="pytest11", name="tilewright") else ["-p", "tilewright.testing.plugin"]
    command = [sys.executable, "-m", "pytest", *plugin, "-p", "no:cacheprovider", "-c", os.devnull,
               "--rootdir", str(HERE), f"--junitxml={tmp_path / 'report.xml'}", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)


@needs_known
@pytest.mark.parametrize("device", ["h200", "b200"])
def test_the_plugin(device, tmp_path):
    begin = time.monotonic()
    done = run_pytest(tmp_path, f"--tilewright-sim={device}", "--tilewright-check=all", CASES)
    seconds = time.monotonic() - begin
    failures, passed = {}, 0
    for case in ElementTree.parse(tmp_path / "report.xml").iter("testcase"):
        failure = case.find("failure")
        if failure is None:
            passed += 1
            assert case.find("error") is None, done.stdout
        else:
            failures[case.get("name")] = failure.text
    wrong = {name: what for name, what in WRONG.items() if name != "test_wrong_fence" or has_missing_fence}
    assert failures.keys() == wrong.keys(), done.stdout
    assert passed == 18 - len(wrong), done.stdout
    for name, (says, where) in wrong.items():
        assert any(each in failures[name] for each in says.split("|")), failures[name]
        if where is not None:
            # In 3.9's PTX .loc counts the lines of inline assembly, too: they are a few late.
            lines = [line_of(where) + late for late in range(1 if has_missing_fence else 6)]
            assert any(f"{CASES}:{line}: {says}" in failures[name] for line in lines), failures[name]
            assert "CheckFailed" in failures[name] and "triton/runtime" not in failures[name], failures[name]
    assert f"tilewright: kernels run on a simulated {device}, check: all" in done.stdout
    assert "17 launches of Triton kernels on a simulated" in done.stdout and "sim: " not in done.stderr
    print(f"{device}: {seconds:.1f} s")
    assert seconds < 60


def test_the_plugin_says_what_it_does_not_know(tmp_path):
    case = tmp_path / "case_test.py"
    case.write_text("import pytest\n@pytest.mark.tilewright(chek='all')\ndef test_it(): pass\n")
    assert "expected one of h200, b200, b300" in run_pytest(tmp_path, "--tilewright-sim=a100", case).stderr
    wrong = run_pytest(tmp_path, "--tilewright-sim=b200", "--tilewright-check=everything", case)
    assert 'there is no check "everything"' in wrong.stderr
    told = run_pytest(tmp_path, "--tilewright-sim=b200", case)
    assert "mark tilewright takes device, check, seed, timing, exact_mma" in told.stdout + told.stderr
    case.write_text("def test_it(tilewright_sim): pass\n")
    assert "1 skipped" in run_pytest(tmp_path, case).stdout


DRIVER_PROGRAM = """
import ctypes, pathlib

def test_driver():
    cuda = ctypes.CDLL("libcuda.so.1")
    context, module, kernel, data = (ctypes.c_void_p() for _ in range(4))
    assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    cuda.cuCtxSetCurrent(context)
    text = pathlib.Path({path!r}).read_text().encode()
    assert cuda.cuModuleLoadData(ctypes.byref(module), text) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"kernel") == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(data), ctypes.c_size_t(65536)) == 0
    cuda.cuMemsetD8_v2(data, 0, ctypes.c_size_t(65536))
    given = (ctypes.c_void_p * 2)(*(ctypes.addressof(data),) * 2)
    assert cuda.cuLaunchKernel(kernel, 1, 1, 1, 128, 1, 1, 0, None, given, None) == 0
    assert cuda.cuCtxSynchronize() == 0
"""


def test_programs_that_open_the_driver_are_checked(tmp_path):
    case, programs = tmp_path / "case_test.py", HERE.parent / "ptx"
    case.write_text(DRIVER_PROGRAM.format(path=str(programs / "bad/race_shared.ptx")))
    told = run_pytest(tmp_path, "--tilewright-sim=h200", case).stdout
    assert "CheckFailed: race on shared" in told and "1 failed" in told, told
    assert "1 passed" in run_pytest(tmp_path, "--tilewright-sim=h200", "--tilewright-check=all,-race", case).stdout
    case.write_text(DRIVER_PROGRAM.format(path=str(programs / "good/race_shared.ptx")))
    assert "1 passed" in run_pytest(tmp_path, "--tilewright-sim=h200", case).stdout


@needs_known
def test_a_compiled_kernel_is_simulated():
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kinds = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = ASTSource(add, kinds, {"BLOCK": 128})
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    x, out = torch.randn(300), torch.empty(300)
    report = tilewright.simulate(compiled, 3, args=[x, x, out, 300], device="h200")
    assert torch.equal(out, 2 * x) and report.ok and report.block == (128, 1, 1)


@needs_known
def test_the_driver_is_put_back():
    config = triton.runtime.driver
    before = config._active
    with simulated.driver("b200") as outer:
        assert config.active is outer
        with pytest.raises(RuntimeError, match="stop"), simulated.driver("h200") as inner:
            assert config.active is inner and inner.get_current_target().arch == 90
            raise RuntimeError("stop")
        assert config.active is outer and outer.get_current_target().arch == 100
    assert config._active is before


def test_other_versions_are_refused(monkeypatch):
    monkeypatch.setattr(triton, "__version__", "3.60.0")
    with pytest.raises(tilewright.Unsupported, match=r"Triton 3.60.0 was not tried .* 3.6, 3.9: pip"):
        with simulated.driver("b200"):
            pass
