"""A suite that asks for "cuda" on tensors of the host, for the simulated device."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

import tilewright.torch


def _is_cuda(argument: Any) -> bool:
    return isinstance(argument, (str, torch.device)) and str(argument).startswith("cuda")


class _OnHost(TorchFunctionMode):
    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if "cuda" in str(kwargs.get("device", "")):
            kwargs["device"] = "cpu"
        args = tuple("cpu" if _is_cuda(argument) else argument for argument in args)
        if function is torch.Tensor.cuda or (function is torch.Tensor.to and args[1:] == (0,)):
            return args[0]
        return function(*args, **kwargs)


def use(spec: str) -> None:
    """From now on, in this process."""
    tilewright.torch.set_device(spec)
    _OnHost().__enter__()  # type: ignore[no-untyped-call]
    nothing = functools.partial(lambda *args, **keywords: None)
    for name in ("synchronize", "empty_cache", "set_device"):
        setattr(torch.cuda, name, nothing)
    setattr(torch.cuda, "get_device_capability", lambda *args: (9, 0))
