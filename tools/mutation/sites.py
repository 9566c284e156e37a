"""The places of a kernel where something waits, arrives or is ordered, and the one-line changes of each."""

import dataclasses
import re

GUARD = r"(?:@!?%?[\w$]+\s+)?"
INSN = re.compile(rf"^\s*({GUARD})([a-z][\w.:]*)\s*(.*?)\s*;\s*$")
NAME = re.compile(r"^%?[A-Za-z_$][\w$]*$")


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One line of a kernel, changed."""

    index: int  # of the line, from 0
    kind: str  # of site: a row of the table
    action: str
    op: str  # without operands
    line: str  # what the line becomes
    place: tuple  # where it comes from in the source

    @property
    def what(self):
        return f"{self.action} {self.op}"


class Insn:
    """One instruction of the text, and ways to write it differently."""

    def __init__(self, module, index, guard, op, operands):
        self.module, self.index, self.guard, self.op = module, index, guard, op
        self.operands = split_operands(operands)

    def text(self, op=None, operands=None):
        return f"{self.guard}{op or self.op} {', '.join(operands or self.operands)};"

    def with_operand(self, position, change, bits=32):
        """The operand goes through an instruction ("xor", 1) first: in a scope of its own, on the same line."""
        verb, number = change
        operands = list(self.operands)
        value = operands[position]
        if not NAME.match(value):
            operands[position] = str(int(value, 0) ^ number if verb == "xor" else int(value, 0) + number)
            return self.text(operands=operands)
        operands[position] = "mutated"
        kind = f"b{bits}" if verb == "xor" else f"s{bits}"
        changed = f"{verb}.{kind} mutated, {value}, {number};"
        return f"{{ .reg .b{bits} mutated; {changed} {self.text(operands=operands)} }}"

    def value(self, position):
        """What is known of an operand: a number, or None."""
        operand = self.operands[position]
        if NAME.match(operand):
            return self.module.register_value(self.index, operand)
        return int(operand, 0)

    def true(self, predicate):
        return f"{self.guard}setp.eq.u32 {predicate}, 0, 0;"


def split_operands(text):
    """At the commas that are in no brackets."""
    operands, depth, begin = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "[{(") - (char in "]})")
        if char == "," and depth == 0:
            operands.append(text[begin:at].strip())
            begin = at + 1
    return [*operands, text[begin:].strip()] if text else []


def weaker(insn):
    """Without its acquire or release; with the scope of the CTA."""
    for strong in (".acq_rel", ".acquire", ".release"):
        if strong in insn.op:
            yield "relaxed", insn.text(op=insn.op.replace(strong, ".relaxed"))
            if ".cluster." in insn.op + "." and "mbarrier" in insn.op:
                yield "cta scope", insn.text(op=insn.op.replace(strong + ".cluster", strong + ".cta"))


def delete(_insn):
    yield "delete", ""


def of_init(insn):
    yield "delete", ""
    yield "count + 1", insn.with_operand(1, ("add", 1))
    if insn.value(1) != 1:  # 0 is no count
        yield "count - 1", insn.with_operand(1, ("add", -1))


def of_wait(insn):
    yield "fall through", insn.true(insn.operands[0])
    if ".parity" in insn.op:
        yield "other parity", insn.with_operand(2, ("xor", 1))
    yield from weaker(insn)


def of_expect(insn):
    yield "delete", ""
    yield "bytes + 16", insn.with_operand(-1, ("add", 16))
    yield "bytes - 16", insn.with_operand(-1, ("add", -16))
    yield from weaker(insn)


def of_arrive(insn):
    yield "delete", ""
    yield from weaker(insn)


def of_proxy_fence(insn):
    yield "delete", ""
    if ".shared" in insn.op:
        yield "other space", insn.text(op="fence.proxy.async.global")
    elif ".global" in insn.op:
        yield "other space", insn.text(op="fence.proxy.async.shared::cta")


def of_group_wait(insn):
    yield "delete", ""
    yield "one more", insn.text(operands=[str(int(insn.operands[0]) + 1)])


def of_reducing_barrier(insn):
    yield "delete", f"{insn.guard}mov.pred {insn.operands[0]}, {insn.operands[-1]};"


def of_cluster_arrive(insn):
    yield "delete", ""
    if ".release" in insn.op:
        yield "relaxed", insn.text(op=insn.op.replace(".release", ".relaxed"))


def of_elect(insn):
    yield "all lanes", insn.true(insn.operands[0].split("|")[1])


def of_set_registers(insn):
    """Eight registers more than there are, of a launch whose warps share all."""
    if insn.value(0) + 8 <= 256:
        yield "count + 8", insn.with_operand(0, ("add", 8))
    if ".dec" in insn.op:
        yield "delete", ""


def of_strong_access(insn):
    yield from weaker(insn)


# Kind of site, what its instructions begin with, their changes. The first that fits counts.
KINDS = (
    ("mbarrier.init", r"mbarrier\.init", of_init),
    ("mbarrier waits", r"mbarrier\.(try|test)_wait", of_wait),
    ("expect_tx", r"mbarrier\.(arrive\.)?expect_tx", of_expect),
    ("cp.async commit, wait, arrive", r"cp\.async\.mbarrier\.arrive|cp\.async\.commit_group", delete),
    ("cp.async commit, wait, arrive", r"cp\.async\.wait_group", of_group_wait),
    ("cp.async commit, wait, arrive", r"cp\.async\.wait_all", delete),
    ("mbarrier arrivals", r"mbarrier\.arrive", of_arrive),
    ("fence.mbarrier_init", r"fence\.mbarrier_init", delete),
    ("proxy fences", r"fence\.proxy", of_proxy_fence),
    ("memory fences", r"fence\.|membar\.", delete),
    ("CTA and named barriers", r"(bar|barrier\.cta|barrier)\.red", of_reducing_barrier),
    ("CTA and named barriers", r"bar\.(sync|arrive)|barrier(\.cta)?\.(sync|arrive)", delete),
    ("cluster barriers", r"barrier\.cluster\.arrive", of_cluster_arrive),
    ("cluster barriers", r"barrier\.cluster\.wait", delete),
    ("bar.warp.sync", r"bar\.warp\.sync", delete),
    ("wgmma.fence", r"wgmma\.fence", delete),
    ("wgmma commit, wait", r"wgmma\.commit_group", delete),
    ("wgmma commit, wait", r"wgmma\.wait_group", of_group_wait),
    ("bulk commit, wait", r"cp\.async\.bulk\.commit_group", delete),
    ("bulk commit, wait", r"cp\.async\.bulk\.wait_group", of_group_wait),
    ("tcgen05.commit", r"tcgen05\.commit", delete),
    ("tcgen05.fence", r"tcgen05\.fence", delete),
    ("tcgen05.wait::ld", r"tcgen05\.wait::ld", delete),
    ("tcgen05.wait::st", r"tcgen05\.wait::st", delete),
    ("tcgen05 dealloc, relinquish", r"tcgen05\.(dealloc|relinquish)", delete),
    ("griddepcontrol", r"griddepcontrol", delete),
    ("elect for all lanes", r"elect\.sync", of_elect),
    ("setmaxnreg", r"setmaxnreg", of_set_registers),
    ("atomics and strong accesses", r"(atom|red|ld|st)\..*(acq_rel|acquire|release)", of_strong_access),
)
# Kinds whose changes are rows of their own.
ROWS = {("mbarrier waits", "fall through"): "mbarrier waits: fall through",
        ("mbarrier waits", "other parity"): "mbarrier waits: other parity",
        ("mbarrier waits", "relaxed"): "mbarrier waits: relaxed",
        ("mbarrier waits", "cta scope"): "mbarrier waits: CTA scope",
        ("mbarrier arrivals", "cta scope"): "mbarrier arrivals: CTA scope"}
DESCRIPTORS = "descriptors"


def of_wgmma(insn):
    """Bit fields of the descriptors in shared memory, and the switches behind the accumulate predicate."""
    positions = [i for i, operand in enumerate(insn.operands) if operand.startswith("%rd")]
    for position in positions:
        matrix = "B" if position == positions[-1] else "A"
        # Source: PTX ISA, "Matrix descriptor": start / 16 from bit 0, stride / 16 from 32, swizzle from 62.
        for field, mask in (("start", 1 << 6), ("stride", 1 << 38), ("layout none", 1 << 62),
                            ("layout 64B", 3 << 62)):
            yield f"{field} of {matrix}", insn.with_operand(position, ("xor", mask), 64)
    switches = {"sign of A": (positions[-1] + 2, "-1"), "transpose of B": (len(insn.operands) - 1, "1")}
    for name, (position, value) in switches.items():
        if position >= len(insn.operands) or insn.operands[position] not in ("0", "1", "-1"):
            continue
        operands = list(insn.operands)
        operands[position] = value if operands[position] != value else str(1 - int(value))
        if name != "transpose of B" or "16.f32" in insn.op:  # 8-bit types have no such switch
            yield name, insn.text(operands=operands)


def of_tcgen05_mma(insn):
    """Bit fields of the descriptors in shared memory and of the instruction's."""
    positions = [i for i, operand in enumerate(insn.operands) if operand.startswith("%rd")]
    for position in positions:
        matrix = "B" if position == positions[-1] else "A"
        # Source: PTX ISA, "Shared memory descriptor" of tcgen05: swizzle from bit 61, 2 is 128B, 4 is 64B.
        for field, mask in (("start", 1 << 6), ("stride", 1 << 38), ("layout none", 2 << 61),
                            ("layout 64B", 6 << 61)):
            yield f"{field} of {matrix}", insn.with_operand(position, ("xor", mask), 64)
    # Source: PTX ISA, "Instruction descriptor": negate from bit 13, transpose from 15, N / 8 from 17.
    for field, mask in (("sign of A", 1 << 13), ("transpose of B", 1 << 16), ("N", 2 << 17)):
        yield field, insn.with_operand(positions[-1] + 1, ("xor", mask))


