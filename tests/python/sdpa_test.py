"""scaled_dot_product_attention: our forward in torch's operators, torch's backward behind it."""

from __future__ import annotations

import importlib.util
import inspect
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import kernels_in_torch  # noqa: E402
from kernels_in_torch import computed_by  # noqa: E402, F401
from torch.nn import attention as torch_attention  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

import tilewright.torch as ops  # noqa: E402
from tilewright.integrations import sdpa  # noqa: E402

torch.set_num_threads(1)
TRAINING = Path(__file__).parents[2] / "examples" / "python" / "train_sdpa.py"
CUDA = torch.DispatchKeySet(torch.DispatchKey.CUDA)
HAS_CUDA_KERNELS = torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{sdpa.DENSE}", "CUDA")
DENSE = torch.ops.aten._scaled_dot_product_flash_attention.default
PACKED = torch.ops.aten._flash_attention_forward.default


def operands(
    queries: int = 24, keys: int = 24, heads: int = 4, kv_heads: int = 2, d: int = 64, dv: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """As models have them: [b, heads, s, d], views of [b, s, heads, d]."""
    torch.manual_seed(7)
    shapes = ((2, queries, heads, d), (2, keys, kv_heads, d), (2, keys, kv_heads, dv or d))
    q, k, v = (torch.randn(shape).bfloat16().transpose(1, 2) for shape in shapes)
    return q, k, v


@pytest.mark.parametrize(
    "function,operator", [(sdpa.dense_forward, DENSE), (sdpa.packed_forward, PACKED)]
)
def test_parameters_are_those_of_the_operators(function: Any, operator: Any) -> None:
    """Names, order, defaults and what is keyword-only: torch calls with any of them."""
    wanted = [
        (argument.name, argument.kwarg_only, argument.default_value)
        for argument in operator._schema.arguments
    ]
    given = [
        (
            parameter.name,
            parameter.kind is inspect.Parameter.KEYWORD_ONLY,
            None if parameter.default is inspect.Parameter.empty else parameter.default,
        )
        for parameter in inspect.signature(function).parameters.values()
    ]
    assert given == wanted


def like(meta: Any) -> Any:
    """What torch's own shape function says of a result."""
    if isinstance(meta, torch.Tensor):
        return meta.shape, meta.dtype, meta.stride()
    return meta


def on_meta(operator: Any, *args: Any, **keywords: Any) -> Any:
    moved = [arg.to("meta") if isinstance(arg, torch.Tensor) else arg for arg in args]
    return operator(*moved, **keywords)


@pytest.mark.parametrize("causal,d", [(False, 64), (True, 64), (True, 40), (True, 192)])
def test_the_nine_results_are_those_of_torch(causal: bool, d: int, computed_by: str) -> None:
    q, k, v = operands(d=d)
    ours = sdpa.dense_forward(q, k, v, 0.0, causal, scale=0.1)
    assert ours is not None
    assert [like(r) for r in ours] == [like(r) for r in on_meta(DENSE, q, k, v, 0.0, causal)]
    wanted = scaled_dot_product_attention(
        q.double(), k.double(), v.double(), is_causal=causal, scale=0.1, enable_gqa=True
    )
    assert (ours[0] - wanted).abs().max() < 0.02


@pytest.mark.parametrize("d,dv", [(192, 128), (64, 96)])
def test_values_of_another_width(d: int, dv: int, computed_by: str) -> None:
    """out lies as q does, in rows of its own width."""
    q, k, v = operands(d=d, dv=dv)
    out, lse, *_ = sdpa.dense_forward(q, k, v, 0.0, True) or ()
    wanted = scaled_dot_product_attention(
        q.double(), k.double(), v.double(), is_causal=True, enable_gqa=True
    )
    assert out.shape == wanted.shape and out.transpose(1, 2).is_contiguous()
    assert (out - wanted).abs().max() < 0.02
    q, k, v, *lengths = packed_operands(d, dv)
    out, *_ = sdpa.packed_forward(q, k, v, *lengths, 0.0, True, False) or ()
    for begin, end in ((0, 7), (7, 8), (8, 30)):
        part = (t[None, begin:end].transpose(1, 2).double() for t in (q, k, v))
        wanted = scaled_dot_product_attention(*part, is_causal=True, enable_gqa=True)
        assert (out[begin:end] - wanted[0].transpose(0, 1)).abs().max() < 0.02


def packed_operands(d: int = 64, dv: int = 0) -> tuple[Any, ...]:
    torch.manual_seed(8)
    shapes = ((4, d), (2, d), (2, dv or d))
    q, k, v = (torch.randn(30, *shape).bfloat16() for shape in shapes)
    cu = torch.tensor([0, 7, 8, 30], dtype=torch.int32)
    return q, k, v, cu, cu, 22, 22


def test_the_five_results_are_those_of_torch(computed_by: str) -> None:
    args = (*packed_operands(), 0.0, True, False)
    ours = sdpa.packed_forward(*args)
    assert ours is not None
    assert [like(r) for r in ours] == [like(r) for r in on_meta(PACKED, *args)]
    for begin, end in ((0, 7), (7, 8), (8, 30)):
        q, k, v = (t[None, begin:end].transpose(1, 2).double() for t in args[:3])
        wanted = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        assert (ours[0][begin:end] - wanted[0].transpose(0, 1)).abs().max() < 0.02


@pytest.mark.parametrize("window", [(5, 0), (3, 2), (-1, 4)])
def test_windows(window: tuple[int, int], computed_by: str) -> None:
    args = packed_operands()
    ours = sdpa.packed_forward(
        *args, 0.0, False, False, window_size_left=window[0], window_size_right=window[1]
    )
    assert ours is not None
    wanted = kernels_in_torch.attention_varlen(
        *args[:3], cu_q=args[3], cu_kv=args[4], max_q=22, max_kv=22, window=window
    )
    assert (ours[0].double() - wanted.double()).abs().max() < 0.02


@pytest.mark.parametrize("causal", [False, True])
def test_torchs_backward_takes_our_results(causal: bool, computed_by: str) -> None:
    """That of the CPU, which wants the same two tensors as the GPU's."""
    q, k, v = operands(kv_heads=4)
    torch.manual_seed(9)
    slope = torch.randn(q.shape).bfloat16()
    out, lse, *_ = sdpa.dense_forward(q, k, v, 0.0, causal) or ()
    ours = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        slope, q, k, v, out, lse, 0.0, causal
    )
    leaves = [tensor.double().requires_grad_() for tensor in (q, k, v)]
    exact = scaled_dot_product_attention(*leaves, is_causal=causal)
    for given, wanted in zip(ours, torch.autograd.grad(exact, leaves, slope.double()), strict=True):
        assert (given - wanted).norm() < 0.01 * wanted.norm()


