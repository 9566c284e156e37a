"""Operators in JAX programs: functions of arrays, inside jit and outside, as foreign functions of XLA.

    import tilewright.jax as tj
    out = jax.jit(lambda q, k, v: tj.attention(q, k, v, causal=True))(q, k, v)

They run on GPUs on XLA's stream, in memory that XLA gives: workspaces, too. On the host they run on a simulated
device: set_device("sim:h200"), or TILEWRIGHT_DEVICE.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import tilewright
from tilewright import _core
from tilewright._errors import InvalidArgument
from tilewright._hosts import numpy_dtype

try:
    jax: Any = importlib.import_module("jax")
    np: Any = importlib.import_module("numpy")
except ImportError as error:
    raise ImportError(f"tilewright.jax: {error}; to have it: pip install jax") from None

#: Releases of jaxlib whose foreign functions have the interface that python/core/xla_abi.h knows.
OLDEST, NEWEST = (0, 5), (0, 11)
TARGET = "tilewright"
_WORDS = {"bfloat16": "bf16", "float16": "f16", "float8_e4m3fn": "e4m3", "float32": "f32", "int32": "i32",
          "uint8": "u8"}

_device: str | None = None


def set_device(spec: str | None) -> None:
    """The simulated device of programs on the host, such as "sim:h200"; None: what TILEWRIGHT_DEVICE says.

    Programs that were traced before keep theirs.
    """
    global _device
    if spec is not None and not spec.startswith("sim:"):
        raise InvalidArgument(f"set_device({spec!r}): only a simulated device can be set, such as 'sim:h200'; "
                              "programs on a GPU run on that")
    _device = spec


@functools.cache
def _register() -> None:
    """The handlers, once; refuses releases whose interface is not known."""
    version = importlib.import_module("jaxlib").__version__
    numbers = tuple(int(part) for part in version.split(".")[:2])
    if not OLDEST <= numbers <= NEWEST:
        oldest, newest = (".".join(map(str, ends)) for ends in (OLDEST, NEWEST))
        raise ImportError(f"tilewright.jax: jaxlib {version} is not known; expected {oldest} to {newest}, whose "
                          "foreign functions have the interface that this is written against")
    on_gpu, on_host = _core.xla_handlers()
    jax.ffi.register_ffi_target(TARGET, on_gpu, platform="CUDA")
    jax.ffi.register_ffi_target(TARGET, on_host, platform="cpu")


@functools.cache
def _open(spec: str) -> tilewright.Device:
    return tilewright.Device(spec)


def _current() -> str:
    """The device that a program which is traced now is for."""
    if jax.default_backend() == "gpu":
        return "cuda:0"
    spec = _device or os.environ.get("TILEWRIGHT_DEVICE", "")
    if not spec.startswith("sim:"):
        raise InvalidArgument("JAX has no GPU here, and no simulated device is set: install jax[cuda13], or call "
                              "tilewright.jax.set_device('sim:h200')")
    return spec


class _Array(NamedTuple):
    """What a call knows of an array when it is traced."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def _array(name: str, x: Any, dtypes: str, *dims: int) -> _Array:
    shape = getattr(x, "shape", None)
    word = _WORDS.get(str(getattr(x, "dtype", None)))
    if shape is None or word not in dtypes.split() or len(shape) not in dims:
        given = type(x).__name__ if shape is None else f"{x.dtype}{list(shape)}"
        raise InvalidArgument(f"{name} is {given}; expected an array of {' or '.join(map(str, dims))} dimensions, "
                              f"{dtypes.replace(' ', ' or ')}")
    assert word is not None
    return _Array(tuple(shape), word)


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise InvalidArgument(text)


def _views(arrays: list[_Array], addresses: tuple[int, ...]) -> list[Any]:
    """Arrays of numpy over memory of the host."""
    made = []
    for array, address in zip(arrays, addresses):
        dtype = numpy_dtype(array.dtype)
        memory = _core.host_bytes(address, array.size * dtype.itemsize)
        made.append(np.frombuffer(memory, dtype).reshape(array.shape))
    return made


