"""Secure shuffles: the protocol's own shuffle where it has one (replicated shares, also of three Shamir parties), otherwise switching networks.

t + 1 parties each choose a uniformly random permutation (OS randomness), route it through a Waksman network [1] and
input the control bits; the networks are applied one after another. At least one of the permutations is uniform and
unknown to any t parties, so the composition is exactly uniform and unknown to them.

A network for n blocks has n ceil(log2 n) - 2^ceil(log2 n) + 1 switches in 2 ceil(log2 n) - 1 layers; a switch costs one
product per element of a block, a layer one round. All control bits are input in the first round.

[1] Beauquier and Darrot, "On arbitrary size Waksman networks and their vulnerability" (2002).
"""

from __future__ import annotations

import os
from functools import lru_cache

import numpy as np

from keyquorum._engine import CheckError, Engine
from keyquorum.model.protocols import PROTOCOLS

from ..context import Ints, Run, Value, current
from ..errors import CompilerError
from .base import RunTime, is_constant

Layer = tuple[Ints, Ints]
"""The two wires of every switch of a layer."""


def random_permutation(n: int) -> Ints:
    """A uniformly random permutation of 0 .. n-1, from the OS."""
    while True:
        keys = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        if not np.any(ranked[1:] == ranked[:-1]):  # without equal keys the order is exactly uniform
            return order.astype(np.int64)


def depth(n: int) -> int:
    """Layers of the network for n blocks."""
    return max(0, 2 * (n - 1).bit_length() - 1)


@lru_cache(maxsize=64)
def network(n: int) -> tuple[Layer, ...]:
    """The layers of the network for n wires; wires stay in place, a switch swaps two of them or not."""
    layers: list[list[tuple[int, int]]] = [[] for _ in range(depth(n))]
    blocks = [np.arange(n, dtype=np.int64)]
    for level in range((n - 1).bit_length()):
        smaller = []
        for wires in blocks:
            for i in range(_input_switches(len(wires))):
                layers[level].append((int(wires[2 * i]), int(wires[2 * i + 1])))
            for i in range(_output_switches(len(wires))):
                layers[-1 - level].append((int(wires[2 * i]), int(wires[2 * i + 1])))
            if len(wires) > 2:
                smaller += [_upper(wires), _lower(wires)]
        blocks = smaller
    return tuple((np.array([a for a, _ in layer], dtype=np.int64), np.array([b for _, b in layer], dtype=np.int64)) for layer in layers)


def _input_switches(n: int) -> int:
    return n // 2


def _output_switches(n: int) -> int:
    return 0 if n <= 2 else (n - 1) // 2


def _upper(wires: Ints) -> Ints:
    return wires[: len(wires) - len(wires) % 2 : 2]


def _lower(wires: Ints) -> Ints:
    return np.append(wires[1::2], wires[len(wires) - 1 :]) if len(wires) % 2 else wires[1::2]


def route(permutation: Ints) -> list[Ints]:
    """Control bits, layer by layer in the order of :func:`network`, so that output i gets input ``permutation[i]``."""
    n = len(permutation)
    layers: list[list[int]] = [[] for _ in range(depth(n))]
    blocks = [permutation.tolist()]
    for level in range((n - 1).bit_length()):
        smaller = []
        for source in blocks:
            if len(source) == 2:
                layers[level].append(source[0])
            elif len(source) > 2:
                inputs, outputs, upper, lower = _split(source)
                layers[level] += inputs
                layers[-1 - level] += outputs
                smaller += [upper, lower]
        blocks = smaller
    return [np.array(layer, dtype=np.int64) for layer in layers]