DESCRIPTOR_KINDS = ((DESCRIPTORS, r"wgmma\.mma_async", of_wgmma), (DESCRIPTORS, r"tcgen05\.mma", of_tcgen05_mma))


PLACES = "places"
# Files of what looks pages up: bounds are changed there alone.
PAGED_FILES = ("forward/pages.h", "forward/paged_tiles.h", "attention_sm100/paged_keys.h", "pages/loader.h",
               "pages/tile_search.h", "pages/widener.h", "pages/work.h")


def of_coordinates(insn):
    """A tensor copy from the next page, row or column: a matrix of [page, head, row, column], or rows gathered."""
    position = next((i for i, operand in enumerate(insn.operands) if "{" in operand), None)
    if position is None:
        return
    before, inside, behind = re.split(r"[{}]", insn.operands[position])
    names = split_operands(inside)
    is_gathered = "gather4" in insn.op
    places = {"next page": -1, "next row": 1} if len(names) == 4 and not is_gathered else {"next row": -1}
    for what, at in places.items():
        if not NAME.match(names[at]):
            continue
        changed = [*names]
        changed[at] = "mutated"
        operands = [*insn.operands]
        operands[position] = f"{before}{{{', '.join(changed)}}}{behind}"
        added = f"add.s32 mutated, {names[at]}, 1;"
        yield what, f"{{ .reg .b32 mutated; {added} {insn.text(operands=operands)} }}"


