"""tilewright.simulate(): arrays in and out, findings and counters as data, wrong calls."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import tilewright
from tilewright import sim

np = pytest.importorskip("numpy")

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests/ptx"
LIBRARIES = pathlib.Path(tilewright.__file__).parent / "lib"

SAXPY = """
.version 8.0
.target sm_90
.address_size 64
.file 1 "saxpy.py"
.visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)
{
  .reg .f32 %a, %u, %v;
  .reg .b64 %x, %y, %at;
  .reg .b32 %i, %n, %t;
  .reg .pred %p;
  ld.param.f32 %a, [a];
  ld.param.u64 %x, [x];
  ld.param.u64 %y, [y];
  ld.param.u32 %n, [n];
  mov.u32 %i, %ctaid.x;
  mov.u32 %t, %ntid.x;
  mul.lo.u32 %i, %i, %t;
  mov.u32 %t, %tid.x;
  add.u32 %i, %i, %t;
  setp.ge.u32 %p, %i, %n;
  @%p bra END;
  mul.wide.u32 %at, %i, 4;
  add.u64 %x, %x, %at;
  add.u64 %y, %y, %at;
  .loc 1 3 0
  ld.global.f32 %u, [%x];
  ld.global.f32 %v, [%y];
  .loc 1 4 0
  fma.rn.f32 %v, %a, %u, %v;
  st.global.f32 [%y], %v;
END:
  ret;
}
"""

# Each lane writes a word and reads it back, `pitch` words from lane to lane.
COLUMN = """
.version 8.0
.target sm_90
.address_size 64
.shared .align 128 .b8 tile[4352];
.visible .entry column(.param .u64 out, .param .u32 pitch)
{
  .reg .b32 %lane, %at, %pitch;
  .reg .b64 %out, %to;
  ld.param.u64 %out, [out];
  ld.param.u32 %pitch, [pitch];
  mov.u32 %lane, %tid.x;
  mul.lo.u32 %at, %lane, %pitch;
  shl.b32 %at, %at, 2;
  mov.u32 %pitch, tile;
  add.u32 %at, %at, %pitch;
  st.shared.u32 [%at], %lane;
  ld.shared.u32 %pitch, [%at];
  mul.wide.u32 %to, %lane, 4;
  add.u64 %to, %to, %out;
  st.global.u32 [%to], %pitch;
  ret;
}
"""

# One byte of each type of parameter, as it arrives.
PARAMS = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry params(.param .u64 out, .param .s8 a, .param .u16 b, .param .f64 c, .param .align 8 .b8 d[12])
{
  .reg .b64 %out, %c;
  .reg .b32 %d;
  .reg .b16 %a, %b;
  ld.param.u64 %out, [out];
  ld.param.s8 %a, [a];
  ld.param.u16 %b, [b];
  ld.param.b64 %c, [c];
  ld.param.u32 %d, [d+8];
  st.global.u16 [%out], %a;
  st.global.u16 [%out+2], %b;
  st.global.u32 [%out+4], %d;
  st.global.u64 [%out+8], %c;
  ret;
}
"""


@pytest.mark.parametrize("device", ["h200", "b200", "b300"])
def test_arrays_go_in_and_come_back(device):
    x, y = np.arange(1000, dtype="float32"), np.ones(1000, "float32")
    report = tilewright.simulate(SAXPY, 4, 256, [2.0, x, y, 1000], device=device)
    np.testing.assert_array_equal(y, 2 * x + 1)
    assert report.ok and report.findings == [] and report.device == device
    assert (report.kernel, report.grid, report.block) == ("saxpy", (4, 1, 1), (256, 1, 1))
    assert report.raise_if_failed() is report


def test_views_share_their_storage():
    both = np.zeros((2, 500), "float32")
    both[0] = np.arange(500)
    tilewright.simulate(SAXPY, 2, 256, [1.0, both[0], both[1], 500])
    np.testing.assert_array_equal(both[1], np.arange(500))
    # The same array twice is one buffer.
    x = np.arange(8, dtype="float32")
    tilewright.simulate(SAXPY, 1, 32, [1.0, x, x, 8])
    np.testing.assert_array_equal(x, 2 * np.arange(8))
    # A view that runs backwards begins at its first element.
    backwards = np.arange(8, dtype="float32")
    tilewright.simulate(SAXPY, 1, 32, [1.0, np.ones(4, "float32"), backwards[3::-1][-1:], 4])
    np.testing.assert_array_equal(backwards[:4], np.arange(4) + 1)


