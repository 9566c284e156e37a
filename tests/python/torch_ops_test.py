"""Operators of torch's dispatcher: kernels in C by torch's stable interface, which know a call the second time."""

import functools
import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import tilewright  # noqa: E402
import tilewright.torch as tt  # noqa: E402
from tilewright import _core  # noqa: E402
from tilewright.torch import _context, _linear, _ops  # noqa: E402
from torch_layers_test import fp8_pages, lists  # noqa: E402
from torch_reference import bf16, i32, place  # noqa: E402

pytestmark = [pytest.mark.usefixtures("kernels", "torch_device"),
              pytest.mark.skipif(not _ops.is_stable, reason="this torch has no stable C interface")]
ops = torch.ops.tilewright
AUTO = (None, False, -1, -1, 0.0, "auto")


def whole(seed=0):
    return bf16(2, 20, 4, 64, seed=seed), bf16(2, 33, 2, 64, seed=seed + 1), bf16(2, 33, 2, 64, seed=seed + 2)


WAYS = {"overload": lambda name: getattr(ops, name).default, "packet": lambda name: getattr(ops, name)}
#: By which the calls below go: the first stands before torch's dispatcher, the second goes through it.
way = ["packet"]


def op(name):
    return WAYS[way[0]](name)


def attention(seed=0, **changed):
    q, k, v = whole(seed)
    inputs = (q, k, v, None, None, None, None, None, None, 20, 33, *AUTO)
    return lambda: (op("attention")(*inputs, True), tt.attention(q, k, v, return_lse=True))


def attention_out(seed=0):
    q, k, v = whole(seed)
    out, lse = torch.zeros_like(q), torch.zeros(2, 4, 20, device=q.device)

    def call():
        op("attention_out")(q, k, v, None, None, None, None, None, None, 20, 33, *AUTO, out, lse)
        return (out, lse), tt.attention(q, k, v, return_lse=True)

    return call


def decode(seed=0):
    q, k, v, lengths = bf16(2, 1, 4, 64, seed=seed), bf16(2, 40, 2, 64), bf16(2, 40, 2, 64, seed=1), i32([3, 17])
    new = bf16(2, 1, 2, 64, seed=2), bf16(2, 1, 2, 64, seed=3)

    def call():
        caches, others = (k.clone(), v.clone()), (k.clone(), v.clone())
        found = op("attention_decode")(q, *caches, lengths, None, *new, None, None, True, None, None, None, None,
                                     True, -1, 0.0, 0, "auto", True)
        right = tt.attention_decode(q, *others, lengths=lengths, k_new=new[0], v_new=new[1], return_lse=True)
        return (*found, *caches), (*right, *others)

    return call


def paged(seed=0):
    q, k, v = bf16(25, 4, 64, seed=seed), bf16(6, 8, 2, 64, seed=1), bf16(6, 8, 2, 64, seed=2)
    table = i32([[5, 0, 3], [1, 4, 2]])
    lengths, cu_q = i32([24, 17]), i32([0, 1, 25])
    inputs = (q, k, v, table, None, lengths, cu_q, None, None, None, None, None, 24, 0, *AUTO)
    return lambda: (op("attention_paged")(*inputs, True),
                    tt.attention_paged(q, k, v, page_table=table, kv_lengths=lengths, cu_q=cu_q, max_q=24,
                                       return_lse=True))


def sparse(seed=0):
    cache, indices, q = fp8_pages(4, 16, 0)[0], lists(1, 2, 8, rows=64), bf16(1, 2, 4, 512, seed=seed)
    inputs = (q, cache, indices, None, None, None, None, None, None, "auto", False)
    return lambda: (op("sparse_attention")(*inputs, True, False)[:2],
                    tt.sparse_attention(q, cache, indices, return_lse=True))


def latent(seed=0):
    q, k, v = bf16(2, 1, 4, 64, seed=seed), bf16(2, 9, 1, 64, seed=1), bf16(2, 9, 1, 256, seed=2)
    qv, lengths = bf16(2, 1, 4, 256, seed=seed + 3), i32([9, 4])
    inputs = (q, k, v, lengths, qv, None, None, True, None, "auto", False)
    return lambda: (op("latent_attention")(*inputs, True),
                    tt.latent_attention(q, k, v, lengths, qv=qv, return_lse=True))


