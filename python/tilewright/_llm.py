"""A DeepSeek-V4 model for many prompts: texts in, texts out, first come, first served."""

from __future__ import annotations

import array
import ctypes
import os
import weakref
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Literal, Union

from . import _library
from ._errors import InvalidArgument
from ._tokenizer import Tokenizer, TokenStream

Prompt = Union[str, Sequence[int]]
FinishReason = Literal["end", "length", "cancelled"]

_FINISH: tuple[FinishReason | None, ...] = (None, "end", "length", "cancelled")  # tw_llm_finish
_END_OF_SENTENCE = "<\uff5cend\u2581of\u2581sentence\uff5c>"


class _Options(ctypes.Structure):
    """tw_llm_options"""

    _fields_ = [("struct_bytes", ctypes.c_size_t), ("device", ctypes.c_char_p), ("kv", ctypes.c_char_p),
                ("index", ctypes.c_char_p), ("experts", ctypes.c_char_p), ("max_tokens", ctypes.c_int64),
                ("sequences", ctypes.c_int64), ("cache_tokens", ctypes.c_int64), ("step_tokens", ctypes.c_int64),
                ("has_draft", ctypes.c_int32), ("reserved", ctypes.c_int32), ("gpus", ctypes.c_int64),
                ("parallel", ctypes.c_char_p)]


class _Sampling(ctypes.Structure):
    """tw_llm_sampling"""

    _fields_ = [("struct_bytes", ctypes.c_size_t), ("temperature", ctypes.c_double), ("top_k", ctypes.c_int64),
                ("top_p", ctypes.c_double), ("seed", ctypes.c_uint64), ("max_tokens", ctypes.c_int64),
                ("ignores_end", ctypes.c_int32), ("reserved", ctypes.c_int32), ("min_p", ctypes.c_double)]


