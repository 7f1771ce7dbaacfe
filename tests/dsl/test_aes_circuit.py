"""AES-128 from a file in Bristol Fashion, which a user supplies: here a file that is written from our own circuit."""

from __future__ import annotations

import secrets
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from keyquorum.schemes.circuit import AND, NOT, Circuit, aes_circuit, aes_library

from .running import SEMI_2K, run

BLOCKS, ANDS = 64, 5760
"""ANDs of a block, as of `aes_blocks`. A file with the gates that paper 003 counts has 6,800."""


def bristol(circuit: Circuit, inputs: list[int], outputs: list[int]) -> str:
    """A circuit as a text in Bristol Fashion, its inputs and outputs in groups. The last gates copy the outputs to the last wires."""
    lines = []
    for wire, (kind, a, b) in enumerate(circuit.gates, circuit.inputs):
        lines.append(f"1 1 {a} {wire} INV" if kind == NOT else f"2 1 {a} {b} {wire} {'AND' if kind == AND else 'XOR'}")
    wires = circuit.inputs + len(circuit.gates)
    lines += [f"1 1 {wire} {wires + i} EQW" for i, wire in enumerate(circuit.outputs)]
    head = [
        f"{len(lines)} {wires + len(circuit.outputs)}",
        f"{len(inputs)} {' '.join(map(str, inputs))}",
        f"{len(outputs)} {' '.join(map(str, outputs))}",
    ]
    return "\n".join([*head, "", *lines, ""])


def test_aes_from_a_file_is_aes(tmp_path: Path) -> None:
    """64 blocks at once between two parties: the values of another library, and as many ANDs as the file has."""
    key, data = secrets.token_bytes(16), secrets.token_bytes(16 * BLOCKS)
    rows = np.unpackbits(np.frombuffer(data, np.uint8).reshape(-1, 16), axis=1, bitorder="little").T
    words = [int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little") for row in rows]
    library = aes_library()
    expanded = [bool(row[0]) for row in library.key_schedule([np.array([byte >> j & 1], dtype=bool) for byte in key for j in range(8)])]
    source = f"""
        from circuit import Circuit
        t = sbits.get_type({BLOCKS})
        words, keys = {words}, {[int(bit) for bit in expanded]}
        z = sint.get_random(size={BLOCKS}).split_to_n_summands(1, 2)[0][0]
        blocks = sbitvec.from_vec([t(word) ^ z ^ z for word in words])
        result = Circuit('aes')(blocks, sbitvec.from_vec([t({(1 << BLOCKS) - 1} * bit) ^ z ^ z for bit in keys]))
        for row in result.v:
            print_ln('%s', row.reveal())
        """
    text = bristol(aes_circuit(), [128, 1408], [128])
    assert text.count(" AND\n") == ANDS
    first, second = run(tmp_path, source, SEMI_2K, circuits={"aes": text})
    found = np.array([int(line) % (1 << BLOCKS) for line in first.printed], dtype=np.uint64)
    assert first.printed == second.printed and found.size == 128
    bits = (found[None, :] >> np.arange(BLOCKS, dtype=np.uint64)[:, None] & np.uint64(1)).astype(np.uint8)
    worker = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    assert np.packbits(bits, axis=1, bitorder="little").tobytes() == worker.update(data) + worker.finalize()
    assert first.preprocessed["ands"][1] == ANDS * BLOCKS
