"""Operators in JAX programs, by XLA's foreign functions: on the simulated H200 from programs on the host, and on a
GPU where there is one."""

import functools

import pytest

np = pytest.importorskip("numpy")
jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import tilewright  # noqa: E402
import tilewright.jax as tj  # noqa: E402
from tilewright import _core  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "on_the_simulator")
LIMIT = 2e-2  # values below 5, rounded to bf16 by 2^-8 of themselves at most
ON_GPU = jax.default_backend() == "gpu"


@pytest.fixture
def on_the_simulator():
    tj.set_device("sim:h200")
    yield
    tj.set_device(None)


def normal(*shape, seed=0, dtype=jnp.bfloat16):
    return jnp.asarray(np.random.default_rng(seed + sum(shape)).normal(size=shape), dtype)


def exact(x):
    return np.asarray(x.astype(jnp.float32), np.float64)


def reference(q, k, v, *, scale=None, causal=False, window=(-1, -1), softcap=0.0, sink=None):
    """out [b, s, h, d] and lse [b, h, s], in float64."""
    q, k, v = (exact(x) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[2] // k.shape[2], 2) for x in (k, v))
    s = np.einsum("bqhd,bkhd->bhqk", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    s = softcap * np.tanh(s / softcap) if softcap else s
    here = np.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1]
    key = np.arange(k.shape[1])
    left, right = window[0], 0 if causal else window[1]
    is_hidden = ((key < here - left) & (left >= 0)) | ((key > here + right) & (right >= 0))
    s = np.where(is_hidden, -np.inf, s)
    lse = np.log(np.exp(s).sum(-1))
    below = lse if sink is None else np.logaddexp(lse, np.asarray(sink, np.float64)[:, None])
    return np.einsum("bhqk,bkhd->bqhd", np.exp(s - below[..., None]), v), lse


def close(found, expected, limit=LIMIT):
    assert np.abs(np.asarray(found, np.float64) - expected).max() <= limit


def whole(dtype=jnp.bfloat16):
    return normal(2, 20, 4, 64, dtype=dtype), *(normal(2, 33, 2, 64, seed=i, dtype=dtype) for i in (1, 2))


@pytest.mark.parametrize("options, dtype", [
    ({}, jnp.bfloat16), ({"causal": True}, jnp.float16), ({"window": (6, 3), "softcap": 4.0}, jnp.bfloat16),
    ({"scale": 0.3}, jnp.bfloat16), ({"sink": [0.5, -1.0, 2.0, 0.0]}, jnp.bfloat16)], ids=str)
def test_attention_inside_a_program(options, dtype):
    """The operator's result is used by the program, and its operands are made there."""
    q, k, v = whole(dtype)
    options = {name: jnp.asarray(x, jnp.float32) if name == "sink" else x for name, x in options.items()}

    @jax.jit
    def program(q, k, v):
        out, lse = tj.attention(-q, k, v, return_lse=True, **options)
        return -out, lse + 1

    for sign in (1, -1):
        out, lse = program(sign * q, k, v)
        expected = reference(-sign * q, k, v, **options)
        close(-out.astype(jnp.float32), expected[0])
        close(lse - 1, expected[1], 1e-5)
        assert out.dtype == dtype
    close(tj.attention(q, k, v, **options).astype(jnp.float32), reference(q, k, v, **options)[0])


@pytest.mark.parametrize("is_paged", [False, True])
def test_decode(is_paged):
    q, lengths = normal(2, 1, 4, 64), jnp.asarray([3, 17], jnp.int32)
    caches = [normal(2, 40, 2, 64, seed=i) for i in (1, 2)]
    given, table = caches, None
    if is_paged:
        order = np.random.default_rng(3).permutation(10)
        given = [jnp.zeros((10, 8, 2, 64), jnp.bfloat16).at[order].set(x.reshape(10, 8, 2, 64)) for x in caches]
        table = jnp.asarray(order.reshape(2, 5), jnp.int32)
    out, lse = jax.jit(functools.partial(tj.attention_decode, return_lse=True))(
        q, *given, lengths=lengths, page_table=table)
    for b, n in enumerate((3, 17)):
        expected = reference(q[b : b + 1], *(x[b : b + 1, :n] for x in caches))
        close(out[b : b + 1].astype(jnp.float32), expected[0])
        close(lse[b : b + 1], expected[1], 1e-5)


def test_decode_writes_new_keys_into_caches_that_it_returns():
    """A loop of steps in one program; the caches that were given stay as they are."""
    steps, lengths = 3, jnp.asarray([3, 17], jnp.int32)
    q, k_new, v_new = (normal(steps, 2, 1, heads, 64, seed=i) for i, heads in enumerate((4, 2, 2)))
    caches = [normal(2, 40, 2, 64, seed=i) for i in (3, 4)]
    before = [np.asarray(x) for x in caches]

    @jax.jit
    def program(k_cache, v_cache, lengths):
        def step(carry, given):
            k_cache, v_cache, lengths = carry
            q, k, v = given
            out, k_cache, v_cache = tj.attention_decode(q, k_cache, v_cache, lengths=lengths, k_new=k, v_new=v)
            return (k_cache, v_cache, lengths + 1), out

        return jax.lax.scan(step, (k_cache, v_cache, lengths), (q, k_new, v_new))

    (k, v, ends), out = program(*caches, lengths)
    assert list(ends) == [6, 20] and all(np.array_equal(x, np.asarray(y)) for x, y in zip(before, caches))
    expected = [x.copy() for x in before]
    for b, n in enumerate((3, 17)):
        for cache, new in zip(expected, (k_new, v_new)):
            cache[b, n : n + steps] = np.asarray(new)[:, b, 0]
        for i in range(steps):
            seen = [jnp.asarray(x)[b : b + 1, : n + i + 1] for x in expected]
            close(out[i, b : b + 1].astype(jnp.float32), reference(q[i, b : b + 1], *seen)[0])
    assert np.array_equal(np.asarray(k), expected[0]) and np.array_equal(np.asarray(v), expected[1])


@pytest.mark.parametrize("format, limit", [("bf16", 0.0), ("fp8", 0.04), ("nvfp4", 0.2)])
def test_linear(format, limit):
    """Beside the unrounded weight, of whose norm a format loses at most `limit`: half a step of e4m3, 1/16 of a
    value, is 0.036 of the norm at most, of e2m1 with its scales a sixth."""
    weight, x, bias = normal(64, 128), normal(2, 3, 128, seed=1), normal(64, seed=2, dtype=jnp.float32)
    layer = tj.Linear(weight, format)
    found = jax.jit(lambda x: layer(x, bias, out_dtype="f32"))(x)
    expected = exact(x) @ exact(weight).T + exact(bias)
    assert found.shape == (2, 3, 64) and found.dtype == jnp.float32
    wrong = np.linalg.norm(np.asarray(found) - expected) / np.linalg.norm(expected)
    assert wrong <= limit + 1e-5 and (format == "bf16" or wrong > 1e-3)
    assert layer(x[0, 0]).shape == (64,) and layer(x).dtype == jnp.bfloat16


def test_programs_are_mapped_and_compiled_once():
    q, k, v = whole()
    known = len(tj._registered)
    program = jax.jit(lambda q: tj.attention(q, k, v, causal=True, scale=0.11))
    for _ in range(3):
        program(q)
    assert len(tj._registered) == known + 1
    mapped = jax.vmap(lambda q: tj.attention(q, k, v, causal=True))(jnp.stack([q, -q]))
    for sign, found in zip((1, -1), mapped):
        close(found.astype(jnp.float32), reference(sign * q, k, v, causal=True)[0])


def test_a_gradient_is_refused_with_the_reason():
    q, k, v = whole()
    with pytest.raises(NotImplementedError, match="attention has no backward; call it outside of jax.grad"):
        jax.grad(lambda q: tj.attention(q, k, v).astype(jnp.float32).sum())(q)
    out = jax.grad(lambda x: (tj.attention(jax.lax.stop_gradient(q), k, v).astype(jnp.float32) * x).sum())(1.0)
    assert np.isfinite(out)


def test_bad_input_is_one_sentence():
    q, k, v = whole()
    lengths = jnp.asarray([3, 17], jnp.int32)
    for call, text in (
            (lambda: tj.attention(q.astype(jnp.float32), k, v), r"q is float32\[2, 20, 4, 64\]; expected an"),
            (lambda: tj.attention(q[0], k, v), "q is bfloat16.*expected an array of 4 dimensions, bf16 or f16"),
            (lambda: tj.attention(q, None, v), "k is NoneType; expected an array"),
            (lambda: tj.attention(q, k[:1], v), "expected k and v of one shape"),
            (lambda: tj.attention(q, k, v, sink=jnp.zeros(3)), r"sink is float32\[3\]; expected \[4\]"),
            (lambda: tj.attention_decode(q[:, :1], k, v, lengths=lengths[:1]), r"lengths is int32\[1\]"),
            (lambda: tj.attention_decode(q[:, :1], k, v, lengths=lengths, k_new=k), "expected both or neither"),
            (lambda: tj.attention_decode(q[:1, :1], k, v, lengths=lengths[:1]), "expected the same batch"),
            (lambda: tj.Linear(normal(64, 128), "int4"), "format='int4': expected 'bf16'"),
            (lambda: tj.Linear(normal(64, 128))(normal(2, 64)), "expected 128 in features"),
            (lambda: tj.attention(*(x[..., :60] for x in (q, k, v))), "head_dim = 60; expected a multiple of 8"),
            (lambda: tj.set_device("cuda:0"), "only a simulated device can be set")):
        with pytest.raises(tilewright.InvalidArgument, match=text) as error:
            call()
        assert "\n" not in str(error.value)


@pytest.mark.skipif(ON_GPU, reason="of programs on the host")
def test_what_goes_wrong_inside_a_program_is_told():
    """Programs of another process, or with other buffers, and a device that is not set."""
    tj._register()
    shape = jax.ShapeDtypeStruct((4,), jnp.float32)
    call = jax.ffi.ffi_call(tj.TARGET, shape)
    with pytest.raises(Exception, match="the call of this program is not known in this process"):
        call(jnp.zeros(4), call="nothing").block_until_ready()
    with pytest.raises(Exception, match="the call of this program is not known in this process"):
        call(jnp.zeros(4), other=3).block_until_ready()
    tj.attention(*whole())
    known = next(iter(tj._registered))
    with pytest.raises(Exception, match="another number of buffers than the call has"):
        call(jnp.zeros(4), call=known).block_until_ready()
    tj.set_device(None)
    with pytest.raises(tilewright.InvalidArgument, match="JAX has no GPU here, and no simulated device is set"):
        tj.attention(*whole())


def test_calls_of_other_kinds_are_refused(dev):
    op = tilewright.RmsNorm(dev, rows=1, cols=128, x_dtype="f32", has_weight=False)
    for text, names, inputs, outputs in (("a", {"x": 9}, 1, 1), ("b", {"nothing": 0}, 1, 1), ("c", {}, 20, 20)):
        with pytest.raises(tilewright.InvalidArgument):
            _core.xla_call(text, op, names, inputs, outputs, len, len)
    assert [type(x).__name__ for x in _core.xla_handlers()] == ["PyCapsule"] * 2


def test_releases_that_are_not_known_are_refused(monkeypatch):
    import jaxlib

    monkeypatch.setattr(jaxlib, "__version__", "7.1.0")
    with pytest.raises(ImportError, match="jaxlib 7.1.0 is not known; expected 0.5 to 0.11"):
        tj._register.__wrapped__()
