"""A test of a suite as it was published, loaded so that it waits for the device once a case, not at every check.

Its file is parsed, and these statements of the named functions are changed as it is loaded. What is checked stays:

    print(...)                                  left out: its arguments are read back from the device
    assert (a - b).abs().max().item() <= ...    the number stays on the device; .mean() likewise
    assert torch.equal(a, b)                    a flag on the device
    assert torch.allclose(a, b, ...)            a flag; outside update_mask, if there is one, they must be equal
    x.copy_(y)                                  of a cache only the rows that the call before was to write
    x.to(dtype)[index]                          converts after the index, not before

`Checks.settle()` reads all numbers and flags in one copy and raises AssertionError for the checks that
do not hold. A statement of another form is left as it is. A cache is not restored as a whole: what a
call wrote beside its rows stays there, so that the checks of the next calls find it as well.
"""

from __future__ import annotations

import ast
import operator
import pathlib
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import torch

_NAME = "_tilewright_checks"


class Later:
    """A number that is known after settle(); what is reckoned with it is, too."""

    def __init__(self, value: Callable[[], float], sides: tuple[Any, ...] = ()) -> None:
        self.value, self.sides = value, sides

    def _with(self, other: Any, function: Callable[[Any, Any], Any]) -> Later:
        return Later(lambda: function(self.value(), _value(other)), (self, other))

    def __add__(self, other: Any) -> Later:
        return self._with(other, operator.add)

    def __mul__(self, other: Any) -> Later:
        return self._with(other, operator.mul)

    def __le__(self, other: Any) -> Later:
        return self._with(other, operator.le)

    __radd__, __rmul__ = __add__, __mul__

    def __bool__(self) -> bool:
        raise TypeError("this number is known after settle()")


def _value(number: Any) -> Any:
    return number.value() if isinstance(number, Later) else number