@dataclass(frozen=True)
class SamplingParams:
    """How a prompt is continued.

    temperature      0: the likeliest token; 1 draws as the model predicts
    top_k            draws among so many of the likeliest tokens; 0: all
    top_p            of these among the likeliest whose probabilities reach this sum
    seed             the same seed gives the same text; prompts with one seed draw differently
    max_tokens       new ones; fewer if the model's room ends
    ignore_eos       go on behind the token that ends a text
    stop_token_ids   tokens that end the text, too
    min_p            drops tokens less likely than min_p times the likeliest, after top_k and before top_p; 0 keeps
                     all, at most 1
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    max_tokens: int = 64
    ignore_eos: bool = False
    stop_token_ids: Sequence[int] = ()
    min_p: float = 0.0


@dataclass(frozen=True)
class Completion:
    """What became of a prompt. `tokens` has the one that ended it, `text` has not."""

    prompt: Prompt
    prompt_tokens: list[int]
    tokens: list[int]
    text: str
    finish_reason: FinishReason


@dataclass(frozen=True)
class Piece:
    """What a token adds to the text of prompt number `index`: whole characters, perhaps none. `token` is None if a
    prompt ends without one; the last piece of a prompt has a `finish_reason`."""

    index: int
    token: int | None
    text: str
    finish_reason: FinishReason | None


@dataclass
class _Running:
    index: int
    stream: TokenStream

    def piece(self, token: int, finish: FinishReason | None) -> Piece:
        text = "" if token < 0 or finish == "end" else self.stream.add(token)
        if finish is not None:
            text += self.stream.finish()
        return Piece(self.index, token if token >= 0 else None, text, finish)


class LLM:
    """A checkpoint of DeepSeek-V4 on a device: a folder with config.json, weights and, but for a model of bytes,
    tokenizer.json. Use it from one thread at a time.

        llm = tilewright.LLM("V4/", device="cuda")
        for done in llm.generate(["The kernel ", "A warp is "], tilewright.SamplingParams(max_tokens=80)):
            print(done.text)

    device          as of Device; "reference" is the model in float64, without a device
    max_tokens      of a sequence, prompt and continuation together
    sequences       the most that run at the same time; other prompts wait for their turn
    cache_tokens    what the caches hold, of all sequences that run; 0: max_tokens for each
    step_tokens     the most of a step: one of each sequence that has been read, the rest of prompts
    draft           speculative decoding with the checkpoint's draft layer; the text stays the same
    gpus, parallel  so many ranks share the model, a GPU each; "tensor" (the default of gpus) divides heads and
                    matrices, for one sequence, "expert" sequences and experts, for throughput. On GPUs ranks are
                    processes: torchrun, mpirun or srun starts the same program on each, and all get the same
                    texts, but for one that another rank has cancelled. On a simulated device they are threads.
                    Without either a model is whole, whoever started the process
    kv, index, experts   number formats: docs/06-deepseek-v4.md
    """

    def __init__(self, model: str | os.PathLike[str], *, device: str | None = None, max_tokens: int = 4096,
                 sequences: int = 16, cache_tokens: int = 0, step_tokens: int = 256, draft: bool = False,
                 kv: str = "fp8", index: str = "mxfp4", experts: str = "stored", gpus: int = 0,
                 parallel: Literal["tensor", "expert"] | None = None) -> None:
        folder = os.fspath(model)
        words = {"device": device or "", "kv": kv, "index": index, "experts": experts,
                 "parallel": parallel or ""}
        for name, word in {"model": folder, **words}.items():
            if "\0" in word:
                raise InvalidArgument(f"LLM: {name} {word!r} has a zero character; take it out")
        has_tokenizer = os.path.exists(os.path.join(folder, "tokenizer.json"))
        self.tokenizer = Tokenizer(folder) if has_tokenizer else Tokenizer()
        options = _Options(ctypes.sizeof(_Options))
        _library.function("tw_llm_options_set_defaults")(ctypes.byref(options))
        for name, word in words.items():
            setattr(options, name, word.encode() or None)
        options.max_tokens, options.sequences = max_tokens, sequences
        options.cache_tokens, options.step_tokens = cache_tokens, step_tokens
        options.has_draft, options.gpus = bool(draft), gpus
        self._handle = ctypes.c_void_p()
        _library.call("tw_llm_open", os.fsencode(folder), ctypes.byref(options), ctypes.byref(self._handle))
        self._closing = weakref.finalize(self, _library.function("tw_llm_destroy"), self._handle)
        vocab = _library.function("tw_llm_vocab_size")
        vocab.restype = ctypes.c_int64
        if vocab(self._handle) != self.tokenizer.vocab_size:
            raise InvalidArgument(
                f"LLM: {folder}: {'its tokenizer.json' if has_tokenizer else 'without tokenizer.json it'} has "
                f"{self.tokenizer.vocab_size} tokens, the model {vocab(self._handle)}; take the tokenizer.json "
                "that came with the checkpoint")
        end = self.tokenizer.find_added(_END_OF_SENTENCE)
        self._ends = () if end is None else (end,)
        self._running: dict[int, _Running] = {}

    def __repr__(self) -> str:
        return f"<tilewright.LLM: {self.description}>"

    @property
    def description(self) -> str:
        """One line: what runs where, with which formats."""
        function = _library.function("tw_llm_description")
        function.restype = ctypes.c_char_p
        return (function(self._handle) or b"").decode()

    @property
    def counts(self) -> dict[str, int]:
        """So far: steps, prompt_tokens, new_tokens; with `draft` tokens that were drafted, and accepted ones."""
        names = ("steps", "prompt_tokens", "new_tokens", "drafted", "accepted")
        values = [ctypes.c_int64() for _ in names]
        _library.call("tw_llm_counts", self._handle, *map(ctypes.byref, values))
        return {name: value.value for name, value in zip(names, values)}

    def generate(self, prompts: Prompt | Sequence[Prompt],
                 sampling_params: SamplingParams | Sequence[SamplingParams] | None = None) -> list[Completion]:
        """The continuations of all prompts, in their order. A prompt is a text, or a list of tokens such as
        tokenizer.chat() gives. sampling_params: of all of them, or one for each."""
        given = self._prompts(prompts)
        tokens: list[list[int]] = [[] for _ in given]
        texts = ["" for _ in given]
        finished: list[FinishReason] = ["length" for _ in given]
        for piece in self.stream(given, sampling_params):
            if piece.token is not None:
                tokens[piece.index].append(piece.token)
            texts[piece.index] += piece.text
            finished[piece.index] = piece.finish_reason or finished[piece.index]
        return [Completion(prompt, self._tokens(prompt), tokens[i], texts[i], finished[i])
                for i, prompt in enumerate(given)]

    def stream(self, prompts: Prompt | Sequence[Prompt],
               sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
               ) -> Generator[Piece, None, None]:
        """The same token by token, as the model makes them: those of prompts that run together take turns. A
        prompt that could never run is refused before any of them runs; an iterator that is closed early cancels
        what still runs."""
        given = self._prompts(prompts)
        if sampling_params is None or isinstance(sampling_params, SamplingParams):
            params = [sampling_params or SamplingParams()] * len(given)
        else:
            params = list(sampling_params)
        if len(params) != len(given):
            raise InvalidArgument(f"LLM: {len(params)} sampling_params for {len(given)} prompts; expected one for "
                                  "each, or one for all")
        if self._running:
            raise InvalidArgument("LLM: another iterator of this model is not at its end; take all of it, or "
                                  "close it")
        return self._pieces([self._tokens(prompt) for prompt in given], params)

    def _pieces(self, prompts: list[list[int]], params: list[SamplingParams]) -> Generator[Piece, None, None]:
        running = self._running
        try:
            for index, (tokens, param) in enumerate(zip(prompts, params)):
                running[self._add(tokens, param)] = _Running(index, self.tokenizer.stream())
            while running:
                request, token, finish = self._next()
                piece = running[request].piece(token, finish)
                if finish is not None:
                    del running[request]
                yield piece
        finally:
            for request in running if self._closing.alive else ():  # not when the interpreter ends
                _library.function("tw_llm_cancel")(self._handle, ctypes.c_int64(request))
            running.clear()

    def _prompts(self, prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
        if isinstance(prompts, str):
            return [prompts]
        tokens = [each for each in prompts if isinstance(each, int)]
        texts = [each for each in prompts if not isinstance(each, int)]
        if tokens and texts:
            raise InvalidArgument("LLM: prompts and tokens in one list; expected a prompt, or a list of prompts, "
                                  "each a text or a list of tokens")
        return [tokens] if tokens else texts

    def _tokens(self, prompt: Prompt) -> list[int]:
        return self.tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt)

    def _add(self, tokens: list[int], param: SamplingParams) -> int:
        sampling = _Sampling(ctypes.sizeof(_Sampling))
        _library.function("tw_llm_sampling_set_defaults")(ctypes.byref(sampling))
        sampling.temperature, sampling.top_k, sampling.top_p = param.temperature, param.top_k, param.top_p
        sampling.seed, sampling.max_tokens = param.seed, param.max_tokens
        sampling.ignores_end, sampling.min_p = bool(param.ignore_eos), param.min_p
        stops = [*param.stop_token_ids, *(() if param.ignore_eos else self._ends)]
        try:
            prompt, ends = array.array("i", tokens), array.array("i", stops)
        except OverflowError:
            raise InvalidArgument("LLM: a token of more than 32 bits; expected 0 to "
                                  f"{self.tokenizer.vocab_size - 1}") from None
        request = ctypes.c_int64()
        _library.call("tw_llm_add", self._handle, _address(prompt), ctypes.c_size_t(len(prompt)),
                      ctypes.byref(sampling), _address(ends), ctypes.c_size_t(len(ends)), ctypes.byref(request))
        return request.value

    def _next(self) -> tuple[int, int, FinishReason | None]:
        request, token, finish = ctypes.c_int64(), ctypes.c_int32(), ctypes.c_int32()
        _library.call("tw_llm_next", self._handle, ctypes.byref(request), ctypes.byref(token),
                      ctypes.byref(finish))
        return request.value, token.value, _FINISH[finish.value]


def _address(values: array.array[int]) -> ctypes.c_void_p:
    return ctypes.c_void_p(values.buffer_info()[0] if values else None)
