"""A function for each program of ``Programs/Source``. Made from their headers by ``Scripts/program_signatures.py``: do not edit.

Each gives a :class:`.Call` that :meth:`.Backend.run` takes. Arguments have the names of the header; in place of a position in the share file stands
the segment that is read there, by its own name. Without it the program reads at its default position. The header states bytes and segments too.
"""

# ruff: noqa: E741
# fmt: off
# mypy: disable-error-code=empty-body

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from .call import Call, Segment
from .declared import program


@program
def aes_blocks(
    *,
    size: int,
    direction: Literal["encrypt", "decrypt"],
    destination: int | Literal["all", "share"],
    blocks: Segment | None = None,
    keys: Segment | None = None,
) -> Call:
    """AES-128 of shared blocks under a shared key of `aes_keys`, or its inverse: row 8 i + j has bit j of byte i of all blocks.

    Rounds: ``40 + B2A_ROUNDS + (1 if destination != 'share' else 0)``
    """


@program
def aes_blocks_masked(*, size: int, masks: Segment | None = None, keys: Segment | None = None, pads: Segment | None = None) -> Call:
    """AES-128 of blocks that clients outside masked, under a shared key of `aes_keys`; the results are opened under pads that the clients know.

    Rounds: ``41``
    """


@program
def aes_blocks_table(
    *,
    size: int,
    direction: Literal["encrypt", "decrypt"],
    destination: int | Literal["all", "share"],
    blocks: Segment | None = None,
    keys: Segment | None = None,
    masks: Segment | None = None,
    hot: Segment | None = None,
) -> Call:
    """AES-128 of shared blocks under a shared key of `aes_keys`, or its inverse, with the masks and one-hot vectors of `aes_hot`, which serve once.

    Rounds: ``10 + B2A_ROUNDS + (1 if destination != 'share' else 0)``
    """


@program
def aes_hot(*, size: int) -> Call:
    """For AES-128 by look-up tables: a random byte r for each S-box of each block, and its one-hot vector [r = v], v = 0..255.

    Rounds: ``3 + B2A_ROUNDS``
    """


@program
def aes_keys(*, size: int = 1) -> Call:
    """Random keys of AES-128 and their round keys, as shares of bits: row 128 r + 8 i + j has bit j of byte i of round key r, r = 0..10, of all
    keys.

    Rounds: ``40 + B2A_ROUNDS``
    """


@program
def and_triples(*, size: int, count: int) -> Call:
    """Multiplication triples of bits: a, b uniform and c = a & b, of which the lowest bits count.

    Rounds: ``1 + B2A_ROUNDS``
    """


@program
def bit_inputs(*, contributors: int, size: int) -> Call:
    """Bits of several contributors become shares of their XOR, and proof that they are bits.

    Rounds: ``1 + max(2, ceil(log2(contributors)))``
    """


@program
def client_masks(*, size: int, words: int) -> Call:
    """Random bits that hide inputs and results of clients outside, and what shows a client that it has the true ones: for each client a random
    element k of GF(2^64), and the products of k with its bits, 64 at a time.

    Rounds: ``1 + B2A_ROUNDS``
    """


@program
def client_outputs(*, size: int, checks: int, shift: int, messages: Segment, pads: Segment, masks: Segment) -> Call:
    """Opens messages under pads that clients know, and shows clients that they have the true pads: of each pad w and masks v, of which a client got
    all shares, v + c w is opened for a public c that was tossed after the shares were fixed.

    Rounds: ``1``
    """


@program
def cyclo_switch_key(
    *,
    N: int,
    f: int,
    count: int,
    digits: int,
    squares: int,
    s: Segment,
    targets: Segment,
    e: Segment,
    weights: Sequence[int],
) -> Call:
    """Keys of GHS over one prime q of their modulus, b = f * e - a * s + g * w: key switching keys for any list of targets w, and public keys (g =
    0).

    Rounds: ``1 + (1 if squares and max(weights) else 0)``
    """