class _Call(NamedTuple):
    """An operator with the names of its buffers, arguments first, then results."""

    make: Callable[[tilewright.Device], Any]
    inputs: tuple[tuple[str, _Array], ...]
    results: tuple[tuple[str, _Array], ...]
    aliases: tuple[tuple[int, int], ...] = ()

    def register(self, text: str, spec: str) -> _Array:
        """Makes it known under the text; the workspace that it takes."""
        op = self.make(_open(spec))
        space = _Array((max(1, op.workspace_bytes),), "u8")
        everything = (*self.inputs, *self.results, ("workspace", space))
        aliased = {given for given, _ in self.aliases}
        names = {name: at for at, (name, _) in enumerate(everything) if at not in aliased}

        def on(ordinal: int) -> Any:
            made = self.make(_open(f"cuda:{ordinal}"))
            if made.workspace_bytes > space.size:
                raise InvalidArgument(f"the program was traced for {spec}, where a workspace takes {space.size} "
                                      f"bytes, and runs on cuda:{ordinal}, where it takes {made.workspace_bytes}; "
                                      "trace it there")
            return made

        def on_host(*addresses: int) -> None:
            if not spec.startswith("sim:"):
                raise InvalidArgument(f"the program was traced for {spec} and runs on the host; trace it where "
                                      "jax.default_backend() is 'cpu'")
            views = _views([array for _, array in everything[:-1]], addresses)
            op.run(**{name: views[at] for name, at in names.items() if name != "workspace"})

        # The workspace of a simulated device is not XLA's: it is where the operator is.
        _core.xla_call(text, op, names, len(self.inputs), len(self.results) + 1, on, on_host)
        return space


#: By the text of a call: what it takes of memory.
_registered: dict[str, _Array] = {}


def _run(name: str, problem: dict[str, Any], call: _Call, operands: list[Any]) -> list[Any]:
    """The results of a call, as XLA makes it."""
    _register()
    spec = _current()
    text = f"{name} on {spec}: {sorted(problem.items())} {call.inputs} {call.results}"
    space = _registered.get(text)
    if space is None:
        space = _registered[text] = call.register(text, spec)
    shapes = [jax.ShapeDtypeStruct(array.shape, numpy_dtype(array.dtype))
              for array in (*(array for _, array in call.results), space)]
    made = jax.ffi.ffi_call(TARGET, shapes, input_output_aliases=dict(call.aliases), vmap_method="sequential")(
        *operands, call=text)
    return list(made[:-1])


def _forward_only(name: str, function: Callable[..., Any], *operands: Any) -> Any:
    """The function of the operands, whose gradient is refused with the reason."""
    wrapped = jax.custom_vjp(function)

    def backward(residuals: Any, slopes: Any) -> Any:
        raise NotImplementedError(f"tilewright: {name} has no backward; call it outside of jax.grad, or on "
                                  "jax.lax.stop_gradient(...) of its operands")

    wrapped.defvjp(lambda *given: (function(*given), None), backward)
    return wrapped(*operands)


def _optional(pairs: list[tuple[str, _Array | None, Any]]) -> tuple[tuple[tuple[str, _Array], ...], list[Any]]:
    given = [(name, array, x) for name, array, x in pairs if array is not None]
    return tuple((name, array) for name, array, _ in given), [x for _, _, x in given]


def _is_masked(sink: Any, heads: int) -> _Array | None:
    if sink is None:
        return None
    array = _array("sink", sink, "f32", 1)
    _require(array.shape == (heads,), f"sink is float32{list(array.shape)}; expected [{heads}], one for each head")
    return array


