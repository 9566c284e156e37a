"""The results as tables, and what they add up to."""

import collections

from mutation.cases import CASES
from mutation.judge import FOUND, LEFT_OUT, VERDICTS
from mutation.sites import DESCRIPTORS, KINDS, ROWS


def score(results, found=FOUND):
    """(named, of how many)"""
    counted = [result for result in results if result.verdict not in LEFT_OUT]
    return sum(result.verdict in found for result in counted), len(counted)


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def score_lines(results):
    """What the tables add up to, a row for each way to count."""
    columns = {"all": results,
               "Hopper": [r for r in results if device_of(r) == "h200"],
               "Blackwell": [r for r in results if device_of(r) == "b200"]}
    rows = [["named / (all - equivalent - idle)", *columns]]
    for title, found in (("`all`, one small shape a kernel", ("named",)), ("`all`, the other shapes too", FOUND),
                         ("and `strict`", (*FOUND, "strict"))):
        rows.append([title, *(percent(*score(part, found)) for part in columns.values())])
    known = {name: [r for r in part if r.verdict not in ("strict", "manual")] for name, part in columns.items()}
    rows.append(["`all`, without what only the manual demands",
                 *(percent(*score(part)) for part in known.values())])
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


def tables(results):
    """Titles and rows, the first row with the names of the columns."""
    head = ["mutants", *VERDICTS.values()]
    return [("score", score_lines(results)),
            ("kernel", [["kernel", *head],
                        *counts(results, lambda r: r.kernel, [(c.name, c.title) for c in CASES])]),
            ("site", [["site", *head], *counts(results, lambda r: r.kind, kind_titles())])]


def markdown(results):
    parts = []
    for _, rows in tables(results):
        rows = [[f"**{cell}**" if cell and row[0] == "all" else cell for cell in row] for row in rows]
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        parts.append("\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]))
    return "\n\n".join(parts) + "\n"


def text(results):
    parts = []
    for _, rows in tables(results):
        widths = [max(map(len, column)) for column in zip(*rows)]
        parts.append("\n".join(row[0].ljust(widths[0]) + "".join("  " + cell.rjust(width) for cell, width in
                                                                zip(row[1:], widths[1:])) for row in rows))
    return "\n\n".join(parts).replace("`", "") + "\n"
