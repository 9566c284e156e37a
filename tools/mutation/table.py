"""The results as tables, and what they add up to."""

import collections
import dataclasses

from mutation.cases import CASES
from mutation.judge import FOUND, LEFT_OUT, VERDICTS
from mutation.sites import DESCRIPTORS, KINDS, ROWS


def score(results, found=FOUND):
    """(named, of how many)"""
    counted = [result for result in results if result.verdict not in LEFT_OUT]
    return sum(result.verdict in found for result in counted), len(counted)


@dataclasses.dataclass
class Sample:
    """How many mutants there are of each kind, and how many of those were drawn; nothing if that is not known."""

    population: dict
    drawn: dict

    def share(self, results, found):
        """(share of all mutants that are found, its standard error): the ratio estimate of a stratified sample.

        Source: Cochran, Sampling Techniques, sections 5A.1 and 6.11. A kind of which all that were drawn went one
        way counts as if half a mutant had gone the other: nothing is certain of those that were not drawn.
        """
        groups = collections.defaultdict(list)
        for result in results:
            groups[result.kind].append(result)
        sums = {kind: score(group, found) for kind, group in groups.items()}
        weight = {kind: self.population[kind] / self.drawn[kind] for kind in groups}
        whole = sum(weight[kind] * of for kind, (_, of) in sums.items())
        share = sum(weight[kind] * part for kind, (part, _) in sums.items()) / whole
        variance = sum(weight[kind] ** 2 * self._variance(kind, *sums[kind], share) for kind in groups)
        return share, variance ** 0.5 / whole

    def _variance(self, kind, named, counted, share):
        """Of the sum of (is named - share) over the counted ones drawn of a kind."""
        size, count = self.drawn[kind], self.population[kind]
        if size >= count or counted == 0:
            return 0
        part = min(max(named, 0.5), counted - 0.5)
        squares = part * (1 - share) ** 2 + (counted - part) * share ** 2
        total = part * (1 - share) - (counted - part) * share
        return size * (1 - size / count) * (squares - total ** 2 / size) / max(1, size - 1)


def percent(results, sample, found=FOUND):
    """The share that is found; where kinds were sampled, of all there are, with its interval of 95 %."""
    part, whole = score(results, found)
    if not whole:
        return "-"
    if not sample.population:
        return f"{100 * part / whole:.1f} %"
    share, error = sample.share(results, found)
    return f"{100 * share:.1f} %" + (f" +- {196 * error:.1f}" if error else "")


def score_lines(results, population=None):
    """What the tables add up to, a row for each way to count."""
    sample = Sample(population or {}, collections.Counter(result.kind for result in results))
    columns = {"all": results,
               "Hopper": [r for r in results if device_of(r) == "h200"],
               "Blackwell": [r for r in results if device_of(r) == "b200"]}
    rows = [["named / (all - equivalent - idle)", *columns]]
    for title, found in (("`all`, one small shape a kernel", ("named",)), ("`all`, the other shapes too", FOUND),
                         ("and `strict`", (*FOUND, "strict"))):
        rows.append([title, *(percent(part, sample, found) for part in columns.values())])
    known = {name: [r for r in part if r.verdict not in ("strict", "manual")] for name, part in columns.items()}
    rows.append(["`all`, without what only the manual demands",
                 *(percent(part, sample) for part in known.values())])
    return rows


def device_of(result):
    return next(case.device for case in CASES if case.name == result.kernel)


def counts(results, key, titles):
    """Rows of a table: title, mutants, and one column for each verdict."""
    groups = collections.defaultdict(list)
    for result in results:
        groups[key(result)].append(result)
    rows = []
    for name, title in titles:
        if name in groups:
            rows.append([title, *row_of(groups.pop(name))])
    rows += [[name, *row_of(group)] for name, group in groups.items()]
    return [*rows, ["all", *row_of(results)]]


def row_of(results):
    tally = collections.Counter(result.verdict for result in results)
    return [str(len(results)), *(str(tally[verdict] or "") for verdict in VERDICTS)]


def kind_titles():
    names = []
    for kind, _, _ in KINDS:
        names += [kind, *(row for (of, _), row in ROWS.items() if of == kind)]
    return [(name, name) for name in dict.fromkeys([*names, DESCRIPTORS])]


def tables(results, population=None):
    """Titles and rows, the first row with the names of the columns."""
    head = ["mutants", *VERDICTS.values()]
    return [("score", score_lines(results, population)),
            ("kernel", [["kernel", *head],
                        *counts(results, lambda r: r.kernel, [(c.name, c.title) for c in CASES])]),
            ("site", [["site", *head], *counts(results, lambda r: r.kind, kind_titles())])]


def markdown(results, population=None):
    parts = []
    for _, rows in tables(results, population):
        rows = [[f"**{cell}**" if cell and row[0] == "all" else cell for cell in row] for row in rows]
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        parts.append("\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]))
    return "\n\n".join(parts) + "\n"


def text(results, population=None):
    parts = []
    for _, rows in tables(results, population):
        widths = [max(map(len, column)) for column in zip(*rows)]
        parts.append("\n".join(row[0].ljust(widths[0]) + "".join("  " + cell.rjust(width) for cell, width in
                                                                zip(row[1:], widths[1:])) for row in rows))
    return "\n\n".join(parts).replace("`", "") + "\n"