def of_table(insn):
    """A word of a table: of the next page."""
    register, address = insn.operands[0], insn.operands[1]
    load = insn.text(operands=[register, address])
    yield "next page", f"{{ {load} {insn.guard}add.s32 {register}, {register}, 1; }}"


def of_bound(insn):
    """One more, or one less."""
    for word, other in ((".lt.", ".le."), (".le.", ".lt."), (".gt.", ".ge."), (".ge.", ".gt.")):
        if word in insn.op:
            yield "one off", insn.text(op=insn.op.replace(word, other))


# Where copies read, and how far: what values show, and no check has to.
PLACE_KINDS = (("coordinates of copies", r"cp\.async\.bulk\.tensor.*global", of_coordinates),
               ("words of tables", r"ld\.global\.(nc\.)?[bsu]32", of_table),
               ("bounds", r"setp\.(lt|le|gt|ge)\.[su]32", of_bound))


def is_paged(module, place):
    """Whether an instruction is of code that looks pages up, itself or inlined."""
    return any(module.files.get(file, "").endswith(PAGED_FILES) for file, _ in place[:2])


def mutants_of(module, executed, kinds=KINDS):
    """All changes of the instructions at these lines (from 1), one of each place in the source."""
    seen, mutants = set(), []
    kinds = [(kind, re.compile(pattern), changes) for kind, pattern, changes in kinds]
    for number in sorted(executed):
        index = number - 1
        match = INSN.match(module.lines[index])
        if not match:
            continue
        guard, op, operands = match.groups()
        kind, changes = next(((k, c) for k, p, c in kinds if p.match(op)), (None, None))
        place = module.places.get(index, ())
        if kind is None or (op, place) in seen:
            continue
        if kind in ("bounds", "words of tables") and not is_paged(module, place):
            continue
        seen.add((op, place))
        insn = Insn(module, index, guard, op, operands)
        mutants += [Mutant(index, ROWS.get((kind, action), kind), action, op, line, place)
                    for action, line in changes(insn)]
    return mutants
