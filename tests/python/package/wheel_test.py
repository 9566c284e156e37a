"""A wheel packed from the build by tools/pack_wheel.py: what it holds; it works where there is nothing else."""

import pathlib
import platform
import re
import subprocess
import sys
import zipfile

import pytest

import tilewright

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(tilewright.__file__).parents[2]
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "librt.so.1"}
FLOOR = 28  # of glibc: the first number behind "2."
OWN = {"libtilewright.so.0.1", "libcuda.so.1"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    core, linked = (BUILD / name / "tilewright/_core.abi3.so" for name in ("python", "wheel"))
    if not linked.exists() or linked.stat().st_mtime < core.stat().st_mtime:
        pytest.skip(f"the parts of a wheel are missing or old: ninja -C {BUILD} tilewright_wheel")
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, ROOT / "tools/pack_wheel.py", "--build", BUILD, "--out", folder], check=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    subprocess.run([folder / "venv/bin/pip", "install", "-q", "--no-index", wheel], check=True)
    return folder / "venv"


def run(*command):
    return subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, env={"PATH": "/usr/bin:/bin"})


def test_wheel_is_small_and_for_every_python(wheel):
    assert wheel.stat().st_size <= 60e6
    tag = re.match(r"tilewright-.*-cp310-abi3-manylinux_2_(\d+)_", wheel.name)
    assert tag and (int(tag[1]) <= FLOOR or platform.machine() != "x86_64"), wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("_core.abi3.so", "_core.pyi", "py.typed", "lib/libtilewright.so.0.1", "lib/sim/libcuda.so.1",
                 "lib/sim/libcudart.so.13", "bin/tilewright"):
        assert f"tilewright/{name}" in names
    assert not [name for name in names if "__pycache__" in name]
    package = {f"tilewright/{path.relative_to(ROOT / 'python/tilewright').as_posix()}"
               for path in (ROOT / "python/tilewright").rglob("*.py")}
    assert package <= set(names) and len(names) == len(set(names))


def test_wheel_needs_the_c_library_alone(installed):
    package = next(installed.glob("lib/python3*/site-packages/tilewright"))
    files = [package / "_core.abi3.so", package / "bin/tilewright", *package.glob("lib/*.so*"),
             *package.glob("lib/sim/*.so*")]
    for path in files:
        text = run("readelf", "-d", path).stdout
        assert set(re.findall(r"\(NEEDED\).*\[(.*)\]", text)) <= SYSTEM | OWN, path
        places = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text)
        assert all(place.startswith("$ORIGIN") for place in places), path
        newest = max(int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", run("readelf", "-V", path).stdout))
        assert newest <= FLOOR or platform.machine() != "x86_64", path


def test_wheel_works_without_anything_else(installed):
    done = run(installed / "bin/python", "-c", """
import array, tilewright
device = tilewright.Device("sim:h200")
x, out = array.array("f", range(128)), array.array("H", [0xffff] * 128)
tilewright.RmsNorm(device, rows=1, cols=128, x_dtype="f32", has_weight=False).run(x=x, out=out)
assert out[0] == 0 and 0x3fd0 < out[127] < 0x3fe0, list(out)
for wrong in ({"cols": 127, "x_dtype": "f32"}, {"cols": -1}):  # a C++ exception on its way through both libraries
    try:
        tilewright.RmsNorm(device, rows=1, **wrong)
        raise SystemExit("not refused")
    except tilewright.Error as error:
        assert "cols" in str(error), error
""")
    assert done.returncode == 0 or "without" in done.stdout, done.stdout
    assert run(installed / "bin/tilewright", "doctor").stdout.startswith("ok   Python")
    assert run(installed / "bin/tilewright", "info").returncode == 0
    shown = run(installed / "bin/pip", "show", "-f", "tilewright").stdout
    assert "Version: 0.1.0" in shown and "tilewright/py.typed" in shown
