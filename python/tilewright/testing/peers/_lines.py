"""The file of a run, a JSON object a line: workers add to it as cases end, so a kill loses nothing."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any


class Lines:
    """A file that several processes add whole lines to."""

    def __init__(self, path: pathlib.Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def add(self, **entry: Any) -> None:
        os.write(self._file, (json.dumps(entry) + "\n").encode())

    def close(self) -> None:
        os.close(self._file)


def read(path: pathlib.Path) -> Iterator[dict[str, Any]]:
    """The entries; a last line that a kill has cut is left out."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue
