"""The package as a whole: types, names, commands, what is exported, copies of the library."""

import inspect
import json
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys

import pytest

import tilewright
from tilewright import _core

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(tilewright.__file__).resolve().parent


def run(*command, **environment):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env={**os.environ, **environment}, check=False)
    return done.returncode, done.stdout


def test_types_are_right():
    pytest.importorskip("mypy")
    status, text = run(sys.executable, "-m", "mypy", "--strict", "-p", "tilewright", "--no-incremental",
                       "--cache-dir", os.devnull, MYPYPATH=str(ROOT / "python"))
    assert status == 0, text


def test_types_are_right_for_pyright(tmp_path):
    """What editors show: with the types of torch, where it is."""
    pytest.importorskip("pyright")
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "python/tilewright", tmp_path / "tilewright", ignore=ignore)
    settings = {"include": ["tilewright"], "pythonVersion": "3.10", "typeCheckingMode": "standard",
                "reportMissingModuleSource": False, "reportMissingImports": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    status, text = run(sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", tmp_path)
    assert status == 0, text


def test_stubs_have_what_the_extension_has():
    stubs = (ROOT / "python/tilewright/_core.pyi").read_text()
    for name in dir(_core):
        if not name.startswith("__"):
            assert re.search(rf"^(class|def) {name}\b|^{name}:", stubs, re.M), name
    for name in _core.CLASSES:
        assert getattr(tilewright, name) is getattr(_core, name)


def test_every_function_of_the_c_interface_is_called():
    """By the table, by hand, or by ctypes."""
    header = (ROOT / "include/tilewright/tilewright.h").read_text()
    files = [*(ROOT / "python/core").glob("*.c"), *(ROOT / "python/tilewright").rglob("*.py")]
    sources = "".join(path.read_text() for path in files)
    names = set(re.findall(r"^TW_API [^;(]*?\b(tw_\w+)\(", header, re.M))
    missing = {name for name in names if not name.endswith("_set_defaults") and name not in sources}
    assert not missing


@pytest.mark.parametrize("name", _core.CLASSES)
def test_classes_explain_themselves(name):
    kind = getattr(tilewright, name)
    assert kind.__module__ == "tilewright" and kind.__doc__
    if sys.version_info >= (3, 11):  # 3.10 knows the signatures of functions alone
        inspect.signature(kind)
    for method in ("run", "write", "read", "list", "check"):
        if hasattr(kind, method):
            assert "stream" in inspect.signature(getattr(kind, method)).parameters


def test_operators_print_what_makes_them_again(dev, kernels):
    op = tilewright.AttentionDecode(dev, batch=2, heads=4, kv_heads=2, head_dim=64, max_len=99, causal=False,
                                    dtype="f16", kv_dtype="f16", append={"is_wanted": True}, kernel="r16")
    again = eval(repr(op), {"tilewright": tilewright})
    assert repr(again) == repr(op) and again.problem == op.problem
    assert "append={'is_wanted': True}" in repr(op) and "kernel='r16'" in repr(op)
    pickled = pickle.loads(pickle.dumps(op))
    assert pickled.problem == op.problem and pickled.device.spec == "sim:h200"


def test_classes_can_be_derived_from(dev, kernels):
    class Mine(tilewright.RmsNorm):
        def __init__(self, *args, **kwargs):
            self.note = "mine"

    op = Mine(dev, rows=1, cols=128)
    assert op.note == "mine" and op.problem["cols"] == 128
    del op


def test_doctor_says_what_is_here():
    status, text = run(sys.executable, "-m", "tilewright", "doctor")
    assert "simulator" in text and "library" in text and f"{sys.version_info.major}." in text
    status, text = run(sys.executable, "-m", "tilewright", "doctor", "--json")
    found = {finding["what"]: finding for finding in json.loads(text)}
    assert found["library"]["value"].startswith(tilewright.__version__)
    assert status == (0 if all(finding["is_good"] for finding in found.values()) else 1)


def test_doctor_names_a_simulator_that_is_missing():
    missing = "/nowhere/libcuda.so.1"
    status, text = run(sys.executable, "-m", "tilewright", "doctor", TILEWRIGHT_SIM_LIBRARY=missing)
    assert status == 1 and "BAD  simulator" in text and missing in text


def test_doctor_imports_nothing_that_it_names():
    status, text = run(sys.executable, "-c", "import sys; from tilewright import doctor; doctor.main([]);"
                                             "print({'torch', 'triton', 'numpy'} & set(sys.modules))")
    assert text.endswith("set()\n")


def test_the_command_is_the_tool():
    assert run(sys.executable, "-m", "tilewright", "--version") == (0, f"tilewright {tilewright.__version__}\n")
    status, text = run(sys.executable, "-m", "tilewright", "nothing")
    assert status != 0 and "nothing" in text


def test_a_second_copy_of_the_library_is_named(tmp_path):
    copy = tmp_path / "libtilewright.so.0.1"
    copy.write_bytes(pathlib.Path(_core.library_path()).read_bytes())
    status, text = run(sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(copy)!r}); import tilewright")
    assert status != 0
    assert str(copy) in text


def test_the_extension_exports_its_init_alone():
    status, text = run("nm", "-D", "--defined-only", next(PACKAGE.parent.rglob("_core.abi3.so"), None) or
                       _core.__file__)
    if status != 0:
        pytest.skip("no nm")
    assert [line.split()[-1] for line in text.splitlines()] == ["PyInit__core"]
