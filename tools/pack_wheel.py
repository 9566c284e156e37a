#!/usr/bin/env python3
"""Packs a wheel from a build whose target tilewright_wheel is made, in seconds, and prints its path and size.

    tools/pack_wheel.py [--build build/release] [--out build/dist]

It holds what tools/make_wheel.py gives, which compiles everything again by way of pip. The tag is read from
what the libraries ask of glibc. Needs readelf, and Python 3.11 for pyproject.toml.
"""

import argparse
import base64
import hashlib
import pathlib
import platform
import re
import subprocess
import sys
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
OLDEST = 17  # glibc 2.17: what the oldest tag is for


def programs(build):
    """(name in the wheel, path) of what was linked, and of the simulator's hooks for Python."""
    linked = build / "wheel/tilewright"
    found = [(path.relative_to(linked.parent).as_posix(), path) for path in sorted(linked.rglob("*"))
             if path.is_file() and not path.is_symlink()]
    if not found:
        sys.exit(f"{linked} is not there: ninja -C {build} tilewright_wheel")
    return found


def package(build):
    """(name in the wheel, path) of everything in Python."""
    roots = {"tilewright": ROOT / "python/tilewright", "tilewright/lib/sim/python": build / "lib/sim/python"}
    return [(f"{name}/{path.relative_to(root).as_posix()}", path) for name, root in roots.items()
            for path in sorted(root.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]


def tag(paths):
    """The platform whose glibc has all that they ask for."""
    shown = subprocess.run(["readelf", "-V", *paths], stdout=subprocess.PIPE, text=True, check=True).stdout
    newest = max(map(int, re.findall(r"GLIBC_2\.(\d+)", shown)), default=OLDEST)
    return f"cp310-abi3-manylinux_2_{max(newest, OLDEST)}_{platform.machine()}"


def about(project, platform_tag):
    """The files that say what the wheel is."""
    metadata = [("Metadata-Version", "2.2"), ("Name", project["name"]), ("Version", project["version"]),
                ("Summary", project["description"]), ("Requires-Python", project["requires-python"]),
                ("License-File", "LICENSE"), ("Description-Content-Type", "text/markdown")]
    readme = (ROOT / project["readme"]).read_text()
    points = {"console_scripts": project["scripts"], **project["entry-points"]}
    return {"METADATA": "".join(f"{key}: {value}\n" for key, value in metadata) + "\n" + readme,
            "WHEEL": "Wheel-Version: 1.0\nGenerator: tools/pack_wheel.py\nRoot-Is-Purelib: false\n"
                     f"Tag: {platform_tag}\n",
            "entry_points.txt": "\n".join(
                f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in names.items())
                for group, names in points.items()),
            "licenses/LICENSE": (ROOT / "LICENSE").read_text()}


def write(wheel, files, texts, info):
    """All of them, and RECORD with their hashes."""
    record = []
    with zipfile.ZipFile(wheel, "w") as out:

        def add(name, content, mode=0o644):
            entry = zipfile.ZipInfo(name)  # of 1980: the same files give the same wheel
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o100000 | mode & 0o777) << 16
            out.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}\n")

        for name, path in files:
            add(name, path.read_bytes(), path.stat().st_mode)
        for name, text in texts.items():
            add(f"{info}/{name}", text.encode())
        add(f"{info}/RECORD", ("".join(record) + f"{info}/RECORD,,\n").encode())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/dist")
    args = parser.parse_args()
    linked = programs(args.build)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    platform_tag = tag([path for _, path in linked])
    stem = f"{project['name']}-{project['version']}"
    args.out.mkdir(parents=True, exist_ok=True)
    for old in args.out.glob(f"{project['name']}-*.whl"):
        old.unlink()
    wheel = args.out / f"{stem}-{platform_tag}.whl"
    write(wheel, linked + package(args.build), about(project, platform_tag), f"{stem}.dist-info")
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
