"""The header of a program: what its comment states in a form that can be read by machines.

A header is the comment at the top of a file in ``Programs/Source``. Prose comes first. A field is a line ``# key: value`` or
``# key of variant, variant: value``; lines that are indented by two more spaces continue it. :data:`FIELDS` has the keys,
docs/pages/adding-a-program.md their grammar.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from keyquorum.model.errors import ProgramError
from keyquorum.model.protocols import Protocol
from keyquorum.model.resources import program_path, resource_folder

FIELDS = {
    "arguments": "in their order on the command line; `[name=default]` may be left out, and of several words the first is the default",
    "private input of each contributor": "of the parties 0..contributors-1, 64-bit words",
    "public input": "words that all parties have alike, after the private ones",
    "reads": "`name[size] at argument`: shares of the share file from that position on",
    "writes": "`name[size]`: shares that are appended to the share file, in this order",
    "output": "words that are written by `binary_output`",
    "needs": "what a protocol must have to run the program at the stated costs; without the field every protocol does that has arithmetic",
    "where": "abbreviations of the formulas",
    "rounds": "of the whole run",
    "offline rounds": "of the part that does not depend on a ciphertext",
    "online rounds": "of the other part",
    "bytes": "the payload that all parties send together",
    "checks": "`deferred`: with MACs, plans may verify the openings of low bits together, before the result is opened; all that is opened so is under one-time masks",
    "timers": "what the program's timers measure",
    "sample": "arguments of a row of `make parity` with random inputs, for results that depend on nothing else; then counts of inputs",
}  # fmt: skip
"""Keys of headers, with their meaning."""
NEEDS: Mapping[str, tuple[str, Callable[[Protocol], bool]]] = {
    "ring": ("arithmetic modulo 2^k", lambda p: p.ring),
    "field": ("arithmetic over prime fields", lambda p: p.field),
    "bits": ("packed bits beside arithmetic, which MP-SPDZ has with every protocol", lambda p: p.binary),
    "plain": ("shares without MACs, so that primes may be small", lambda p: not p.macs),
    "macs": ("shares with MACs", lambda p: p.macs),
    "replicated": ("a sum whose summands are each known to several parties", lambda p: p.sharing == "replicated"),
    "additive": ("a sum, one summand a party", lambda p: p.sharing == "additive"),
}
"""Words of ``needs``, with their meaning and what they ask of a protocol. Clear text has everything."""
FORMULAS = ("rounds", "offline rounds", "online rounds", "bytes")
"""Keys whose values are Python expressions."""

SYMBOLS = {
    "n": "number of parties",
    "t": "most parties that may be corrupted; in programs with an argument t, that argument: the plaintext modulus",
    "w": "bytes of an element on the wire",
    "INPUT": "sharing one private value of one party, in elements",
    "OPEN": "opening one value to all parties, in elements",
    "OPEN_TO": "opening one value to one party, in elements",
    "SEND": "OPEN if the receiver or destination is `all`, 0 if it is `share`, otherwise OPEN_TO",
    "MUL": "one product, in elements",
    "SQUARE": "one square, in elements",
    "DOT(length)": "one inner product of vectors of that length, in elements",
    "BIT_PRODUCTS(count, N, m)": "products of count bits with a vector of N elements modulo 2^m (`Library/bit_products.py`), in bytes",
    "BIT_PRODUCTS_ROUNDS": "rounds of such products",
    "BIT": "one random bit of the arithmetic domain, in elements",
    "BIT_ROUNDS": "rounds of random bits",
    "AND(m)": "one AND of rows of m bits, in bytes",
    "ROW(m)": "opening a row of m bits, in bytes",
    "B2A(m)": "conversion of a row of m bits from the binary to the arithmetic domain, in bytes",
    "B2A_ROUNDS": "rounds of such conversions",
    "SHUFFLE(m)": "one secure shuffle of m elements, in elements",
    "SHUFFLE_ROUNDS(m)": "rounds of a secure shuffle of m elements",
    "bits(q)": "bit length of q",
    "ones(q)": "number of ones among the bits of q",
    "chunks(size, chunk)": "sizes of the pieces of a vector that is processed `chunk` entries at a time",
    "below_ands(m)": "ANDs of the comparison of a public with a secret number of m bits (`below`)",
    "ring_bits_ands(m, first=0)": "ANDs for the bits first..m-1 of a value modulo 2^k whose share is a sum (`ring_bits`)",
    "ring_bits_levels(m)": "depth of the same circuit",
    "integer_sum_ands(contributors, l)": "ANDs of a sum of numbers of l bits (`integer_sum`)",
    "integer_sum_levels(contributors, l)": "depth of the same circuit: of the low l bits, and of the carry",
    "sum_mod_ands(contributors, q, adder)": "ANDs of a sum modulo q (`bits_of_sum`)",
    "sum_mod_levels(contributors, q, adder)": "depth of the same circuit",
    "unmask_ands(q, adder)": "ANDs of the subtraction of a secret from a public number modulo q (`unmasked_bits`)",
    "unmask_levels(q, adder)": "depth of the same circuit",
    "sum_below_products(K)": "products of a sum of two K-bit numbers below a bound (`Library/fixed_weight.py`)",
    "sum_below_rounds(K)": "rounds of the same",
    "one_hot_products(K, N)": "products for the one-hot vector of length N of a K-bit number",
    "table_shape(l, b, levels)": "blocks and groups of the tables (`Library/ltz_tables.py`)",
    "table_rounds(...)": "rounds for making the tables",
    "table_bytes(...)": "bytes for making the tables",
    "ceil, log2, max, min, sum, len, range, int": "as in Python",
}  # fmt: skip
"""Names in formulas beside arguments and the abbreviations of ``where``. Bytes of an operation that costs elements: times w, for each entry."""


@dataclass(frozen=True)
class Argument:
    """An argument of a program. ``words``: alternatives to a number, or to one another. ``default``: None if the argument must be given.
    ``rest``: one or more arguments of this kind."""

    name: str
    words: tuple[str, ...] = ()
    default: str | None = None
    rest: bool = False


@dataclass(frozen=True)
class Read:
    """Shares that a program reads. ``size``: a Python expression of the arguments, None if it depends on the protocol. ``at``: the argument
    that has the position."""

    name: str
    size: str | None
    at: str


@dataclass(frozen=True)
class Write:
    """Shares that a program appends to the share file. ``size``: a Python expression of the arguments, None if the header does not state it."""

    name: str
    size: str | None


@dataclass(frozen=True)
class Field:
    """One field: the first line's value, and the text of the lines that continue it."""

    key: str
    variants: tuple[str, ...]
    value: str
    more: str = ""