@functools.cache
def layer_of(kind):
    """One for all tests: where one is freed, what is known of all is forgotten."""
    if kind is tt.Linear:
        return tt.Linear(bf16(64, 128), out_dtype=torch.float32)
    return tt.Moe(bf16(2, 64, 128), bf16(2, 64, 128, seed=1), bf16(2, 128, 64, seed=2))


def linear(seed=0):
    layer, x = layer_of(tt.Linear), bf16(3, 128, seed=seed)
    return lambda: ((op("linear")(x, None, layer._handle, 64, torch.float32),), (layer(x),))


def moe(seed=0):
    layer, x, ids = layer_of(tt.Moe), bf16(3, 128, seed=seed), i32([[0, 1], [1, -1], [0, 0]])
    weights = torch.full((3, 2), 0.5, device=x.device)
    return lambda: ((op("moe")(x, ids, weights, layer._handle, 0.0, False, torch.bfloat16),),
                    (layer(x, ids, weights),))


def moe_grouped(seed=0):
    layer, x, counts = layer_of(tt.Moe), bf16(3, 128, seed=seed), i32([1, 2])
    return lambda: ((op("moe_grouped")(x, counts, None, layer._handle, 0.0, False, 0),),
                    (layer.grouped(x, counts),))


def quantize(seed=0, format="nvfp4", scale=None):
    x = bf16(5, 64, seed=seed)
    return lambda: (op("quantize")(x, format, "nearest", scale, None), tt.quantize(x, format, encode_scale=scale))


CALLS = {"attention": attention, "attention_out": attention_out, "attention_decode": decode,
         "attention_paged": paged, "sparse_attention": sparse, "latent_attention": latent,
         "linear": linear, "moe": moe, "moe_grouped": moe_grouped, "quantize": quantize,
         "quantize fp8": lambda seed=0: quantize(seed, "fp8_1x128"),
         "quantize scaled": lambda seed=0: quantize(seed, "nvfp4", 2.5)}


def equal(found, right):
    return len(found) == len(right) and all(
        one.dtype == other.dtype and one.stride() == other.stride() and
        torch.equal(one.view(torch.uint8) if one.element_size() == 1 else one,
                    other.view(torch.uint8) if other.element_size() == 1 else other)
        for one, other in zip(found, right, strict=True))


@pytest.mark.parametrize("name, grad", [
    *((name, torch.inference_mode) for name in CALLS),
    *((name, grad) for name in ("attention_out", "linear", "sparse_attention", "attention_decode")
      for grad in (torch.no_grad, torch.enable_grad))])
def test_the_second_call_is_known_and_the_same(name, grad):
    gc.collect()
    table = _ops.tables[name.partition(" ")[0]]
    table.clear()
    with grad():
        for make, way[0] in ((CALLS[name](), "packet"), (CALLS[name](seed=7), "overload")):
            for _ in range(2):
                assert equal(*make())
                assert len(table) >= 1
        known = len(table)
        assert equal(*make()) and len(table) == known


@pytest.mark.parametrize("name", CALLS)
def test_what_is_known_by_one_way_is_known_by_the_other(name, monkeypatch):
    """Keys of Python's arguments are those of torch's stack: the kernel in Python is not asked."""
    make, asked = CALLS[name](), []
    operator = getattr(ops, name.partition(" ")[0]).default
    with torch.no_grad():
        way[0] = "packet"
        right = make()[0]
        monkeypatch.setattr(_context.table, "get", lambda key: asked.append(key))
        way[0] = "overload"
        with torch.autograd.profiler.profile() as profile:  # it sees calls, so they go through torch
            make()
        assert [event.name for event in profile.function_events if "tilewright" in event.name] == [operator.name()]
        assert equal(make()[0], right) and not asked
    assert operator._op.__name__ == "call"  # python/core/torch_shortcut.c


def test_a_known_call_leaves_python_alone(monkeypatch):
    """Neither the table of operators nor the kernel in Python is asked."""
    call, asked = attention(), []
    get = _context.table.get
    monkeypatch.setattr(_context.table, "get", lambda key: asked.append(key) or get(key))
    with torch.inference_mode():
        for _ in range(3):
            found = call()
    assert len(asked) <= 2 and equal(*found)


