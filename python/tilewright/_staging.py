"""Calls with tensors of the host: they are copied to the device, and back what may be written. On a simulated
device every call with such tensors comes here, on a GPU those of tilewright.numpy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _core
from ._errors import InvalidArgument

if TYPE_CHECKING:
    from ._core import View


copied = 0  # bytes


class Span:
    """Memory of the host that one or several tensors lie in, and its copy on the device."""

    def __init__(self, begin: int, end: int) -> None:
        self.begin, self.end, self.is_written = begin, end, False
        self.buffer: Any = None

    def upload(self, device: Any) -> None:
        self.buffer = _core.Buffer(device, self.end - self.begin)
        self.buffer.upload(_core.host_bytes(self.begin, self.end - self.begin))
        _count(self.end - self.begin)

    def download(self) -> None:
        if self.is_written:
            _core.host_bytes(self.begin, self.end - self.begin)[:] = self.buffer.download()
            _count(self.end - self.begin)


def _count(size: int) -> None:
    global copied
    copied += size


def _is_tensor(value: Any) -> bool:
    return value is not None and not isinstance(value, (int, float, str, _core.Buffer))


def _members(value: Any, kinds: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of a struct that is given as a mapping, or as a tuple in the order of its members."""
    return value if isinstance(value, Mapping) else dict(zip(kinds, value or ()))


def _host_tensors(value: Any, kinds: Mapping[str, Any]) -> Iterator[tuple[View, bool]]:
    """(what _core.view() says, whether it is written) of the host's tensors, also in structs."""
    for name, inner in value.items():
        kind = kinds[name]
        if isinstance(kind, dict):
            yield from _host_tensors(_members(inner, kind), kind)
        elif kind in ("input", "output") and _is_tensor(inner):
            view = _core.view(inner)
            if view["place"] == "host":
                yield view, kind == "output"


def _merge(tensors: list[tuple[View, bool]]) -> list[Span]:
    """Tensors that overlap are in one span, so that a view sees what is written through another."""
    spans: list[Span] = []
    for view, is_written in sorted(tensors, key=lambda pair: pair[0]["begin"]):
        begin, end = view["begin"], view["begin"] + view["bytes"]
        if not spans or begin >= spans[-1].end:
            spans.append(Span(begin, end))
        spans[-1].end = max(spans[-1].end, end)
        spans[-1].is_written |= is_written
    return [span for span in spans if span.begin < span.end]


def _addresses(value: Any, kinds: Mapping[str, Any], spans: list[Span]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, inner in value.items():
        kind = kinds[name]
        if isinstance(kind, dict):
            made[name] = _addresses(_members(inner, kind), kind, spans)
        elif kind in ("input", "output") and _is_tensor(inner):
            view = _core.view(inner)
            span = next((s for s in spans if s.begin <= view["address"] < s.end), None)
            made[name] = span.buffer.address + view["address"] - span.begin if span else view["address"]
        else:
            made[name] = inner
    return made


def call(op: Any, method: str, arguments: dict[str, Any]) -> None:
    """op.method(**arguments) with copies of what is on the host."""
    kinds = _core.members(op, method)
    spans = _merge(list(_host_tensors(arguments, kinds)))
    for span in spans:
        span.upload(op.device)
    addresses = _addresses(arguments, kinds, spans)
    workspace = None
    if "workspace" in kinds and addresses.get("workspace") is None:
        workspace = _core.Buffer(op.device, max(1, workspace_bytes(op, arguments)))
        workspace.fill(0xff)  # it may hold anything, but the simulator wants to know that somebody wrote it
        addresses["workspace"] = workspace.address
    try:
        getattr(op, method)(**addresses)
        op.device.synchronize()
    except InvalidArgument as error:
        raise InvalidArgument(f"{error}{_given(arguments)}") from None
    for span in spans:
        span.download()


def call_known(
    op: Any, names: Mapping[str, int], tensors: tuple[Any, ...], members: Mapping[str, Any]
) -> None:
    """op.run() of a _core.Calls: members by their names, "window.pages" one of a struct."""
    arguments: dict[str, Any] = dict(members)
    for name, position in names.items():
        struct, _, member = name.rpartition(".")
        inner = arguments.setdefault(struct, {}) if struct else arguments
        inner[member] = tensors[position]
    op.run(**arguments)


def _given(arguments: Mapping[str, Any]) -> str:
    lines = [f"\n  {name}: {_core.describe(value)}" for name, value in arguments.items()
             if _is_tensor(value) and not isinstance(value, Mapping)]
    return "\ngiven" + "".join(lines) if lines else ""


def workspace_bytes(op: Any, arguments: Mapping[str, Any]) -> int:
    """What a call needs: some operators know it, some from what the call is of."""
    if isinstance(op, (_core.Indexer, _core.IndexerLogits)):
        sequences = arguments.get("sequences") or {}
        batch = sequences.get("batch", 0) if isinstance(sequences, Mapping) else sequences[0]
        return op.workspace_bytes(arguments.get("tokens", 0), batch)
    if isinstance(op, _core.AttentionPrepare):
        return op.sizes()["workspace_bytes"]
    return int(getattr(op, "workspace_bytes", 0))
