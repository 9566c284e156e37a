"""What a simulated launch did: findings, counters, lines."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .._errors import CheckFailed
from ._html import report_html


@dataclass(frozen=True)
class Place:
    """An instruction of a finding and the threads that ran it."""

    role: str  # "first read", "then written", "executed"
    instruction: str
    ptx_line: int | None
    file: str | None  # of the source, where the PTX has .loc
    line: int | None
    cta: tuple[int, int, int] | None
    warps: tuple[int, ...]
    lanes: tuple[int, ...]
    thread: int | None  # the first one's index in its CTA

    @classmethod
    def of(cls, data: dict[str, Any]) -> Place:
        ptx, source, threads = data["ptx"] or {}, data["source"] or {}, data["threads"] or {}
        cta = threads.get("cta")
        return cls(data["role"], data["instruction"], ptx.get("line"), source.get("file"), source.get("line"),
                   None if cta is None else (cta[0], cta[1], cta[2]), tuple(threads.get("warps", ())),
                   tuple(threads.get("lanes", ())), threads.get("thread"))


@dataclass(frozen=True)
class Finding:
    """One cause, however often it was met."""

    check: str  # "race", "init", "mem", ...
    kernel: str
    what: str
    places: tuple[Place, ...]
    notes: tuple[str, ...]
    missing: str  # with a remedy
    count: int
    text: str  # all of it

    @classmethod
    def of(cls, data: dict[str, Any]) -> Finding:
        return cls(data["check"], data["kernel"], data["what"], tuple(map(Place.of, data["places"])),
                   tuple(data["notes"]), data["missing"], data["count"], data["text"])

    @property
    def place(self) -> Place | None:
        """The first one whose source is known, else the first."""
        return next((each for each in self.places if each.file), self.places[0] if self.places else None)

    @property
    def file(self) -> str | None:
        return self.place.file if self.place else None

    @property
    def line(self) -> int | None:
        return self.place.line if self.place else None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Line:
    """Counters of a line of the source, or of PTX."""

    file: str | None  # None: of PTX
    line: int
    text: str
    counters: dict[str, float] = field(repr=False)

    @property
    def place(self) -> str:
        return f"{self.file.rsplit('/', 1)[-1]}:{self.line}" if self.file else f"ptx:{self.line}"

    def __getitem__(self, counter: str) -> float:
        return self.counters.get(counter, 0)


# Heading and counter of the table's columns; those that are 0 in all lines are left out.
COLUMNS = {"instr.": "warp_instructions", "shared": "shared_wavefronts", "conflicts": "shared_bank_conflicts",
           "global B": "global_requested_bytes", "used B": "global_used_bytes", "bulk B": "bulk_bytes",
           "async B": "shared_async_bytes", "waits": "barrier_waits", "Mflop": "tensor_flop"}


class Report:
    """Of one launch.

    kernel, device, grid, block    what was launched
    findings                       what the checks found
    fault                          why the launch stopped, "" if it ran to its end
    counters                       sums over the launch, by name
    raw                            everything that was counted, as the simulator's report has it
    """

    def __init__(self, device: str, kernel: str, grid: tuple[int, ...], block: tuple[int, ...],
                 findings: list[Finding], fault: str, raw: dict[str, Any]) -> None:
        self.device, self.kernel, self.grid, self.block = device, kernel, grid, block
        self.findings, self.fault, self.raw = findings, fault, raw
        self.counters: dict[str, float] = raw.get("total", {})

    @property
    def ok(self) -> bool:
        return not self.findings and not self.fault

    def raise_if_failed(self) -> Report:
        """CheckFailed with the findings, unless there are none."""
        __tracebackhide__ = True
        if self.ok:
            return self
        raise check_failed(self.findings) if self.findings else CheckFailed(self.fault)

    @property
    def short_name(self) -> str:
        """Names that compilers encode are long."""
        return self.kernel if len(self.kernel) <= 60 else self.kernel[:57] + "..."

    def by_line(self, of: str | None = None) -> list[Line]:
        """Counters by line of the source ("source"), where the PTX knows it, or of the text ("ptx"); the busiest
        line first."""
        if of not in (None, "source", "ptx"):
            raise ValueError(f"of = {of!r}; expected 'source' or 'ptx'")
        has_source = bool(self.raw.get("source_lines"))
        lines = list(self._source_lines() if of == "source" or (of is None and has_source) else self._ptx_lines())
        return sorted(lines, key=lambda each: (-each["warp_instructions"], -_moves(each), each.line))

    def _source_lines(self) -> Iterator[Line]:
        for entry in self.raw.get("source_lines", []):
            name, _, number = entry["source"].rpartition(":")
            yield Line(name, int(number), linecache.getline(name, int(number)).strip(), _counters(entry))

    def _ptx_lines(self) -> Iterator[Line]:
        for entry in self.raw.get("lines", []):
            yield Line(None, entry["line"], entry["text"], _counters(entry))

    def table(self, most: int = 20, of: str | None = None) -> list[list[str]]:
        """Headings, then the busiest lines."""
        lines = self.by_line(of)
        columns = {name: key for name, key in COLUMNS.items() if any(line[key] for line in lines)}
        rows = [["line", *columns, "text"]]
        scales = {"tensor_flop": 1e-6}
        for line in lines[:most]:
            numbers = [line[key] * scales.get(key, 1) for key in columns.values()]
            rows.append([line.place, *(f"{number:,.10g}" if number else "" for number in numbers), line.text])
        return rows

    def __str__(self) -> str:
        grid, block = ("x".join(map(str, extents)) for extents in (self.grid, self.block))
        out = [f"{self.short_name} on {self.device}: {grid} CTAs of {block} threads, {self._verdict()}"]
        rows = self.table(12)
        widths = [max(map(len, column)) for column in list(zip(*rows))[:-1]]
        for row in rows:
            cells = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:-1], widths[1:]))]
            out.append(("  " + "  ".join([*cells, row[-1][:60]])).rstrip())
        out += [finding.text for finding in self.findings]
        if self.fault and not self.findings:
            out.append(self.fault)
        return "\n".join(out)

    def _verdict(self) -> str:
        count = len(self.findings)
        found = f"{count} finding{'s' * (count != 1)}" if count else "no findings"
        return f"{found}, stopped by a fault" if self.fault else found

    def __repr__(self) -> str:
        return f"<Report of {self.short_name} on {self.device}: {self._verdict()}>"

    def _repr_html_(self) -> str:
        return report_html(self)


def check_failed(findings: list[Finding]) -> CheckFailed:
    """Each finding begins with its line of the source."""
    texts = []
    for finding in findings:
        head = finding.what if finding.what.startswith(finding.check) else f"{finding.check}: {finding.what}"
        if finding.file and finding.line:
            source = linecache.getline(finding.file, finding.line).strip()
            head = f"{finding.file}:{finding.line}: {head}" + (f"\n    {source}" if source else "")
        texts.append("\n".join([head, *finding.text.splitlines()[1:]]))
    return CheckFailed("\n".join(texts), list(findings))


def _moves(line: Line) -> float:
    """Of lines that run equally often those come first that memory is busy with."""
    return line["shared_wavefronts"] + line["global_sectors"]


def _counters(entry: dict[str, Any]) -> dict[str, float]:
    return {key: value for key, value in entry.items() if isinstance(value, (int, float)) and key != "line"}