@program
def flood(
    *,
    contributors: int,
    N: int,
    receiver: int | Literal["all"],
    phase: Segment | None = None,
    masks: Literal["inputs", "stored"] = "inputs",
    r: Segment | None = None,
    pieces: int = 1,
    width: int = 0,
) -> Call:
    """CKKS decryption: the phase is opened to the receiver under flooding noise that no t parties know.

    Rounds: ``2 if masks == 'inputs' else 1``
    """


@program
def glwe_bootstrap_key(*, count: int, N: int, base_log: int, levels: int, s: Segment, z: Segment, e: Segment, block: int = 128) -> Call:
    """Bootstrapping key of TFHE: GGSW ciphertexts of secret bits s_i under the ring secret z in Z_2^k[X]/(X^N + 1), GLWE dimension 1.

    Rounds: ``BIT_PRODUCTS_ROUNDS + 1``
    """


@program
def legendre_keys(*, bits: int, degree: int) -> Call:
    """Random keys of `legendre_prf`: the constant terms of its polynomials and, for degree 2, their linear coefficients.

    Rounds: ``0``
    """


@program
def legendre_prf(
    *,
    size: int,
    bits: int,
    degree: int,
    destination: Literal["all", "share"],
    points: Segment | None = None,
    constants: Segment | None = None,
    slopes: Segment | None = None,
) -> Call:
    """The Legendre PRF of shared points under shared keys: bit i of a point x is the Legendre symbol of f_i(x), for a secret monic polynomial f_i
    of degree 1, x + b, or 2, x(x + a) + b.

    Rounds: ``2 + (1 if destination == 'all' else 0)``
    """


@program
def lift_close(*, contributors: int, size: int, b: int, masks: Literal["inputs", "stored"] = "inputs", r: Segment | None = None) -> Call:
    """A small vector moves from one domain to another, second of two runs, in the new domain: x = c - 2^b - sum of r.

    Rounds: ``1 if masks == 'inputs' else 0``
    """


@program
def lift_open(
    *,
    contributors: int,
    size: int,
    b: int,
    lam: int,
    modulus: int,
    x: Segment | None = None,
    masks: Literal["inputs", "stored"] = "inputs",
    r: Segment | None = None,
) -> Call:
    """A small vector, -2^b <= x < 2^b, moves from one domain to another (another prime, or Z_2^k), first of two runs: it is opened under masks.

    Rounds: ``2 if masks == 'inputs' else 1``
    """


@program
def lift_test(*, size: int, tests: int, offset: int, x: Segment | None = None, s: Segment | None = None, block: int = 64) -> Call:
    """Sums of public subsets of a small vector x, under masks: a test of whether shares in several domains are those of the same integers.

    Rounds: ``1``
    """


@program
def lisss_share(*, parties: int, members: int, size: int, first: int, count: int, s: Segment | None = None) -> Call:
    """A stored vector is shared anew among subsets of the parties, without a dealer: for every subset of `members` parties an additive sharing of
    it.

    Rounds: ``2``
    """


@program
def ltz_tables(
    *,
    size: int,
    l: int,
    b: int,
    levels: int,
    method: Literal["binary", "arith"] = "binary",
    mask_bits: Segment | None = None,
    masks: Literal["stored", "made"] = "stored",
) -> Call:
    """Tables for the comparison of `round_ltz_table_online`, made before the ciphertext is known, for the bits of a mask r.

    Rounds: ``table_rounds(l, b, levels, method, masks)``
    """


@program
def lwe_bodies(*, n: int, count: int, shift: int, s: Segment, m: Segment, e: Segment, block: int = 1024) -> Call:
    """LWE encryptions of shared messages under a shared secret s: b = <a, s> + e + 2^shift * m for public uniform vectors a.

    Rounds: ``1``
    """


