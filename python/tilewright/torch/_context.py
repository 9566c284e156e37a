"""What the functions share: devices, the table of operators, the way around the dispatcher."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, NamedTuple, TypeVar

import torch

import tilewright
from tilewright import _core
from tilewright._errors import InvalidArgument

#: Operators that are kept, of all kinds together; beyond it the oldest one goes.
TABLE_LIMIT = 1024

DTYPES = {
    torch.bfloat16: "bf16",
    torch.float16: "f16",
    torch.float32: "f32",
    torch.float8_e4m3fn: "e4m3",
    torch.float8_e8m0fnu: "e8m0",
}

_devices: dict[tuple[str, int | None], tilewright.Device] = {}
_simulated: str | None = None


def set_device(spec: str | None) -> None:
    """Names the simulated device that calls with CPU tensors run on, such as "sim:h200".

    None: what TILEWRIGHT_DEVICE says. CUDA tensors run on their own device, whatever is set.
    """
    global _simulated
    if spec is not None and not spec.startswith("sim:"):
        raise InvalidArgument(
            f"set_device({spec!r}): only a simulated device can be set, such as 'sim:h200'; "
            "CUDA tensors run on the GPU that they are on"
        )
    _simulated = spec
    _devices.pop(("cpu", None), None)
    table.clear()
    for calls in all_calls:
        calls.clear()


def device_of(device: torch.device) -> tilewright.Device:
    """The device for tensors there."""
    found = _devices.get((device.type, device.index))
    if found is None:
        found = _devices[device.type, device.index] = _open(device)
    return found


def _open(device: torch.device) -> tilewright.Device:
    if device.type == "cuda":
        return tilewright.Device(f"cuda:{device.index}")
    if device.type != "cpu":
        raise InvalidArgument(
            f"tensors are on {device}; kernels run on CUDA devices, and on a simulated one from "
            "CPU tensors"
        )
    spec = _simulated or os.environ.get("TILEWRIGHT_DEVICE", "")
    if not spec.startswith("sim:"):
        raise InvalidArgument(
            "tensors are on the CPU, and no simulated device is set for them: move them to a GPU "
            "by .cuda(), or call tilewright.torch.set_device('sim:h200')"
        )
    return tilewright.Device(spec)


Made = TypeVar("Made")


class Table:
    """Operators by what they depend on."""

    def __init__(self, limit: int) -> None:
        self._entries: dict[Hashable, Any] = {}
        self._limit = limit
        self.get: Callable[[Hashable], Any] = self._entries.get

    def add(self, key: Hashable, entry: Made) -> Made:
        while len(self._entries) >= self._limit:
            self._entries.pop(next(iter(self._entries)), None)
        self._entries[key] = entry
        return entry

    def clear(self) -> None:
        self._entries.clear()

    def entries(self) -> list[Any]:
        return list(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


table = Table(TABLE_LIMIT)


def signature(*tensors: torch.Tensor | None) -> bytes:
    """What an operator can depend on of tensors: devices, dtypes, shapes, strides."""
    try:
        return _core.signature(*tensors)
    except (RuntimeError, BufferError):
        given = ", ".join(describe("a tensor", x) for x in tensors if x is not None)
        raise InvalidArgument(f"{given}: expected dense tensors, in memory that kernels reach") from None


class Entry:
    """An operator with what a call has to allocate for it."""

    __slots__ = ("run", "workspace_bytes", "operator")

    def __init__(self, operator: Any, is_on_host: bool) -> None:
        self.operator = operator
        self.run = operator.run
        # With tensors of the host, run() makes a workspace on the simulated device. Merging has none.
        self.workspace_bytes = 0 if is_on_host else getattr(operator, "workspace_bytes", 0)


def make(kind: type, device: torch.device, problem: dict[str, Any]) -> Entry:
    """The operator of a problem whose absent members are None."""
    return make_on(kind, device_of(device), device, problem)


def make_on(kind: type, on: Any, device: torch.device, problem: dict[str, Any]) -> Entry:
    """The same for an operator that is made on prepared weights."""
    known = {name: value for name, value in problem.items() if value is not None}
    return Entry(kind(on, **known), device.type == "cpu")


def workspace(entry: Entry, device: torch.device) -> torch.Tensor | None:
    """Memory of torch's pool on the current stream."""
    if not entry.workspace_bytes:
        return None
    return torch.empty(entry.workspace_bytes, dtype=torch.uint8, device=device)


def expect_tensors(names: str, values: tuple[Any, ...], needed: int) -> None:
    """A sentence about the first that is no tensor; those behind the first `needed` may be None."""
    for i, (name, value) in enumerate(zip(names.split(), values, strict=False)):
        if not isinstance(value, torch.Tensor) and (value is not None or i < needed):
            given = "None" if value is None else f"a {type(value).__name__}"
            raise TypeError(f"{name} is {given}; expected a torch.Tensor")


_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_transforms = getattr(torch._C, "_functorch").peek_interpreter_stack
_tracing_state = torch._C._get_tracing_state
_any_requires_grad = torch._C._any_requires_grad
_PLAIN = {torch.Tensor, torch.nn.Parameter}


def is_direct(*tensors: torch.Tensor) -> bool:
    """Whether nothing but the kernels wants to see this call, so that the dispatcher is not needed.

    The dispatcher and an autograd rule cost more than the call itself. Views that negate what they
    are of need it too; they have no contiguous last dimension, so none comes this far.
    """
    if torch.compiler.is_compiling():
        return False
    for tensor in tensors:
        if type(tensor) not in _PLAIN:
            return False
    if tensors[0].is_meta:
        return False
    return (
        _dispatch_modes() == 0
        and _function_modes() == 0
        and _transforms() is None
        and _tracing_state() is None
        and not (torch.is_grad_enabled() and _any_requires_grad(*tensors))
    )


