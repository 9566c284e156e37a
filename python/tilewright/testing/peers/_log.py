"""What a run of a suite found."""

from __future__ import annotations

import argparse
import platform
from collections import Counter
from typing import Any


class Log:
    """Counts by test; failures with their text; what is refused, by reason."""

    def __init__(self) -> None:
        self.about: dict[str, Any] = {}
        self.tests: dict[str, Counter[str]] = {}
        self.refused: Counter[str] = Counter()
        self.failures: list[dict[str, Any]] = []
        self.stats: Counter[str] = Counter()
        self.seconds = 0.0

    @classmethod
    def of(cls, options: argparse.Namespace) -> Log:
        log = cls()
        log.about = {
            "suite": options.suite,
            "tests": options.tests,
            "sample": options.sample,
            "seed": options.seed,
            "max_seconds": options.max_seconds,
            "workers": options.workers,
            "through": options.through,
            "python": platform.python_version(),
        }
        return log

    def count(self, test: str, what: str, number: int = 1) -> None:
        self.tests.setdefault(test, Counter())[what] += number

    def fail(self, test: str, name: str, text: str) -> None:
        self.count(test, "failed")
        self.failures.append({"case": name, "text": text})

    def lost(self, text: str) -> None:
        self.failures.append({"case": "a worker", "text": text})

    @property
    def has_failed(self) -> bool:
        return bool(self.failures)

    def add(self, other: dict[str, Any]) -> None:
        """The log of a worker. What all of them know is taken once."""
        shared = ("cases", "skipped", "refused", "in_scope", "drawn")
        for test, counts in other["tests"].items():
            mine = self.tests.setdefault(test, Counter())
            for what, number in counts.items():
                mine[what] = number if what in shared else mine[what] + number
        self.refused = Counter({entry["reason"]: entry["cases"] for entry in other["refused"]})
        self.failures += other["failures"]
        self.stats.update(other["copies"])
        self.about |= {k: v for k, v in other["about"].items() if k not in self.about}

    def data(self) -> dict[str, Any]:
        total: Counter[str] = Counter()
        for counts in self.tests.values():
            total.update(counts)
        return {
            "about": self.about,
            "seconds": self.seconds,
            "total": dict(total),
            "tests": {test: dict(counts) for test, counts in self.tests.items()},
            "refused": [{"reason": r, "cases": n} for r, n in self.refused.most_common()],
            "copies": dict(self.stats),
            "failures": self.failures,
        }

    def text(self) -> str:
        names: tuple[str, ...] = ("cases", "skipped", "refused", "in_scope", "drawn")
        names += ("passed", "failed", "remaining")
        names += ("no_memory",) if any("no_memory" in c for c in self.tests.values()) else ()
        lines = [f"{'':12}" + "".join(f"{name:>11}" for name in names)]
        rows = [*self.tests.items()]
        lines += [
            f"{test:12}" + "".join(f"{counts.get(name, 0):>11}" for name in names)
            for test, counts in rows
        ]
        lines += [f"refused {n:7}  {reason}" for reason, n in self.refused.most_common()]
        lines += [f"FAILED {entry['case']}\n{entry['text']}" for entry in self.failures[:10]]
        return "\n".join(lines)