class Seen(torch.Tensor):
    """Sees what is done with it below autograd, in memory of its own."""

    __torch_function__ = torch._C._disabled_torch_function_impl
    calls = 0

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        Seen.calls += function is ops.linear.default
        return function(*(x.plain if isinstance(x, Seen) else x for x in args), **(kwargs or {}))


class Mode(TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.calls += function is ops.linear.default
        return function(*args, **(kwargs or {}))


class Functions(TorchFunctionMode):
    calls = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.calls += function in (ops.linear, ops.linear.default)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("through", WAYS)
@pytest.mark.parametrize("grad", [torch.no_grad, torch.enable_grad])
def test_who_wants_to_see_a_known_call_sees_it(grad, through):
    """Neither what stands before torch nor the rule for autograd runs what is known by itself, unless nobody is
    there."""
    layer, x, way[0] = layer_of(tt.Linear), bf16(3, 128), through

    def call(x):
        return op("linear")(x, None, layer._handle, 64, torch.float32)

    with grad():
        known = [call(x) for _ in range(3)][-1]
        seen = torch.Tensor._make_subclass(Seen, x)
        seen.plain = x
        assert torch.equal(call(seen), known) and Seen.calls == 1
        with Mode() as mode:
            assert torch.equal(call(x), known)
        assert mode.calls == 1
        with Functions() as functions:
            assert torch.equal(call(x), known)
        assert functions.calls == 1
        assert op("linear")(x, bias=None, weight=layer._handle, features=64, dtype=torch.float32).equal(known)
        assert torch.equal(call(torch._neg_view(x)), call(-x)) and not torch.equal(call(-x), known)
        with FakeTensorMode() as fake:
            assert isinstance(call(fake.from_tensor(x)), FakeTensor)
        assert call(x.to("meta")).is_meta
    Seen.calls = 0


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_a_view_that_negates_is_read_and_never_written(mode):
    """torch's own way to resolve one that is written ends the process."""
    q, k, v = bf16(2, 1, 4, 64), bf16(2, 40, 2, 64), bf16(2, 40, 2, 64, seed=1)
    lengths, out, like = i32([3, 17]), bf16(2, 1, 4, 64), bf16(2, 1, 4, 64)

    def into(q, out):
        ops.attention_decode_out(q, k, v, lengths, *[None] * 5, True, None, None, None, None, True, -1, 0.0, 0,
                                 "auto", out, None)

    with mode():
        into(torch._neg_view(q), out)
        into(-q, like)
        assert torch.equal(out, like)
        with pytest.raises(tilewright.InvalidArgument, match="out is a negated view and is written"):
            into(q, torch._neg_view(out))


@pytest.mark.parametrize("through", WAYS)
def test_a_known_call_whose_operand_requires_grad_says_so(through):
    way[0] = through
    layer, x, q = layer_of(tt.Linear), bf16(3, 128), bf16(2, 1, 4, 64)
    k, v, lengths, out = bf16(2, 40, 2, 64), bf16(2, 40, 2, 64, seed=1), i32([3, 17]), bf16(2, 1, 4, 64)

    def call(x):
        return op("linear")(x, None, layer._handle, 64, torch.float32)

    def into(q):
        return op("attention_decode_out")(q, k, v, lengths, *[None] * 5, True, None, None, None, None, True, -1,
                                        0.0, 0, "auto", out, None)

    for _ in range(3):
        call(x), into(q)
    with torch.no_grad():
        assert not call(x.clone().requires_grad_()).requires_grad
    made = call(x.clone().requires_grad_())
    with pytest.raises(NotImplementedError, match="linear has no backward"):
        made.sum().backward()
    with pytest.raises(RuntimeError, match="attention_decode_out writes to tensors .* requires grad"):
        into(q.clone().requires_grad_())
    with pytest.raises(RuntimeError):
        torch.func.grad(lambda x: call(x).sum())(x)


@pytest.mark.parametrize("grad", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_none_for_a_tensor_is_named(grad, capfd):
    q, k, v = whole()
    rest = (*[None] * 6, 20, 33, *AUTO)
    with grad():
        for given, name in (((None, k, v), "q"), ((q, None, v), "k"), ((q, k, None), "v")):
            with pytest.raises(tilewright.InvalidArgument, match=f"::attention: {name} is None; expected"):
                ops.attention(*given, *rest, False)
        with pytest.raises(tilewright.InvalidArgument, match="::attention_out: out is None; expected a tensor"):
            ops.attention_out(q, k, v, *rest, None, None)
        with pytest.raises(NotImplementedError, match="no tensor arguments .* tilewright::linear"):
            ops.linear(None, None, 1, 64, torch.float32)
        for wrong in (3, "x", [q], np.zeros(3)):
            with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor' for argument 'k'"):
                ops.attention(q, wrong, v, *rest, False)
    assert "frame #" not in capfd.readouterr().err


@pytest.mark.parametrize("change, kind, text", [
    ({2: lambda: bf16(2, 32, 2, 64)}, tilewright.InvalidArgument, "and v of k's shape but for its head size"),
    ({0: lambda: bf16(2, 20, 4, 64).half()}, tilewright.InvalidArgument, "expected one dtype; convert with .to()"),
    ({16: lambda: "k99"}, tilewright.InvalidArgument, 'there is no kernel "k99"'),
    ({3: lambda: torch.zeros(3, device=whole()[0].device)}, tilewright.InvalidArgument, r"sink float32\[3\]"),
])
def test_an_exception_is_the_one_that_python_raised(change, kind, text):
    """It goes through torch's C++ as what it is, and the next call finds nothing of it."""
    q, k, v = whole()
    given = [q, k, v, None, None, None, None, None, None, 20, 33, *AUTO, False]
    good = list(given)
    for at, make in change.items():
        given[at] = make()
    for _ in range(2):
        with torch.inference_mode(), pytest.raises(kind, match=text):
            ops.attention(*given)
    assert torch.equal(ops.attention(*good)[0], tt.attention(q, k, v))


def test_exceptions_of_threads_are_their_own():
    q, k, v = whole()
    seen = {}

    def work(number):
        try:
            ops.attention(q, k, v, None, None, None, None, None, None, 20, 33, *AUTO[:-1], f"k{number}", False)
        except tilewright.InvalidArgument as error:
            seen[number] = f'"k{number}"' in str(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(90, 98)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == dict.fromkeys(range(90, 98), True)


def test_results_and_arguments_are_freed():
    """References that a kernel in C takes it gives back: of known calls, new ones and those that fail."""
    q, k, v = whole()
    alive = [weakref.ref(x) for x in (q, k, v)]
    counts = [x._use_count() for x in (q, k, v)]
    ways = ("packet", "overload", "overload", "packet")
    for kernel, way[0] in (*(("auto", one) for one in ways), ("k99", "overload")):
        with torch.inference_mode():
            try:
                out, lse = op("attention")(q, k, v, *[None] * 6, 20, 33, *AUTO[:-1], kernel, True)
            except tilewright.InvalidArgument:
                assert kernel == "k99"
    results = weakref.ref(out), weakref.ref(lse)
    del out, lse
    gc.collect()
    assert all(ref() is None for ref in results)
    assert [x._use_count() for x in (q, k, v)] == counts
    del q, k, v
    gc.collect()
    assert all(ref() is None for ref in alive)


def test_weights_are_freed_with_their_module():
    layer, x = tt.Linear(bf16(64, 128)), bf16(3, 128)
    with torch.inference_mode():
        for _ in range(2):
            ops.linear(x, None, layer._handle, 64, torch.bfloat16), layer(x)
    prepared, handle = weakref.ref(layer._prepared), layer._handle
    assert len(_ops.tables["linear"]) >= 1 and len(_linear._calls) >= 1
    del layer
    gc.collect()
    assert prepared() is None and len(_ops.tables["linear"]) == len(_linear._calls) == 0
    with pytest.raises(tilewright.InvalidArgument, match=f"weight {handle} does not exist"):
        ops.linear(x, None, handle, 64, torch.bfloat16)


def test_experts_are_freed_with_their_module():
    from tilewright.torch import _moe

    layer, x, counts = tt.Moe(bf16(2, 64, 128), bf16(2, 64, 128), bf16(2, 128, 64)), bf16(3, 128), i32([1, 2])
    with torch.inference_mode():
        for _ in range(2):
            ops.moe_grouped(x, counts, None, layer._handle, 0.0, False, 0), layer.grouped(x, counts)
    prepared = weakref.ref(layer._prepared)
    assert len(_ops.tables["moe_grouped"]) >= 1 and len(_moe._grouped_calls) >= 1
    del layer
    gc.collect()
    assert prepared() is None and len(_ops.tables["moe_grouped"]) == len(_moe._grouped_calls) == 0
    weight = tt.Linear(bf16(64, 128))
    with pytest.raises(tilewright.InvalidArgument, match="that is a weight of a linear layer"):
        ops.moe_grouped(x, counts, None, weight._handle, 0.0, False, 0)


@pytest.mark.parametrize("layer", [linear, moe, moe_grouped, quantize])
def test_modules_know_their_calls(layer, monkeypatch):
    """Behind the first one, a call of Linear, Moe or quantize makes no key in Python."""
    from tilewright.torch import _moe, _quantize

    made = {"linear": lambda: tt.Linear(bf16(64, 128), torch.ones(64, device=place())),
            "moe": lambda: tt.Moe(bf16(2, 64, 128), bf16(2, 64, 128, seed=1), bf16(2, 128, 64, seed=2)),
            "quantize": lambda: tt.quantize}[layer.__name__.partition("_")[0]]()
    x = bf16(2, 3, 128)
    ids, weights = i32([[0], [1], [-1]]), torch.ones(3, 1, device=x.device)
    call = {"linear": lambda: (made(x),), "moe": lambda: (made(x[0], ids, weights),),
            "moe_grouped": lambda: (made.grouped(x[0], i32([1, 2])),),
            "quantize": lambda: tuple(made(x[0]))}[layer.__name__]
    if layer is quantize:
        _quantize._calls.clear()
    first, asked = call(), []
    for module in (_linear, _moe, _quantize):
        monkeypatch.setattr(module, "signature", lambda *tensors: asked.append(tensors))
    assert equal(call(), first) and not asked
    wants = x.clone().requires_grad_()
    monkeypatch.undo()
    if layer is linear:
        assert made(wants).requires_grad and tuple(made(x[..., :0, :]).shape) == (2, 0, 64)
        turned = bf16(128, 3, 2).permute(2, 1, 0)
        assert torch.equal(made(turned), made(turned.contiguous()))
        assert torch.equal(made(turned), made(turned.contiguous()))


def test_bad_registrations_are_refused():
    calls = _core.Calls(2, 4, plain=(torch.Tensor, torch.nn.Parameter), guards=(), grad_enabled=bool,
                        is_capturing=bool, allocate=len)
    for kinds in ("Tx", "T" * 50, "T" * 23):
        with pytest.raises(tilewright.InvalidArgument, match="torch_op"):
            _core.torch_op("tilewright", "attention", kinds, calls, len, None)
    with pytest.raises(tilewright.InvalidArgument, match="expected the calls of an operator that has none"):
        _core.torch_shortcut(calls, len)
    assert _core.torch_open("/nowhere/libtorch_cpu.so", len, len, ()) is False


def test_without_the_stable_interface_kernels_are_python():
    """The other route, in a process of its own: the same results, schemas and errors."""
    done = subprocess.run([sys.executable, "-c", """
import torch, tilewright, tilewright.torch as tt
from tilewright.torch import _ops
assert not _ops.is_stable and not _ops.tables
tt.set_device("sim:h200")
q = torch.randn(1, 5, 2, 64, generator=torch.Generator().manual_seed(0)).bfloat16()
given = (q, q, q, *[None] * 6, 5, 5, None, False, -1, -1, 0.0, "auto")
out, lse = torch.ops.tilewright.attention(*given, True)
right = tt.attention(q, q, q, return_lse=True)
assert torch.equal(out, right[0]) and torch.equal(lse, right[1])
try:
    torch.ops.tilewright.attention(q, q.half(), q, *given[3:], True)
except tilewright.InvalidArgument as error:
    print(error)
layer = tt.Linear(torch.ones(64, 128).bfloat16())
x = torch.ones(2, 128).bfloat16()
assert torch.equal(torch.ops.tilewright.linear(x, None, layer._handle, 64, torch.bfloat16), layer(x))
"""], env={**os.environ, "TILEWRIGHT_TORCH_OPS": "python"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "expected one dtype; convert with .to()" in done.stdout