class Checks:
    """Of one case at a time."""

    def __init__(self) -> None:
        self._numbers: list[torch.Tensor] = []
        self._values: list[float] = []
        self._checks: list[tuple[str, Any]] = []
        self._distances: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._rows: tuple[Any, Any] = (None, None)
        self._restored: list[torch.Tensor] = []

    def clear(self) -> None:
        self.__init__()  # type: ignore[misc]

    def check(self, holds: Any, text: str) -> None:
        self._checks.append((text, holds))

    def settle(self) -> None:
        """Raises for the checks since clear() that do not hold."""
        self._values = [0.0] * len(self._numbers)
        for dtype in {number.dtype for number in self._numbers}:
            places = [i for i, number in enumerate(self._numbers) if number.dtype == dtype]
            read = torch.stack([self._numbers[i] for i in places]).double().tolist()
            for place, value in zip(places, read, strict=True):
                self._values[place] = value
        failed = []
        for i, (text, holds) in enumerate(self._checks):
            if not _value(holds):
                sides = [_value(side) for side in getattr(holds, "sides", ())]
                failed.append(f"check {i + 1} of {len(self._checks)}: {text}, with {sides}")
        self.clear()
        if failed:
            raise AssertionError("\n".join(failed[:8]))

    def _number(self, tensor: torch.Tensor) -> Later:
        place = len(self._numbers)
        self._numbers.append(tensor)
        return Later(lambda: self._values[place])

    def largest(self, a: torch.Tensor, b: torch.Tensor) -> Later:
        """(a - b).abs().max().item()"""
        largest: Later = self._distance(a, b)[0]
        return largest

    def mean(self, a: torch.Tensor, b: torch.Tensor) -> Later:
        """(a - b).abs().mean().item()"""
        mean: Later = self._distance(a, b)[1]
        return mean

    def _distance(self, a: torch.Tensor, b: torch.Tensor) -> tuple[Any, ...]:
        versions = a._version, b._version
        known = self._distances.get((id(a), id(b)))
        if known is None or known[2] is not a or known[3] is not b or known[4] != versions:
            distance = (a - b).abs()
            known = (self._number(distance.max()), self._number(distance.mean()), a, b, versions)
            self._distances[id(a), id(b)] = known
        return known

    def equal(self, a: torch.Tensor, b: torch.Tensor) -> Any:
        """torch.equal(a, b)"""
        return a.shape == b.shape and self._number((a == b).all())

    def allclose(
        self, names: dict[str, Any], a: torch.Tensor, b: torch.Tensor, **tolerances: Any
    ) -> Any:
        """torch.allclose(a, b, **tolerances), and equal where the test changes nothing."""
        mask = names.get("update_mask")
        if a.shape != b.shape or mask is None or mask.shape != a.shape[:2]:
            return self._number(torch.isclose(a, b, **tolerances).all())
        batch, position = self._changed(mask)
        near = torch.isclose(a[batch, position], b[batch, position], **tolerances).all()
        return self._number(near & ((a == b) | mask[:, :, None, None]).all())

    def _changed(self, mask: torch.Tensor) -> Any:
        """The sequences and positions that calls of this case write."""
        if self._rows[0] is not mask:
            self._rows = (mask, torch.nonzero(mask, as_tuple=True))
        return self._rows[1]

    def restore(self, names: dict[str, Any], cache: torch.Tensor, saved: torch.Tensor) -> None:
        """cache.copy_(saved), of the rows that a call writes; a call without new keys writes none."""
        mask = names.get("update_mask") if names["new_kv"] else None
        if not any(known is saved for known in self._restored):
            self._restored.append(saved)  # just copied from the cache
            return
        if mask is None:
            return
        entry, position = self._changed(mask)
        if names["cache_batch_idx"] is not None:
            entry = names["cache_batch_idx"][entry].long()
        size = names["page_size"]
        if size is not None:
            entry, position = names["page_table"][entry, position // size].long(), position % size
        whole, before = (tensor.view(torch.uint8) for tensor in (cache, saved))
        whole[entry, position] = before[entry, position]

    def take(self, tensor: torch.Tensor, dtype: torch.dtype, index: Any) -> torch.Tensor:
        """tensor.to(dtype)[index]"""
        if tensor.dtype == dtype or not isinstance(index, torch.Tensor) or tensor.element_size() > 1:
            return tensor.to(dtype)[index]
        return tensor.view(torch.uint8)[index].view(tensor.dtype).to(dtype)


class Memo:
    """A function of tensors and options that remembers its last results, for arguments that are equal."""

    def __init__(self, function: Callable[..., Any], kept: int = 4) -> None:
        self._function, self._kept = function, kept
        self._of: Any = None
        self._entries: list[tuple[Any, ...]] = []
        self.hits = 0

    def begin(self, group: Any) -> None:
        """Results of another group of cases are forgotten."""
        if group != self._of:
            self._of, self._entries = group, []

    def __call__(self, *positional: Any, **named: Any) -> Any:
        arguments = [*positional, *named, *named.values()]
        tensors = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
        options = ["tensor" if isinstance(argument, torch.Tensor) else argument for argument in arguments]
        for known_options, known, versions, result in self._entries:
            is_kept = [tensor._version for tensor in known] == versions
            if known_options == options and is_kept and _are_equal(known, tensors):
                self.hits += 1
                return result
        result = self._function(*positional, **named)
        entry = options, tensors, [tensor._version for tensor in tensors], result
        self._entries = [*self._entries[-self._kept + 1 :], entry]
        return result


def _are_equal(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    """Waits for the device once."""
    if [(x.shape, x.dtype, x.device) for x in a] != [(x.shape, x.dtype, x.device) for x in b]:
        return False
    by_device: dict[Any, list[torch.Tensor]] = {}
    for x, y in zip(a, b, strict=True):
        by_device.setdefault(x.device, []).append((x == y).all())
    return all(bool(torch.stack(flags).all()) for flags in by_device.values())


def _is_call(node: Any, method: str, arguments: int = 0) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == method
        and len(node.args) == arguments
    )


def _receiver(node: Any) -> Any:
    return node.func.value


class _Rewriter(ast.NodeTransformer):
    """Of a function."""

    def __init__(self) -> None:
        self.changed = 0

    def _call(self, method: str, *arguments: ast.expr, keywords: Iterable[ast.keyword] = ()) -> ast.Call:
        self.changed += 1
        function = ast.Attribute(ast.Name(_NAME, ast.Load()), method, ast.Load())
        return ast.Call(function, list(arguments), list(keywords))

    def visit_Expr(self, node: ast.Expr) -> Any:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print":
            self.changed += 1
            return ast.Pass()
        if isinstance(call, ast.Call) and _is_call(call, "copy_", 1) and isinstance(call.args[0], ast.Name):
            names = ast.Call(ast.Name("locals", ast.Load()), [], [])
            return ast.Expr(self._call("restore", names, _receiver(call), *call.args))
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> Any:
        before, text = self.changed, ast.unparse(node.test)
        test = _Numbers(self).visit(node.test)
        if self.changed == before:
            return self.generic_visit(node)
        return ast.Expr(self._call("check", test, ast.Constant(text)))

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        converted: Any = node.value
        is_plain = isinstance(node.ctx, ast.Load) and not isinstance(node.slice, (ast.Slice, ast.Tuple))
        if is_plain and _is_call(converted, "to", 1) and not converted.keywords:
            return self._call("take", _receiver(converted), *converted.args, node.slice)
        return node


class _Numbers(ast.NodeTransformer):
    """Of the test of an assert: what would be read back."""

    def __init__(self, rewriter: _Rewriter) -> None:
        self._rewriter = rewriter

    def visit_Call(self, node: ast.Call) -> Any:
        if _is_call(node, "item") and (found := self._distance(_receiver(node))):
            return found
        name = ast.unparse(node.func)
        if name == "torch.equal":
            return self._rewriter._call("equal", *node.args)
        if name == "torch.allclose":
            names = ast.Call(ast.Name("locals", ast.Load()), [], [])
            return self._rewriter._call("allclose", names, *node.args, keywords=node.keywords)
        return self.generic_visit(node)

    def _distance(self, node: Any) -> ast.Call | None:
        for method, ours in (("max", "largest"), ("mean", "mean")):
            if _is_call(node, method) and _is_call(_receiver(node), "abs"):
                inside = _receiver(_receiver(node))
                if isinstance(inside, ast.BinOp) and isinstance(inside.op, ast.Sub):
                    return self._rewriter._call(ours, inside.left, inside.right)
        return None


def load(path: pathlib.Path, name: str, functions: Iterable[str]) -> tuple[ModuleType, Checks]:
    """The file as the module `name`, with these functions rewritten, and the checks that they leave."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    wanted = set(functions)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in wanted:
            rewriter = _Rewriter()
            node.body = [rewriter.visit(statement) for statement in node.body]
    module = ModuleType(name)
    module.__file__ = str(path)
    checks = Checks()
    vars(module)[_NAME] = checks
    sys.modules[name] = module
    try:
        exec(compile(ast.fix_missing_locations(tree), str(path), "exec"), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module, checks
