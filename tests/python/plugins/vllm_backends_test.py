"""The batches of vLLM's own test of attention backends through its classes, and the runner of that test.

The batches (decoding, prompts in parts, both; windows; encoders; no causality; sinks) with the heads of the models
that it names, on one rank and divided by two and four: metadata by CommonAttentionMetadata and our builder, the
cache written to by do_kv_cache_update(), forward() on them, compared with scaled_dot_product_attention in float64.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("vllm", reason="vLLM's Python sources are not installed")
torch.set_num_threads(1)

import tilewright.torch  # noqa: E402
from paged_batches import Case  # noqa: E402
from torch_reference import close  # noqa: E402
from vllm.v1.attention.backend import AttentionType  # noqa: E402
from vllm_test import run  # noqa: E402

from tilewright.integrations.vllm.backend import Impl  # noqa: E402
from tilewright.testing.peers import _vllm  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
#: Sequences of (queries, keys). The file's longer ones are shorter here: what they are of is the same.
BATCHES = {
    "small_decode": [(1, 32), (1, 40)],
    "small_prefill": [(8, 32), (8, 40)],
    "mixed_small": [(1, 32), (1, 40), (5, 48), (5, 56)],
    "medium_decode": [(1, n) for n in (128, 256, 64, 300, 17, 1)],
    "medium_prefill": [(16, 64), (16, 200), (16, 16)],
    "mixed_medium": [(1, 100), (1, 257), (7, 100), (7, 130)],
    "single_decode": [(1, 300)],
    "single_prefill": [(64, 200)],
}
ENCODERS = {"small_encoder_prefill": [(32, 32), (64, 64), (100, 100)]}
#: Heads, heads of keys, size: Llama 3 8B, on one rank, two and four; Phi-tiny-MoE; embeddinggemma.
MODELS = {"llama": (32, 8, 128), "llama_tp2": (16, 4, 128), "llama_tp4": (8, 2, 128), "phi": (16, 4, 128),
          "gemma": (3, 1, 256)}
#: Heads, heads of keys, size and window of the models whose names the file has in one release or another. Half a
#: window of embeddinggemma's 512 is seen to each side, and the query itself.
MODELS_OF_THE_FILE = {
    "Qwen/Qwen3-0.6B": (16, 8, 128, None),
    "meta-llama/Meta-Llama-3-8B": (32, 8, 128, None),
    "microsoft/Phi-tiny-MoE-instruct": (16, 4, 128, 2047),
    "google/embeddinggemma-300m": (3, 1, 256, 257),
}
#: float16 as the file has it where a model's type is "auto"; its limits are 1e-2 and ours half of that.
LIMIT = 5e-3


def sdpa(case: Case, visible: Any, sink: Any = None) -> Any:
    """float64 [rows, heads, d]; visible(query's position, key) says who sees what."""
    parts, begin = [], 0
    for b, (queries, keys) in enumerate(case.sequences):
        q = case.q[begin : begin + queries].double().transpose(0, 1)
        begin += queries
        k, v = (x[b].double().repeat_interleave(case.heads // case.kv_heads, 1).transpose(0, 1)
                for x in (case.k, case.v))
        position = torch.arange(queries)[:, None] + keys - queries
        mask = visible(position, torch.arange(keys))
        if sink is not None:  # a key of zeros as a logit of its own: its value is zeros as well
            bias = torch.zeros(case.heads, queries, keys).double().masked_fill(~mask, -torch.inf)
            bias = torch.cat((bias, sink.double()[:, None, None].expand(-1, queries, 1)), -1)
            k, v = (torch.nn.functional.pad(x, (0, 0, 0, 1)) for x in (k, v))
            mask = bias
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=case.d**-0.5)
        parts.append(out.transpose(0, 1))
    return torch.cat(parts)


def case_of(batch: list[tuple[int, int]], model: str) -> Case:
    heads, kv_heads, d = MODELS[model]
    return Case(batch, heads=heads, kv_heads=kv_heads, d=d, dtype=torch.float16)


def impl_of(case: Case, **options: Any) -> Any:
    return Impl(case.heads, case.d, case.d**-0.5, case.kv_heads, kv_cache_dtype="auto", **options)


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("model", ["llama_tp4"])
@pytest.mark.parametrize("chip", ["sim:h200", "sim:b200"])
def test_causal(name: str, model: str, chip: str) -> None:
    tilewright.torch.set_device(chip)
    case = case_of(BATCHES[name], model)
    close(run(case, impl_of(case)), sdpa(case, lambda i, j: j <= i), LIMIT)


@pytest.mark.parametrize("model", ["llama", "llama_tp2", "phi"])
def test_causal_heads_of_other_ranks(model: str) -> None:
    case = case_of(BATCHES["mixed_small"], model)
    close(run(case, impl_of(case)), sdpa(case, lambda i, j: j <= i), LIMIT)


@pytest.mark.parametrize("name", ["small_decode", "small_prefill", "mixed_medium"])
@pytest.mark.parametrize("window", [16, 47])
def test_windows(name: str, window: int) -> None:
    case = case_of(BATCHES[name], "phi")
    out = run(case, impl_of(case, sliding_window=window))
    close(out, sdpa(case, lambda i, j: (j <= i) & (i - j < window)), LIMIT)


@pytest.mark.parametrize("window", [None, 20])
def test_encoders(window: int | None) -> None:
    """Keys come with the queries, and no cache holds them."""
    case = case_of(ENCODERS["small_encoder_prefill"], "gemma")
    options = {} if window is None else {"sliding_window": window}
    out = run(case, impl_of(case, attn_type=AttentionType.ENCODER_ONLY, **options), causal=False)
    close(out, sdpa(case, lambda i, j: (i - j).abs() < (window or 1 << 30)), LIMIT)


@pytest.mark.parametrize("name", ["small_decode", "small_prefill", "mixed_small"])
def test_not_causal(name: str) -> None:
    case = case_of(BATCHES[name], "llama_tp4")
    close(run(case, impl_of(case), causal=False), sdpa(case, lambda i, j: (i >= 0) & (j >= 0)), LIMIT)


@pytest.mark.parametrize("name", ["small_decode", "mixed_small"])
def test_sinks(name: str) -> None:
    case = case_of(BATCHES[name], "llama_tp4")
    sinks = torch.linspace(-2, 2, case.heads)
    out = run(case, impl_of(case, sinks=sinks))
    close(out, sdpa(case, lambda i, j: j <= i, sinks), LIMIT)


# As the file is laid out: lists of backends, a check that tests hand a list to, tests with a fixture and marks.
FILE = '''
import json, pathlib, types
import pytest
from vllm.config import get_current_vllm_config
from vllm.v1.attention.backends.registry import AttentionBackendEnum

BACKENDS_TO_TEST = [AttentionBackendEnum.FLASH_ATTN, "FLEX_ATTENTION_SLOW"]
SLIDING_WINDOW_BACKENDS_TO_TEST = [AttentionBackendEnum.FLASH_ATTN]
BATCH_SPECS = {name: types.SimpleNamespace(seq_lens=[32, 40]) for name in ("small", "wrong")}

def _test_backend_correctness(batch_spec, model, backend_to_test, mask_mod, *, block_size=16):
    assert get_current_vllm_config() is not None
    names = [backend.get_class().__module__ for backend in backend_to_test]
    config = json.loads((pathlib.Path(model) / "config.json").read_text())
    with (pathlib.Path(__file__).parent / "ran").open("a") as file:
        print(config["model_type"], names, block_size, mask_mod, file=file)
    assert mask_mod != "wrong"

@pytest.mark.parametrize("batch_spec_name", ["small", "wrong"])
@pytest.mark.parametrize("model", ["Qwen/Qwen3-0.6B"])
def test_causal_backend_correctness(default_vllm_config, batch_spec_name, model):
    _test_backend_correctness(BATCH_SPECS[batch_spec_name], model, BACKENDS_TO_TEST, batch_spec_name)
    _test_backend_correctness(BATCH_SPECS["small"], model, [AttentionBackendEnum.FLEX_ATTENTION], "wrong",
                              block_size=128)

@pytest.mark.parametrize("batch_spec_name", ["small"])
@pytest.mark.parametrize("model", ["microsoft/Phi-tiny-MoE-instruct"])
def test_sliding_window_backend_correctness(default_vllm_config, batch_spec_name, model):
    _test_backend_correctness(BATCH_SPECS[batch_spec_name], model, SLIDING_WINDOW_BACKENDS_TO_TEST, "window")
'''


def test_the_runner_of_vllms_file(tmp_path: pathlib.Path) -> None:
    """Our backend alone is in its lists, and calls for others by name are left out; what fails is told."""
    folder = tmp_path / "tests/v1/attention"
    folder.mkdir(parents=True)
    for package in (tmp_path / "tests", tmp_path / "tests/v1", folder):
        (package / "__init__.py").touch()
    (folder / "test_attention_backends.py").write_text(FILE)
    log = tmp_path / "log.json"
    command = [sys.executable, "-m", "tilewright.testing.peers", "vllm", "--folder", str(tmp_path)]
    command += ["--log", str(log), "--device", "sim:h200"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1 and log.exists(), done.stdout + done.stderr
    ours = "tilewright.integrations.vllm.backend"
    ran = (folder / "ran").read_text().splitlines()
    assert ran == [f"qwen3 ['{ours}'] 16 small", f"qwen3 ['{ours}'] 16 wrong", f"phimoe ['{ours}'] 16 window"]
    said = json.dumps(json.loads(log.read_text()))
    assert "batch_spec_name=wrong" in said and "batch_spec_name=small" not in said.partition("failures")[2]


@pytest.mark.parametrize("name", MODELS_OF_THE_FILE)
def test_vllm_reads_the_configurations_that_stand_for_the_network(tmp_path: pathlib.Path, name: str) -> None:
    """Heads, their size and the window of each model, as vLLM tells them."""
    from vllm.config import ModelConfig, ParallelConfig

    config = ModelConfig(model=_vllm._local(tmp_path, name), max_model_len=64)
    one = ParallelConfig()
    found = (config.get_num_attention_heads(one), config.get_num_kv_heads(one), config.get_head_size())
    assert (*found, config.get_sliding_window()) == MODELS_OF_THE_FILE[name]


def test_a_model_that_is_not_known_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(SystemExit, match="the file asks for someone/new: .* Qwen/Qwen3-0.6B"):
        _vllm._local(tmp_path, "someone/new")
