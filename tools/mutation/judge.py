"""From runs of a mutant to one verdict."""

import dataclasses

from mutation import known
from mutation.runner import TIMINGS

# The verdicts, the columns of the tables: title, and whether it counts as found.
VERDICTS = {"named": "named", "elsewhere": "at another shape", "strict": "by `strict`", "values": "values only",
            "manual": "manual only", "missed": "missed", "equivalent": "equivalent", "idle": "idle"}
LEFT_OUT = ("equivalent", "idle")
FOUND = ("named", "elsewhere")
SURVIVORS = ("missed", "values")


@dataclasses.dataclass
class Result:
    """What became of one mutant; a line of the log."""

    kernel: str
    line: int
    kind: str
    action: str
    op: str
    place: str  # texts of source lines, as the list of known ones has them
    source: str  # numbers of source lines
    verdict: str = ""
    check: str = ""
    text: str = ""
    runs: dict = dataclasses.field(default_factory=dict)  # "eager", "late 2 strict" -> how it went
    module: str = ""  # hash of the unchanged text
    because: str = ""  # of its entry in the list, where tables are made

    @property
    def name(self):
        return f"{self.kernel}:{self.line}:{self.action.replace(' ', '')}"

    @property
    def what(self):
        return f"{self.action} {self.op}"

    @property
    def is_survivor(self):
        return self.verdict in SURVIVORS

    def listed(self, entries):
        """The result with the class and the reason that the list has for a survivor."""
        entry = known.find(entries, self.kernel, self.what, self.place) if self.is_survivor else None
        if entry is None:
            return self
        return dataclasses.replace(self, verdict=entry.name, because=f"known.txt:{entry.line}: {entry.because}")


class Judge:
    """Runs mutants as often as it takes."""

    def __init__(self, runner, entries, is_quick, are_values_enough=False):
        self.runner, self.entries, self.is_quick = runner, entries, is_quick
        self.are_values_enough = are_values_enough  # wrong results are all that is asked for
        self.clean = set()  # ways to run in which the unchanged kernel is known to be right

    def judge(self, case, module, mutant, result):
        """Fills in the result."""
        text = module.with_line(mutant.index, mutant.line)
        entry = known.find(self.entries, case.name, mutant.what, result.place)
        is_left_out = entry is not None and entry.name in LEFT_OUT
        timings = TIMINGS[:1 if is_left_out and self.is_quick else 3]
        is_named = self._first_shape(case, module, text, result, timings)
        if not is_named and self.are_values_enough and any(how == "wrong" for how in result.runs.values()):
            result.verdict = "values"
            return
        if not is_named and any(how.startswith("slow") for how in result.runs.values()):
            result.verdict, result.text = "missed", "never ends"
            return
        # A listed one is not looked for at length, unless the list says so: it would only cost time.
        is_thorough = entry is None or entry.shapes == "all"
        is_named = is_named or (is_thorough and self._other_shapes(case, module, text, result))
        # Once under strict even so: what that names is not equivalent.
        if not is_named:
            is_named = self._strict(case, module, text, result, 1 if is_left_out else len(case.shapes))
        if is_named:
            return
        hows = {how.split()[0] for how in result.runs.values()}
        result.verdict = "values" if "wrong" in hows else "missed"

    def _run(self, case, module, text, result, verdict, shape, timing, checks="all"):
        outcome = self.runner.run(case, case.shapes[shape], text, checks=checks, timing=timing)
        label = timing + (f" {shape + 1}" if shape else "") + ("" if checks == "all" else " strict")
        result.runs[label] = f"{outcome.how} {outcome.check}".strip()
        is_named = outcome.how in ("named", "fault")
        if is_named:
            self._require_clean(case, module, shape, timing, checks)
        if is_named and not result.verdict:
            result.verdict, result.check, result.text = verdict, outcome.check or "fault", outcome.text
        return is_named

    def _require_clean(self, case, module, shape, timing, checks):
        """Errors   RuntimeError if the unchanged kernel is named too: the verdict would mean nothing"""
        key = (case.name, shape, timing, checks)
        if key in self.clean:
            return
        outcome = self.runner.run(case, case.shapes[shape], module.text(), checks=checks, timing=timing)
        if outcome.how != "silent":
            raise RuntimeError(f"{case.name} unchanged, shape {shape + 1}, {timing}, --check {checks}: expected "
                               f"nothing, found {outcome.how}: "
                               f"{outcome.text or ' '.join(case.shapes[shape].command)}")
        self.clean.add(key)

    def _first_shape(self, case, module, text, result, timings):
        times = 0
        for timing in timings:
            times += self._run(case, module, text, result, "named", 0, timing)
            is_slow = result.runs[timing].startswith("slow")
            if is_slow or times == 2 or (times == 1 and self.is_quick):
                break
        return times > 0

    def _other_shapes(self, case, module, text, result):
        timings = ("late", "random") if self.is_quick else TIMINGS
        return any(self._run(case, module, text, result, "elsewhere", shape, timing)
                   for shape in range(1, len(case.shapes)) for timing in timings)

    def _strict(self, case, module, text, result, num_shapes):
        return any(self._run(case, module, text, result, "strict", shape, timing, "all,strict")
                   for shape in range(num_shapes) for timing in TIMINGS[:1 if self.is_quick else 2])
