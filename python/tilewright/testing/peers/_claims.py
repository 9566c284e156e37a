"""Which of several processes does what: each claims the next piece of work when it is free."""

from __future__ import annotations

import fcntl
import os
import pathlib
from collections.abc import Sequence


class Claims:
    """How much of each kind of work is taken, in a file that processes change in turn; or of one process."""

    def __init__(self, path: pathlib.Path | None, totals: Sequence[int]) -> None:
        self._file = None if path is None else os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._totals, self._own = totals, bytes(8 * len(totals))

    def next(self, allowed: Sequence[bool]) -> tuple[int, int] | None:
        """A kind, and the place in it: of the allowed kinds with work left the one of which least is done.

        So whatever time cuts off, about the same part of each kind has been run.
        """
        if self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            state = self._own if self._file is None else os.pread(self._file, len(self._own), 0)
            state = state.ljust(len(self._own), b"\0")
            taken = [int.from_bytes(state[8 * i : 8 * i + 8], "little") for i in range(len(self._totals))]
            kinds = [i for i, total in enumerate(self._totals) if allowed[i] and taken[i] < total]
            if not kinds:
                return None
            kind = min(kinds, key=lambda i: (taken[i] / self._totals[i], -i))
            place, taken[kind] = taken[kind], taken[kind] + 1
            self._own = b"".join(count.to_bytes(8, "little") for count in taken)
            if self._file is not None:
                os.pwrite(self._file, self._own, 0)
            return kind, place
        finally:
            if self._file is not None:
                fcntl.lockf(self._file, fcntl.LOCK_UN)
