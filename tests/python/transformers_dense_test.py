"""Dense models of transformers against their own eager attention."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
torch.set_num_threads(1)  # models this small lose time to more

from kernels_in_torch import computed_by  # noqa: E402, F401
from transformers import AutoConfig, AutoModelForCausalLM, masking_utils  # noqa: E402

import tilewright  # noqa: E402
import tilewright.torch as ops  # noqa: E402
from tilewright.integrations.transformers import _attention, _mask, register  # noqa: E402

register()
VOCABULARY = 64


def model(kind: str, dtype: torch.dtype = torch.bfloat16, **options: Any) -> Any:
    """Two layers with weights large enough that attention matters."""
    config = AutoConfig.for_model(
        kind,
        **{
            "vocab_size": VOCABULARY,
            "hidden_size": 128,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 64,
            "max_position_embeddings": 4096,
            "initializer_range": 0.2,
            "pad_token_id": 0,
            **options,
        },
    )
    torch.manual_seed(1)
    made = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if name.endswith("sinks"):
                parameter.uniform_(-1, 1)
    return made.to(dtype).eval()


def tokens(batch: int, length: int) -> torch.Tensor:
    return torch.randint(1, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(2))


def logits(given: Any, implementation: str, **inputs: Any) -> torch.Tensor:
    given.set_attn_implementation(implementation)
    with torch.no_grad():
        return given(use_cache=False, **inputs).logits.double()


def assert_close(ours: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> None:
    """Ours may be twice as far from fp32 as eager attention in bf16 is."""
    error, noise = ((x - exact).norm() / exact.norm() for x in (ours, eager))
    assert error <= 2 * noise, f"{error:.2e}, but eager bf16 {noise:.2e}"


def compare(given: Any, inputs: dict[str, Any], counts: Any = ...) -> None:
    ours, eager = (logits(given, name, **inputs) for name in ("tilewright", "eager"))
    assert_close(ours[counts], eager[counts], logits(given.float(), "eager", **inputs)[counts])


KINDS = {
    "llama": {},
    "mistral": {"sliding_window": 8},
    "gemma2": {"sliding_window": 8, "attn_logit_softcapping": 2.0, "query_pre_attn_scalar": 64},
    "gpt_oss": {"sliding_window": 8, "num_local_experts": 1, "num_experts_per_tok": 1},
}


@pytest.mark.parametrize("kind", KINDS)
def test_whole_sequences(kind: str, computed_by: str) -> None:
    compare(model(kind, **KINDS[kind]), {"input_ids": tokens(2, 40)})


@pytest.mark.parametrize("head_dim", [32, 80, 128])
def test_head_dims(head_dim: int, computed_by: str) -> None:
    compare(model("llama", head_dim=head_dim), {"input_ids": tokens(1, 20)})


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", ["llama", "mistral"])
def test_padded_batches(kind: str, side: str, computed_by: str) -> None:
    mask = torch.ones(3, 24, dtype=torch.long)
    mask[1, 10:] = 0
    mask[2, 23:] = 0
    mask = mask.flip(1) if side == "left" else mask
    inputs = {"input_ids": tokens(3, 24), "attention_mask": mask}
    compare(model(kind, **KINDS[kind]), inputs, mask.bool())


@pytest.mark.parametrize("kind", KINDS)
def test_packed_sequences(kind: str, computed_by: str) -> None:
    """As each sequence alone."""
    given = model(kind, **KINDS[kind])
    lengths = (5, 17, 1, 12)
    inputs = tokens(1, sum(lengths))
    positions = torch.cat([torch.arange(length) for length in lengths])[None]
    ours = logits(given, "tilewright", input_ids=inputs, position_ids=positions)

    def alone() -> torch.Tensor:
        parts = [logits(given, "eager", input_ids=part) for part in inputs.split(lengths, 1)]
        return torch.cat(parts, 1)

    eager = alone()
    given.float()
    assert_close(ours, eager, alone())


def test_packed_sequences_by_their_lengths(computed_by: str) -> None:
    given = model("llama")
    positions = torch.cat([torch.arange(n) for n in (5, 17, 13)])[None]
    cu = torch.tensor([0, 5, 22, 35])
    inputs = {"input_ids": tokens(1, 35), "position_ids": positions}
    wanted = logits(given, "tilewright", **inputs)
    lengths = {"cu_seq_lens_q": cu, "cu_seq_lens_k": cu, "max_length_q": 17, "max_length_k": 17}
    assert torch.equal(logits(given, "tilewright", **inputs, **lengths), wanted)


@pytest.mark.parametrize("masked", [True, False], ids=["padded", "whole"])
@pytest.mark.parametrize("cache", [transformers.DynamicCache, transformers.StaticCache])
@pytest.mark.parametrize("kind", ["llama", "mistral"])
def test_caches(kind: str, cache: Any, masked: bool, computed_by: str) -> None:
    """A prompt, then three tokens, one at a time; a static cache is longer than what it holds."""
    given = model(kind, **KINDS[kind])
    inputs = tokens(2, 15)
    mask = torch.ones_like(inputs)
    mask[1, :5] = 0
    positions = (mask.cumsum(1) - 1).clamp(min=0) if masked else torch.arange(15).expand(2, -1)

    def decoded(implementation: str) -> torch.Tensor:
        given.set_attn_implementation(implementation)
        options = {"max_cache_len": 32} if cache is transformers.StaticCache else {}
        past = cache(config=given.config, **options)
        steps = []
        for begin, end in ((0, 12), (12, 13), (13, 14), (14, 15)):
            with torch.no_grad():
                step = given(
                    inputs[:, begin:end],
                    attention_mask=mask[:, :end] if masked else None,
                    position_ids=positions[:, begin:end],
                    past_key_values=past,
                    use_cache=True,
                )
            steps.append(step.logits[:, -1].double())
        return torch.stack(steps)

    ours, eager = decoded("tilewright"), decoded("eager")
    given.float()
    assert_close(ours, eager, decoded("eager"))


def test_padded_keys_of_another_sequence(computed_by: str) -> None:
    """Cross attention: the mask is that of the keys, and every query counts."""
    layer = model("llama").model.layers[0].self_attn
    torch.manual_seed(3)
    q, k, v = (torch.randn(2, heads, n, 64).bfloat16() for heads, n in ((4, 5), (2, 9), (2, 9)))
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[1, 3:] = False
    out, _ = _attention(layer, q, k, v, mask, is_causal=False)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        q.double(), k.double(), v.double(), attn_mask=mask[:, None, None], enable_gqa=True
    )
    assert (out - wanted.transpose(1, 2)).abs().max() < 0.02


def test_layer_norms_in_fp32_are_cast_back(computed_by: str) -> None:
    given = model("llama")
    attention = given.model.layers[0].self_attn
    given.set_attn_implementation("tilewright")
    q, k, v = (torch.randn(1, heads, 8, 64, dtype=torch.float32) for heads in (4, 2, 2))
    out, weights = _attention(attention, q, k, v, None)
    rounded, _ = _attention(attention, q.bfloat16(), k.bfloat16(), v.bfloat16(), None)
    assert weights is None and out.dtype == torch.float32
    assert torch.equal(out, rounded.float())


def test_backward_is_refused(kernels: None) -> None:
    ops.set_device("sim:h200")
    given = model("llama")
    given.set_attn_implementation("tilewright")
    loss = given(tokens(1, 8), labels=tokens(1, 8)).loss
    with pytest.raises(NotImplementedError, match="tilewright: attention has no backward"):
        loss.backward()


def test_one_token_over_many_takes_the_decode_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops, "attention", lambda *args, **keywords: pytest.fail("was called"))
    calls = []
    monkeypatch.setattr(ops, "attention_decode", lambda q, *_, **options: calls.append(options) or q)
    q, k = torch.zeros(1, 4, 1, 64).bfloat16(), torch.zeros(1, 2, 40, 64).bfloat16()
    layer = model("mistral", sliding_window=8).model.layers[0].self_attn
    _attention(layer, q, k, torch.zeros_like(k), None, sliding_window=8)
    assert calls[0]["lengths"].tolist() == [40] and calls[0]["window"] == 7


class TestRefusals:
    """What no kernel does is refused, with the model's name and a way out."""

    @pytest.fixture(autouse=True)
    def no_kernels(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("attention", "attention_varlen", "attention_decode"):
            monkeypatch.setattr(ops, name, lambda *args, **keywords: pytest.fail("was called"))

    def call(self, given: Any = None, mask: Any = None, **keywords: Any) -> None:
        given = given or model("llama")
        q = torch.zeros(1, 4, 8, given.config.head_dim, dtype=given.dtype)
        _attention(given.model.layers[0].self_attn, q, q[:, :2], q[:, :2], mask, **keywords)

    def test_a_mask_of_four_dimensions(self) -> None:
        with pytest.raises(tilewright.Unsupported, match=r"llama: .*\[1, 1, 8, 8\].*eager"):
            self.call(mask=torch.zeros(1, 1, 8, 8))

    def test_dropout(self) -> None:
        with pytest.raises(tilewright.Unsupported, match="llama: attention dropout 0.1"):
            self.call(dropout=0.1)

    def test_continuous_batching(self) -> None:
        with pytest.raises(tilewright.Unsupported, match=r"paged caches.*generate\(\)"):
            self.call(cache=object())

    def test_weights(self) -> None:
        with pytest.raises(tilewright.Unsupported, match="output_attentions"):
            self.call(output_attentions=True)

    def test_a_model_of_fp32(self) -> None:
        with pytest.raises(tilewright.Unsupported, match=r"float32.*dtype=torch\.bfloat16"):
            self.call(model("llama", dtype=torch.float32))

    def test_large_heads(self) -> None:
        with pytest.raises(tilewright.Unsupported, match="heads of 320"):
            self.call(model("llama", head_dim=320))

    def test_masks_that_attention_would_not_see(self) -> None:
        chunked = masking_utils.chunked_causal_mask_function(4, torch.zeros(1, dtype=torch.long))
        either = masking_utils.or_masks(masking_utils.causal_mask_function, lambda *where: True)
        for function, name in ((chunked, "chunked_overlay"), (either, "or_masks")):
            with pytest.raises(tilewright.Unsupported, match=f"llama: a mask by .*{name}"):
                _mask(
                    config=model("llama").config,
                    mask_function=function,
                    batch_size=1,
                    q_length=8,
                    kv_length=8,
                )