@program
def lwe_gate_bits(*, size: int) -> Call:
    """Messages of encrypted tables for ANDs on LWE ciphertexts: masks r0, r1 of each gate, and the table (u xor r0) and (v xor r1), u, v = 0, 1.

    Rounds: ``BIT_ROUNDS + 1``
    """


@program
def lwe_phase(*, n: int, count: int, offset: int = 0, s: Segment | None = None, block: int = 1024) -> Call:
    """Phases b - <a, s> + offset of many LWE ciphertexts under one secret s, as shares.

    Rounds: ``0``
    """


@program
def lwe_public_key(*, n: int, s: Segment | None = None, e: Segment | None = None, block: int = 128, reverse: int = 0) -> Call:
    """Compact public key of an LWE key: b = a * s + e in Z_q[X]/(X^n + 1), where s has the bits of the LWE secret as coefficients.

    Rounds: ``1``
    """


@program
def lwe_samples(*, count: int, x: Segment, e: Segment) -> Call:
    """LWE samples b = <a, s> + e for public uniform vectors a, encryptions of zero: the public key of FHEW-like schemes, of which encryption adds
    up a random subset.

    Rounds: ``1``
    """


@program
def lwe_switch_key(*, n: int, count: int, base_log: int, levels: int, s: Segment, m: Segment, e: Segment, block: int = 1024, q: int = 0) -> Call:
    """Key-switching key of TFHE and FHEW: for every message m_i, and for level = levels down to 1, b = <a, s> + e + m_i * 2^(k - base_log*level).

    Rounds: ``1``
    """


@program
def noise_check(*, count: int, N: int, l: int, y: Segment | None = None, ring_length: int = 64) -> Call:
    """Whether the noise of RLWE ciphertexts is below half its border, a bit for each ciphertext: all of e in [-2^(l-2), 2^(l-2)), for phases z =
    2^l * m + e + 2^(l-1).

    Rounds: ``ring_bits_levels(l) + B2A_ROUNDS + ring_bits_levels(S) + 1``
    """


@program
def open_masked(*, size: int, x: Segment, r: Segment) -> Call:
    """Opens x + r for shared vectors x and r: a masked value, uniform if r is uniform, secret and used once.

    Rounds: ``1``
    """


@program
def opening_masks(*, contributors: int, size: int, count: int) -> Call:
    """What openings with MACs take beside the values: random elements that nobody knows, which hide what is above a value modulo 2^k, and elements
    that one party knows, under which a value is opened to it.

    Rounds: ``1``
    """


@program
def rgsw_bodies(
    *,
    count: int,
    N: int,
    q: int,
    base_log: int,
    levels: int,
    s: Segment,
    z: Segment,
    e: Segment,
    noise: Literal["coefficients", "transformed"] = "coefficients",
) -> Call:
    """Bootstrapping key of FHEW-like schemes over a prime q: RGSW ciphertexts of secret bits s_i under the ring secret z in F_q[X]/(X^N + 1).

    Rounds: ``2``
    """


@program
def rlwe_phase(*, N: int, q: int, form_in: Literal["ntt", "coeff"], form_out: Literal["ntt", "coeff"], s: Segment | None = None) -> Call:
    """The phase c0 + c1 * s of an RLWE ciphertext over one prime q, as shares.

    Rounds: ``0``
    """


@program
def rlwe_phase_ring(*, N: int, count: int, k: int, s: Segment | None = None, ring_length: int = 64) -> Call:
    """Phases c0 + c1 * s of RLWE ciphertexts that were switched to 2^k, as shares modulo 2^K, K = ring_length.

    Rounds: ``0``
    """


@program
def rlwe_public_key(*, N: int, q: int, f: int, count: int, s: Segment | None = None, e: Segment | None = None) -> Call:
    """RLWE encryptions of zero, b = -(a * s + f * e) over one prime q: public keys of SEAL (docs/pages/formats.md: f = t for BGV, otherwise 1).

    Rounds: ``1``
    """