def test_read_only_arrays_stay_as_they_are():
    y = np.zeros(8, "float32")
    y.flags.writeable = False
    assert tilewright.simulate(SAXPY, 1, 32, [1.0, np.ones(8, "float32"), y, 8]).ok
    assert not y.any()


def test_tensors():
    torch = pytest.importorskip("torch")
    x, y = torch.randn(1000), torch.zeros(2, 1000)
    expected = 3 * x
    tilewright.simulate(SAXPY, 4, 256, [3.0, x, y[1], 1000])
    assert torch.equal(y[1], expected) and not y[0].any()
    with pytest.raises(tilewright.InvalidArgument, match="tensor on meta"):
        tilewright.simulate(SAXPY, 4, 256, [3.0, torch.empty(4, device="meta"), y, 1000])


def test_parameters_of_every_kind():
    out = np.zeros(16, "uint8")
    struct = np.array([1, 2, 0xdeadbeef], "uint32").tobytes()
    tilewright.simulate(PARAMS, 1, 1, [out, -3, np.uint16(40000), 1.5, struct])
    assert out[:2].view("int16")[0] == -3 and out[2:4].view("uint16")[0] == 40000
    assert out[4:8].view("uint32")[0] == 0xdeadbeef and out[8:].view("float64")[0] == 1.5


@pytest.mark.parametrize("args, error, text", [
    ([1.0, 2.0], tilewright.InvalidArgument, r"2 arguments for 4 parameters \(.f32 a, .u64 x, .u64 y, .u32 n\)"),
    ([np.ones(4, "float32"), 0, 0, 0], TypeError, "saxpy: a: an array for a parameter of type .f32"),
    ([1.0, 0, 0, 2.5], TypeError, "saxpy: n: 2.5 for a parameter of type .u32"),
    ([1.0, 0, 0, 1 << 32], tilewright.InvalidArgument, "saxpy: n: 4294967296 does not fit"),
    ([1.0, 0, 0, b"12"], tilewright.InvalidArgument, "saxpy: n: 2 bytes for a parameter of 4"),
    ([1.0, 0, 0, np.float64(1)], tilewright.InvalidArgument, "saxpy: n: 8 bytes for a parameter of 4"),
    ([1.0, "x", 0, 0], TypeError, "saxpy: x: a str"),
])
def test_wrong_arguments_are_named(args, error, text):
    with pytest.raises(error, match=text):
        tilewright.simulate(SAXPY, 1, 32, args)


@pytest.mark.parametrize("change, error, text", [
    ({"kernel": "no ptx"}, tilewright.InvalidArgument, "is no PTX text"),
    ({"kernel": b"\x7fELFxxxx"}, tilewright.Unsupported, "this is machine code"),
    ({"kernel": 3}, TypeError, "int holds no PTX"),
    ({"kernel": pathlib.Path("/nowhere/kernel.ptx")}, FileNotFoundError, "nowhere"),
    ({"kernel": SAXPY.replace("fma.rn.f32", "fma.rn.f23")}, tilewright.ParseError, "f23"),
    ({"kernel": SAXPY.replace("sm_90", "sm_100a"), "device": "h200"}, tilewright.Unsupported, "sm_100a"),
    ({"device": "a100"}, tilewright.InvalidArgument, "'a100'; expected one of h200, b200, b300"),
    ({"check": "everything"}, tilewright.InvalidArgument, "everything"),
    ({"timing": "soon"}, tilewright.InvalidArgument, "soon"),
    ({"seed": -1}, tilewright.InvalidArgument, "seed"),
    ({"grid": (0,)}, tilewright.InvalidArgument, r"grid = \(0,\)"),
    ({"grid": (1, 1, 1, 1)}, tilewright.InvalidArgument, "one to three"),
    ({"block": 2048}, tilewright.InvalidArgument, r"refuses a grid of \[1, 1, 1\] CTAs of \[2048, 1, 1\] threads"),
    ({"block": None}, tilewright.InvalidArgument, "block is missing"),
    ({"cluster": 3}, tilewright.InvalidArgument, r"clusters of \[3, 1, 1\]"),
    ({"entry": "daxpy"}, tilewright.InvalidArgument, "no kernel daxpy; kernel= is one of saxpy"),
    ({"shared_bytes": 1 << 20}, tilewright.InvalidArgument, "1048576 bytes of dynamic shared memory"),
])
def test_wrong_calls_are_named(change, error, text):
    x = np.ones(8, "float32")
    call = {"kernel": SAXPY, "grid": 1, "block": 32, "args": [1.0, x, x, 8]} | change
    with pytest.raises(error, match=text):
        tilewright.simulate(**call)


