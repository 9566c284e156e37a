"""Attention as SGLang calls it, against float64 on the simulator. SGLang itself is not needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from paged_batches import Case  # noqa: E402
from torch_reference import attention, close, i32, place  # noqa: E402

import tilewright  # noqa: E402
from tilewright.integrations import _versions, sglang  # noqa: E402
from tilewright.integrations._paged import write_cache  # noqa: E402
from tilewright.integrations.sglang.attention import Attention  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
E4M3 = torch.float8_e4m3fn
MIXED = [(1, 40), (20, 20), (7, 50)]


def test_graphs_need_decode_attention() -> None:
    case = Case([(1, 9)], d=72, cache_dtype=E4M3)
    with pytest.warns(UserWarning, match="head size of 72 over caches of e4m3"):
        engine = Engine(case)
    with pytest.raises(tilewright.Unsupported, match="a head size of 72 .* --disable-cuda-graph"):
        engine.init_cuda_graph_state(4, 4)


def test_a_backend_has_to_say_how_keys_are_written() -> None:
    with pytest.raises(TypeError, match="write"):
        Attention(None)  # type: ignore[abstract]


class Mode:
    """A ForwardMode, which answers no but for its own name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, asked: str) -> Any:
        return lambda: asked == f"is_{self.name}"


class Engine(Attention):
    """With a pool of one layer: tensors [slots, kv_heads, d]."""

    def __init__(self, case: Case, requests: int = 6) -> None:
        k, v = (x.contiguous() for x in case.caches())
        self.k, self.v = k, v
        pool = type("MHATokenToKVPool", (), {"dtype": k.dtype})()
        pool.get_key_buffer = lambda layer: k.view(-1, case.kv_heads, case.d)
        pool.get_value_buffer = lambda layer: v.view(-1, case.kv_heads, case.value_dim)
        slots = torch.zeros(requests, case.pages.shape[1] * case.page, dtype=torch.int32)
        within = torch.arange(case.page)
        for b in range(len(case.sequences)):  # request b is in row requests - 1 - b
            slots[requests - 1 - b] = (case.pages[b, :, None] * case.page + within).flatten()
        self.requests = torch.tensor([requests - 1 - b for b in range(len(case.sequences))])
        self.slots = case.slots
        super().__init__(SimpleNamespace(
            device=torch.device(place()),
            page_size=case.page,
            model_config=SimpleNamespace(
                context_len=slots.shape[1], is_encoder_decoder=False, head_dim=case.d
            ),
            req_to_token_pool=SimpleNamespace(req_to_token=slots),
            token_to_kv_pool=pool,
        ))

    def write(self, layer: Any, forward_batch: Any, k: Any, v: Any) -> None:
        scales = SimpleNamespace(k=layer.k_scale or 1.0, v=layer.v_scale or 1.0)
        write_cache(k, v, self.k, self.v, self.slots, scales)


def layer_of(case: Case, **options: Any) -> Any:
    given = {
        "tp_q_head_num": case.heads,
        "tp_k_head_num": case.kv_heads,
        "head_dim": case.d,
        "qk_head_dim": case.d,
        "v_head_dim": case.value_dim,
        "scaling": 0.125,
        "layer_id": 0,
        "logit_cap": 0.0,
        "logit_capping_method": "tanh",
        "sliding_window_size": -1,
        "is_cross_attention": False,
        "pos_encoding_mode": "NONE",
        "xai_temperature_len": -1,
        "attn_type": "decoder",
        "k_scale": None,
        "v_scale": None,
    }
    if case.is_e4m3:
        given |= {"k_scale": torch.tensor(case.scale_k), "k_scale_float": case.scale_k}
        given |= {"v_scale": torch.tensor(case.scale_v), "v_scale_float": case.scale_v}
    return SimpleNamespace(**{**given, **options})


def forward_batch(case: Case, engine: Engine, mode: str) -> Any:
    lengths = torch.tensor(case.lengths())
    return SimpleNamespace(
        forward_mode=Mode(mode),
        batch_size=len(case.sequences),
        seq_lens=lengths,
        seq_lens_cpu=lengths.cpu(),
        extend_seq_lens_cpu=[n for n, _ in case.sequences],
        req_pool_indices=engine.requests,
    )


def run(case: Case, mode: str, layer: Any = None, **options: Any) -> Any:
    case.fill_past()
    engine = Engine(case)
    batch = forward_batch(case, engine, mode)
    engine.init_forward_metadata(batch)
    k, v = (x.flatten(1) for x in case.new())
    forward = engine.forward_decode if mode == "decode" else engine.forward_extend
    out = forward(case.q.flatten(1), k, v, layer or layer_of(case), batch, **options)
    case.cache.copy_(torch.cat([engine.k, engine.v], -1).view(case.cache.dtype).transpose(1, 2))
    return out.view(*case.q.shape[:2], case.value_dim)


@pytest.mark.parametrize("page", [1, 16])
@pytest.mark.parametrize("mode", ["decode", "extend"])
def test_forward(mode: str, page: int) -> None:
    case = Case([(1, 40), (1, 17)] if mode == "decode" else MIXED, page=page)
    out = run(case, mode)
    close(out, case.expected(scale=0.125, causal=True), 0.018)