@program
def rlwe_switch_key(
    *,
    N: int,
    q: int,
    f: int,
    digits: int,
    i: int,
    P_mod_q: int,
    s: Segment,
    e: Segment,
    targets: Sequence[int | Literal["relin"]],
) -> Call:
    """Key switching keys over one prime q = q_i: relinearisation and Galois keys of SEAL, for any list of targets in one run.

    Rounds: ``1 + (1 if 'relin' in targets and i < digits else 0)``
    """


@program
def round_carry_odd_field(
    *,
    summands: int,
    contributors: int,
    size: int,
    t: int,
    receiver: int | Literal["all"],
    x: Segment | None = None,
    masks: Literal["inputs", "stored"] = "inputs",
    r: Segment | None = None,
) -> Call:
    """Exact decryption for an odd t without a mask, second of two runs, in F_t: m = x + floor(y / 2^l), for the sum x of the high parts.

    Offline rounds: ``(1 if masks == 'inputs' else 0) + d``
    Online rounds: ``1``
    """


@program
def round_carry_odd_ring(
    *,
    summands: int,
    contributors: int,
    size: int,
    l: int,
    y: Segment | None = None,
    ring_length: int = 64,
    masks: Literal["inputs", "stored"] = "inputs",
    r: Segment | None = None,
) -> Call:
    """Exact decryption for an odd t without a mask, first of two runs, in Z_2^k: the carry floor(y / 2^l) of the sum y of low parts.

    Rounds: ``(1 if masks == 'inputs' else 0) + ring_bits_levels(m) + 1``
    """


@program
def round_field_close(*, size: int, l: int, q: int, t: int, destination: int | Literal["all", "share"], rows: Segment | None = None) -> Call:
    """Exact decryption over prime fields alone, second of two runs, modulo t: m = ((q - 1)/2 - c + v)/q - [c < v], for what `round_field_open`
    opened, c.

    Rounds: ``ceil(log2(l)) + (1 if destination != 'share' else 0)``
    """


@program
def round_field_close_bits(
    *,
    size: int,
    l: int,
    q: int,
    j: int,
    destination: int | Literal["all", "share"],
    rows: Segment | None = None,
) -> Call:
    """Exact decryption over prime fields alone, second of two runs, for messages of j bits: m = r - b + 2^j * b * [r = 0], for b = [c < v] and r of
    v mod 2^j.

    Rounds: ``ceil(log2(l)) + 1 + (1 if destination != 'share' else 0)``
    """


@program
def round_field_mask(
    *,
    summands: int,
    size: int,
    l: int,
    q: int,
    keep: Literal["sum", "bits"],
    low: int = 0,
    bits: Segment | None = None,
) -> Call:
    """Masks for exact decryption over prime fields alone: v = XOR of the numbers of l bits of several summands, and [v < q], which is opened.

    Rounds: ``S + (ceil(log2(l)) + 1 if keep == 'bits' else 0)``
    """


@program
def round_field_open(*, size: int, q: int, t: int, z: Segment | None = None, mask: Segment | None = None) -> Call:
    """Exact decryption over prime fields alone, first of two runs, modulo q: y + v is opened, for y = t * w + (q - 1)/2 and a uniform mask v.

    Rounds: ``1``
    """


@program
def round_flood(*, size: int, f: int, destination: int | Literal["all", "share"], z: Segment | None = None, mask: Segment | None = None) -> Call:
    """Decryption by noise flooding, the baseline: z + F is opened for a uniform F in [-2^f, 2^f), and the receiver rounds.

    Rounds: ``1 if destination != 'share' else 0``
    """


