"""PTX text of whatever holds a kernel, and the parameters of its entries."""

from __future__ import annotations

import pathlib
import re
import struct
from dataclasses import dataclass
from typing import Any

from .._errors import InvalidArgument, ParseError, Unsupported

_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?")
_PARAM = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.([bsuf]\d+|pred)\b(?:\s+\.ptr)?[^,]*?([\w$%]+)\s*"
                    r"(?:\[\s*(\d+)\s*\])?\s*$")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


@dataclass(frozen=True)
class Param:
    """`word` is PTX's type: "u32", "f32", "b8"; of a struct, size bytes of "b8"."""

    name: str
    word: str
    size: int


def entries(ptx: str) -> dict[str, list[Param]]:
    """Name -> parameters, in order."""
    out = {}
    for match in _ENTRY.finditer(_COMMENT.sub(" ", ptx)):
        params = []
        for text in filter(str.strip, (match[2] or "").split(",")):
            param = _PARAM.search(text.strip())
            if param is None:
                raise ParseError(f"{match[1]}: cannot read the parameter {text.strip()!r}")
            width = 1 if param[1] == "pred" else int(param[1][1:]) // 8
            params.append(Param(param[2], param[1], width * int(param[3] or 1)))
        out[match[1]] = params
    return out


def text_of(kernel: Any) -> str:
    """PTX of a text, a path, a compiled kernel of Triton, a kernel of numba, or an object code of NVRTC."""
    if isinstance(kernel, pathlib.PurePath):
        return pathlib.Path(kernel).read_text()
    if isinstance(kernel, (bytes, bytearray)):
        return _decoded(bytes(kernel))
    if isinstance(kernel, str):
        if ".entry" not in kernel and ".version" not in kernel:
            raise InvalidArgument(f"{kernel[:60]!r} is no PTX text; a file is given as pathlib.Path")
        return kernel
    assembly = getattr(kernel, "asm", None)
    if isinstance(assembly, dict) and "ptx" in assembly:
        return str(assembly["ptx"])
    if hasattr(kernel, "inspect_asm"):
        return _only_variant(kernel)
    if hasattr(kernel, "code"):
        return text_of(kernel.code)
    raise TypeError(f"a {type(kernel).__name__} holds no PTX that is known of; expected PTX text, a path, a "
                    "compiled kernel of Triton, a kernel of numba, or object code of NVRTC")


def _decoded(code: bytes) -> str:
    if code.startswith(b"\x7fELF") or code.startswith(b"\x50\xed\x55\xba"):
        raise Unsupported("this is machine code, and the simulator runs PTX; compile with the option that keeps "
                          "PTX (nvcc -ptx, NVRTC's --gpu-architecture=compute_100a)")
    return code.rstrip(b"\0").decode()


def _only_variant(kernel: Any) -> str:
    """numba: text by signature."""
    texts = kernel.inspect_asm()
    if isinstance(texts, str):
        return texts
    if len(texts) != 1:
        raise InvalidArgument(f"the kernel is compiled for {len(texts)} signatures; give "
                              "kernel.inspect_asm(signature) of one")
    return str(next(iter(texts.values())))


def chosen_entry(ptx: str, name: str | None) -> tuple[str, list[Param]]:
    known = entries(ptx)
    if name is None and len(known) == 1:
        return next(iter(known.items()))
    if name is None or name not in known:
        asked = "which kernel is meant is not said" if name is None else f"there is no kernel {name}"
        raise InvalidArgument(f"{asked}; kernel= is one of {', '.join(known) or '(the text has none)'}")
    return name, known[name]


def packed(value: Any, param: Param, at: str) -> bytes:
    """The bytes of a number, a numpy scalar or a struct given as bytes, as the parameter wants it."""
    if isinstance(value, (bytes, bytearray)):
        return _fitting(bytes(value), param, at)
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):
        return _fitting(bytes(value.tobytes()), param, at)
    if hasattr(value, "item"):
        value = value.item()
    if param.size > 8 or not isinstance(value, (bool, int, float)):
        raise TypeError(f"{at}: a {type(value).__name__} for a parameter of {param.size} bytes (.{param.word}); "
                        "expected an array, a number, or bytes of that size")
    if isinstance(value, float) or param.word in _FLOATS:
        word = param.word if param.word in _FLOATS else {2: "f16", 4: "f32", 8: "f64"}.get(param.size, "")
        if not word or param.word[0] in "us":
            raise TypeError(f"{at}: {value!r} for a parameter of type .{param.word}; expected a whole number")
        return struct.pack(_FLOATS[word], float(value))
    bits = 8 * param.size
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise InvalidArgument(f"{at}: {value} does not fit into .{param.word}")
    return (value & ((1 << bits) - 1)).to_bytes(param.size, "little")


def _fitting(raw: bytes, param: Param, at: str) -> bytes:
    if len(raw) != param.size:
        raise InvalidArgument(f"{at}: {len(raw)} bytes for a parameter of {param.size} (.{param.word})")
    return raw