def test_a_path_and_bytes_are_texts(tmp_path):
    path = tmp_path / "saxpy.ptx"
    path.write_text(SAXPY)
    for kernel in (path, SAXPY.encode(), SAXPY.encode() + b"\0"):
        y = np.zeros(8, "float32")
        tilewright.simulate(kernel, 1, 32, [1.0, np.ones(8, "float32"), y, 8])
        assert y.all()


def test_counters_by_line():
    x, y = np.ones(64, "float32"), np.ones(64, "float32")
    report = tilewright.simulate(SAXPY, 1, 64, [1.0, x, y, 64])
    assert report.counters["warp_instructions"] > 0
    by_source = {line.line: line for line in report.by_line()}
    assert by_source[3].file == "saxpy.py" and by_source[3].place == "saxpy.py:3"
    assert by_source[3]["global_requested_bytes"] == 512 and by_source[4]["global_requested_bytes"] == 256
    loads = [line for line in report.by_line("ptx") if line.text.startswith("ld.global")]
    assert [line["global_accesses"] for line in loads] == [2, 2]
    assert sum(line["warp_instructions"] for line in report.by_line("ptx")) == report.counters["warp_instructions"]
    with pytest.raises(ValueError, match="'cuda'"):
        report.by_line("cuda")


@pytest.mark.parametrize("pitch, wavefronts", [(32, 32), (33, 1), (2, 2)])
def test_bank_conflicts_by_line(pitch, wavefronts):
    report = tilewright.simulate(COLUMN, 1, 32, [np.zeros(32, "uint32"), pitch], check="none")
    store = next(line for line in report.by_line() if line.text.startswith("st.shared"))
    assert (store["shared_wavefronts"], store["shared_bank_conflicts"]) == (wavefronts, wavefronts - 1)


def test_a_report_as_text_and_in_a_notebook():
    y = np.ones(64, "float32")
    report = tilewright.simulate(SAXPY, 1, 64, [1.0, y, y, 64])
    lines = str(report).splitlines()
    assert lines[0] == "saxpy on b200: 1x1x1 CTAs of 64x1x1 threads, no findings"
    assert re.match(r"  line +instr\. +global B +used B +text", lines[1])
    html = report._repr_html_()
    assert "saxpy.py:3" in html and html.count("<tr>") == len(report.table()) and "<script" not in html
    racy = run_program(PROGRAMS / "bad/race_shared.ptx", "all")
    assert "race on shared" in racy._repr_html_() and "race on shared" in str(racy) and "1 finding" in repr(racy)


def program_header(path):
    """check, CTAs, threads, cluster, dynamic bytes, finds"""
    words = dict(re.findall(r"^// (check|launch|finds): *(.*)$", path.read_text(), re.M))
    ctas, threads, cluster, *dynamic = map(int, words.get("launch", "1 32 1").split())
    return words["check"], ctas, threads, cluster, sum(dynamic), words.get("finds", "")


def programs(folder):
    """Those that need neither tensor maps nor freed memory."""
    found = [path for path in sorted((PROGRAMS / folder).glob("*.ptx"))
             if "tensor" not in path.name and "freed" not in path.name and "tensormap" not in path.read_text()
             and ".tensor" not in path.read_text()]
    assert len(found) > 90
    return found


def run_program(path, check):
    _, ctas, threads, cluster, dynamic, _ = program_header(path)
    data, fresh, freed = np.zeros(65536, "uint8"), sim.uninitialised(np.zeros(65536, "uint8")), 0
    text = path.read_text()
    count = len(tilewright.sim._ptx.entries(text)["kernel"])
    return tilewright.simulate(text, ctas, threads, [data, fresh, freed][:count], check=check, entry="kernel",
                               device="b200" if ".target sm_100" in text else "h200",
                               cluster=cluster if cluster > 1 else (), shared_bytes=dynamic)


def test_each_mistake_is_a_finding_with_its_place():
    for path in programs("bad"):
        check, *_, finds = program_header(path)
        report = run_program(path, "all,strict" if check == "strict" else "all")
        names = {finding.check for finding in report.findings}
        assert names == {check}, path.name
        if check == "strict":
            continue
        finding = report.findings[0]
        texts = [re.sub(r"module\d+\.ptx", path.name, each.text) for each in report.findings]
        assert any(finds in text for text in texts), texts
        assert finding.kernel == "kernel" and finding.place.ptx_line and finding.place.instruction, path.name
        line = path.read_text().splitlines()[finding.place.ptx_line - 1].strip()
        assert line[:160] == finding.place.instruction, path.name
        assert len(finding.place.cta) == 3 and finding.place.thread is not None, path.name
        with pytest.raises(tilewright.CheckFailed) as raised:
            report.raise_if_failed()
        assert raised.value.findings == report.findings