def _workspace_like(size: int, like: torch.Tensor) -> torch.Tensor:
    return torch.empty(size, dtype=torch.uint8, device=like.device)


all_calls: list[_core.Calls] = []


def known_calls(tensors: int) -> _core.Calls:
    """Calls of one function, whose first arguments are so many tensors: those that were made before.

    They ask what is_direct() asks, and find the operator, without a step in Python.
    """
    calls = _core.Calls(
        tensors,
        TABLE_LIMIT,
        plain=(torch.Tensor, torch.nn.Parameter),
        guards=(_dispatch_modes, _function_modes, _transforms, _tracing_state),
        grad_enabled=torch.is_grad_enabled,
        is_capturing=getattr(torch._C, "_cuda_isCurrentStreamCapturing", _never),
        allocate=_workspace_like,
    )
    all_calls.append(calls)
    return calls


def _never() -> bool:
    return False


def maker(first: torch.Tensor, like: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """A function of the first tensor of a call, for results that look like this one.

    The fastest way to a tensor of torch is that from another one that looks like it.
    """
    if first.is_contiguous() and first.dtype == like.dtype and first.shape == like.shape:
        return torch.empty_like
    small = torch.empty(1, dtype=like.dtype, device=like.device).expand(like.shape)
    if torch.empty_like(small).stride() == like.stride():
        return lambda first: torch.empty_like(small)
    shape, dtype, device = like.shape, like.dtype, like.device
    return lambda first: torch.empty(shape, dtype=dtype, device=device)


_RESULTS = {"out", "lse", "max_logits"}


class Way(NamedTuple):
    """A way to a call for which it is to be remembered: a table, the arguments there, and which of them the
    tensors of the operator are, by the names of the C interface."""

    calls: _core.Calls
    arguments: tuple[Any, ...]
    places: dict[str, int]

    def fits(self, used: Mapping[str, torch.Tensor | None]) -> bool:
        """Whether the arguments are what is used, all tensors but results, and none is a copy."""
        if not self.arguments:
            return False
        for name in {*self.places, *used} - _RESULTS:
            given = self.arguments[self.places[name]] if name in self.places else None
            if given is not used.get(name):
                return False
        return True

    def remember(
        self,
        entry: Entry,
        results: Mapping[str, torch.Tensor | None],
        members: Mapping[str, Any] | None = None,
        without: Collection[str] = (),
    ) -> None:
        """The operator for calls of this kind, which has no use for the results `without`."""
        makers = {
            self.places[name]: maker(self.arguments[0], like)
            for name, like in results.items()
            if like is not None
        }
        has_workspace = "workspace" in self.places
        size = 0 if has_workspace else entry.workspace_bytes
        places = {name: at for name, at in self.places.items() if name not in without}
        self.calls.add(self.arguments, entry.operator, size, places, makers, dict(members or {}))


def places_of(names: str) -> dict[str, int]:
    """Of tensors in the order of a call, by the names of the C interface."""
    return {name: position for position, name in enumerate(names.split())}


def have_no_gradient(*tensors: torch.Tensor | None) -> bool:
    """Of operands that a call may have besides those that is_direct() has seen."""
    return not torch.is_grad_enabled() or not any(x is not None and x.requires_grad for x in tensors)


def empty_as(x: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor of that shape; the first way is the faster one."""
    if x.is_contiguous():
        return torch.empty_like(x)
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


def describe(name: str, tensor: torch.Tensor | None) -> str:
    """An argument, as an error names it."""
    if tensor is None:
        return f"{name}=None"
    kind = str(tensor.dtype).removeprefix("torch.")
    is_dense = tensor.layout == torch.strided
    how = f"strides {tuple(tensor.stride())}" if is_dense else str(tensor.layout)
    return f"{name} {kind}{list(tensor.shape)} {how} on {tensor.device}"


def dtype_name(dtype: torch.dtype) -> str:
    require(dtype in DTYPES, f"dtype={dtype}: expected one that tilewright knows")
    return DTYPES[dtype]


def require(condition: bool, text: str) -> None:
    if not condition:
        raise InvalidArgument(text)


def require_operand(
    name: str,
    tensor: torch.Tensor | None,
    like: torch.Tensor,
    dtype: torch.dtype,
    shape: tuple[int, ...] | None = None,
) -> None:
    """An operand that comes beside the main ones: its device, dtype and shape, contiguous."""
    if tensor is None:
        return
    wanted = str(dtype).removeprefix("torch.")
    if (
        tensor.device != like.device
        or tensor.dtype != dtype
        or (shape is not None and tuple(tensor.shape) != shape)
        or not tensor.is_contiguous()
    ):
        size = "" if shape is None else str(list(shape))
        raise InvalidArgument(
            f"{describe(name, tensor)}: expected {wanted}{size}, contiguous, on {like.device}; "
            f"{name}.to({like.device.type!r}, torch.{wanted}).contiguous() makes it so"
        )


def strides(tensor: torch.Tensor) -> dict[str, int]:
    """Of [batch, rows, heads, head_dim], or of packed [rows, heads, head_dim]."""
    if tensor.dim() == 3:
        return {"batch": 0, "row": tensor.stride(0), "head": tensor.stride(1)}
    return {"batch": tensor.stride(0), "row": tensor.stride(1), "head": tensor.stride(2)}