def _split(source: list[int]) -> tuple[list[int], list[int], list[int], list[int]]:
    """One level of the network: controls of the input and output switches, and the permutations for both halves.

    Outputs 2i and 2i+1 must come from different halves, and inputs 2i and 2i+1 must go to different halves. The last outputs, which have no
    switch, come from the upper and lower half (n even) or from the lower one (n odd). Following these constraints closes every cycle.
    """
    n = len(source)
    target = [0] * n
    for i, s in enumerate(source):
        target[s] = i
    half = [-1] * n  # of each output: 0 upper, 1 lower
    paired = n - n % 2

    def follow(output: int, side: int) -> None:
        while half[output] < 0:
            half[output] = side
            if source[output] >= paired:
                return  # the input without a switch, and this is the lower half
            partner = target[source[output] ^ 1]
            if half[partner] >= 0:
                return
            half[partner] = 1 - side
            if partner >= paired:
                return
            output = partner ^ 1

    follow(n - 1, 1)
    for output in range(0, paired, 2):
        if half[output] < 0:
            follow(output, 0)

    inputs = [half[target[2 * i]] for i in range(n // 2)]
    outputs = [half[2 * i] for i in range(_output_switches(n))]
    sub: tuple[list[int], list[int]] = ([0] * (n // 2), [0] * (n - n // 2))
    for output, s in enumerate(source):
        sub[half[output]][output // 2] = s // 2
    return inputs, outputs, sub[0], sub[1]


def apply_clear(permutation: Ints, values: Ints) -> Ints:
    """The network on clear values: the reference for tests."""
    out = values.copy()
    for (a, b), controls in zip(network(len(permutation)), route(permutation), strict=True):
        swap = controls == 1
        out[a[swap]], out[b[swap]] = out[b[swap]], out[a[swap]]
    return out


def _controls(engine: Engine, party: int, switches: int, bits: Ints | None) -> Value:
    """Control bits of a party's permutation. With another element a switch would output sums of its inputs, which are wrong and reveal the order. So
    against malicious parties they are input as packed bits and converted, which guarantees that they are 0 or 1; without packed bits c^2 - c is opened, which must be 0."""
    if PROTOCOLS[engine.protocol].adversary != "malicious":
        return engine.input(party, switches, bits)
    if engine.has_binary:
        packed = None if bits is None else bits.astype(np.uint8)
        return engine.bit_to_arith(engine.input_bits(party, switches, packed))
    controls = engine.input(party, switches, bits)
    if np.any(np.asarray(engine.read(engine.open(engine.sub(engine.mul(controls, controls), controls))))):
        raise CheckError(f"party {party} input a control bit of a shuffle that is neither 0 nor 1: it cheats")
    return controls


def secure_shuffle(run: Run, value: Value, unit_size: int) -> Value:
    """A vector with its blocks of ``unit_size`` in a uniformly random order, see the module."""
    engine = run.engine
    if unit_size < 1 or value.size % unit_size:
        raise CompilerError(f"cannot shuffle {value.size} elements in blocks of {unit_size}")
    n = value.size // unit_size
    if n < 2:
        return value
    if engine.has_shuffle:
        return engine.shuffle(run.to_secret(value), unit_size)
    return permuted(run, value, unit_size, random_controls(run, n))


def random_controls(run: Run, n: int) -> list[Value]:
    """Control bits of t + 1 networks for ``n`` blocks, each of a permutation that one party chose. One round of inputs."""
    engine = run.engine
    switches = sum(len(a) for a, _ in network(n))
    controls = []
    for party in range(engine.threshold + 1):
        bits = np.concatenate(route(random_permutation(n))) if party == engine.party and n > 1 else None
        controls.append(_controls(engine, party, switches, bits))
    return controls


def permuted(run: Run, value: Value, unit_size: int, controls: list[Value], reverse: bool = False) -> Value:
    """A vector with its blocks moved by the networks with these control bits, or moved back: each layer is its own inverse."""
    engine, offsets = run.engine, np.arange(unit_size, dtype=np.int64)
    layers = network(value.size // unit_size)
    starts = np.cumsum([0, *(len(a) for a, _ in layers)])
    steps = [(control, int(at), a, b) for control in controls for at, (a, b) in zip(starts, layers, strict=False)]
    value = engine.slice(run.to_secret(value), 0, 1, value.size)  # a copy of our own, to be changed in place
    for control, at, a, b in reversed(steps) if reverse else steps:
        choice = engine.slice(control, at, 1, len(a))
        if unit_size > 1:
            choice = engine.gather(choice, np.repeat(np.arange(len(a), dtype=np.int64), unit_size))
            a, b = ((w[:, None] * unit_size + offsets).ravel() for w in (a, b))
        x, y = engine.gather(value, a), engine.gather(value, b)
        moved = engine.mul(choice, engine.sub(y, x))
        value = engine.scatter(engine.scatter(value, a, engine.add(x, moved)), b, engine.sub(y, moved))
    return value


class SecretPermutation(RunTime):
    """A uniformly random permutation of ``n`` blocks that no t parties know, and its inverse: t + 1 switching networks."""

    __slots__ = ("_controls", "n")

    def __init__(self, n: int) -> None:
        if not is_constant(n) or n < 1:
            raise CompilerError(f"get_secure_shuffle takes a positive compile-time integer, not {n!r}")
        self.n = int(n)
        self._controls = random_controls(current(), self.n) if n > 1 else []

    def apply(self, value: Value, unit_size: int, reverse: bool) -> Value:
        """The vector with its blocks moved, or moved back."""
        if value.size != self.n * unit_size:
            raise CompilerError(f"a permutation of {self.n} blocks of {unit_size} is for {self.n * unit_size} elements, not {value.size}")
        return permuted(current(), value, unit_size, self._controls, reverse)
