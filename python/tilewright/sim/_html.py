"""A report in a notebook: the lines with a bar for their share of the instructions, the findings below."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._report import Finding, Report

_CELL = "padding:1px 8px;text-align:right;white-space:nowrap"
_TEXT = "padding:1px 8px;text-align:left;white-space:pre;font-family:monospace"
_FOUND = "margin:6px 0;padding:6px 10px;border-left:4px solid #b3261e;background:#b3261e18;white-space:pre-wrap"


def report_html(report: Report) -> str:
    grid, block = (" x ".join(map(str, extents)) for extents in (report.grid, report.block))
    head = (f"<b>{escape(report.short_name)}</b> on {escape(report.device)}: {grid} CTAs of {block} threads, "
            f"{escape(report._verdict())}")
    findings = "".join(_finding(each) for each in report.findings)
    if report.fault and not report.findings:
        findings = f'<div style="{_FOUND}">{escape(report.fault)}</div>'
    return f"<div><div>{head}</div>{_table(report)}{findings}</div>"


def _table(report: Report) -> str:
    rows = report.table()
    lines = report.by_line()
    most = max((line["warp_instructions"] for line in lines), default=0) or 1
    styles = {"line": _TEXT, "text": _TEXT}
    out = "".join(f'<th style="{styles.get(name, _CELL)}">{escape(name)}</th>' for name in rows[0])
    for row, line in zip(rows[1:], lines):
        share = round(100 * line["warp_instructions"] / most)
        bar = f"background:linear-gradient(90deg,#3b82f640 {share}%,transparent {share}%)"
        cells = [f'<td style="{_TEXT}">{escape(row[0])}</td>']
        cells += [f'<td style="{_CELL}">{cell}</td>' for cell in row[1:-1]]
        out += f"<tr>{''.join(cells)}<td style=\"{_TEXT};{bar}\">{escape(row[-1])}</td></tr>"
    return f'<table style="border-collapse:collapse;font-size:90%"><tr>{out}</table>' if len(rows) > 1 else ""


def _finding(finding: Finding) -> str:
    return f'<div style="{_FOUND}"><b>{escape(finding.check)}</b> {escape(finding.text)}</div>'