def attention(q: Any, k: Any, v: Any, *, scale: float | None = None, causal: bool = False,
              window: tuple[int, int] = (-1, -1), softcap: float = 0.0, sink: Any = None,
              return_lse: bool = False, kernel: str = "auto") -> Any:
    """Attention over whole sequences: q [b, s, heads, d], k and v [b, t, kv_heads, d]; bfloat16 or float16.

    window: visible keys before and after a query, -1: all; softcap 0: none; sink: float32 [heads]. The last query
    stands at the last key. Returns out like q, or out and the lse, float32 [b, heads, s].
    """
    x, y, z = (_array(name, given, "bf16 f16", 4) for name, given in (("q", q), ("k", k), ("v", v)))
    _require(y == z and (x.shape[0], x.shape[3], x.dtype) == (y.shape[0], y.shape[3], y.dtype),
             f"q {x.dtype}{list(x.shape)}, k {y.dtype}{list(y.shape)}, v {z.dtype}{list(z.shape)}: expected k and "
             "v of one shape, and the batch, head size and dtype of q")
    sinks = _is_masked(sink, x.shape[2])
    lse = _Array((x.shape[0], x.shape[2], x.shape[1]), "f32")
    problem: dict[str, Any] = {"dtype": x.dtype, "batch": x.shape[0], "q_len": x.shape[1], "heads": x.shape[2],
               "head_dim": x.shape[3], "kv_len": y.shape[1], "kv_heads": y.shape[2], "scale": scale or 0.0,
               "causal": causal, "window_left": window[0], "window_right": window[1], "softcap": softcap,
               "has_sink": sink is not None, "has_lse": return_lse, "kernel": kernel}
    inputs, operands = _optional([("q", x, q), ("k", y, k), ("v", z, v), ("sink", sinks, sink)])
    results = (("out", x), ("lse", lse)) if return_lse else (("out", x),)
    call = _Call(lambda device: tilewright.Attention(device, **problem), inputs, results)

    def run(*given: Any) -> Any:
        made = _run("Attention", problem, call, list(given))
        return tuple(made) if return_lse else made[0]

    return _forward_only("attention", run, *operands)


def attention_decode(q: Any, k_cache: Any, v_cache: Any, *, lengths: Any, page_table: Any = None,
                     k_new: Any = None, v_new: Any = None, scale: float | None = None, causal: bool = True,
                     window: int = -1, softcap: float = 0.0, sink: Any = None, splits: int = 0,
                     return_lse: bool = False, kernel: str = "auto") -> Any:
    """Attention of q [b, s, heads, d], s at most 16, over caches that are longer; bfloat16 or float16.

    k_cache, v_cache  [b, max_len, kv_heads, d], or [pages, page_size, kv_heads, d] with page_table
                      int32 [b, max_pages]
    lengths           int32 [b]: keys in the cache, read on the device
    k_new, v_new      [b, s, kv_heads, d]: are written behind them first; the caches with them are returned. XLA
                      writes them where they are if they are donated (donate_argnums), and copies them else

    Returns out like q; with return_lse then the lse, float32 [b, heads, s]; with k_new then k_cache and v_cache.
    """
    x = _array("q", q, "bf16 f16", 4)
    caches = [_array(name, given, x.dtype, 4) for name, given in (("k_cache", k_cache), ("v_cache", v_cache))]
    keys = caches[0]
    _require(caches[0] == caches[1] and keys.shape[3] == x.shape[3],
             f"k_cache {list(keys.shape)}, v_cache {list(caches[1].shape)}, q {list(x.shape)}: expected caches of "
             "one shape with the head size of q")
    _require((k_new is None) == (v_new is None), "k_new and v_new: expected both or neither")
    is_new = k_new is not None
    new = [None, None] if not is_new else [_array(name, given, x.dtype, 4)
                                           for name, given in (("k_new", k_new), ("v_new", v_new))]
    wanted = (*x.shape[:2], *keys.shape[2:])
    _require(not is_new or all(one is not None and one.shape == wanted for one in new),
             f"k_new and v_new: expected {list(wanted)}, as many tokens as q")
    counts = _array("lengths", lengths, "i32", 1)
    table = None if page_table is None else _array("page_table", page_table, "i32", 2)
    _require(counts.shape == (x.shape[0],), f"lengths is int32{list(counts.shape)}; expected [{x.shape[0]}]")
    rows = keys.shape[0] if table is None else table.shape[0]
    _require(rows == x.shape[0], f"q {list(x.shape)} and {'k_cache' if table is None else 'page_table'} of {rows} "
             "sequences: expected the same batch")
    problem: dict[str, Any] = {
        "dtype": x.dtype, "kv_dtype": x.dtype, "batch": x.shape[0], "q_len": x.shape[1], "heads": x.shape[2],
        "kv_heads": keys.shape[2], "head_dim": x.shape[3], "scale": scale or 0.0, "causal": causal,
        "window_left": window, "softcap": softcap, "has_sink": sink is not None, "has_lse": return_lse,
        "splits": splits, "kernel": kernel}
    if table is None:
        problem["max_len"] = keys.shape[1]
    else:
        problem |= {"page_size": keys.shape[1], "num_pages": keys.shape[0], "max_pages": table.shape[1]}
    if is_new:
        problem["append"] = {"is_wanted": True}
    inputs, operands = _optional([
        ("q", x, q), ("k_cache", keys, k_cache), ("v_cache", keys, v_cache), ("lengths", counts, lengths),
        ("block_table", table, page_table), ("new_k", new[0], k_new), ("new_v", new[1], v_new),
        ("sink", _is_masked(sink, x.shape[2]), sink)])
    lse = _Array((x.shape[0], x.shape[2], x.shape[1]), "f32")
    results = (("out", x), *((("lse", lse),) if return_lse else ()))
    aliases: tuple[tuple[int, int], ...] = ()
    if is_new:
        aliases = ((1, len(results)), (2, len(results) + 1))
        results = (*results, ("k_cache", keys), ("v_cache", keys))
    call = _Call(lambda device: tilewright.AttentionDecode(device, **problem), inputs, results, aliases)

    def run(*given: Any) -> Any:
        made = _run("AttentionDecode", problem, call, list(given))
        return made[0] if len(made) == 1 else tuple(made)

    return _forward_only("attention_decode", run, *operands)