def test_their_twins_have_none(capfd):
    for path in programs("good"):
        report = run_program(path, "all")
        assert report.ok, f"{path.name}: {report}"
    assert capfd.readouterr().err == ""


def test_a_fault_leaves_arrays_and_the_next_launch_alone():
    y = np.zeros(8, "float32")
    with sim.Simulator("b200") as simulator:
        report = simulator.launch(SAXPY, (64,), (256,), [1.0, np.ones(8, "float32"), y, 1 << 14])
        assert [finding.check for finding in report.findings] == ["mem"] and report.fault and not report.ok
        assert not y.any()
        assert simulator.launch(SAXPY, (1,), (32,), [1.0, np.ones(8, "float32"), y, 8]).ok
        assert y.all()


def test_findings_do_not_outlive_their_launch():
    path = PROGRAMS / "bad/race_shared.ptx"
    with sim.Simulator("h200") as simulator:
        args = [np.zeros(65536, "uint8"), np.zeros(65536, "uint8")]
        first, second = (simulator.launch(path.read_text(), (1,), (128,), args) for _ in range(2))
    assert len(first.findings) == 1
    assert [f.what for f in second.findings] == [f.what for f in first.findings]
    assert run_program(path, "none").ok and run_program(path, "all,-race").ok


def test_what_nothing_has_written():
    x = np.ones(8, "float32")
    y = sim.uninitialised(np.empty(8, "float32"))
    findings = tilewright.simulate(SAXPY, 1, 32, [1.0, x, y, 8]).findings
    assert [finding.check for finding in findings] == ["init"]
    # The mark is of one launch, and of the array alone.
    assert tilewright.simulate(SAXPY, 1, 32, [1.0, x, y, 8]).ok
    both = np.ones(16, "float32")
    sim.uninitialised(both[:8])
    assert tilewright.simulate(SAXPY, 1, 32, [1.0, x, both[8:], 8]).ok


def test_settings_of_others_stay():
    """A device of the package that runs on the same simulator keeps its checks."""
    driver = tilewright.sim._driver.driver()
    ordinal = driver.ordinal("b200")
    before = driver.configure(ordinal, {})
    tilewright.simulate(SAXPY, 1, 32, [1.0, np.ones(8, "float32"), np.ones(8, "float32"), 8], check="all", seed=5)
    assert driver.configure(ordinal, {}) == before


def test_seeds_and_timing_change_no_result():
    for seed, timing in ((1, "late"), (2, "random")):
        y = np.zeros(1000, "float32")
        tilewright.simulate(SAXPY, 4, 256, [2.0, np.ones(1000, "float32"), y, 1000], seed=seed, timing=timing)
        assert (y == 2).all()


TENSOR_COPY = """
.version 8.6
.target sm_90
.address_size 64
.shared .align 1024 .b8 tile[4096];
.shared .align 8 .b64 barrier;
.visible .entry copy(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 row)
{
  .reg .b32 %t, %tile, %bar, %row, %v;
  .reg .b64 %out, %map, %at;
  .reg .pred %first, %done;
  ld.param.u64 %out, [out];
  ld.param.u32 %row, [row];
  mov.b64 %map, map;
  cvta.param.u64 %map, %map;
  mov.u32 %t, %tid.x;
  mov.u32 %tile, tile;
  mov.u32 %bar, barrier;
  setp.eq.u32 %first, %t, 0;
  @%first mbarrier.init.shared::cta.b64 [%bar], 1;
  @%first fence.proxy.async.shared::cta;
  bar.sync 0;
  @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 4096;
  @%first cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
      [%tile], [%map, {0, %row}], [%bar];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0;
  @!%done bra WAIT;
  mul.lo.u32 %v, %t, 4;
  add.u32 %tile, %tile, %v;
  ld.shared.u32 %v, [%tile];
  mul.wide.u32 %at, %t, 4;
  add.u64 %out, %out, %at;
  st.global.u32 [%out], %v;
  ret;
}
"""


