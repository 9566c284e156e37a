"""A case of a suite, and how one is run."""

from __future__ import annotations

import contextlib
import io
import itertools
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from tilewright import Reason

#: Up to so much memory of the device: how many workers of a GPU may run such cases.
SHARES = ((2 << 30, 1000), (6 << 30, 6), (16 << 30, 3), (1 << 50, 1))
_TRIES = 4


@dataclass
class Case:
    test: str
    parameters: dict[str, Any]
    run: Callable[[], Any]
    reasons: list[Reason] = field(default_factory=list)  # why it cannot be done
    bytes: int = 0  # of the device's memory, roughly
    skips: str = ""  # why the suite itself leaves it out
    repeats: int = 0  # of cases before it that are called the same: suites give some values twice
    group: tuple[Any, ...] = ()  # cases with the same inputs run one after the other

    @property
    def name(self) -> str:
        inside = "-".join(f"{name}={_word(value)}" for name, value in self.parameters.items())
        again = f"#{self.repeats + 1}" if self.repeats else ""
        return f"{self.test}[{inside}]{again}"


def _word(value: Any) -> str:
    return str(value).removeprefix("torch.")


@dataclass
class Outcome:
    kind: str  # "passed", "failed", "left_out" by the suite, or "no_memory" beside the other workers
    seconds: float
    text: str = ""


def run(case: Case) -> Outcome:
    """Runs a case silently; one that finds no memory because of others is tried again."""
    begin = time.monotonic()
    for attempt in itertools.count(1):
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                done = case.run()
        except torch.OutOfMemoryError:
            if attempt == _TRIES:
                return Outcome("no_memory", time.monotonic() - begin)
            torch.cuda.empty_cache()
            time.sleep(attempt)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            if type(error).__name__ == "Skipped":
                return Outcome("left_out", time.monotonic() - begin)
            text = traceback.format_exc(limit=-4) + said.getvalue()[-500:]
            return Outcome("failed", time.monotonic() - begin, text)
        else:
            kind = "failed" if done is False else "passed"
            return Outcome(kind, time.monotonic() - begin, said.getvalue()[-1500:] * (done is False))
    raise AssertionError("the loop above returns")


def parametrized(function: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    """The cases that pytest would make of a function's marks."""
    axes = []
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":
            names = [name.strip() for name in mark.args[0].split(",")]
            values = [value if len(names) > 1 else (value,) for value in mark.args[1]]
            axes.append([dict(zip(names, value, strict=True)) for value in values])
    for choice in itertools.product(*axes):
        yield {name: value for axis in choice for name, value in axis.items()}


def meta(*shape: int, dtype: Any = torch.bfloat16) -> torch.Tensor:
    """A tensor without memory, for what can_implement() asks."""
    return torch.empty(shape, dtype=dtype, device="meta")


def release(workers: int = 14) -> None:
    """Memory that torch keeps goes back, for the other processes of this GPU, if it is more than a fair share."""
    if torch.cuda.is_available():
        share = int(0.7 * torch.cuda.get_device_properties(0).total_memory / max(workers, 1))
        if torch.cuda.memory_reserved() > share:
            torch.cuda.empty_cache()


def is_device_usable() -> bool:
    """Whether a failure has left the process a device; after an illegal access it has none."""
    try:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def import_from(*folders: str) -> None:
    """Puts folders of a suite first on the path of modules."""
    for folder in reversed(folders):
        if folder not in sys.path:
            sys.path.insert(0, folder)
