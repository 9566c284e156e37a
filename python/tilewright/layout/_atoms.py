"""Layouts of the hardware by name, and what of one MMA the next can read."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from .. import _library
from .._errors import InvalidArgument
from ._layout import Drawing, Layout


class Atom(Layout):
    """A named layout, drawn as what it means.

    kind   "thread-value", "shared tile", ...; element_bits, family and summary say the rest"""

    def __init__(self, facts: dict[str, Any]) -> None:
        super().__init__(facts["name"])
        self.name, self.family, self.kind = str(facts["name"]), str(facts["family"]), str(facts["kind"])
        self.summary, self.element_bits = str(facts["summary"]), int(facts["element_bits"])

    def __repr__(self) -> str:
        return f"atoms[{self.name!r}]"


class Atoms(Mapping[str, Atom]):
    """All of them by name."""

    @functools.cached_property
    def _facts(self) -> dict[str, dict[str, Any]]:
        return {each["name"]: each for each in json.loads(_library.text("tw_layout_atoms"))}

    def __getitem__(self, name: str) -> Atom:
        if name not in self._facts:
            try:
                Layout(name)  # the error has similar names
            except InvalidArgument as error:
                raise KeyError(str(error)) from None
            raise KeyError(f"{name} is a layout, not the name of one")
        return Atom(self._facts[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def find(self, text: str) -> list[str]:
        """Names that have a text in them or in their summary."""
        return [name for name, facts in self._facts.items() if text in name or text in facts["summary"]]

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td><code>{escape(name)}</code></td><td><code>{escape(each['layout'])}</code></td>"
                       f"<td>{escape(each['summary'])}</td></tr>" for name, each in self._facts.items())
        return f"<table>{rows}</table>"


class Handoff:
    """Whether an accumulator can be read as the next MMA's operand, and if not, what must move.

    verdict, explanation   in words
    data                   all that was found, by name"""

    def __init__(self, data: dict[str, Any], drawing: Drawing | None) -> None:
        self.data, self.drawing = data, drawing
        self.verdict, self.explanation = str(data["verdict"]), str(data["explanation"]).strip()

    def __str__(self) -> str:
        return f"{self.data['from']} -> {self.data['to']}: {self.verdict}\n{self.explanation}"

    def __repr__(self) -> str:
        return f"<Handoff {self.data['from']} -> {self.data['to']}: {self.verdict}>"

    def _repr_html_(self) -> str:
        svg = self.drawing.svg if self.drawing else ""
        return f"<pre>{escape(str(self))}</pre>{svg}"


def handoff(source: Atom | str, target: Atom | str) -> Handoff:
    """From the accumulator of one MMA to the operand of another, both atoms or their names."""
    names = [(each.name if isinstance(each, Atom) else each).encode() for each in (source, target)]
    data = json.loads(_library.text("tw_layout_handoff", *names))
    is_tmem = "misplaced" in data
    return Handoff(data, Drawing(_library.text("tw_layout_draw_handoff", *names)) if is_tmem else None)


atoms = Atoms()