@program
def round_ltz_circuit(
    *,
    contributors: int,
    size: int,
    l: int,
    j: int,
    receiver: int | Literal["all"],
    z: Segment | None = None,
    ring_length: int = 64,
) -> Call:
    """Exact decryption for t = 2^j: z = 2^l * m + e + 2^(l-1) mod t * 2^l is shared, |e| < 2^(l-1), and only m is opened.

    Offline rounds: ``1 + ring_bits_levels(m) + (1 if C else 0)``
    Online rounds: ``3 + ceil(log2(l))``
    """


@program
def round_ltz_circuit_odd_field(
    *,
    contributors: int,
    size: int,
    l: int,
    t: int,
    receiver: int | Literal["all"],
    z: Segment | None = None,
) -> Call:
    """Exact decryption for an odd t, second of two runs, in F_t with z mod t: m = 2^(-l) * (z - z' + R) - c - u.

    Offline rounds: ``1 + C``
    Online rounds: ``1``
    """


@program
def round_ltz_circuit_odd_field_online(
    *,
    size: int,
    l: int,
    t: int,
    destination: int | Literal["all", "share"],
    z: Segment | None = None,
    mask: Segment | None = None,
) -> Call:
    """Exact decryption for an odd t, second of two runs, in F_t with z mod t: m = 2^(-l) * (z - z' + r) - u.

    Offline rounds: ``0``
    Online rounds: ``1 if destination != 'share' else 0``
    """


@program
def round_ltz_circuit_odd_ring(*, contributors: int, size: int, l: int, z: Segment | None = None, ring_length: int = 64) -> Call:
    """Exact decryption for an odd t, first of two runs: `round_ltz_circuit` in Z_2^k with z mod 2^l.

    Offline rounds: ``1 + ring_bits_levels(m) + (1 if C else 0)``
    Online rounds: ``2 + ceil(log2(l))``
    """


@program
def round_ltz_circuit_odd_ring_online(
    *,
    size: int,
    l: int,
    z: Segment | None = None,
    mask: Segment | None = None,
    ring_length: int = 64,
    triples: int = 0,
) -> Call:
    """Exact decryption for an odd t, first of two runs, in Z_2^k with z mod 2^l: opens z' = z + r mod 2^l, and u = [z' < r] under a random bit.

    Offline rounds: ``0``
    Online rounds: ``2 + ceil(log2(l))``
    """


@program
def round_ltz_circuit_online(
    *,
    size: int,
    l: int,
    j: int,
    destination: int | Literal["all", "share"],
    z: Segment | None = None,
    mask: Segment | None = None,
    ring_length: int = 64,
    triples: int = 0,
) -> Call:
    """Exact decryption for t = 2^j with a mask of `round_mask` (bits=all, extra=1): its sum r, the l bits of r, and one further bit.

    Offline rounds: ``0``
    Online rounds: ``ceil(log2(l)) + (3 if destination != 'share' else 2)``
    """


@program
def round_ltz_ring(
    *,
    N: int,
    count: int,
    t: int,
    k: int,
    receiver: int | Literal["all"],
    s: Segment | None = None,
    ring_length: int = 64,
) -> Call:
    """Exact decryption of RLWE ciphertexts for an odd t in one ring, without shares modulo t: of phases y = (2^k / t) * (m + 1/2) + e modulo 2^k,
    |e| < 2^k / (2 t), only m is opened.

    Rounds: ``2*(2 + ceil(log2(k))) + 1``
    """


@program
def round_ltz_ring_online(
    *,
    size: int,
    t: int,
    k: int,
    destination: int | Literal["all", "share"],
    z: Segment | None = None,
    masks: Segment | None = None,
    ring_length: int = 64,
    block: int = 3,
) -> Call:
    """Exact decryption for an odd t with stored masks, in one ring: of phases y = (2^k / t) * (m + 1/2) + e modulo 2^k, |e| < 2^k / (2 t), only m
    is opened (see `round_ltz_ring`).

    Offline rounds: ``0``
    Online rounds: ``2*(1 + ceil(log2(ceil(k/block)))) + (1 if destination != 'share' else 0)``
    """


