"""tilewright.Tokenizer: tokens that the library `tokenizers` gave for the small tokenizer of the golden data,
streams, conversations, and what is refused. Beside that library itself: tokenizer_test.py."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pytest

import tilewright

FOLDER = Path(__file__).parents[2] / "golden/tokenizer"
GOLDEN = json.loads((FOLDER / "texts.json").read_text())
THINK, END_OF_THINKING, VOCAB = 1202, 1203, 1207


@pytest.fixture(scope="module")
def small() -> tilewright.Tokenizer:
    return tilewright.Tokenizer(FOLDER)


def test_gives_the_tokens_of_the_reference(small: tilewright.Tokenizer) -> None:
    assert len(GOLDEN["texts"]) >= 600
    for case in GOLDEN["texts"]:
        assert small.encode(case["text"]) == case["ids"]
        assert small.encode(case["text"], added_tokens=False) == case.get("as_text", case["ids"])
        assert small.decode(case["ids"]) == case.get("decoded", case["text"])
    for case in GOLDEN["decoded"]:
        assert small.decode(case["ids"]) == case["text"]


def test_streams_whole_characters(small: tilewright.Tokenizer) -> None:
    for case in GOLDEN["decoded"]:
        stream = small.stream()
        assert "".join(map(stream.add, case["ids"])) + stream.finish() == case["text"]
    stream = tilewright.TokenStream(tilewright.Tokenizer())
    assert [stream.add(byte) for byte in "é\0".encode()] == ["", "é", "\0"]
    assert stream.add(0xF0) == "" and stream.finish() == "\N{REPLACEMENT CHARACTER}" and stream.finish() == ""


def test_writes_conversations(small: tilewright.Tokenizer) -> None:
    talk = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "the <think>"}]
    ids = small.chat(talk)
    assert ids[0] == 0 and ids[-1] == END_OF_THINKING and ids.count(THINK) == 0
    assert small.chat(talk, mode="thinking") == [*ids[:-1], THINK]
    assert small.decode(ids) == "<｜begin▁of▁sentence｜>Be short.<｜User｜>the <think><｜Assistant｜></think>"
    answered = [*talk, {"role": "assistant", "content": "no", "reasoning": "hm"}]
    assert small.decode(small.chat(answered, mode="thinking")).endswith(
        "<｜Assistant｜><think>hm</think>no<｜end▁of▁sentence｜>")


def test_tells_of_its_tokens(small: tilewright.Tokenizer) -> None:
    assert small.vocab_size == VOCAB and repr(small) == "<tilewright.Tokenizer of 1207 tokens>"
    assert small.find_added("<think>") == THINK and small.find_added("the") is None
    assert small.find_added("<think>\0") is None
    assert small.is_special(0) and not small.is_special(THINK)
    assert small.token_bytes(THINK) == b"<think>"
    assert tilewright.Tokenizer().token_bytes(0x80) == b"\x80"


def test_bytes_take_anything() -> None:
    tokens = tilewright.Tokenizer()
    everything = bytes(range(256))
    assert tokens.encode(everything) == list(everything)
    # Each byte that is none of UTF-8 becomes three: more than decode() first makes room for.
    assert tokens.decode([0xFF] * 1000) == "\N{REPLACEMENT CHARACTER}" * 1000
    assert tokens.encode("") == [] and tokens.decode([]) == ""


def test_decodes_tokens_longer_than_it_expects(small: tilewright.Tokenizer) -> None:
    assert small.decode([0] * 100) == "<｜begin▁of▁sentence｜>" * 100


def test_a_copy_by_pickle_is_the_same(small: tilewright.Tokenizer) -> None:
    parsed = tilewright.Tokenizer.parse((FOLDER / "tokenizer.json").read_text())
    for tokenizer in (small, parsed, tilewright.Tokenizer()):
        copy = pickle.loads(pickle.dumps(tokenizer))
        assert copy.encode("the kernel") == tokenizer.encode("the kernel")


def test_works_in_the_child_of_a_fork(small: tilewright.Tokenizer) -> None:
    expected = small.encode("the kernel")
    child = os.fork()
    if child == 0:
        os._exit(0 if small.encode("the kernel") == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_refuses_in_one_sentence(small: tilewright.Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(tilewright.InvalidArgument, match="no/such/file"):
        tilewright.Tokenizer(tmp_path / "no/such/file")
    with pytest.raises(tilewright.InvalidArgument, match="has a zero character"):
        tilewright.Tokenizer(str(FOLDER) + "\0")
    with pytest.raises(tilewright.ParseError, match=r"mine:1:11: error: found '3'; expected an object"):
        tilewright.Tokenizer.parse('{"model": 3}', "mine")
    with pytest.raises(tilewright.InvalidArgument, match="not UTF-8 at byte 1"):
        small.encode("a\udc80")
    for wrong in ([3, VOCAB], [-1]):
        with pytest.raises(tilewright.InvalidArgument, match=f"token {wrong[-1]}; expected 0 to 1206"):
            small.decode(wrong)
    with pytest.raises(tilewright.InvalidArgument, match="more than 32 bits; expected 0 to 1206"):
        small.decode([1 << 32])
    for call in (small.token_bytes, small.is_special, small.stream().add):
        with pytest.raises(tilewright.InvalidArgument, match="token 4294967296; expected 0 to 1206"):
            call(1 << 32)
    with pytest.raises(tilewright.InvalidArgument, match="message 0 has the role 'tool'; expected 'user' or 's"):
        small.chat([{"role": "tool", "content": "x"}])
    with pytest.raises(tilewright.InvalidArgument, match="message 0 has 'role', 'text'; expected 'role', 'c"):
        small.chat([{"role": "user", "text": "x"}])
    with pytest.raises(tilewright.InvalidArgument, match="message 1 has a zero character"):
        small.chat([{"role": "user", "content": "x"}, {"role": "user", "content": "\0"}])
    with pytest.raises(tilewright.InvalidArgument, match="mode 'loud'; expected 'chat' or 'thinking'"):
        small.chat([{"role": "user", "content": "x"}], mode="loud")  # type: ignore[arg-type]
    with pytest.raises(tilewright.InvalidArgument, match="no messages"):
        small.chat([])
    with pytest.raises(tilewright.Unsupported, match="has no token <"):
        tilewright.Tokenizer().chat([{"role": "user", "content": "x"}])
