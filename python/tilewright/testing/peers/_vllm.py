"""vLLM's tests/v1/attention/test_attention_backends.py, with our backend alone in its lists.

The folder is a checkout of vLLM whose release is installed. What the file asks of a model, its configuration,
is written to a folder on this machine, with the fields that attention depends on: nothing is fetched. Tensors
are made on the platform's device.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import json
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ._case import Case, import_from, parametrized

#: Of the models that the file names in one release or another, as they were published: what attention depends
#: on, and what vLLM asks of every model.
MODELS: dict[str, dict[str, Any]] = {
    "Qwen/Qwen3-0.6B": {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": 1024,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 40960,
    },
    "meta-llama/Meta-Llama-3-8B": {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "max_position_embeddings": 8192,
    },
    "microsoft/Phi-tiny-MoE-instruct": {
        "architectures": ["PhiMoEForCausalLM"],
        "model_type": "phimoe",
        "hidden_size": 4096,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "sliding_window": 2047,
        "max_position_embeddings": 4096,
    },
    "google/embeddinggemma-300m": {
        "architectures": ["Gemma3TextModel"],
        "model_type": "gemma3_text",
        "hidden_size": 768,
        "num_attention_heads": 3,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "sliding_window": 512,
        "use_bidirectional_attention": True,
        "max_position_embeddings": 2048,
    },
}
#: Of every model: layers, their width and the vocabulary, which no test here looks at, and the tensors' type.
_SMALL = {"num_hidden_layers": 2, "intermediate_size": 256, "vocab_size": 1024, "dtype": "bfloat16"}

#: The file's tests that go through its lists of backends; others are of backends by name.
TESTS = {
    "causal": "test_causal_backend_correctness",
    "window": "test_sliding_window_backend_correctness",
    "encoder_window": "test_sliding_window_encoder_backend_correctness",
    "non_causal": "test_non_causal_backend_correctness",
}


def collect(folder: pathlib.Path, tests: list[str], through: str) -> Iterator[Case]:
    """Cases in the order of the file; each gets its place in its test as seed."""
    import_from(str(folder))
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if not torch.cuda.is_available():  # on a simulated device: vLLM makes its tensors on the host
        os.environ.setdefault("VLLM_TARGET_DEVICE", "cpu")
    suite: Any = importlib.import_module("tests.v1.attention.test_attention_backends")
    _put_in_lists(suite)
    models = tempfile.TemporaryDirectory()
    atexit.register(models.cleanup)
    for short in tests or list(TESTS):
        function = getattr(suite, TESTS[short], None)
        if function is None:  # of a release that has no such test
            continue
        for place, parameters in enumerate(parametrized(function)):
            local = {**parameters, "model": _local(pathlib.Path(models.name), parameters["model"])}
            run = functools.partial(_run, function, place, local)
            yield Case(short, parameters, run, [], _bytes(suite, parameters))


def _local(folder: pathlib.Path, name: str) -> str:
    """A folder with the configuration of the model of that name."""
    if name not in MODELS:
        raise SystemExit(f"the file asks for {name}: its configuration is not among {', '.join(MODELS)}")
    path = folder / name
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(_SMALL | MODELS[name]))
    return str(path)


def _put_in_lists(suite: Any) -> None:
    """Registers our backend, and makes it the only one of every list of the file."""
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    from tilewright.integrations.vllm.backend import Backend

    backend = AttentionBackendEnum.CUSTOM
    register_backend(backend, f"{Backend.__module__}.{Backend.__qualname__}")
    lists = [name for name in vars(suite) if name.endswith("BACKENDS_TO_TEST")]
    if not lists:
        raise SystemExit(f"{suite.__file__} has no list ...BACKENDS_TO_TEST: it is of an unknown release")
    for name in lists:
        setattr(suite, name, [backend])
    suite._test_backend_correctness = _of_ours(suite._test_backend_correctness, backend)


def _of_ours(check: Callable[..., Any], backend: Any) -> Callable[..., Any]:
    """Tests call for other backends by name, too, after those of the list."""

    def run(batch_spec: Any, model: str, backends: list[Any], *rest: Any, **options: Any) -> None:
        if backend in backends:
            check(batch_spec, model, [backend], *rest, **options)

    return run


def _run(function: Callable[..., Any], place: int, parameters: dict[str, Any]) -> None:
    """Within a configuration, as the suite's fixture makes one."""
    from vllm.config import DeviceConfig, VllmConfig, set_current_vllm_config
    from vllm.platforms import current_platform

    torch.manual_seed(place)
    device = DeviceConfig(device=current_platform.device_type or "cpu")
    with set_current_vllm_config(VllmConfig(device_config=device)):
        function(None, **parameters)


def _bytes(suite: Any, parameters: dict[str, Any]) -> int:
    """The cache that the file makes, 8192 pages of 16 keys, three times, and its own keys."""
    spec = suite.BATCH_SPECS[parameters["batch_spec_name"]]
    keys = 8192 * 16 * 3 + 8 * int(sum(spec.seq_lens))
    return keys * 2 * 8 * 128 * 2