@program
def round_ltz_table_online(
    *,
    size: int,
    l: int,
    j: int,
    b: int,
    levels: int,
    destination: int | Literal["all", "share"],
    z: Segment | None = None,
    mask: Segment | None = None,
    ring_length: int = 64,
) -> Call:
    """Exact decryption with the comparison in tables: z = 2^l * m + e + 2^(l-1) mod 2^(l+j) is shared, |e| <= 2^(l-1), only m is opened.

    Rounds: ``levels + 1 if destination != 'share' else levels``
    """


@program
def round_mask(*, size: int, l: int, bits: Literal["sum", "all", "blocks"] = "sum", extra: int = 0, block: int = 3) -> Call:
    """The part of every rounding that is done before the ciphertext is known and is linear in random bits: masks r = sum of 2^i * r_i.

    Rounds: ``BIT_ROUNDS + (ceil(log2(min(block, l))) if bits == 'blocks' else 0)``
    """


@program
def round_mask_odd_bits(
    *,
    contributors: int,
    size: int,
    l: int,
    keep: Literal["carry", "all"],
    adder: Literal["ripple", "prefix"] = "ripple",
    masks: Literal["inputs", "stored"] = "inputs",
    r: Segment | None = None,
) -> Call:
    """Masks for odd plaintext moduli, first of two runs: the bits of r = R mod 2^l for a sum R of the contributors' masks (contributors > t).

    Rounds: ``(1 if masks == 'inputs' else 0) + max(integer_sum_levels(contributors, l)[1] + min(C, 1), all*(integer_sum_levels(contributors,
    l)[0] + B2A_ROUNDS))``
    """


@program
def round_mask_odd_field(
    *,
    contributors: int,
    size: int,
    l: int,
    t: int,
    keep: Literal["carry", "all"],
    masks: Literal["inputs", "stored"] = "inputs",
    r: Segment | None = None,
) -> Call:
    """Masks for odd plaintext moduli, second of two runs, in F_t: r = R - 2^l * c, for the sum R of the contributors' masks (contributors > t).

    Rounds: ``(1 if masks == 'inputs' else 0) + (C if C + all else 0)``
    """


@program
def round_mask_open(
    *,
    contributors: int,
    size: int,
    l: int,
    j: int,
    receiver: int | Literal["all"],
    z: Segment | None = None,
    ring_length: int = 64,
) -> Call:
    """Decryption by mask-then-open for t = 2^j: z = 2^l * m + e + 2^(l-1) mod t * 2^l is shared, and only m is opened.

    Offline rounds: ``2 + ring_bits_levels(m) if C else 1``
    Online rounds: ``2``
    """


@program
def round_mask_open_odd_field(*, contributors: int, size: int, l: int, t: int, receiver: int | Literal["all"], z: Segment | None = None) -> Call:
    """Decryption by mask-then-open for an odd t, second of two runs, in F_t with z mod t: m = 2^(-l) * (z - 2^(l-1) - z' + R) - c.

    Offline rounds: ``1 + C``
    Online rounds: ``1``
    """


@program
def round_mask_open_odd_field_online(
    *,
    size: int,
    l: int,
    t: int,
    destination: int | Literal["all", "share"],
    z: Segment | None = None,
    r: Segment | None = None,
) -> Call:
    """Decryption by mask-then-open for an odd t, second of two runs, in F_t with z mod t: m = 2^(-l) * (z - 2^(l-1) - z' + r).

    Offline rounds: ``0``
    Online rounds: ``1 if destination != 'share' else 0``
    """


@program
def round_mask_open_odd_ring(*, contributors: int, size: int, l: int, z: Segment | None = None, ring_length: int = 64) -> Call:
    """Decryption by mask-then-open for an odd t, first of two runs: `round_mask_open` in Z_2^k with z mod 2^l.

    Offline rounds: ``2 + ring_bits_levels(m) if C else 1``
    Online rounds: ``1``
    """


