"""What a run of a suite found."""

from __future__ import annotations

import argparse
import pathlib
import platform
from collections import Counter
from typing import Any

from . import _lines


#: What can become of a case.
OUTCOMES = ("passed", "failed", "left_out", "no_memory")


def about(options: argparse.Namespace) -> dict[str, Any]:
    """What was asked for."""
    return {
        "suite": options.suite,
        "tests": options.tests,
        "sample": options.sample,
        "seed": options.seed,
        "deadline": options.deadline,
        "jobs": options.jobs,
        "gpus": options.gpus,
        "through": options.through,
        "as_published": options.as_published,
        "python": platform.python_version(),
    }


class Log:
    """Counts by test; failures with their text; what is refused, by reason."""

    def __init__(self) -> None:
        self.about: dict[str, Any] = {}
        self.tests: dict[str, Counter[str]] = {}
        self.refused: Counter[str] = Counter()
        self.failures: list[dict[str, Any]] = []
        self.stats: Counter[str] = Counter()
        self.seconds = 0.0
        self.seconds_of_cases = 0.0

    @classmethod
    def of(cls, path: pathlib.Path) -> Log:
        """From the lines of a run, one that was cut off included."""
        log = cls()
        done: set[str] = set()
        for entry in _lines.read(path):
            if "begin" in entry:  # again, or for the first time
                log._begin()
            elif "collected" in entry:
                log.about = {**log.about, **entry["about"]}
                for test, counts in entry["collected"].items():
                    log.tests.setdefault(test, Counter()).update(counts)
                log.refused = Counter(entry["refused"])
            elif "case" in entry and entry["case"] not in done:
                done.add(entry["case"])
                log._add(entry)
            elif "copies" in entry:
                log.stats.update(entry["copies"])
            elif "lost" in entry:
                log.failures.append({"case": "a process", "text": entry["lost"]})
        for counts in log.tests.values():
            ended = sum(counts[kind] for kind in OUTCOMES)
            counts["remaining"] = counts["drawn"] - ended
        return log

    def _begin(self) -> None:
        """What processes lost is run again, and cases are counted anew."""
        self.failures = [failure for failure in self.failures if "test" in failure]
        for counts in self.tests.values():
            for kind in [kind for kind in counts if kind not in OUTCOMES]:
                del counts[kind]

    def _add(self, entry: dict[str, Any]) -> None:
        self.tests.setdefault(entry["test"], Counter())[entry["outcome"]] += 1
        self.seconds_of_cases += entry["seconds"]
        if entry["outcome"] == "failed":
            self.failures.append({name: entry[name] for name in ("case", "test", "text")})

    def data(self) -> dict[str, Any]:
        total: Counter[str] = Counter()
        for counts in self.tests.values():
            total.update(counts)
        return {
            "about": self.about,
            "seconds": self.seconds,
            "seconds_of_cases": round(self.seconds_of_cases, 1),
            "total": dict(total),
            "tests": {test: dict(counts) for test, counts in self.tests.items()},
            "refused": [{"reason": r, "cases": n} for r, n in self.refused.most_common()],
            "copies": dict(self.stats),
            "failures": self.failures,
        }

    def text(self) -> str:
        names: tuple[str, ...] = ("cases", "skipped", "refused", "in_scope", "drawn")
        names += ("passed", "failed", "remaining")
        for rare in ("left_out", "no_memory"):
            names += (rare,) if any(rare in counts for counts in self.tests.values()) else ()
        lines = [f"{'':12}" + "".join(f"{name:>11}" for name in names)]
        lines += [
            f"{test:12}" + "".join(f"{counts.get(name, 0):>11}" for name in names)
            for test, counts in self.tests.items()
        ]
        lines += [f"refused {n:7}  {reason}" for reason, n in self.refused.most_common()]
        lines += [f"FAILED {entry['case']}\n{entry['text']}" for entry in self.failures[:10]]
        return "\n".join(lines)

    def progress(self) -> str:
        total: Counter[str] = Counter()
        for counts in self.tests.values():
            total.update(counts)
        return f"{total['passed']} of {total['drawn']} passed, {total['failed']} failed"