class Linear:
    """x [..., k] by a weight [n, k] that is prepared once: bfloat16, or rounded to "fp8", "mxfp4" or "nvfp4" as
    tilewright.formats.quantize does. The weight is an array on the host or a GPU; it is copied.

    The prepared weight is of one device, the first GPU or the simulated one, and no part of a program: pass the
    module by closure.
    """

    _count = 0

    def __init__(self, weight: Any, format: str = "bf16") -> None:
        array = _array("weight", weight, "bf16", 2)
        self.out_features, self.in_features = array.shape
        self.format = format
        self._spec = _current()
        given = _weight(np.asarray(weight), format)
        self._made = tilewright.LinearWeight(_open(self._spec), n=array.shape[0], k=array.shape[1], **given)
        self._number = Linear._count
        Linear._count += 1

    def __call__(self, x: Any, bias: Any = None, *, out_dtype: str = "bf16") -> Any:
        """x by the transposed weight, and bias, float32 [n]; out_dtype: "bf16" or "f32"."""
        rows = _array("x", x, "bf16", 1, 2, 3, 4)
        _require(rows.shape[-1] == self.in_features,
                 f"x is bfloat16{list(rows.shape)}; expected {self.in_features} in features")
        biases = None if bias is None else _array("bias", bias, "f32", 1)
        _require(biases is None or biases.shape == (self.out_features,),
                 f"bias: expected float32[{self.out_features}]")
        _require(self._spec == _current(), f"the weight is on {self._spec}, and the program is for {_current()}; "
                 "make the layer where the program runs")
        flat = _Array((math.prod(rows.shape[:-1]), self.in_features), rows.dtype)
        problem: dict[str, Any] = {"m": flat.shape[0], "out_dtype": out_dtype, "has_bias": bias is not None}

        def make(device: tilewright.Device) -> Any:
            _require(device is _open(self._spec), f"the weight of this layer is on {self._spec}, and the program "
                     "runs on another device; make the layer where it runs")
            return tilewright.Linear(self._made, **problem)

        inputs, operands = _optional([("x", flat, x.reshape(flat.shape)), ("bias", biases, bias)])
        call = _Call(make, inputs, (("out", _Array((flat.shape[0], self.out_features), out_dtype)),))

        def run(*given: Any) -> Any:
            return _run(f"Linear {self._number}", problem, call, list(given))[0]

        return _forward_only("linear", run, *operands).reshape((*rows.shape[:-1], self.out_features))


def _weight(values: Any, format: str) -> dict[str, Any]:
    """Members of LinearWeight, rounded to the format."""
    if format == "bf16":
        return {"format": "bf16", "values": np.ascontiguousarray(values)}
    if format not in ("fp8", "mxfp4", "nvfp4"):
        raise InvalidArgument(f"format={format!r}: expected 'bf16', 'fp8', 'mxfp4' or 'nvfp4'")
    n, k = values.shape
    formats = importlib.import_module("tilewright.formats")
    found = formats.quantize(values.astype(np.float32), "fp8_128x128" if format == "fp8" else format)
    codes = np.ascontiguousarray(found.codes[:n, : k if format == "fp8" else k // 2])
    given = {"format": format, "values": codes, "scales": np.ascontiguousarray(found.scales)}
    return given | ({"global_scale": found.tensor_scale} if format == "nvfp4" else {})
