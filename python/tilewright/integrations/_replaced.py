"""Functions that an engine's modules call by names of their own, with ours in their places."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from tilewright._errors import Unsupported

#: Of a function that was there: the one to set in its place, which may call it.
Maker = Callable[[Any], Any]


class Replaced:
    """What was where one of ours is. An engine has no slot for another implementation of these."""

    def __init__(self, engine: str, variable: str) -> None:
        self._engine, self._variable = engine, variable
        self._kept: dict[tuple[str, str], Any] = {}

    def __bool__(self) -> bool:
        return bool(self._kept)

    def put(self, makers: Mapping[str, Mapping[str, Maker]]) -> None:
        """Sets the names of each module, all of them or none. A second time changes nothing."""
        if self._kept:
            return
        modules = {path: importlib.import_module(path) for path in makers}
        for path, names in makers.items():
            if missing := [name for name in names if not hasattr(modules[path], name)]:
                raise Unsupported(
                    f"{path} has no {', '.join(missing)}: this {self._engine} calls FlashMLA or DeepGEMM in "
                    f"another way; leave deepseek_v4 out of {self._variable}"
                )
        for path, names in makers.items():
            for name, make in names.items():
                theirs = getattr(modules[path], name)
                self._kept[path, name] = theirs
                setattr(modules[path], name, make(theirs))

    def undo(self) -> None:
        """As before put()."""
        for (path, name), theirs in self._kept.items():
            setattr(importlib.import_module(path), name, theirs)
        self._kept.clear()
