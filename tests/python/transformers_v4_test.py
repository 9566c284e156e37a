"""DeepSeek-V4 of transformers: random layers of all three types, and the bundled model."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
torch.set_num_threads(1)  # models this small lose time to more

from kernels_in_torch import computed_by  # noqa: E402, F401
from transformers.masking_utils import AttentionMaskInterface  # noqa: E402

import tilewright  # noqa: E402
from tilewright.integrations.transformers import _attention, load_v4, register  # noqa: E402

register()
BUNDLED = Path(__file__).parents[2] / "examples" / "models" / "tiny-dsv4"
NATS_A_BYTE = 2e-4


def random_v4(**options: Any) -> Any:
    """Window, heavily compressed and sparse layers, with weights large enough that they matter."""
    config = transformers.DeepseekV4Config(
        **{
            "vocab_size": 64,
            "hidden_size": 64,
            "moe_intermediate_size": 64,
            "num_hidden_layers": 3,
            "layer_types": [
                "sliding_attention",
                "heavily_compressed_attention",
                "compressed_sparse_attention",
            ],
            "compress_rates": {
                "heavily_compressed_attention": 16,
                "compressed_sparse_attention": 4,
            },
            "mlp_layer_types": ["moe"] * 3,
            "num_attention_heads": 4,
            "head_dim": 512,
            "q_lora_rank": 32,
            "o_lora_rank": 16,
            "o_groups": 2,
            "n_routed_experts": 2,
            "num_experts_per_tok": 2,
            "index_n_heads": 2,
            "index_head_dim": 64,
            "index_topk": 6,
            "sliding_window": 16,
            "max_position_embeddings": 1024,
            "initializer_range": 0.15,
            **options,
        }
    )
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("sinks", "position_bias")):
                parameter.uniform_(-1, 1)
    return model.eval()


def tokens(batch: int, length: int) -> torch.Tensor:
    return torch.randint(1, 64, (batch, length), generator=torch.Generator().manual_seed(4))


def prefilled_and_decoded(model: Any, implementation: str, inputs: Any, prompt: int) -> Any:
    """Logits of a prompt and of the tokens behind it, one at a time."""
    model.set_attn_implementation(implementation)
    past = transformers.DynamicCache(config=model.config)
    steps = []
    for begin, end in [(0, prompt), *((i, i + 1) for i in range(prompt, inputs.shape[1]))]:
        with torch.no_grad():
            step = model(inputs[:, begin:end], past_key_values=past, use_cache=True)
        steps.append(step.logits.double())
    return torch.cat(steps, 1)


def test_prefill_and_decode(computed_by: str) -> None:
    """In an fp32 model our attention rounds its operands and results to bf16, and nothing else."""
    model = random_v4()
    inputs = tokens(2, 60)
    ours, eager = (
        prefilled_and_decoded(model, name, inputs, 54) for name in ("tilewright", "eager")
    )
    assert (ours - eager).norm() <= 0.03 * eager.norm()


def test_prefill_and_decode_in_bf16(computed_by: str) -> None:
    model = random_v4()
    inputs = tokens(2, 60)
    exact = prefilled_and_decoded(model, "eager", inputs, 54)
    model.bfloat16()
    error, noise = (
        (prefilled_and_decoded(model, name, inputs, 54) - exact).norm()
        for name in ("tilewright", "eager")
    )
    assert error <= 2 * noise


def test_padded_prompts(computed_by: str) -> None:
    """Eager attention gives padding of its own an average, ours 0: only tokens are compared."""
    model = random_v4()
    mask = torch.ones(2, 40, dtype=torch.long)
    mask[1, 33:] = 0
    found = []
    for name in ("tilewright", "eager"):
        model.set_attn_implementation(name)
        with torch.no_grad():
            found.append(model(tokens(2, 40), attention_mask=mask, use_cache=False).logits)
    ours, eager = (logits[mask.bool()].double() for logits in found)
    assert (ours - eager).norm() <= 0.03 * eager.norm()


class TestRefusals:
    def test_no_mask(self) -> None:
        layer = random_v4().model.layers[1].self_attn
        rows = torch.zeros(1, 1, 8, 512)
        with pytest.raises(tilewright.Unsupported, match="deepseek_v4: attention_mask None"):
            _attention(layer, torch.zeros(1, 4, 8, 512), rows, rows, None, scaling=1.0)

    def test_attention_alone_is_never_registered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without a mask function, transformers passes no mask: what this is about."""
        model = random_v4()
        model.set_attn_implementation("tilewright")
        assert "tilewright" in AttentionMaskInterface._global_mapping
        monkeypatch.delitem(AttentionMaskInterface._global_mapping, "tilewright")
        with pytest.raises(tilewright.Unsupported, match="register masks together"):
            model(tokens(1, 8), use_cache=False)

    def test_keys_that_are_not_values(self) -> None:
        layer = random_v4().model.layers[0].self_attn
        rows, mask = torch.zeros(1, 1, 8, 512), torch.zeros(1, 1, 8, 8)
        with pytest.raises(tilewright.Unsupported, match="one tensor for both"):
            _attention(layer, torch.zeros(1, 4, 8, 512), rows, rows.clone(), mask, scaling=1.0)

    def test_dropout(self) -> None:
        layer = random_v4().model.layers[0].self_attn
        rows = torch.zeros(1, 1, 8, 512)
        with pytest.raises(tilewright.Unsupported, match="dropout"):
            _attention(layer, rows.expand(1, 4, 8, 512), rows, rows, None, 1.0, dropout=0.5)