def test_tensor_maps():
    array = np.arange(64 * 64, dtype="float32").reshape(64, 64)
    out = np.zeros(1024, "float32")
    given = sim.tensor_map(array[:, :32], (32, 32))
    report = tilewright.simulate(TENSOR_COPY, 1, 1024, [given, out, 16], device="h200").raise_if_failed()
    np.testing.assert_array_equal(out.reshape(32, 32), array[16:48, :32])
    assert report.counters["bulk_bytes"] == 4096
    swizzled = np.zeros(1024, "float32")
    given = sim.tensor_map(array[:, :32], (32, 32), swizzle="128B")
    tilewright.simulate(TENSOR_COPY, 1, 1024, [given, swizzled, 16], device="b200").raise_if_failed()
    offsets = tilewright.Layout("Sw<3,2,3> o 0 o (32,32):(32,1)").offsets()
    np.testing.assert_array_equal(swizzled[offsets].reshape(32, 32).T, array[16:48, :32])
    with pytest.raises(tilewright.InvalidArgument, match="the last one contiguous"):
        sim.tensor_map(array[:, ::2], (32, 32))
    with pytest.raises(tilewright.InvalidArgument, match="swizzle = '16B'"):
        sim.tensor_map(array, (32, 32), swizzle="16B")
    with pytest.raises(tilewright.InvalidArgument, match="complex64"):
        sim.tensor_map(array.astype("complex64"), (32, 32))


def run_python(code, **variables):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | variables)


def test_a_process_that_shows_some_devices():
    code = "import tilewright.sim as s; s.Simulator('b200').close(); print(s._driver.driver().ordinals)"
    shown = run_python(code, TILEWRIGHT_SIM_DEVICE="b200,h200")
    assert shown.stdout == "{100: 0, 90: 1}\n", shown.stderr
    hidden = run_python(code, TILEWRIGHT_SIM_DEVICE="h200")
    assert "this process shows no b200: TILEWRIGHT_SIM_DEVICE = 'h200' leaves it out" in hidden.stderr
    wrong = run_python(code, TILEWRIGHT_SIM_DEVICE="b200,c200")
    assert "expected one of h200, b200, b300, or several" in wrong.stderr


def test_the_variable_predicts_times():
    code = "\n".join(["import numpy, tilewright", f"PTX = {SAXPY!r}", "x = numpy.ones(256, 'f4')",
                      "report = tilewright.simulate(PTX, 2, 128, [1.0, x, x, 256])",
                      "print(report.raw.get('predicted', {}).get('us', 0) > 0, x[0])"])
    assert run_python(code, TILEWRIGHT_SIM_TIME="1").stdout == "True 2.0\n"
    assert run_python(code, TILEWRIGHT_SIM_TIME="0").stdout == "False 2.0\n"
    wrong = run_python(code, TILEWRIGHT_SIM_TIME="2")
    assert "TILEWRIGHT_SIM_TIME" in wrong.stderr and "expected 0 or 1" in wrong.stderr


def test_a_simulator_that_is_not_there():
    code = "import tilewright.sim as s; s.Simulator()"
    missing = run_python(code, TILEWRIGHT_SIM_LIBRARY="/nowhere/libcuda.so.1")
    assert "DeviceError: there is no simulator at /nowhere/libcuda.so.1; " in missing.stderr
    no_library = run_python(code, TILEWRIGHT_SIM_LIBRARY=__file__)
    assert "DeviceError: the simulator cannot be loaded" in no_library.stderr
    other = run_python(code, TILEWRIGHT_SIM_LIBRARY=next(LIBRARIES.glob("libtilewright.so*")))
    assert "is another CUDA driver or an older simulator; set TILEWRIGHT_SIM_LIBRARY" in other.stderr


@pytest.mark.parametrize("use", [
    "x = numpy.ones(32, 'f4'); tilewright.simulate(PTX, 1, 32, [1.0, x, x, 8]); assert x[0] == 2",
    "tilewright.Device('sim:h200')"])
@pytest.mark.parametrize("first", [False, True], ids=["simulator first", "driver first"])
def test_a_real_driver_is_not_hidden(use, first, tmp_path):
    """What opens CUDA's driver by its name, as torch.cuda does, gets the machine's and not the simulator."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc")
    (tmp_path / "driver.c").write_text("int cuInit(unsigned f) { return 999 - (int)f; }\n"
                                       "int cuDriverGetVersion(int* v) { *v = 13000; return 0; }\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", tmp_path / "libcuda.so.1",
                    tmp_path / "driver.c"], check=True)
    opened = "assert ctypes.CDLL('libcuda.so.1').cuInit(0) == 999"
    steps = [opened, use, opened] if first else [use, opened]
    done = subprocess.run([sys.executable, "-c", "\n".join(["import ctypes, numpy, tilewright", f"PTX = {SAXPY!r}",
                                                            *steps])],
                          env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
