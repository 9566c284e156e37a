"""tilewright.LLM: the bundled model in float64 for what the class adds, on a simulated H200 for the way there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tilewright
from tilewright import LLM, SamplingParams

MODEL = Path(__file__).parents[3] / "examples/models/tiny-dsv4"


@pytest.fixture(scope="module")
def llm() -> LLM:
    return LLM(MODEL, device="reference", max_tokens=64, sequences=2)


def test_gives_texts_in_the_order_of_the_prompts(llm: LLM) -> None:
    prompts = ["int main", "# ", "for ("]
    together = llm.generate(prompts, SamplingParams(max_tokens=3))
    assert [done.prompt for done in together] == prompts
    for prompt, done in zip(prompts, together):
        assert llm.generate(prompt, SamplingParams(max_tokens=3)) == [done]
        assert done.prompt_tokens == list(prompt.encode()) and done.finish_reason == "length"
        assert done.text == bytes(done.tokens).decode() and len(done.tokens) == 3
    assert llm.generate(list(b"# "), SamplingParams(max_tokens=3))[0].tokens == together[1].tokens
    assert llm.generate([], SamplingParams()) == []


def test_params_of_each_prompt(llm: LLM) -> None:
    whole = llm.generate("int main", SamplingParams(max_tokens=4))[0]
    stop = whole.tokens[2]
    params = [SamplingParams(max_tokens=4, stop_token_ids=[stop]), SamplingParams(max_tokens=0),
              SamplingParams(max_tokens=2, temperature=1.0, top_k=1, seed=3)]
    first, second, third = llm.generate(["int main"] * 3, params)
    end = whole.tokens.index(stop)
    assert first.finish_reason == "end" and first.tokens == whole.tokens[:end + 1]
    assert first.text == bytes(whole.tokens[:end]).decode()
    assert second.tokens == [] and second.text == "" and second.finish_reason == "length"
    assert third.tokens == whole.tokens[:2]
    hot = [SamplingParams(max_tokens=4, temperature=1000.0, seed=3, min_p=min_p) for min_p in (1.0, 0.0)]
    only_the_likeliest, any_token = llm.generate(["int main"] * 2, hot)
    assert only_the_likeliest.tokens == whole.tokens != any_token.tokens


def test_streams_and_cancels(llm: LLM) -> None:
    pieces = list(llm.stream(["int main", "for ("], SamplingParams(max_tokens=3)))
    done = llm.generate(["int main", "for ("], SamplingParams(max_tokens=3))
    for index in range(2):
        mine = [piece for piece in pieces if piece.index == index]
        assert "".join(piece.text for piece in mine) == done[index].text
        assert [piece.finish_reason for piece in mine] == [None, None, "length"]
    early = llm.stream(["int main", "for ("], SamplingParams(max_tokens=3))
    next(early)
    with pytest.raises(tilewright.InvalidArgument, match="another iterator"):
        llm.generate("a")
    early.close()
    assert llm.generate("for (", SamplingParams(max_tokens=3)) == [done[1]]


def test_refuses_in_a_sentence(llm: LLM) -> None:
    for prompts, params, words in [("", None, "an empty prompt"), ("a" * 65, None, "65 tokens; expected at most"),
                                   ([[256]], None, "token 256"), ("a", SamplingParams(top_p=0), "top_p = 0"),
                                   ("a", SamplingParams(min_p=1.5), "min_p = 1.5; expected a number from 0"),
                                   (["a", "b"], [SamplingParams()], "1 sampling_params for 2 prompts"),
                                   ([[1 << 40]], None, "more than 32 bits")]:
        with pytest.raises(tilewright.InvalidArgument, match=words):
            llm.generate(prompts, params)
    with pytest.raises(tilewright.InvalidArgument, match="mtp.0"):
        LLM(MODEL, device="reference", draft=True)
    with pytest.raises(tilewright.InvalidArgument, match="zero character"):
        LLM(MODEL, device="cu\0da")


def test_what_does_not_fit_is_told_with_what_would() -> None:
    """Before the model is loaded: a million tokens of each sequence, or of a pool."""
    for sequences, pool, words in [(60000, 0, "60000 sequences of 1048576 tokens"),
                                   (16, 1 << 38, "274877906944 tokens of 16 sequences")]:
        with pytest.raises(tilewright.OutOfMemory, match=f"of caches for {words}.*150.1 GB. What would fit: "):
            LLM(MODEL, device="sim:h200", max_tokens=1 << 20, sequences=sequences, cache_tokens=pool)


def test_a_tokenizer_of_another_model(tmp_path: Path) -> None:
    for part in MODEL.iterdir():
        if part.name != "tokenizer.json":
            (tmp_path / part.name).symlink_to(part)
    tokenizer = Path(__file__).parents[2] / "golden/tokenizer/tokenizer.json"
    (tmp_path / "tokenizer.json").symlink_to(tokenizer)
    with pytest.raises(tilewright.InvalidArgument, match="1207 tokens, the model 256"):
        LLM(tmp_path, device="reference")


def test_on_a_simulated_device() -> None:
    llm = LLM(MODEL, device="sim:h200", max_tokens=32, cache_tokens=256)
    assert "sim:h200" in repr(llm)
    done = llm.generate("a", SamplingParams(max_tokens=2))[0]
    assert done.tokens == LLM(MODEL, device="reference").generate("a", SamplingParams(max_tokens=2))[0].tokens
    assert llm.counts == {"steps": 2, "prompt_tokens": 1, "new_tokens": 2, "drafted": 0, "accepted": 0}
    assert json.dumps(llm.counts)


def test_ranks_give_the_texts_of_one() -> None:
    def texts(device: str, **ranks: Any) -> list[Any]:
        model = LLM(MODEL, device=device, max_tokens=32, sequences=2, **ranks)
        early = model.stream(["#", "int"], SamplingParams(max_tokens=8))
        first = [next(early).token, next(early).token]
        early.close()
        done = model.generate(["a", list(b"# ")], SamplingParams(max_tokens=1))
        return [first, [(each.text, each.tokens, each.finish_reason) for each in done]]

    want = texts("reference")
    assert texts("sim:h200", gpus=2, parallel="expert") == want
    assert texts("sim:h200", gpus=2) == want


def test_ranks_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    for options, words in [({"gpus": 3}, "3 ranks cannot split the tensors"),
                           ({"gpus": 9, "parallel": "expert"}, "9 ranks share 8 experts"),
                           ({"gpus": 2, "parallel": "pipeline"}, "expected one of tensor, expert"),
                           ({"gpus": 2, "parallel": "ten\0sor"}, "zero character"),
                           ({"gpus": 2, "device": "cuda"}, "torchrun --nproc-per-node 2")]:
        with pytest.raises(tilewright.InvalidArgument, match=words):
            LLM(MODEL, **{"device": "sim:h200", **options})
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    LLM(MODEL, device="reference", max_tokens=16)  # whole, as of any process
    with pytest.raises(tilewright.InvalidArgument, match="torchrun has started 2"):
        LLM(MODEL, device="reference", parallel="tensor")