def test_rows_without_keys_have_the_lse_that_the_backward_wants(computed_by: str) -> None:
    """exp(score - lse) has to be 0 there. Bottom-right causality hides all keys from 16 queries."""
    q, k, v = operands(queries=24, keys=8)
    out, lse, *_ = sdpa.dense_forward(q, k, v, 0.0, True) or ()
    assert bool((lse[:, :, :16] == math.inf).all()) and bool(lse[:, :, 16:].isfinite().all())
    assert bool((out[:, :, :16] == 0).all())
    cu_q, cu_k = (torch.tensor(ends, dtype=torch.int32) for ends in ([0, 7, 30], [0, 7, 7]))
    q, k, v = packed_operands()[:3]
    out, lse, *_ = sdpa.packed_forward(q, k[:7], v[:7], cu_q, cu_k, 23, 7, 0.0, False, False) or ()
    assert bool((lse[:, 7:] == math.inf).all()) and bool(lse[:, :7].isfinite().all())
    assert bool((out[7:] == 0).all())


class TestNotForUs:
    """Torch's own kernel runs."""

    @pytest.fixture(autouse=True)
    def no_kernels(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("attention", "attention_varlen"):
            monkeypatch.setattr(ops, name, lambda *args, **keywords: pytest.fail("was called"))

    def test_dropout_and_its_mask(self) -> None:
        assert sdpa.dense_forward(*operands(), 0.1) is None
        assert sdpa.dense_forward(*operands(), 0.0, False, True) is None

    @pytest.mark.parametrize("d", [36, 100, 264])
    def test_head_dims(self, d: int) -> None:
        assert sdpa.dense_forward(*operands(d=d)) is None

    def test_fp32(self) -> None:
        assert sdpa.dense_forward(*(tensor.float() for tensor in operands())) is None

    def test_misaligned_rows(self) -> None:
        wide = torch.zeros(2, 4, 24, 68).bfloat16()
        q, k, v = operands(kv_heads=4)
        assert sdpa.dense_forward(wide[..., :64], k, v) is None
        assert sdpa.dense_forward(wide[..., 2:66], k, v) is None
        assert sdpa.dense_forward(q, k.mT.contiguous().mT, v) is None

    def test_no_keys(self) -> None:
        assert sdpa.dense_forward(*operands(keys=0)) is None

    def test_what_only_packed_sequences_have(self) -> None:
        args = (*packed_operands(), 0.0, True, False)
        assert sdpa.packed_forward(*args, alibi_slopes=torch.zeros(4)) is None
        assert sdpa.packed_forward(*args, seqused_k=torch.zeros(3, dtype=torch.int32)) is None
        long = (*args[:3], args[3].long(), args[4].long(), *args[5:])
        assert sdpa.packed_forward(*long) is None


@pytest.mark.skipif(not HAS_CUDA_KERNELS, reason="needs a build of torch for CUDA")
class TestActivation:
    """The CUDA kernels of torch's dispatcher, called with CPU tensors: no GPU is needed for that."""

    @pytest.fixture(autouse=True)
    def active(self) -> Iterator[None]:
        sdpa.register()
        torch_attention.activate_flash_attention_impl("tilewright")
        yield
        if torch_attention.current_flash_attention_impl() is not None:
            torch_attention.restore_flash_attention_impl()

    def test_the_operators_are_ours(self, computed_by: str) -> None:
        q, k, v = operands()
        ours = sdpa.dense_forward(q, k, v, 0.0, True)
        results = DENSE.redispatch(CUDA, q, k, v, 0.0, True)
        assert torch.equal(results[0], ours[0]) and torch.equal(results[1], ours[1])
        args = (*packed_operands(), 0.0, True, False)
        results = PACKED.redispatch(CUDA, *args, scale=0.2)
        assert torch.equal(results[0], sdpa.packed_forward(*args, scale=0.2)[0])

    def test_what_is_not_for_us_goes_to_torch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        calls = []

        class Original:
            def call_boxed(self, keys: Any, *args: Any, **keywords: Any) -> str:
                calls.append((args, keywords))
                return "torch"

        kernel = sdpa._with_fallback(sdpa.dense_forward, Original())
        q, k, v = operands(d=100)
        assert kernel(CUDA, q, k, v, 0.0, True, scale=0.5) == "torch"
        assert calls == [((q, k, v, 0.0, True), {"scale": 0.5})]

    def test_restored(self) -> None:
        torch_attention.restore_flash_attention_impl()
        kernel = torch.library.get_kernel(f"aten::{sdpa.DENSE}", "CUDA")
        assert "RegisterCUDA" in str(kernel)
        torch_attention.activate_flash_attention_impl("tilewright")
        kernel = torch.library.get_kernel(f"aten::{sdpa.DENSE}", "CUDA")
        assert "RegisterCUDA" not in str(kernel)


def test_registration_activates_nothing() -> None:
    sdpa.register()
    assert "tilewright" in torch_attention.list_flash_attention_impls()
    assert torch_attention.current_flash_attention_impl() is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
class TestGpu:
    """Against torch's own forward; the backward is torch's in both."""

    @pytest.fixture(autouse=True)
    def restored(self) -> Iterator[None]:
        sdpa.register()
        yield
        if torch_attention.current_flash_attention_impl() is not None:
            torch_attention.restore_flash_attention_impl()

    def both(
        self, monkeypatch: pytest.MonkeyPatch, function: Any, *inputs: Any
    ) -> list[list[torch.Tensor]]:
        """The output and the gradients of floating-point inputs, of torch and of us."""
        results, calls = [], []
        run = sdpa._run
        monkeypatch.setattr(sdpa, "_run", lambda *args: calls.append(1) or run(*args))
        for name in (None, "tilewright"):
            if name is not None:
                torch_attention.activate_flash_attention_impl(name)
            given = [
                x.detach().clone().requires_grad_() if x.is_floating_point() else x for x in inputs
            ]
            out = function(*given)
            torch.manual_seed(11)
            leaves = [x for x in given if x.requires_grad]
            results.append([out, *torch.autograd.grad(out, leaves, torch.randn_like(out))])
        assert len(calls) == 1
        return results

    def assert_alike(self, results: list[list[torch.Tensor]]) -> None:
        for theirs, ours in zip(*results, strict=True):
            assert bool(ours.isfinite().all())
            assert (ours.double() - theirs.double()).norm() <= 0.01 * theirs.double().norm()

    @pytest.mark.parametrize("causal", [False, True])
    @pytest.mark.parametrize("d", [64, 128, 256])
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_gpu_gradients(
        self, causal: bool, d: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def function(*qkv: torch.Tensor) -> torch.Tensor:
            with torch_attention.sdpa_kernel(torch_attention.SDPBackend.FLASH_ATTENTION):
                return scaled_dot_product_attention(*qkv, is_causal=causal, enable_gqa=True)

        inputs = (tensor.to("cuda", dtype) for tensor in operands(300, 300, 4, 2, d))
        self.assert_alike(self.both(monkeypatch, function, *inputs))

    @pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (20, 0)])
    def test_gpu_gradients_of_packed_sequences(
        self, window: tuple[int, int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The third sequence has no keys, so none of its rows may get or give a gradient."""
        varlen = pytest.importorskip("torch.nn.attention.varlen")
        torch.manual_seed(12)
        q, k, v = (torch.randn(rows, 4, 64, device="cuda").bfloat16() for rows in (150, 120, 120))
        cu_q, cu_k = (
            torch.tensor(ends, dtype=torch.int32, device="cuda")
            for ends in ([0, 70, 120, 150], [0, 70, 120, 120])
        )

        def function(*args: torch.Tensor) -> torch.Tensor:
            return varlen.varlen_attn(*args, 70, 70, window_size=window)

        theirs, ours = self.both(monkeypatch, function, q, k, v, cu_q, cu_k)
        assert bool((ours[1][120:] == 0).all())
        self.assert_alike([theirs, ours])

    def test_gpu_rows_without_keys(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def function(*qkv: torch.Tensor) -> torch.Tensor:
            return DENSE(*qkv, 0.0, True)[0]

        inputs = (tensor.cuda() for tensor in operands(queries=100, keys=60))
        self.assert_alike(self.both(monkeypatch, function, *inputs))

    def test_gpu_other_head_dims_run_on_torchs_kernel(self) -> None:
        q, k, v = (tensor.cuda() for tensor in operands(d=96, kv_heads=4))
        theirs = DENSE(q, k, v, 0.0, True)
        torch_attention.activate_flash_attention_impl("tilewright")
        ours = DENSE(q, k, v, 0.0, True)
        assert torch.equal(ours[0], theirs[0]) and torch.equal(ours[1], theirs[1])

    def test_gpu_training(self) -> None:
        """Thirty steps: bf16 noise in the gradients moves losses by thousandths."""
        spec = importlib.util.spec_from_file_location("train_sdpa", TRAINING)
        assert spec is not None and spec.loader is not None
        example = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(example)
        theirs, ours = (example.train(name, 30) for name in (None, "tilewright"))
        assert ours[-1] < ours[0] - 1.5
        assert max(abs(a - b) for a, b in zip(theirs, ours, strict=True)) < 0.03
