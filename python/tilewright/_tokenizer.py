"""Text to tokens and back, as DeepSeek-V3 and V4 have them."""

from __future__ import annotations

import array
import ctypes
import operator
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from . import _library
from ._errors import InvalidArgument

_ADDED_TOKENS = {True: 0, False: 1}  # tw_added_tokens
_ROLES = {"user": 0, "system": 1, "assistant": 2}  # tw_chat_role
_MODES = {"chat": 0, "thinking": 1}  # tw_chat_mode
_MESSAGE_KEYS = ("role", "content", "reasoning")


class _Message(ctypes.Structure):
    """tw_chat_message"""

    _fields_ = [("struct_bytes", ctypes.c_size_t), ("role", ctypes.c_int32), ("reserved", ctypes.c_int32),
                ("content", ctypes.c_char_p), ("reasoning", ctypes.c_char_p)]


def _utf8(text: str | bytes) -> bytes:
    """What is half of a surrogate pair stays so: the library names its place."""
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


def _word(words: Mapping[str, int], what: str, word: object) -> int:
    if not isinstance(word, str) or word not in words:
        raise InvalidArgument(f"Tokenizer.chat: {what} {word!r}; expected {' or '.join(map(repr, words))}")
    return words[word]


def _message(number: int, given: Mapping[str, str]) -> _Message:
    unknown = [key for key in given if key not in _MESSAGE_KEYS]
    if unknown or "role" not in given:
        raise InvalidArgument(f"Tokenizer.chat: message {number} has {', '.join(map(repr, given)) or 'nothing'}; "
                              "expected 'role', 'content' and perhaps 'reasoning'")
    texts = [_utf8(given.get(key) or "") for key in ("content", "reasoning")]
    if any(b"\0" in text for text in texts):
        raise InvalidArgument(f"Tokenizer.chat: message {number} has a zero character; take it out")
    role = _word(_ROLES, f"message {number} has the role", given["role"])
    return _Message(ctypes.sizeof(_Message), role, 0, *texts)


