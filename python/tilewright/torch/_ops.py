"""Registration with torch: schemas, kernels, fakes, and a backward that says why there is none.

Where torch has the stable C interface of 2.10, kernels are in C (python/core/torch_ops.c), and those here
are for calls that are new. Elsewhere, and with TILEWRIGHT_TORCH_OPS=python, these are all there are.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch.library import Library

from tilewright import _core
from tilewright._errors import InvalidArgument

from ._context import DTYPES, Entry, describe, known_calls, require

library: Any = Library("tilewright", "DEF")  # type: ignore[no-untyped-call]

#: What a kernel gives: the results, and under what the next call of its kind is known.
Done = tuple[tuple[torch.Tensor, ...], Any]

_KINDS = {
    "Tensor": "T",
    "Optional[Tensor]": "t",
    "SymInt": "i",
    "int": "i",
    "float": "f",
    "Optional[float]": "F",
    "bool": "b",
    "str": "s",
    "ScalarType": "d",
}


def _open() -> bool:
    if os.environ.get("TILEWRIGHT_TORCH_OPS") == "python":
        return False
    functions = getattr(torch._C, "_aoti", None)
    to_tensors = getattr(functions, "alloc_tensors_by_stealing_from_void_ptrs", None)
    from_tensor = getattr(functions, "unsafe_alloc_void_ptr_from_tensor", None)
    path = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
    if to_tensors is None or from_tensor is None:
        return False
    examples = tuple(torch.empty(0, dtype=dtype) for dtype in DTYPES)
    return _steals(to_tensors, from_tensor) and _core.torch_open(
        path, to_tensors, from_tensor, examples
    )


def _steals(to_tensors: Callable[[Any], Any], from_tensor: Callable[[Any], Any]) -> bool:
    """Whether these functions of torch do what their names say: the one for a single tensor does not."""
    x = torch.empty(0)
    count: Callable[[], int] = getattr(x, "_use_count", lambda: -1)
    before = count()
    y = to_tensors([from_tensor(x)])[0]
    return before >= 0 and y is x and count() == before


#: Whether kernels are in C.
is_stable = _open()
#: Calls that were made before, by the operator.
tables: dict[str, _core.Calls] = {}


def known(
    entry: Entry | None, names: dict[str, int], x: torch.Tensor, members: dict[str, Any] | None = None
) -> Any:
    """Under what calls are known: names are of tensors in the order of the schema, then of results."""
    if entry is None or not is_stable:
        return None
    size = 0 if "workspace" in names else entry.workspace_bytes
    like = torch.empty(1, dtype=torch.uint8, device=x.device)
    return entry.operator, size, names, members or {}, like


def define(
    name: str, schema: str, kernel: Callable[..., Done], fake: Callable[..., Any] | None = None
) -> Any:
    """tilewright::name. A schema that mutates nothing and returns something needs a fake."""
    library.define(f"{name}{schema}", tags=(torch.Tag.needs_exact_strides,))
    operator = getattr(torch.ops.tilewright, name).default
    results = len(operator._schema.returns)
    kernel = _named(kernel, operator, name)
    rule = _with_refusal(operator, name) if results else _without_gradients(operator, name)
    has_rule = False
    if is_stable:
        types = [str(argument.real_type) for argument in operator._schema.arguments]
        kinds = "".join(_KINDS[kind] for kind in types)
        tables[name] = known_calls(sum(kind in "Tt" for kind in kinds) + results)
        # The stack of a kernel in C has no symbols: what torch.compile passes for a SymInt is none of its values.
        in_c = None if "SymInt" in types else _rule_below_c(rule, results)
        has_rule = _core.torch_op("tilewright", name, kinds, tables[name], kernel, in_c)
        operator._op = _core.torch_shortcut(tables[name], operator._op)
    else:
        for key in ("CPU", "CUDA"):
            library.impl(name, _results_of(kernel, results), key)
    fake = fake or (lambda *args, **keywords: None)
    library.impl(name, _named(fake, operator, name), "Meta")
    library.impl(name, _of_negated(operator, name), "Negative")
    if not has_rule:
        library.impl(name, rule, "Autograd", with_keyset=True)
    return operator


def define_with_lse(
    name: str,
    inputs: str,
    into: Callable[..., Entry | None],
    fake: Callable[..., tuple[torch.Tensor, torch.Tensor]],
    names: dict[str, int],
    tail: tuple[str, ...] = (),
) -> tuple[Any, Any]:
    """tilewright::name(inputs, return_lse) gives out and lse; name_out(inputs, out, lse) writes to them.

    `into(*inputs, out, lse)` makes the call, `names` has the places of its tensors, results last.
    tail  inputs with defaults that stand behind all of those, in both operators and in `into`
    """
    more = "".join(f", {text}" for text in tail)
    without_lse = {key: at for key, at in names.items() if key != "lse"}

    def give(*args: Any) -> Done:
        count = len(args) - len(tail)
        return_lse = args[count - 1]
        out, lse = fake(*args)
        entry = into(*args[: count - 1], out, lse if return_lse else None, *args[count:])
        return (out, lse), known(entry, names if return_lse else without_lse, args[0])

    def write(*args: Any) -> Done:
        return (), known(into(*args), names, args[0])

    return (
        define(name, f"({inputs}, bool return_lse{more}) -> (Tensor, Tensor)", give, fake),
        define(f"{name}_out", f"({inputs}, Tensor(a!) out, Tensor(b!)? lse{more}) -> ()", write),
    )


#: Dimensions of arguments, where kernels read their extents at once.
_DIMS = {
    **dict.fromkeys(("k_cache", "v_cache"), (4,)),
    **dict.fromkeys(("page_table", "rotary_cos", "rotary_sin", "ids"), (2,)),
    **dict.fromkeys(("cu_q", "cu_kv", "q_lengths", "kv_lengths"), (1,)),
    **dict.fromkeys(("cache", "extra_cache"), (2, 3, 4)),
    **dict.fromkeys(("k", "v"), (3, 4)),
    **dict.fromkeys(("part", "part_lse"), (2, 3, 4, 5)),
    "mask": (3,),
}


def _named(kernel: Callable[..., Any], operator: Any, name: str) -> Callable[..., Any]:
    """Names what torch takes and kernels do not: None for a tensor that is not optional, a tensor too flat."""
    is_packed = name.removesuffix("_out") in ("attention", "attention_paged", "cache_append")
    dims = _DIMS | {"q": (3, 4) if is_packed else (4,)}
    checked = [
        (i, argument.name, dims.get(argument.name), str(argument.real_type) == "Tensor")
        for i, argument in enumerate(operator._schema.arguments)
        if "Tensor" in str(argument.real_type)
    ]

    def run(*args: Any) -> Any:
        for i, argument, expected, is_needed in checked:
            x = args[i]
            if x is None:
                require(not is_needed, f"tilewright::{name}: {argument} is None; expected a tensor")
            elif expected is not None and x.dim() not in expected:
                numbers = " or ".join(map(str, expected))
                raise InvalidArgument(f"{describe(argument, x)}: expected {numbers} dimensions")
        return kernel(*args)

    return run


def _of_negated(operator: Any, name: str) -> Callable[..., Any]:
    """Views that negate are resolved, but for those that are written, where torch's own way to resolve
    them asserts and ends the process."""
    arguments = operator._schema.arguments
    written = {a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write}

    def resolve(argument: str, x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or not x.is_neg():
            return x
        text = f"tilewright::{name}: {argument} is a negated view and is written; expected a tensor of its own"
        require(argument not in written, f"{text}, as {argument}.resolve_neg() is")
        return x.resolve_neg()

    def run(*args: Any, **keywords: Any) -> Any:
        resolved = (resolve(a.name, x) for a, x in zip(arguments, args, strict=False))
        return operator(*resolved, **{key: resolve(key, x) for key, x in keywords.items()})

    return run


def _rule_below_c(rule: Callable[..., Any], count: int) -> Callable[..., Done]:
    """The rule as the one in C calls it, without the keys of the dispatcher."""

    def run(*args: Any) -> Done:
        made = rule(None, *args)
        return (() if count == 0 else (made,) if count == 1 else tuple(made)), None

    return run


def _results_of(kernel: Callable[..., Done], count: int) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        results, _ = kernel(*args)
        return None if count == 0 else results[0] if count == 1 else results

    return run


def no_backward(name: str) -> NoReturn:
    raise NotImplementedError(
        f"tilewright: {name} has no backward; call it under torch.no_grad(), or use "
        "torch.nn.functional.scaled_dot_product_attention with the registered forward, whose "
        "backward is torch's"
    )


_grad_enabled = torch.is_grad_enabled
_after = torch._C._after_autograd_keyset


def _below(operator: Any, keys: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """The call below autograd; keys: None if they are not known."""
    with torch._C._AutoDispatchBelowAutograd():
        if keys is None:
            return operator(*args, **keywords)
        return operator.redispatch(keys & _after, *args, **keywords)


def _wants_gradients(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    everything = (*args, *keywords.values())
    return bool(torch._C._any_requires_grad(*everything))


def _with_refusal(operator: Any, name: str) -> Callable[..., Any]:
    """As torch.library.register_autograd, also for an operator that writes to some of its arguments."""

    class Refusal(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, keys: Any, keywords: dict[str, Any], *args: Any) -> Any:
            return _below(operator, keys, args, keywords)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            no_backward(name)

    redispatch = operator._handle.redispatch_boxed

    def kernel(keys: Any, *args: Any, **keywords: Any) -> Any:
        if keys is not None and not _grad_enabled():
            return redispatch(keys & _after, *args, **keywords)
        if _grad_enabled() and _wants_gradients(args, keywords):
            return Refusal.apply(keys, keywords, *args)  # type: ignore[no-untyped-call]
        return _below(operator, keys, args, keywords)

    return kernel


def _without_gradients(operator: Any, name: str) -> Callable[..., Any]:
    """As torch's own functions with out=."""

    redispatch = operator._handle.redispatch_boxed

    def kernel(keys: Any, *args: Any, **keywords: Any) -> Any:
        if keys is not None and not _grad_enabled():
            return redispatch(keys & _after, *args, **keywords)
        if _grad_enabled() and _wants_gradients(args, keywords):
            raise RuntimeError(
                f"tilewright: {name} writes to tensors that are given, which automatic "
                "differentiation does not follow, and one of its arguments requires grad; call "
                "it under torch.no_grad(), or detach() the argument"
            )
        return _below(operator, keys, args, keywords)

    return kernel