@dataclass(frozen=True)
class Header:
    """The header of one program."""

    program: str
    prose: tuple[str, ...]
    fields: tuple[Field, ...]

    @property
    def summary(self) -> str:
        """The first sentence."""
        return " ".join(self.prose).split(". ")[0].rstrip(".") + "."

    def values(self, key: str) -> dict[str, str]:
        """The values of a key by variant; ``""`` for that of all others."""
        return {variant: field.value for field in self.fields if field.key == key for variant in field.variants or ("",)}

    def value(self, key: str, variant: str = "") -> str:
        """The value of a key for a variant, ``""`` if there is none."""
        found = self.values(key)
        return found.get(variant, found.get("", ""))

    def has(self, key: str) -> bool:
        """Whether there is a field of that key, for whatever variant."""
        return any(field.key == key for field in self.fields)

    def needs(self, variant: str = "") -> tuple[str, ...]:
        """What a variant needs of a protocol, keys of :data:`NEEDS`. Raises ProgramError for other words."""
        words = tuple(self.value("needs", variant).split())
        if unknown := set(words) - set(NEEDS):
            raise ProgramError(f"{self.program}: needs has {', '.join(sorted(unknown))}: write some of {', '.join(NEEDS)}")
        return words

    def runs_on(self, protocol: Protocol, variant: str = "", on_mp_spdz: bool = False) -> bool:
        """Whether a protocol has what a variant needs, on the embedded engine or on MP-SPDZ, which has packed bits with every protocol."""
        if not (protocol.ring or protocol.field):
            return False
        return all(protocol.emulated or (word == "bits" and on_mp_spdz) or NEEDS[word][1](protocol) for word in self.needs(variant))

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants that fields name, in their order; one without a name if none does."""
        return tuple(dict.fromkeys(variant for field in self.fields for variant in field.variants)) or ("",)

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments in their order."""
        return tuple(self._argument(word) for word in self.value("arguments").split())

    @property
    def reads(self) -> tuple[Read, ...]:
        """What is read from the share file."""
        return tuple(Read(m["name"], m["size"], m["at"]) for m in self._items("reads", r"(?P<name>\w+)(?:\[(?P<size>.+)\])? at (?P<at>\w+)"))

    @property
    def writes(self) -> tuple[Write, ...]:
        """What is appended to the share file."""
        return tuple(Write(m["name"], m["size"]) for m in self._items("writes", r"(?P<name>\w+)(?:\[(?P<size>.+)\])?"))

    def _items(self, key: str, pattern: str) -> Iterator[re.Match[str]]:
        value = self.value(key)
        for item in _separated(value):
            match = re.fullmatch(pattern, item)
            if match is None:
                raise ProgramError(f"{self.program}: {key} has {item!r}: write {FIELDS[key].split(':')[0]}")
            yield match

    def _argument(self, word: str) -> Argument:
        if match := re.fullmatch(r"\[(\w+)=([\w|]+)\]", word):
            name, words = match[1], match[2].split("|")
            return Argument(name, tuple(words) if len(words) > 1 else (), words[0])
        if match := re.fullmatch(r"(\w+)(?:\((\w+(?:\|\w+)+)\))?(\.\.\.)?", word):
            return Argument(match[1], tuple(match[2].split("|")) if match[2] else (), None, bool(match[3]))
        raise ProgramError(f"{self.program}: {word!r} is no argument: write name, name(word|word), [name=default] or name...")


def _separated(value: str) -> list[str]:
    """Items between commas that are not in brackets."""
    items, depth = [""], 0
    for character in value:
        depth += (character in "[(") - (character in "])")
        if character == "," and not depth:
            items.append("")
        else:
            items[-1] += character
    return [item.strip() for item in items if item.strip()]


def parse_header(program: str, text: str) -> Header:
    """The header of a program's text."""
    prose: list[str] = []
    fields: list[Field] = []
    keys = "|".join(map(re.escape, FIELDS))
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        content = line[1:].removeprefix(" ").rstrip()
        if match := re.fullmatch(rf"({keys})(?: of (\w+(?:, \w+)*))?: +(.+)", content):
            fields.append(Field(match[1], tuple(match[2].split(", ")) if match[2] else (), match[3]))
        elif fields and content.startswith("  "):
            last = fields[-1]
            fields[-1] = Field(last.key, last.variants, last.value, f"{last.more} {content.strip()}".strip())
        elif content and not fields:
            prose.append(content)
    return Header(program, tuple(prose), tuple(fields))


@lru_cache(maxsize=256)
def header(program: str) -> Header:
    """The header of a program of the collection, by name."""
    return parse_header(program, program_path(program).read_text())


def collection() -> list[str]:
    """Names of all programs of the collection."""
    return sorted(path.stem for path in (Path(resource_folder("Programs")) / "Source").glob("*.mpc"))
