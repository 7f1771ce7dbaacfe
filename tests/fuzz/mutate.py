"""Inputs near valid ones, from a seed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[0-9.eE+-]+|[A-Za-z_]+|[\[\]{},:=]')
_VALUES = [
    b"0", b"-1", b"1", b"2", b"63", b"64", b"65536", b"2147483648", b"4294967296", b"9223372036854775808", b"18446744073709551616",
    b"1e999", b"-1e999", b"1.5", b"NaN", b"Infinity", b"inf", b"nan", b"9" * 40, b"9" * 5000, b"0x" + b"f" * 5000, b"1" + b"0" * 4000,
    b"true", b"false", b"null", b'""', b'"x"', b'"\\ud800"', b'"\\u0000"', b'"a\\nb"', b'"\xc3\xa9"', b'"' + b"y" * 300 + b'"', b"[]",
    b"{}", b"[0]", b"[[]]", b'[1, "a", null]', b'{"a": 1}', b'{"__class__": "x"}', b"1979-05-27T07:32:00Z", b"''", b"[" * 60,
    b"[" * 5000, b'{"a":' * 5000, b"[" * 100_000,
]  # fmt: skip
"""What stands in place of a value of JSON or TOML."""
_FREQUENT = len(_VALUES) - 4
"""The last ones take long."""
_MOST = 1 << 20


def _spans(text: bytes) -> list[tuple[int, int]]:
    """Of tokens, and of whole lists and tables."""
    spans, open_ = [], []
    for match in _TOKEN.finditer(text):
        spans.append(match.span())
        if match.group() in (b"[", b"{"):
            open_.append(match.start())
        elif match.group() in (b"]", b"}") and open_:
            spans.append((open_.pop(), match.end()))
    return spans


class Mutator:
    """An endless sequence of inputs: 1 to 8 mutations of a valid one (few are likelier), and one in 32 of random bytes. ``text``: valid
    inputs are JSON or TOML, and tokens of them are exchanged. ``mend``: repairs some of what mutations break, such as a checksum; half of
    the inputs pass through it."""

    def __init__(self, corpus: Sequence[bytes], seed: str, text: bool = False, mend: Callable[[bytes], bytes] | None = None) -> None:
        self._corpus, self._text, self._mend = list(corpus), text, mend
        self._random = random.Random(seed).random
        self._bits = random.Random(seed + "/bits").getrandbits
        self._all_spans = [_spans(each) for each in corpus] if text else []
        self._words = sorted({each[a:b] for each, spans in zip(corpus, self._all_spans, strict=False) for a, b in spans if b - a < 200})
        self._operations = [
            self._flip, self._flip, self._byte, self._number, self._number, self._cut, self._extend, self._drop, self._repeat, self._splice,
            self._fill, self._insert,
        ]  # fmt: skip

    def _below(self, limit: int) -> int:
        return int(self._random() * limit)

    def _bytes(self, size: int) -> bytes:
        return self._bits(8 * size).to_bytes(size, "little") if size else b""

    def next(self) -> bytes:
        """The next input."""
        if self._below(32) == 0:
            data = bytearray(self._bytes(self._below(256)))
            index = -1
        else:
            index = self._below(len(self._corpus))
            data = bytearray(self._corpus[index])
        if self._text and index >= 0 and self._below(4):
            self._tokens(data, self._all_spans[index])
            if self._below(4):
                return self._finish(data)
        for _ in range(1 + (self._bits(7) | 1).bit_length() % 8 if self._below(3) == 0 else 1):
            self._operations[self._below(len(self._operations))](data)
        return self._finish(data)

    def _finish(self, data: bytearray) -> bytes:
        result = bytes(data[:_MOST])
        return self._mend(result) if self._mend is not None and self._below(2) else result

    def _tokens(self, data: bytearray, spans: list[tuple[int, int]]) -> None:
        count = 1 if self._below(3) else 1 + self._below(4)
        chosen = sorted((spans[self._below(len(spans))] for _ in range(count)), reverse=True) if spans else []
        border = len(data)
        for start, end in chosen:
            if end <= border:  # none inside another
                if self._below(3) == 0:
                    new = self._words[self._below(len(self._words))]
                else:
                    new = _VALUES[self._below(_FREQUENT if self._below(64) else len(_VALUES))]
                data[start:end] = new
                border = start

    def _range(self, size: int) -> tuple[int, int]:
        start = self._below(size + 1)
        most = min(8, size - start) if self._below(2) else size - start
        return start, start + self._below(most + 1)

    def _flip(self, data: bytearray) -> None:
        if data:
            data[self._below(len(data))] ^= 1 << self._below(8)

    def _byte(self, data: bytearray) -> None:
        if data:
            data[self._below(len(data))] = self._below(256)

    def _number(self, data: bytearray) -> None:
        """Overwrites 1, 2, 4 or 8 bytes, as a length would stand there, with a number at which parsers go wrong."""
        size, near, kind = 1 << self._below(4), self._below(9), self._below(6)
        value = (near, -near, 1 << (8 * size - 1), (1 << self._below(64)) - near, len(data) - near, self._bits(64))[kind]
        at = self._below(len(data) + 1) if self._below(2) else self._below(min(len(data), 128) + 1)
        data[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")[: max(0, len(data) - at)]

    def _cut(self, data: bytearray) -> None:
        del data[self._below(len(data) + 1) if self._below(2) else max(0, len(data) - 1 - self._below(40)) :]

    def _extend(self, data: bytearray) -> None:
        data += self._bytes(1 + self._below(64))

    def _drop(self, data: bytearray) -> None:
        start, end = self._range(len(data))
        del data[start:end]

    def _repeat(self, data: bytearray) -> None:
        start, end = self._range(len(data))
        at = self._below(len(data) + 1)
        data[at:at] = data[start:end]

    def _splice(self, data: bytearray) -> None:
        """The end of another input after our beginning."""
        other = self._corpus[self._below(len(self._corpus))]
        at = self._below(len(data) + 1) if self._below(2) else min(len(data), len(other))
        data[at:] = other[min(at, len(other)) if self._below(2) else self._below(len(other) + 1) :]

    def _fill(self, data: bytearray) -> None:
        start, end = self._range(len(data))
        data[start:end] = (b"\0" if self._below(2) else b"\xff") * (end - start)

    def _insert(self, data: bytearray) -> None:
        at = self._below(len(data) + 1)
        data[at:at] = self._bytes(self._below(9))
