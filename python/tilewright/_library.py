"""Functions of libtilewright.so that are no operators, by ctypes: the same library that the extension uses."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from . import _core
from ._errors import from_status


@functools.lru_cache(maxsize=None)
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(_core.__file__)  # names of what it is linked with are found through it
    library.tw_last_error.restype = ctypes.c_char_p
    return library


def function(name: str) -> Any:
    """One that returns no tw_status: nothing, or an int."""
    return getattr(_library(), name)


def call(name: str, *arguments: Any) -> None:
    """Errors are the exceptions of tw_status."""
    library = _library()
    status = getattr(library, name)(*arguments)
    if status != 0:
        raise from_status(status, (library.tw_last_error() or b"").decode())


def text(name: str, *arguments: Any) -> str:
    """What a function gives through its last parameter, a const char**."""
    out = ctypes.c_char_p()
    call(name, *arguments, ctypes.byref(out))
    return (out.value or b"").decode()