@program
def round_mask_open_odd_ring_online(*, size: int, l: int, z: Segment | None = None, r: Segment | None = None, ring_length: int = 64) -> Call:
    """Decryption by mask-then-open for an odd t, first of two runs, in Z_2^k with z mod 2^l: opens z' = e + r mod 2^l for a mask r of `sum_inputs`.

    Offline rounds: ``0``
    Online rounds: ``1``
    """


@program
def round_mask_open_one_online(
    *,
    size: int,
    l: int,
    j: int,
    destination: int | Literal["all", "share"],
    x: Segment | None = None,
    r: Segment | None = None,
    ring_length: int = 64,
) -> Call:
    """Decryption by mask-then-open to one party for t = 2^j, second of two runs, in Z_2^k: opens m from x = z - z'.

    Offline rounds: ``0``
    Online rounds: ``1 if destination != 'share' else 0``
    """


@program
def round_mask_open_one_ring_online(*, size: int, l: int, z: Segment | None = None, r: Segment | None = None) -> Call:
    """Decryption by mask-then-open to one party, first of two runs, in Z_2^l with z mod 2^l and a mask r < 2^l: opens z' = e + r mod 2^l to party 0
    alone.

    Offline rounds: ``0``
    Online rounds: ``1``
    """


@program
def round_mask_open_online(
    *,
    size: int,
    l: int,
    j: int,
    destination: int | Literal["all", "share"],
    z: Segment | None = None,
    r: Segment | None = None,
    ring_length: int = 64,
) -> Call:
    """Decryption by mask-then-open for t = 2^j with a mask r of `round_mask`.

    Offline rounds: ``0``
    Online rounds: ``2 if destination != 'share' else 1``
    """


@program
def sample_bits(*, size: int, chunk: int = 65536) -> Call:
    """Uniform secret bits: the secret of an LWE key.

    Rounds: ``ceil(size/chunk)*BIT_ROUNDS``
    """


@program
def sample_carries(*, size: int, length: int) -> Call:
    """Parts of noise of the distribution TUniform(m - 1) with few bytes, for slow links: random r, what the low m bits of its summands carry, a
    random bit v.

    Rounds: ``length + B2A_ROUNDS``
    """


@program
def sample_cbd(*, size: int, method: Literal["bits", "arith"] = "bits", chunk: int = 0, half: int = 21) -> Call:
    """Centred binomial noise, the sum of `half` bits minus the sum of `half` bits, of variance half/2; the default 21 is SEAL's own error
    distribution (deviation 3.24, |e| <= 21).

    Rounds of bits: ``ceil(size/chunk)*(bits(half) + B2A_ROUNDS)``
    Rounds of arith: ``ceil(size/chunk)*BIT_ROUNDS``
    """


@program
def sample_fixed_weight(*, method: Literal["knuth", "bits", "shuffle"], N: int, weight: int, contributors: int = 2) -> Call:
    """A secret vector uniform among those of length N with `weight` entries +-1 and all others 0.

    Rounds of knuth: ``1 + max(BIT_ROUNDS, L*sum_below_rounds(K) + ceil(log2(K)) + weight)``
    Rounds of shuffle: ``BIT_ROUNDS + SHUFFLE_ROUNDS(N)``
    """


@program
def sample_flooding(*, size: int, fine: int, wide: int, width: int, chunk: int = 4096) -> Call:
    """Flooding noise of CKKS decryptions with MACs, made of random bits: F = 2^fine (V_1 + V_2 + V_3) + U, less a constant: its mean is 0 or 1/2.

    Rounds: ``-(-(fine + (wide + 2)//3)//width)*ceil(size/chunk)*BIT_ROUNDS``
    """