class Tokenizer:
    """A tokenizer.json, or the folder that has it; without a path 256 tokens, each the byte of its number. Tokens
    are those of the library `tokenizers` for the same file. Any thread may use it, and any child of a fork."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        name = None if path is None else os.fsencode(path)
        if name is not None and b"\0" in name:
            raise InvalidArgument(f"Tokenizer: the path {path!r} has a zero character; take it out")
        self._make("tw_tokenizer_open", name)
        self._again: tuple[Any, tuple[Any, ...]] = (type(self), (path,))

    @classmethod
    def parse(cls, json: str | bytes, source: str = "tokenizer.json") -> Tokenizer:
        """The text of such a file; `source` stands for it in messages."""
        made = cls.__new__(cls)
        text = _utf8(json)
        made._make("tw_tokenizer_parse", text, ctypes.c_size_t(len(text)), _utf8(source))
        made._again = (cls.parse, (json, source))
        return made

    def _make(self, function: str, *arguments: Any) -> None:
        self._handle = ctypes.c_void_p()
        _library.call(function, *arguments, ctypes.byref(self._handle))
        weakref.finalize(self, _library.function("tw_tokenizer_destroy"), self._handle)
        self._size: int = _library.function("tw_tokenizer_vocab_size")(self._handle)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self._again

    def __repr__(self) -> str:
        return f"<tilewright.Tokenizer of {self._size} tokens>"

    @property
    def vocab_size(self) -> int:
        """Number of tokens with the added ones; ids are below it."""
        return self._size

    def encode(self, text: str | bytes, *, added_tokens: bool = True) -> list[int]:
        """The tokens of a text, nothing before or behind them. Names of added tokens, such as "<think>", are those
        tokens; with added_tokens=False they are text like any other, as is fit for text from outside."""
        given = _utf8(text)
        return self._ids("tw_tokenizer_encode", len(given), given, ctypes.c_size_t(len(given)),
                         _ADDED_TOKENS[bool(added_tokens)])

    def chat(self, messages: Sequence[Mapping[str, str]],
             mode: Literal["chat", "thinking"] = "chat") -> list[int]:
        """The conversation as DeepSeek-V4 reads it, without tools, and at its end what opens the assistant's turn.

        messages   [{"role": "system" | "user" | "assistant", "content": ..., "reasoning": ...}, ...]
        mode       "thinking": the model thinks before it answers. What an assistant thought before the last
                   message of the user is left out
        """
        given = [_message(number, message) for number, message in enumerate(messages)]
        # At most a token for each byte, two bytes where messages are joined, and four tokens around each.
        room = 1 + sum(len(each.content) + len(each.reasoning) + 6 for each in given)
        return self._ids("tw_tokenizer_chat", room, (_Message * len(given))(*given), ctypes.c_size_t(len(given)),
                         _word(_MODES, "mode", mode))

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the tokens; what is not UTF-8 becomes U+FFFD."""
        try:
            tokens = array.array("i", ids)
        except OverflowError:
            raise InvalidArgument(f"Tokenizer.decode: a token of more than 32 bits; expected 0 to {self._size - 1}"
                                  ) from None
        given = (ctypes.c_int32 * len(tokens)).from_buffer(tokens)
        room, size = 8 * len(tokens) + 64, ctypes.c_size_t()
        while True:
            text = (ctypes.c_char * room)()
            try:
                _library.call("tw_tokenizer_decode", self._handle, given, ctypes.c_size_t(len(tokens)), text,
                              ctypes.c_size_t(room), ctypes.byref(size))
                return ctypes.string_at(text, size.value).decode()
            except InvalidArgument:
                if size.value <= room:  # else the text is longer than most
                    raise
                room = size.value

    def token_bytes(self, token: int) -> bytes:
        """The bytes of a token, which need not be whole characters."""
        found, size = ctypes.c_void_p(), ctypes.c_size_t()
        _library.call("tw_tokenizer_token_bytes", self._handle, self._token(token), ctypes.byref(found),
                      ctypes.byref(size))
        return ctypes.string_at(found.value or 0, size.value) if size.value else b""

    def is_special(self, token: int) -> bool:
        """Whether the file calls the token special: no text, but a mark in it."""
        return bool(_library.function("tw_tokenizer_is_special")(self._handle, self._token(token)))

    def find_added(self, name: str) -> int | None:
        """The token of an added token's name ("<think>"), None if there is none."""
        found: int = _library.function("tw_tokenizer_find_added")(self._handle, _utf8(name))
        return None if found < 0 or "\0" in name else found

    def stream(self) -> TokenStream:
        """Tokens to text as they come."""
        return TokenStream(self)

    def _token(self, token: int) -> int:
        number = operator.index(token)
        if not 0 <= number < self._size:
            raise InvalidArgument(f"Tokenizer: token {number}; expected 0 to {self._size - 1}")
        return number

    def _ids(self, function: str, room: int, *arguments: Any) -> list[int]:
        ids, count = (ctypes.c_int32 * room)(), ctypes.c_size_t()
        _library.call(function, self._handle, *arguments, ids, ctypes.c_size_t(room), ctypes.byref(count))
        return ids[:count.value]


class TokenStream:
    """A character is given out when its last byte is there, never a part of one; all that was given out together
    is decode() of all tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, self._handle = tokenizer, ctypes.c_void_p()
        _library.call("tw_token_stream_create", tokenizer._handle, ctypes.byref(self._handle))
        weakref.finalize(self, _library.function("tw_token_stream_destroy"), self._handle)

    def add(self, token: int) -> str:
        """The characters that the token completes, perhaps none."""
        return self._text("tw_token_stream_add", self._tokenizer._token(token))

    def finish(self) -> str:
        """What is left of a character that never ended: U+FFFD, or nothing. Another text may follow."""
        return self._text("tw_token_stream_finish")

    def _text(self, function: str, *arguments: Any) -> str:
        text, size = ctypes.c_void_p(), ctypes.c_size_t()
        _library.call(function, self._handle, *arguments, ctypes.byref(text), ctypes.byref(size))
        return ctypes.string_at(text.value or 0, size.value).decode()