@pytest.fixture(scope="module")
def bundled() -> Any:
    transformers.utils.logging.disable_progress_bar()
    return load_v4(BUNDLED)


def nats_a_byte(model: Any, implementation: str, begin: int, count: int) -> float:
    """Of held-out text, all bytes predicted from those before them in the chunk."""
    model.set_attn_implementation(implementation)
    text = torch.frombuffer(bytearray((BUNDLED / "heldout.txt").read_bytes()), dtype=torch.uint8)
    ids = text[begin : begin + count + 1].long().to(model.device)
    with torch.no_grad():
        logits = model(ids[None, :-1], use_cache=False).logits[0]
    return float(torch.nn.functional.cross_entropy(logits.double(), ids[1:]))


def test_the_bundled_model_scores_as_eager(bundled: Any, computed_by: str) -> None:
    """Long enough that every type of layer has compressed rows."""
    ours, eager = (nats_a_byte(bundled, name, 0, 140) for name in ("tilewright", "eager"))
    assert abs(ours - eager) <= NATS_A_BYTE, (ours, eager)


#: tilewright generate -f prompt.txt --max-tokens 64 --temperature 0 --kv bf16 --index bf16
TEXT_OF_THE_TOOL = b"putes the system and the system administrator and the system adm"


def continued(
    model: Any, count: int, prompt: bytes | None = None, implementation: str = "tilewright"
) -> bytes:
    """What the greedy choice puts behind a prompt; by default the one beside the model."""
    prompt = (BUNDLED / "prompt.txt").read_bytes() if prompt is None else prompt
    model.set_attn_implementation(implementation)
    inputs = torch.tensor([list(prompt)], device=model.device)
    made = model.generate(inputs, max_new_tokens=count, do_sample=False)
    return bytes(made[0, len(prompt) :].tolist())


def test_the_text_is_that_of_the_tool(bundled: Any, computed_by: str) -> None:
    assert continued(bundled, 16) == TEXT_OF_THE_TOOL[:16]


def test_the_bundled_model_needs_all_its_tensors(tmp_path: Path) -> None:
    for file in BUNDLED.iterdir():
        if not file.name.startswith("model-00002"):
            (tmp_path / file.name).symlink_to(file)
    with pytest.raises(ValueError, match="missing keys: .*model.layers"):
        load_v4(tmp_path)


def test_the_bundled_model_in_bf16_with_our_experts(computed_by: str) -> None:
    """16 bits everywhere move the score by some thousandths; a mistake by a whole nat."""
    model = load_v4(BUNDLED, dtype=torch.bfloat16, experts_implementation="tilewright")
    ours = nats_a_byte(model, "tilewright", 0, 70)
    model.set_experts_implementation("eager")
    assert abs(ours - nats_a_byte(model, "eager", 0, 70)) <= 0.01


def test_the_example(bundled: Any, kernels: None) -> None:
    script = BUNDLED.parents[1] / "python" / "transformers_v4.py"
    prompt = b"What is NUMA? "
    done = subprocess.run(
        [sys.executable, str(script), "-p", prompt.decode(), "--max-tokens", "4"],
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
    )
    assert done.stdout == prompt + continued(bundled, 4, prompt, "eager") + b"\n"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
class TestGpu:
    @pytest.fixture(scope="class")
    def model(self, bundled: Any) -> Iterator[Any]:
        yield bundled.cuda()
        bundled.cpu()

    def test_gpu_scores_of_four_chunks(self, model: Any) -> None:
        chunks = range(0, 4096, 1024)
        ours, eager = (
            sum(nats_a_byte(model, name, begin, 1024) for begin in chunks) / 4
            for name in ("tilewright", "eager")
        )
        assert abs(eager / math.log(2) - 0.62363) < 2e-4
        assert abs(ours - eager) <= NATS_A_BYTE, (ours, eager)

    def test_gpu_text_is_that_of_the_tool(self, model: Any) -> None:
        assert continued(model, len(TEXT_OF_THE_TOOL)) == TEXT_OF_THE_TOOL