@pytest.mark.filterwarnings("ignore:Tilewright has no decode attention")
@pytest.mark.parametrize("mode", ["decode", "extend"])
def test_values_of_another_width(mode: str) -> None:
    case = Case([(1, 40), (1, 17)] if mode == "decode" else MIXED, d=192, value_dim=128)
    out = run(case, mode, layer_of(case, scaling=192**-0.5))
    close(out, case.expected(causal=True), 0.018)


def test_graphs_need_values_as_wide_as_keys() -> None:
    case = Case([(1, 9)], d=64, value_dim=32)
    engine = Engine(case)
    batch = forward_batch(case, engine, "decode")
    engine.init_cuda_graph_state(4, 4)
    engine.init_forward_metadata_out_graph(batch, in_capture=True)
    with pytest.raises(tilewright.Unsupported, match="values of 32 beside keys of 64 .* --disable-cuda-graph"):
        engine.forward_decode(case.q, *case.new(), layer_of(case), batch)


def test_codes() -> None:
    case = Case(MIXED, cache_dtype=E4M3, scale_k=0.5, scale_v=2.0)
    out = run(case, "extend")
    close(out, case.expected(scale=0.125, causal=True), 0.053)


def test_window_cap_and_sinks() -> None:
    """SGLang's window does not count the query itself."""
    case = Case(MIXED)
    sinks = torch.tensor([0.5, -1.0, 2.0, 0.0], dtype=torch.bfloat16)
    layer = layer_of(case, sliding_window_size=8, logit_cap=3.0)
    out = run(case, "extend", layer, sinks=sinks)
    options = {"window": (8, 0), "softcap": 3.0, "sink": sinks}
    close(out, case.expected(scale=0.125, causal=True, **options), 0.018)


def test_encoders_without_a_cache() -> None:
    case = Case([(33, 33), (18, 18)])
    out = run(case, "extend", layer_of(case, attn_type="encoder_only"), save_kv_cache=False)
    begin, parts = 0, []
    for k, v, (n, _) in zip(case.k, case.v, case.sequences, strict=True):
        q = case.q[begin : begin + n]
        parts.append(attention(q[None], k[None], v[None], scale=0.125)[0][0])
        begin += n
    close(out, torch.cat(parts), 0.018)


def test_graphs_read_the_same_tensors() -> None:
    case = Case([(1, 40), (1, 17)])
    case.fill_past()
    engine = Engine(case)
    batch = forward_batch(case, engine, "decode")
    engine.init_cuda_graph_state(4, 4)
    engine.init_forward_metadata_out_graph(batch, in_capture=True)
    places = engine.forward_metadata.lengths.data_ptr(), engine.forward_metadata.pages.data_ptr()
    batch.seq_lens = i32([3, 5])
    engine.init_forward_metadata_out_graph(batch)
    after = engine.forward_metadata
    assert (after.lengths.data_ptr(), after.pages.data_ptr()) == places
    assert after.lengths.tolist() == [3, 5] and after.decodes == 2
    batch.seq_lens = i32(case.lengths())
    engine.init_forward_metadata_out_graph(batch)
    k, v = case.new()
    out = engine.forward_decode(case.q, k, v, layer_of(case), batch).view(case.q.shape)
    case.cache.copy_(torch.cat([engine.k, engine.v], -1).transpose(1, 2))
    close(out, case.expected(scale=0.125, causal=True), 0.018)


@pytest.mark.parametrize(
    "changes,text",
    [
        ({"is_cross_attention": True}, "cross-attention"),
        ({"logit_cap": 2.0, "logit_capping_method": "other"}, "capped by other"),
        ({"xai_temperature_len": 5}, "scales or turns q"),
    ],
    ids=str,
)
def test_layers_that_are_refused(changes: dict[str, Any], text: str) -> None:
    case = Case([(1, 5)])
    with pytest.raises(tilewright.Unsupported, match=text):
        run(case, "decode", layer_of(case, **changes))


def test_what_else_is_refused() -> None:
    case = Case([(1, 5)])
    engine = Engine(case)
    with pytest.raises(tilewright.Unsupported, match="drafted tokens"):
        engine.init_forward_metadata(forward_batch(case, engine, "target_verify"))
    with pytest.raises(tilewright.Unsupported, match="k_rope, unknown to us"):
        run(case, "decode", k_rope=torch.ones(1))


def test_registration(monkeypatch: Any) -> None:
    monkeypatch.setenv("TILEWRIGHT_SGLANG", "0")
    sglang.register()
    monkeypatch.setenv("TILEWRIGHT_SGLANG", "1")
    monkeypatch.setattr(_versions, "version", lambda package: "0.6.0")
    with pytest.raises(tilewright.Unsupported, match="sglang 0.6.0: Tilewright's plug-in"):
        sglang.register()


def test_the_registry_of_sglang(monkeypatch: Any) -> None:
    registry = pytest.importorskip("sglang.srt.layers.attention.attention_registry")
    monkeypatch.setenv("TILEWRIGHT_SGLANG", "1")
    sglang.register()
    sglang.register()
    assert registry.ATTENTION_BACKENDS[sglang.NAME] is sglang._create
    from sglang.srt.layers.attention.base_attn_backend import AttentionBackend

    from tilewright.integrations.sglang.backend import Backend

    assert issubclass(Backend, AttentionBackend)
    assert Backend.forward_decode is Attention.forward_decode