@program
def sample_gaussian(
    *,
    size: int,
    method: Literal["bits", "arith"] = "bits",
    sigma_milli: int = 3200,
    bits: int = 40,
    tail: int = 23,
    chunk: int = 0,
) -> Call:
    """Discrete Gaussian noise of deviation sigma, by its cumulative table.

    Rounds of bits: ``ceil(size/chunk)*(6 + B2A_ROUNDS)``
    Rounds of arith: ``ceil(size/chunk)*(7 + BIT_ROUNDS)``
    """


@program
def sample_ternary(
    *,
    contributors: int,
    N: int,
    method: Literal["bilinear", "poly", "bits"] = "bilinear",
    modulus: int = 0,
    trits: Literal["inputs", "stored"] = "inputs",
    indicators: Segment | None = None,
) -> Call:
    """A secret vector uniform in {-1, 0, 1}^N: SEAL's distribution of secret keys.

    Rounds of bilinear: ``(1 if trits == 'inputs' else 0) + ceil(log2(contributors))``
    Rounds of poly: ``1 + ceil(log2(contributors))``
    Rounds of bits: ``1 + ceil(log2(contributors)) + B2A_ROUNDS``
    """


@program
def sample_tuniform(*, size: int, b: int, chunk: int = 2048) -> Call:
    """Noise of the distribution TUniform(b) of TFHE-rs: uniform in -2^b..2^b, both ends with half the probability.

    Rounds: ``ceil(size/chunk)*BIT_ROUNDS``
    """


@program
def sample_wide_noise(*, size: int, half: int, weight: int, b: int, chunk: int = 16384) -> Call:
    """Wide noise of any variance: weight times a centred binomial of 2*half bits, plus TUniform(b), which fills the gaps.

    Rounds: ``ceil(size/chunk)*(bits(half) + B2A_ROUNDS)``
    """


@program
def sum_inputs(*, contributors: int, size: int) -> Call:
    """Summands known to one party each become shares of their sum, in the domain of the program: additive shares change their sharing.

    Rounds: ``1``
    """


@program
def trit_inputs(*, contributors: int, N: int) -> Call:
    """Trits of several contributors as shares of their indicators, and proof that they are trits.

    Rounds: ``4``
    """


@program
def z2_to_zq(*, contributors: int, size: int, method: Literal["poly", "bits"] = "poly") -> Call:
    """Bits shared by XOR become shares in the domain of the program: x = xor of one bit per contributor.

    Rounds of poly: ``1 + ceil(log2(contributors))``
    Rounds of bits: ``1 + B2A_ROUNDS``
    """


@program
def z3_to_zq(*, contributors: int, size: int, method: Literal["bilinear", "poly", "bits"] = "bilinear", modulus: int = 0) -> Call:
    """Trits shared by addition modulo 3 become shares in the domain of the program: x = (sum of one trit per contributor) mod 3.

    Rounds of bilinear: ``1 + ceil(log2(contributors))``
    Rounds of poly: ``1 + ceil(log2(contributors))``
    Rounds of bits: ``1 + ceil(log2(contributors)) + B2A_ROUNDS``
    """


@program
def zq_to_z2_circuit(*, contributors: int, size: int, q: int, out: int = 64, adder: Literal["prefix", "ripple"] = "prefix") -> Call:
    """Shares modulo an odd q become bits of x, in the binary domain: a circuit adds the parties' additive shares modulo q.

    Rounds: ``1 + sum_mod_levels(contributors, q, adder) + (out > 0)*B2A_ROUNDS``
    """


@program
def zq_to_z2_mask(
    *,
    size: int,
    q: int,
    out: int = 64,
    adder: Literal["prefix", "ripple"] = "prefix",
    x: Segment | None = None,
    lam: int = 40,
) -> Call:
    """Shares in the field of q become bits of x, in the binary domain: c = x + r is opened for random bits r that are known in both domains.

    Rounds: ``B2A_ROUNDS + 1 + unmask_levels(q, adder) + (out > 0)*B2A_ROUNDS``
    """
