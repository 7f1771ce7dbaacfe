"""A function for each program of ``Programs/Source``. Made from their headers by ``Scripts/program_signatures.py``: do not edit.

Each gives a :class:`.Call` that :meth:`.Backend.run` takes. Arguments have the names of the header; in place of a position in the share file stands
the segment that is read there, by its own name. Without it the program reads at its default position.
"""

# ruff: noqa: E741
# fmt: off

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from .call import Call, Segment, given, position


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
    Bytes: ``10*(AND(9*K) + AND(3*K) + AND(6*K) + AND(18*K)) + B2A(128*size) + (128*size*w*SEND if destination != 'share' else 0)``
    Reads blocks (128*size shares) at ``blocks_at``.
    Reads keys (1408 shares) at ``keys_at``.
    Writes results (128*size if destination == 'share' else 0 shares).
    Output: the bits of the results, row after row, to the destination.
    """
    optional = given(
        (position("aes_blocks", "blocks", blocks, 0, 128*size), 0),
        (position("aes_blocks", "keys", keys, 0, 1408), 0),
    )
    return Call("aes_blocks", [size, direction, destination, *optional], {"results": 128*size if destination == "share" else 0})


def aes_blocks_masked(*, size: int, masks: Segment | None = None, keys: Segment | None = None, pads: Segment | None = None) -> Call:
    """AES-128 of blocks that clients outside masked, under a shared key of `aes_keys`; the results are opened under pads that the clients know.

    Rounds: ``41``
    Bytes: ``10*(AND(9*K) + AND(3*K) + AND(6*K) + AND(18*K)) + ROW(128*size)``
    Reads masks (128*size shares) at ``masks_at``.
    Reads keys (1408 shares) at ``keys_at``.
    Reads pads (128*size shares) at ``pads_at``.
    Output: the bits of the results xor the pads, row after row, to all.
    """
    optional = given(
        (position("aes_blocks_masked", "masks", masks, 0, 128*size), 0),
        (position("aes_blocks_masked", "keys", keys, 0, 1408), 0),
        (position("aes_blocks_masked", "pads", pads, 0, 128*size), 0),
    )
    return Call("aes_blocks_masked", [size, *optional])


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
    Bytes: ``10*ROW(128*size) + B2A(128*size) + (128*size*w*SEND if destination != 'share' else 0)``
    Reads blocks (128*size shares) at ``blocks_at``.
    Reads keys (1408 shares) at ``keys_at``.
    Reads masks (1280*size shares) at ``masks_at``.
    Reads hot (40960*size shares) at ``hot_at``.
    Writes results (128*size if destination == 'share' else 0 shares).
    Output: the bits of the results, row after row, to the destination.
    """
    optional = given(
        (position("aes_blocks_table", "blocks", blocks, 0, 128*size), 0),
        (position("aes_blocks_table", "keys", keys, 0, 1408), 0),
        (position("aes_blocks_table", "masks", masks, 0, 1280*size), 0),
        (position("aes_blocks_table", "hot", hot, 0, 40960*size), 0),
    )
    return Call("aes_blocks_table", [size, direction, destination, *optional], {"results": 128*size if destination == "share" else 0})


def aes_hot(*, size: int) -> Call:
    """For AES-128 by look-up tables: a random byte r for each S-box of each block, and its one-hot vector [r = v], v = 0..255.

    Rounds: ``3 + B2A_ROUNDS``
    Bytes: ``AND(4*K) + AND(18*K) + AND(225*K) + B2A(8*K) + B2A(256*K)``
    Writes masks (1280*size shares).
    Writes hot (40960*size shares).
    """
    return Call("aes_hot", [size], {"masks": 1280*size, "hot": 40960*size})


def aes_keys(*, size: int = 1) -> Call:
    """Random keys of AES-128 and their round keys, as shares of bits: row 128 r + 8 i + j has bit j of byte i of round key r, r = 0..10, of all
    keys.

    Rounds: ``40 + B2A_ROUNDS``
    Bytes: ``10*(AND(9*K) + AND(3*K) + AND(6*K) + AND(18*K)) + B2A(1408*size)``
    Writes keys (1408*size shares).
    """
    optional = given(
        (size, 1),
    )
    return Call("aes_keys", [*optional], {"keys": 1408*size})


def and_triples(*, size: int, count: int) -> Call:
    """Multiplication triples of bits: a, b uniform and c = a & b, of which the lowest bits count.

    Rounds: ``1 + B2A_ROUNDS``
    Bytes: ``AND(size*count) + 3*B2A(size*count)``
    Writes triples (3*count*size shares).
    triples: count times a, b, a & b, size shares each.
    """
    return Call("and_triples", [size, count], {"triples": 3*count*size})


def client_masks(*, size: int, words: int) -> Call:
    """Random bits that hide inputs and results of clients outside, and what shows a client that it has the true ones: for each client a random
    element k of GF(2^64), and the products of k with its bits, 64 at a time.

    Rounds: ``1 + B2A_ROUNDS``
    Bytes: ``AND(729*words*size) + B2A(B) + B2A(64*size) + B2A(B)``
    size: clients; words: words of 64 bits for each.
    Writes bits (64*words*size shares).
    Writes keys (64*size shares).
    Writes products (64*words*size shares).
    """
    return Call("client_masks", [size, words], {"bits": 64*words*size, "keys": 64*size, "products": 64*words*size})


def client_outputs(*, size: int, checks: int, shift: int, messages: Segment, pads: Segment, masks: Segment) -> Call:
    """Opens messages under pads that clients know, and shows clients that they have the true pads: of each pad w and masks v, of which a client got
    all shares, v + c w is opened for a public c that was tossed after the shares were fixed.

    Rounds: ``1``
    Bytes: ``(checks+1)*size*w*OPEN``
    Reads messages (size shares) at ``messages_at``.
    Reads pads (size shares) at ``pads_at``.
    Reads masks (checks*size shares) at ``masks_at``.
    messages: multiples of 2^shift.
    Output: messages + 2^shift * pads, then masks + c * pads for each check, size words each, to all.
    """
    return Call(
        "client_outputs",
        [
            size,
            checks,
            shift,
            position("client_outputs", "messages", messages, 0, size),
            position("client_outputs", "pads", pads, 0, size),
            position("client_outputs", "masks", masks, 0, checks*size),
        ],
    )


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
    Bytes: ``N*w*((contributors*INPUT if masks == 'inputs' else 0) + SEND)``
    Reads phase (N shares) at ``at``.
    Reads r (N*pieces if masks == 'stored' else 0 shares) at ``r_at``.
    phase: in coefficient form; r: the sum of the flooding, piece after piece.
    Output: phase + sum of flooding, N words, to the receiver.
    """
    optional = given(
        (position("flood", "phase", phase, 0, N), 0),
        (masks, "inputs"),
        (position("flood", "r", r, 0, N*pieces if masks == "stored" else 0), 0),
        (pieces, 1),
        (width, 0),
    )
    return Call("flood", [contributors, N, receiver, *optional])


def glwe_bootstrap_key(*, count: int, N: int, base_log: int, levels: int, s: Segment, z: Segment, e: Segment, block: int = 128) -> Call:
    """Bootstrapping key of TFHE: GGSW ciphertexts of secret bits s_i under the ring secret z in Z_2^k[X]/(X^N + 1), GLWE dimension 1.

    Rounds: ``BIT_PRODUCTS_ROUNDS + 1``
    Bytes: ``BIT_PRODUCTS(count, N, base_log*levels) + count*N*w*2*levels*OPEN``
    block: see Programs/Library/negacyclic.py.
    Reads s (count shares) at ``s_at``.
    Reads z (N shares) at ``z_at``.
    Reads e (count*levels*2*N shares) at ``e_at``.
    e: noise polynomials in the order of a.
    Output: b in the same order, N coefficients each, to all.
    """
    optional = given(
        (block, 128),
    )
    return Call(
        "glwe_bootstrap_key",
        [
            count,
            N,
            base_log,
            levels,
            position("glwe_bootstrap_key", "s", s, 0, count),
            position("glwe_bootstrap_key", "z", z, 0, N),
            position("glwe_bootstrap_key", "e", e, 0, count*levels*2*N),
            *optional,
        ],
    )


def legendre_keys(*, bits: int, degree: int) -> Call:
    """Random keys of `legendre_prf`: the constant terms of its polynomials and, for degree 2, their linear coefficients.

    Rounds: ``0``
    Bytes: ``0``
    bits: polynomials; degree: 1 or 2.
    Writes constants (bits shares).
    Writes slopes (bits*(degree - 1) shares).
    """
    return Call("legendre_keys", [bits, degree], {"constants": bits, "slopes": bits*(degree - 1)})


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
    Bytes: ``w*size*bits*(MUL*degree + SQUARE + (OPEN if destination == 'all' else 0))``
    bits: polynomials, and symbols of a point; degree: 1 or 2.
    Reads points (size shares) at ``points_at``.
    Reads constants (bits shares) at ``constants_at``.
    Reads slopes (bits*(degree - 1) shares) at ``slopes_at``.
    Writes blinded (size*bits if destination == 'share' else 0 shares).
    f_i(x) s^2 of the first point for all i, then of the next.
    Output: for all, the symbols 1 and -1 in the same order; 0 for a root of f_i, or for s = 0, each with probability about 1/p.
    """
    optional = given(
        (position("legendre_prf", "points", points, 0, size), 0),
        (position("legendre_prf", "constants", constants, 0, bits), 0),
        (position("legendre_prf", "slopes", slopes, 0, bits*(degree - 1)), 0),
    )
    return Call("legendre_prf", [size, bits, degree, destination, *optional], {"blinded": size*bits if destination == "share" else 0})


def lift_close(*, contributors: int, size: int, b: int, masks: Literal["inputs", "stored"] = "inputs", r: Segment | None = None) -> Call:
    """A small vector moves from one domain to another, second of two runs, in the new domain: x = c - 2^b - sum of r.

    Rounds: ``1 if masks == 'inputs' else 0``
    Bytes: ``size*w*contributors*INPUT if masks == 'inputs' else 0``
    Reads r (size if masks == 'stored' else 0 shares) at ``at``.
    Writes x (size if masks == 'inputs' else 0 shares).
    """
    optional = given(
        (masks, "inputs"),
        (position("lift_close", "r", r, 0, size if masks == "stored" else 0), 0),
    )
    return Call("lift_close", [contributors, size, b, *optional], {"x": size if masks == "inputs" else 0})


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
    Bytes: ``size*w*((contributors*INPUT if masks == 'inputs' else 0) + OPEN)``
    modulus: of the domain, the prime or 2^k.
    Reads x (size shares) at ``at``.
    Reads r (size if masks == 'stored' else 0 shares) at ``r_at``.
    Output: c, size words in [0, modulus / 2), to all.
    """
    optional = given(
        (position("lift_open", "x", x, 0, size), 0),
        (masks, "inputs"),
        (position("lift_open", "r", r, 0, size if masks == "stored" else 0), 0),
    )
    return Call("lift_open", [contributors, size, b, lam, modulus, *optional])


def lift_test(*, size: int, tests: int, offset: int, x: Segment | None = None, s: Segment | None = None, block: int = 64) -> Call:
    """Sums of public subsets of a small vector x, under masks: a test of whether shares in several domains are those of the same integers.

    Rounds: ``1``
    Bytes: ``tests*w*OPEN``
    offset: is added to each sum, so that none is negative; block: subsets that are added up together.
    Reads x (size shares) at ``x_at``.
    Reads s (tests shares) at ``s_at``.
    s: the masks, the same integers in every domain.
    Output: tests words, the sum of a subset, a mask and the offset, to all.
    """
    optional = given(
        (position("lift_test", "x", x, 0, size), 0),
        (position("lift_test", "s", s, size, tests), size),
        (block, 64),
    )
    return Call("lift_test", [size, tests, offset, *optional])


def lisss_share(*, parties: int, members: int, size: int, first: int, count: int, s: Segment | None = None) -> Call:
    """A stored vector is shared anew among subsets of the parties, without a dealer: for every subset of `members` parties an additive sharing of
    it.

    Rounds: ``2``
    Bytes: ``size*w*count*((members - 1)*INPUT + OPEN_TO)``
    parties: all of them; count: subsets of this run.
    Reads s (size shares) at ``at``.
    Output: for every subset of the run, its share, size words, to the last member.
    """
    optional = given(
        (position("lisss_share", "s", s, 0, size), 0),
    )
    return Call("lisss_share", [parties, members, size, first, count, *optional])


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
    Bytes: ``table_bytes(l, b, levels, method, masks, size)``
    Reads mask_bits (l*size if masks == 'stored' else 0 shares) at ``at``.
    mask_bits: the l bits of r that `round_mask` made, size shares each.
    Writes r (size if masks == 'made' else 0 shares).
    Writes tables.
    tables: tables and masks, in the order of make_tables.
    """
    optional = given(
        (method, "binary"),
        (position("ltz_tables", "mask_bits", mask_bits, 0, l*size if masks == "stored" else 0), 0),
        (masks, "stored"),
    )
    return Call("ltz_tables", [size, l, b, levels, *optional], {"r": size if masks == "made" else 0, "tables": None})


def lwe_bodies(*, n: int, count: int, shift: int, s: Segment, m: Segment, e: Segment, block: int = 1024) -> Call:
    """LWE encryptions of shared messages under a shared secret s: b = <a, s> + e + 2^shift * m for public uniform vectors a.

    Rounds: ``1``
    Bytes: ``count*w*OPEN``
    block: rows of the public matrix that are multiplied together.
    Reads s (n shares) at ``s_at``.
    Reads m (count shares) at ``m_at``.
    Reads e (count shares) at ``e_at``.
    m: the messages; e: the noise.
    Output: b in the same order, to all.
    """
    optional = given(
        (block, 1024),
    )
    return Call(
        "lwe_bodies",
        [
            n,
            count,
            shift,
            position("lwe_bodies", "s", s, 0, n),
            position("lwe_bodies", "m", m, 0, count),
            position("lwe_bodies", "e", e, 0, count),
            *optional,
        ],
    )


def lwe_gate_bits(*, size: int) -> Call:
    """Messages of encrypted tables for ANDs on LWE ciphertexts: masks r0, r1 of each gate, and the table (u xor r0) and (v xor r1), u, v = 0, 1.

    Rounds: ``BIT_ROUNDS + 1``
    Bytes: ``size*w*(2*BIT + MUL)``
    Writes bits (6*size shares).
    bits: r0, r1, then the entries (0, 0), (0, 1), (1, 0), (1, 1), size shares each.
    """
    return Call("lwe_gate_bits", [size], {"bits": 6*size})


def lwe_phase(*, n: int, count: int, offset: int = 0, s: Segment | None = None, block: int = 1024) -> Call:
    """Phases b - <a, s> + offset of many LWE ciphertexts under one secret s, as shares.

    Rounds: ``0``
    Bytes: ``0``
    Reads s (n shares) at ``s_at``.
    Writes phases (count shares).
    """
    optional = given(
        (offset, 0),
        (position("lwe_phase", "s", s, 0, n), 0),
        (block, 1024),
    )
    return Call("lwe_phase", [n, count, *optional], {"phases": count})


def lwe_public_key(*, n: int, s: Segment | None = None, e: Segment | None = None, block: int = 128, reverse: int = 0) -> Call:
    """Compact public key of an LWE key: b = a * s + e in Z_q[X]/(X^n + 1), where s has the bits of the LWE secret as coefficients.

    Rounds: ``1``
    Bytes: ``n*w*OPEN``
    block: see Programs/Library/negacyclic.py; reverse: 1 for s in reverse.
    Reads s (n shares) at ``s_at``.
    Reads e (n shares) at ``e_at``.
    e: the noise.
    Output: the n coefficients of b, to all.
    """
    optional = given(
        (position("lwe_public_key", "s", s, 0, n), 0),
        (position("lwe_public_key", "e", e, n, n), n),
        (block, 128),
        (reverse, 0),
    )
    return Call("lwe_public_key", [n, *optional])


def lwe_samples(*, n: int, count: int, s: Segment, e: Segment, block: int = 1024) -> Call:
    """LWE samples b = <a, s> + e, encryptions of zero: the public key of FHEW-like schemes, of which encryption adds up a random subset.

    Rounds: ``1``
    Bytes: ``count*w*OPEN``
    block: rows of the public matrix that are multiplied together.
    Reads s (n shares) at ``s_at``.
    Reads e (count shares) at ``e_at``.
    e: the noise.
    Output: b in the same order, to all.
    """
    optional = given(
        (block, 1024),
    )
    return Call("lwe_samples", [n, count, position("lwe_samples", "s", s, 0, n), position("lwe_samples", "e", e, 0, count), *optional])


def lwe_switch_key(*, n: int, count: int, base_log: int, levels: int, s: Segment, m: Segment, e: Segment, block: int = 1024, q: int = 0) -> Call:
    """Key-switching key of TFHE and FHEW: for every message m_i, and for level = levels down to 1, b = <a, s> + e + m_i * 2^(k - base_log*level).

    Rounds: ``1``
    Bytes: ``count*levels*w*OPEN``
    block: rows of the public matrix that are multiplied together; q: the prime of the domain, 0 over a ring.
    Reads s (n shares) at ``s_at``.
    Reads m (count shares) at ``m_at``.
    Reads e (count*levels shares) at ``e_at``.
    e: the noise, in the order of the vectors a.
    Output: b in the same order, to all.
    """
    optional = given(
        (block, 1024),
        (q, 0),
    )
    return Call(
        "lwe_switch_key",
        [
            n,
            count,
            base_log,
            levels,
            position("lwe_switch_key", "s", s, 0, n),
            position("lwe_switch_key", "m", m, 0, count),
            position("lwe_switch_key", "e", e, 0, count*levels),
            *optional,
        ],
    )


def noise_check(*, count: int, N: int, l: int, y: Segment | None = None, ring_length: int = 64) -> Call:
    """Whether the noise of RLWE ciphertexts is below half its border, a bit for each ciphertext: all of e in [-2^(l-2), 2^(l-2)), for phases z =
    2^l * m + e + 2^(l-1).

    Rounds: ``ring_bits_levels(l) + B2A_ROUNDS + ring_bits_levels(S) + 1``
    Bytes: ``ring_bits_ands(l, l - 1)*AND(count*N) + B2A(count*N) + ring_bits_ands(S, S - 1)*AND(count) + ROW(count)``
    N: coefficients of a ciphertext, a power of two.
    Reads y (count*N shares) at ``at``.
    y: the first coefficient of every ciphertext, then the second of every one, and so on.
    Output: count bits, to all.
    """
    optional = given(
        (position("noise_check", "y", y, 0, count*N), 0),
        (ring_length, 64),
    )
    return Call("noise_check", [count, N, l, *optional])


def open_masked(*, size: int, x: Segment, r: Segment) -> Call:
    """Opens x + r for shared vectors x and r: a masked value, uniform if r is uniform, secret and used once.

    Rounds: ``1``
    Bytes: ``size*w*OPEN``
    Reads x (size shares) at ``x_at``.
    Reads r (size shares) at ``r_at``.
    Output: x + r, to all.
    """
    return Call("open_masked", [size, position("open_masked", "x", x, 0, size), position("open_masked", "r", r, 0, size)])


def opening_masks(*, contributors: int, size: int, count: int) -> Call:
    """What openings with MACs take beside the values: random elements that nobody knows, which hide what is above a value modulo 2^k, and elements
    that one party knows, under which a value is opened to it.

    Rounds: ``1``
    Bytes: ``size*w*contributors*INPUT``
    Writes hidden (count*size shares).
    Writes masks (contributors*size shares).
    hidden: count vectors; masks: the words of each contributor, one after another.
    """
    return Call("opening_masks", [contributors, size, count], {"hidden": count*size, "masks": contributors*size})


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
    Bytes: ``count*N*w*(MUL + 2*levels*OPEN)``
    noise: whether e has the coefficients of the noise polynomials, or their NTT form.
    Reads s (count shares) at ``s_at``.
    Reads z (N shares) at ``z_at``.
    Reads e (count*levels*2*N shares) at ``e_at``.
    z: coefficients; e: noise polynomials in the order of a.
    Output: b in the same order, in NTT form, to all.
    """
    optional = given(
        (noise, "coefficients"),
    )
    return Call(
        "rgsw_bodies",
        [
            count,
            N,
            q,
            base_log,
            levels,
            position("rgsw_bodies", "s", s, 0, count),
            position("rgsw_bodies", "z", z, 0, N),
            position("rgsw_bodies", "e", e, 0, count*levels*2*N),
            *optional,
        ],
    )


def rlwe_phase(*, N: int, q: int, form_in: Literal["ntt", "coeff"], form_out: Literal["ntt", "coeff"], s: Segment | None = None) -> Call:
    """The phase c0 + c1 * s of an RLWE ciphertext over one prime q, as shares.

    Rounds: ``0``
    Bytes: ``0``
    Reads s (N shares) at ``s_at``.
    s: in coefficient form.
    Writes phase (N shares).
    phase: in form_out.
    """
    optional = given(
        (position("rlwe_phase", "s", s, 0, N), 0),
    )
    return Call("rlwe_phase", [N, q, form_in, form_out, *optional], {"phase": N})


def rlwe_phase_ring(*, N: int, count: int, k: int, s: Segment | None = None, ring_length: int = 64) -> Call:
    """Phases c0 + c1 * s of RLWE ciphertexts that were switched to 2^k, as shares modulo 2^K, K = ring_length.

    Rounds: ``0``
    Bytes: ``0``
    N: coefficients of a ciphertext.
    Reads s (N shares) at ``s_at``.
    Writes phases (count*N shares).
    """
    optional = given(
        (position("rlwe_phase_ring", "s", s, 0, N), 0),
        (ring_length, 64),
    )
    return Call("rlwe_phase_ring", [N, count, k, *optional], {"phases": count*N})


def rlwe_public_key(*, N: int, q: int, f: int, count: int, s: Segment | None = None, e: Segment | None = None) -> Call:
    """RLWE encryptions of zero, b = -(a * s + f * e) over one prime q: public keys of SEAL (docs/pages/formats.md: f = t for BGV, otherwise 1).

    Rounds: ``1``
    Bytes: ``count*N*w*OPEN``
    Reads s (N shares) at ``s_at``.
    Reads e (count*N shares) at ``e_at``.
    both in coefficient form; e: count noise polynomials.
    Output: count polynomials b, in NTT form, to all.
    """
    optional = given(
        (position("rlwe_public_key", "s", s, 0, N), 0),
        (position("rlwe_public_key", "e", e, N, count*N), N),
    )
    return Call("rlwe_public_key", [N, q, f, count, *optional])


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
    Bytes: ``N*w*(len(targets)*digits*OPEN + (SQUARE if 'relin' in targets and i < digits else 0))``
    i: the number of q; i >= digits: no P * w at all, q is the special prime; target: relin, or an odd g.
    Reads s (N shares) at ``s_at``.
    Reads e (len(targets)*digits*N shares) at ``e_at``.
    both in coefficient form; e: noise polynomials in the order of a.
    Output: b in the same order, in NTT form, to all.
    """
    return Call(
        "rlwe_switch_key",
        [
            N,
            q,
            f,
            digits,
            i,
            P_mod_q,
            position("rlwe_switch_key", "s", s, 0, N),
            position("rlwe_switch_key", "e", e, 0, len(targets)*digits*N),
            *targets,
        ],
    )


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
    Bytes: ``size*w*((C*contributors*INPUT if masks == 'inputs' else 0) + C*(contributors-1)*MUL + SEND)``
    Reads x (size shares) at ``at``.
    Reads r ((summands-1).bit_length()*contributors*size if masks == 'stored' else 0 shares) at ``r_at``.
    Output: m, size words, to the receiver.
    """
    optional = given(
        (position("round_carry_odd_field", "x", x, 0, size), 0),
        (masks, "inputs"),
        (position("round_carry_odd_field", "r", r, 0, (summands-1).bit_length()*contributors*size if masks == "stored" else 0), 0),
    )
    return Call("round_carry_odd_field", [summands, contributors, size, t, receiver, *optional])


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
    Bytes: ``(size*w*C*contributors*INPUT if masks == 'inputs' else 0) + ring_bits_ands(m, l)*AND(size) + C*ROW(size)``
    Reads y (size shares) at ``at``.
    Reads r ((summands-1).bit_length()*size if masks == 'stored' else 0 shares) at ``r_at``.
    y: in [0, summands * 2^l), modulo 2^k.
    Output: C vectors of size bits, to all.
    """
    optional = given(
        (position("round_carry_odd_ring", "y", y, 0, size), 0),
        (ring_length, 64),
        (masks, "inputs"),
        (position("round_carry_odd_ring", "r", r, 0, (summands-1).bit_length()*size if masks == "stored" else 0), 0),
    )
    return Call("round_carry_odd_ring", [summands, contributors, size, l, *optional])


def round_field_close(*, size: int, l: int, q: int, t: int, destination: int | Literal["all", "share"], rows: Segment | None = None) -> Call:
    """Exact decryption over prime fields alone, second of two runs, modulo t: m = ((q - 1)/2 - c + v)/q - [c < v], for what `round_field_open`
    opened, c.

    Rounds: ``ceil(log2(l)) + (1 if destination != 'share' else 0)``
    Bytes: ``size*w*(below_ands(l)*MUL + (OPEN if destination == 'all' else SEND if destination != 'share' else 0))``
    Reads rows (l*size shares) at ``at``.
    rows: the bits of v, by `round_field_mask`.
    Writes m (size if destination == 'share' else 0 shares).
    Output: m, size words, to the destination.
    """
    optional = given(
        (position("round_field_close", "rows", rows, 0, l*size), 0),
    )
    return Call("round_field_close", [size, l, q, t, destination, *optional], {"m": size if destination == "share" else 0})


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
    Bytes: ``size*w*((below_ands(l) + 1)*MUL + (OPEN if destination == 'all' else SEND if destination != 'share' else 0))``
    Reads rows ((l + 2**j)*size shares) at ``at``.
    rows: the bits of v, then [v mod 2^j = i], by `round_field_mask` with low = j.
    Writes m (size if destination == 'share' else 0 shares).
    Output: m in [0, 2^j), size words, to the destination.
    """
    optional = given(
        (position("round_field_close_bits", "rows", rows, 0, (l + 2**j)*size), 0),
    )
    return Call("round_field_close_bits", [size, l, q, j, destination, *optional], {"m": size if destination == "share" else 0})


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
    Bytes: ``size*w*(l*(summands-1)*MUL + ((below_ands(l) + 2**low - low - 1)*MUL + OPEN if keep == 'bits' else 0))``
    Reads bits (summands*l*size shares) at ``at``.
    bits: of each summand its l bits, the lowest first, a vector each.
    Writes v (size if keep == 'sum' else 0 shares).
    Writes rows (l*size if keep == 'bits' else 0 shares).
    Writes hot (2**low*size if low else 0 shares).
    rows: the bits of v, a vector each; hot: [v mod 2^low = i] for i = 0..2^low - 1, a vector each, with keep=bits alone.
    Output: with keep=bits [v < q], size words, to all.
    """
    optional = given(
        (low, 0),
        (position("round_field_mask", "bits", bits, 0, summands*l*size), 0),
    )
    return Call(
        "round_field_mask",
        [
            summands,
            size,
            l,
            q,
            keep,
            *optional,
        ],
        {"v": size if keep == "sum" else 0, "rows": l*size if keep == "bits" else 0, "hot": 2**low*size if low else 0},
    )


def round_field_open(*, size: int, q: int, t: int, z: Segment | None = None, mask: Segment | None = None) -> Call:
    """Exact decryption over prime fields alone, first of two runs, modulo q: y + v is opened, for y = t * w + (q - 1)/2 and a uniform mask v.

    Rounds: ``1``
    Bytes: ``size*w*OPEN``
    Reads z (size shares) at ``z_at``.
    Reads mask (size shares) at ``at``.
    z: phases w; mask: v of `round_field_mask`.
    Output: y + v modulo q, size words, to all.
    """
    optional = given(
        (position("round_field_open", "z", z, 0, size), 0),
        (position("round_field_open", "mask", mask, size, size), size),
    )
    return Call("round_field_open", [size, q, t, *optional])


def round_flood(*, size: int, f: int, destination: int | Literal["all", "share"], z: Segment | None = None, mask: Segment | None = None) -> Call:
    """Decryption by noise flooding, the baseline: z + F is opened for a uniform F in [-2^f, 2^f), and the receiver rounds.

    Rounds: ``1 if destination != 'share' else 0``
    Bytes: ``size*w*SEND if destination != 'share' else 0``
    Reads z (size shares) at ``z_at``.
    Reads mask (size shares) at ``at``.
    mask: F + 2^f.
    Writes messages (size if destination == 'share' else 0 shares).
    Output: z + F, size words, to the destination.
    """
    optional = given(
        (position("round_flood", "z", z, 0, size), 0),
        (position("round_flood", "mask", mask, size, size), size),
    )
    return Call("round_flood", [size, f, destination, *optional], {"messages": size if destination == "share" else 0})


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
    Bytes: ``size*w*(contributors*INPUT + SEND) + OPEN*ceil(size*l/8) + (C+1)*B2A(size) + (ring_bits_ands(m) + below_ands(l))*AND(size) +
    (C+1)*ROW(size)``
    Reads z (size shares) at ``at``.
    Output: 2^(k-j) * m, size words, to the receiver.
    """
    optional = given(
        (position("round_ltz_circuit", "z", z, 0, size), 0),
        (ring_length, 64),
    )
    return Call("round_ltz_circuit", [contributors, size, l, j, receiver, *optional])


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
    Bytes: ``size*w*((C+2)*contributors*INPUT + (C+1)*(contributors-1)*MUL + SEND)``
    Reads z (size shares) at ``at``.
    Output: m, size words, to the receiver.
    """
    optional = given(
        (position("round_ltz_circuit_odd_field", "z", z, 0, size), 0),
    )
    return Call("round_ltz_circuit_odd_field", [contributors, size, l, t, receiver, *optional])


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
    Bytes: ``size*w*SEND if destination != 'share' else 0``
    Reads z (size shares) at ``z_at``.
    Reads mask (2*size shares) at ``at``.
    mask: r and the further bit, size shares each.
    Writes messages (size if destination == 'share' else 0 shares).
    Output: m, size words, to the destination.
    """
    optional = given(
        (position("round_ltz_circuit_odd_field_online", "z", z, 0, size), 0),
        (position("round_ltz_circuit_odd_field_online", "mask", mask, size, 2*size), size),
    )
    return Call("round_ltz_circuit_odd_field_online", [size, l, t, destination, *optional], {"messages": size if destination == "share" else 0})


def round_ltz_circuit_odd_ring(*, contributors: int, size: int, l: int, z: Segment | None = None, ring_length: int = 64) -> Call:
    """Exact decryption for an odd t, first of two runs: `round_ltz_circuit` in Z_2^k with z mod 2^l.

    Offline rounds: ``1 + ring_bits_levels(m) + (1 if C else 0)``
    Online rounds: ``2 + ceil(log2(l))``
    Bytes: ``size*w*(C+2)*contributors*INPUT + OPEN*ceil(size*l/8) + (ring_bits_ands(m) + below_ands(l))*AND(size) + (C+1)*ROW(size)``
    Reads z (size shares) at ``at``.
    Output: z', then C + 1 vectors of size bits, to all.
    """
    optional = given(
        (position("round_ltz_circuit_odd_ring", "z", z, 0, size), 0),
        (ring_length, 64),
    )
    return Call("round_ltz_circuit_odd_ring", [contributors, size, l, *optional])


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
    Bytes: ``OPEN*ceil(size*l/8) + below_ands(l)*(2*ROW(size) if triples else AND(size)) + ROW(size)``
    Reads z (size shares) at ``z_at``.
    Reads mask at ``at``.
    mask: r, its l bits, the further bit, then with triples = 1 a, b, a & b of each triple of `and_triples`; size shares each.
    Output: z', then one vector of size bits, to all.
    """
    optional = given(
        (position("round_ltz_circuit_odd_ring_online", "z", z, 0, size), 0),
        (position("round_ltz_circuit_odd_ring_online", "mask", mask, size, None), size),
        (ring_length, 64),
        (triples, 0),
    )
    return Call("round_ltz_circuit_odd_ring_online", [size, l, *optional])


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
    Bytes: ``OPEN*ceil(size*l/8) + below_ands(l)*(2*ROW(size) if triples else AND(size)) + ROW(size) + (size*w*SEND if destination != 'share'
    else 0)``
    Reads z (size shares) at ``z_at``.
    Reads mask at ``at``.
    mask: r, its l bits, the further bit where shares split, then a, b, a & b of each triple; size shares each.
    Writes messages (size if destination == 'share' else 0 shares).
    Output: 2^(k-j) * m, size words, to the destination (k = ring_length).
    """
    optional = given(
        (position("round_ltz_circuit_online", "z", z, 0, size), 0),
        (position("round_ltz_circuit_online", "mask", mask, size, None), size),
        (ring_length, 64),
        (triples, 0),
    )
    return Call("round_ltz_circuit_online", [size, l, j, destination, *optional], {"messages": size if destination == "share" else 0})


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
    Bytes: ``2*(OPEN*ceil(count*N*k/8) + below_ands(k)*AND(count*N) + B2A(count*N)) + count*N*w*SEND``
    N: coefficients of a ciphertext.
    Reads s (N shares) at ``s_at``.
    Output: 2^k * m, m in [0, t), count*N words, to the receiver.
    """
    optional = given(
        (position("round_ltz_ring", "s", s, 0, N), 0),
        (ring_length, 64),
    )
    return Call("round_ltz_ring", [N, count, t, k, receiver, *optional])


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
    Bytes: ``2*(OPEN*ceil(size*k/8) + below_ands(ceil(k/block))*2*OPEN*ceil(size/8)) + (size*w*SEND if destination != 'share' else 0)``
    Reads z (size shares) at ``z_at``.
    Reads masks at ``at``.
    masks: two, each r and its blocks as `round_mask` with bits=blocks makes them, then a, b, a & b of each triple of `and_triples`; size shares
    each.
    Writes messages (size if destination == 'share' else 0 shares).
    Output: 2^k * m, m in [0, t), size words, to the destination.
    """
    optional = given(
        (position("round_ltz_ring_online", "z", z, 0, size), 0),
        (position("round_ltz_ring_online", "masks", masks, size, None), size),
        (ring_length, 64),
        (block, 3),
    )
    return Call("round_ltz_ring_online", [size, t, k, destination, *optional], {"messages": size if destination == "share" else 0})


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
    Bytes: ``OPEN*ceil(size*l/8) + OPEN*sum(ceil(size*(g+1)/8) for gs in table_shape(l, b, levels)[1] for g in gs) + (size*w*SEND if destination
    != 'share' else 0)``
    Reads z (size shares) at ``z_at``.
    Reads mask at ``at``.
    mask: r, size shares, then the tables of `ltz_tables`.
    Writes messages (size if destination == 'share' else 0 shares).
    Output: 2^(k-j) * m, size words, to the destination (k = ring_length).
    """
    optional = given(
        (position("round_ltz_table_online", "z", z, 0, size), 0),
        (position("round_ltz_table_online", "mask", mask, size, None), size),
        (ring_length, 64),
    )
    return Call("round_ltz_table_online", [size, l, j, b, levels, destination, *optional], {"messages": size if destination == "share" else 0})


def round_mask(*, size: int, l: int, bits: Literal["sum", "all", "blocks"] = "sum", extra: int = 0, block: int = 3) -> Call:
    """The part of every rounding that is done before the ciphertext is known and is linear in random bits: masks r = sum of 2^i * r_i.

    Rounds: ``BIT_ROUNDS + (ceil(log2(min(block, l))) if bits == 'blocks' else 0)``
    Bytes: ``(l+extra)*size*w*BIT + (l//block*(2**block - block - 1) + 2**(l%block) - l%block - 1 if bits == 'blocks' else 0)*size*w*MUL``
    Writes r (size shares).
    Writes mask_bits (((l + extra if bits == 'all' else 0) + (l//block*(2**block - 1) + 2**(l%block) - 1 if bits == 'blocks' else 0))*size
    shares).
    mask_bits: vector after vector, first the l bits of r, then extra bits that are no part of r; with bits=blocks, from each block of bits of r,
    the lowest first, whether it is at least 1, at least 2, .. (`Library/logic.py`, `thermometer`).
    """
    optional = given(
        (bits, "sum"),
        (extra, 0),
        (block, 3),
    )
    return Call(
        "round_mask",
        [
            size,
            l,
            *optional,
        ],
        {"r": size, "mask_bits": ((l + extra if bits == "all" else 0) + (l//block*(2**block - 1) + 2**(l%block) - 1 if bits == "blocks" else 0))*size},
    )


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
    Bytes: ``(size*w*(l+C+all)*contributors*INPUT if masks == 'inputs' else 0) + integer_sum_ands(contributors, l)*AND(size) + C*ROW(size) +
    all*(l+1)*B2A(size)``
    Reads r ((l*contributors+(contributors-1).bit_length()+int(keep == 'all'))*size if masks == 'stored' else 0 shares) at ``r_at``.
    Writes r_bits (l*size if keep == 'all' else 0 shares).
    Writes further (size if keep == 'all' else 0 shares).
    Output: the carry under random bits, C vectors of size bits, to all.
    """
    optional = given(
        (adder, "ripple"),
        (masks, "inputs"),
        (position("round_mask_odd_bits", "r", r, 0, (l*contributors+(contributors-1).bit_length()+int(keep == "all"))*size if masks == "stored" else 0), 0),
    )
    return Call(
        "round_mask_odd_bits",
        [
            contributors,
            size,
            l,
            keep,
            *optional,
        ],
        {"r_bits": l*size if keep == "all" else 0, "further": size if keep == "all" else 0},
    )


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
    Bytes: ``size*w*(((1+C+all)*contributors*INPUT if masks == 'inputs' else 0) + (C+all)*(contributors-1)*MUL)``
    Reads r ((((contributors-1).bit_length()+int(keep == 'all'))*contributors+1)*size if masks == 'stored' else 0 shares) at ``r_at``.
    Writes r (size shares).
    Writes further (size if keep == 'all' else 0 shares).
    """
    optional = given(
        (masks, "inputs"),
        (position("round_mask_odd_field", "r", r, 0, (((contributors-1).bit_length()+int(keep == "all"))*contributors+1)*size if masks == "stored" else 0), 0),
    )
    return Call("round_mask_odd_field", [contributors, size, l, t, keep, *optional], {"r": size, "further": size if keep == "all" else 0})


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
    Bytes: ``size*w*(contributors*INPUT + SEND) + OPEN*ceil(size*l/8) + C*B2A(size) + (ring_bits_ands(m, l)*AND(size) + C*ROW(size) if C else
    0)``
    Reads z (size shares) at ``at``.
    Output: 2^(k-j) * m, size words, to the receiver.
    """
    optional = given(
        (position("round_mask_open", "z", z, 0, size), 0),
        (ring_length, 64),
    )
    return Call("round_mask_open", [contributors, size, l, j, receiver, *optional])


def round_mask_open_odd_field(*, contributors: int, size: int, l: int, t: int, receiver: int | Literal["all"], z: Segment | None = None) -> Call:
    """Decryption by mask-then-open for an odd t, second of two runs, in F_t with z mod t: m = 2^(-l) * (z - 2^(l-1) - z' + R) - c.

    Offline rounds: ``1 + C``
    Online rounds: ``1``
    Bytes: ``size*w*((C+1)*contributors*INPUT + C*(contributors-1)*MUL + SEND)``
    Reads z (size shares) at ``at``.
    Output: m, size words, to the receiver.
    """
    optional = given(
        (position("round_mask_open_odd_field", "z", z, 0, size), 0),
    )
    return Call("round_mask_open_odd_field", [contributors, size, l, t, receiver, *optional])


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
    Bytes: ``size*w*SEND if destination != 'share' else 0``
    Reads z (size shares) at ``z_at``.
    Reads r (size shares) at ``at``.
    Writes messages (size if destination == 'share' else 0 shares).
    Output: m, size words, to the destination.
    """
    optional = given(
        (position("round_mask_open_odd_field_online", "z", z, 0, size), 0),
        (position("round_mask_open_odd_field_online", "r", r, size, size), size),
    )
    return Call("round_mask_open_odd_field_online", [size, l, t, destination, *optional], {"messages": size if destination == "share" else 0})


def round_mask_open_odd_ring(*, contributors: int, size: int, l: int, z: Segment | None = None, ring_length: int = 64) -> Call:
    """Decryption by mask-then-open for an odd t, first of two runs: `round_mask_open` in Z_2^k with z mod 2^l.

    Offline rounds: ``2 + ring_bits_levels(m) if C else 1``
    Online rounds: ``1``
    Bytes: ``size*w*(C+1)*contributors*INPUT + OPEN*ceil(size*l/8) + (ring_bits_ands(m, l)*AND(size) + C*ROW(size) if C else 0)``
    Reads z (size shares) at ``at``.
    Output: z', then C vectors of size bits, to all.
    """
    optional = given(
        (position("round_mask_open_odd_ring", "z", z, 0, size), 0),
        (ring_length, 64),
    )
    return Call("round_mask_open_odd_ring", [contributors, size, l, *optional])


def round_mask_open_odd_ring_online(*, size: int, l: int, z: Segment | None = None, r: Segment | None = None, ring_length: int = 64) -> Call:
    """Decryption by mask-then-open for an odd t, first of two runs, in Z_2^k with z mod 2^l: opens z' = e + r mod 2^l for a mask r of `sum_inputs`.

    Offline rounds: ``0``
    Online rounds: ``1``
    Bytes: ``OPEN*ceil(size*l/8)``
    Reads z (size shares) at ``z_at``.
    Reads r (size shares) at ``at``.
    Output: z', size words, to all.
    """
    optional = given(
        (position("round_mask_open_odd_ring_online", "z", z, 0, size), 0),
        (position("round_mask_open_odd_ring_online", "r", r, size, size), size),
        (ring_length, 64),
    )
    return Call("round_mask_open_odd_ring_online", [size, l, *optional])


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
    Bytes: ``OPEN*ceil(size*l/8) + (size*w*SEND if destination != 'share' else 0)``
    Reads z (size shares) at ``z_at``.
    Reads r (size shares) at ``at``.
    Writes messages (size if destination == 'share' else 0 shares).
    Output: 2^(k-j) * m, size words, to the destination (k = ring_length).
    """
    optional = given(
        (position("round_mask_open_online", "z", z, 0, size), 0),
        (position("round_mask_open_online", "r", r, size, size), size),
        (ring_length, 64),
    )
    return Call("round_mask_open_online", [size, l, j, destination, *optional], {"messages": size if destination == "share" else 0})


def sample_bits(*, size: int, chunk: int = 65536) -> Call:
    """Uniform secret bits: the secret of an LWE key.

    Rounds: ``ceil(size/chunk)*BIT_ROUNDS``
    Bytes: ``size*w*BIT``
    Writes samples (size shares).
    samples: 0 or 1.
    """
    optional = given(
        (chunk, 65536),
    )
    return Call("sample_bits", [size, *optional], {"samples": size})


def sample_carries(*, size: int, length: int) -> Call:
    """Parts of noise of the distribution TUniform(m - 1) with few bytes, for slow links: random r, what the low m bits of its summands carry, a
    random bit v.

    Rounds: ``length + B2A_ROUNDS``
    Bytes: ``(2*length - 1)*AND(size) + 3*B2A(size)``
    length: m.
    Writes r (size shares).
    Writes carry (size shares).
    Writes v (size shares).
    """
    return Call("sample_carries", [size, length], {"r": size, "carry": size, "v": size})


def sample_cbd(*, size: int, method: Literal["bits", "arith"] = "bits", chunk: int = 0, half: int = 21) -> Call:
    """Centred binomial noise, the sum of `half` bits minus the sum of `half` bits, of variance half/2; the default 21 is SEAL's own error
    distribution (deviation 3.24, |e| <= 21).

    Rounds of bits: ``ceil(size/chunk)*(bits(half) + B2A_ROUNDS)``
    Rounds of arith: ``ceil(size/chunk)*BIT_ROUNDS``
    Bytes of bits: ``sum((2*half - ones(half))*AND(m) + (bits(half) + 1)*B2A(m) for m in chunks(size, chunk))``
    Bytes of arith: ``size*w*2*half*BIT``
    chunk: samples that are made at a time; 0: 2^20 for bits, 2^14 for arith.
    Writes samples (size shares).
    """
    optional = given(
        (method, "bits"),
        (chunk, 0),
        (half, 21),
    )
    return Call("sample_cbd", [size, *optional], {"samples": size})


def sample_fixed_weight(*, method: Literal["knuth", "bits", "shuffle"], N: int, weight: int, contributors: int = 2) -> Call:
    """A secret vector uniform among those of length N with `weight` entries +-1 and all others 0.

    Rounds of knuth: ``1 + max(BIT_ROUNDS, L*sum_below_rounds(K) + ceil(log2(K)) + weight)``
    Rounds of shuffle: ``BIT_ROUNDS + SHUFFLE_ROUNDS(N)``
    Bytes of knuth: ``w*(contributors*K*weight*INPUT + ((contributors-1)*weight*sum_below_products(K) + weight*one_hot_products(K, N) +
    sum(range(N-weight+1, N)) + N)*MUL + N*BIT)``
    Bytes of shuffle: ``w*(weight*BIT + SHUFFLE(N))``
    contributors: for knuth and bits.
    Writes secret (N shares).
    """
    optional = given(
        (contributors, 2),
    )
    return Call("sample_fixed_weight", [method, N, weight, *optional], {"secret": N})


def sample_flooding(*, size: int, fine: int, wide: int, width: int, chunk: int = 4096) -> Call:
    """Flooding noise of CKKS decryptions with MACs, made of random bits: F = 2^fine (V_1 + V_2 + V_3) + U, less a constant: its mean is 0 or 1/2.

    Rounds: ``-(-(fine + (wide + 2)//3)//width)*ceil(size/chunk)*BIT_ROUNDS``
    Bytes: ``size*w*(fine + wide)*BIT``
    Writes samples (size*(-(-(fine + (wide + 2)//3)//width)) shares).
    samples: e_0 of all numbers, then e_1 of all, and so on.
    """
    optional = given(
        (chunk, 4096),
    )
    return Call("sample_flooding", [size, fine, wide, width, *optional], {"samples": size*(-(-(fine + (wide + 2)//3)//width))})


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
    Bytes of bits: ``sum(354*AND(m) + 6*B2A(m) for m in chunks(size, chunk))``
    Bytes of arith: ``size*w*(41*BIT + 355*MUL)``
    chunk: samples that are made at a time; 0: 2^18 for bits, 2^12 for arith.
    Writes samples (size shares).
    samples: |e| <= tail.
    """
    optional = given(
        (method, "bits"),
        (sigma_milli, 3200),
        (bits, 40),
        (tail, 23),
        (chunk, 0),
    )
    return Call("sample_gaussian", [size, *optional], {"samples": size})


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
    Bytes of bilinear: ``N*w*((2*contributors*INPUT if trits == 'inputs' else 0) + (2*contributors-3)*DOT(2))``
    Bytes of poly: ``N*w*(contributors*INPUT + (contributors-1)*(MUL + 2*SQUARE + OPEN))``
    Bytes of bits: ``N*w*2*contributors*INPUT + 2*B2A(N) + 3*(contributors-1)*AND(N)``
    modulus: the prime, for poly; contributors: summands of a trit, if they are stored.
    Reads indicators (2*contributors*N if trits == 'stored' else 0 shares) at ``at``.
    for each summand a: N bits [a = 1], then N bits [a = 2]; the secret takes the place of the first.
    Writes secret (N if trits == 'inputs' else 0 shares).
    """
    optional = given(
        (method, "bilinear"),
        (modulus, 0),
        (trits, "inputs"),
        (position("sample_ternary", "indicators", indicators, 0, 2*contributors*N if trits == "stored" else 0), 0),
    )
    return Call("sample_ternary", [contributors, N, *optional], {"secret": N if trits == "inputs" else 0})


def sample_tuniform(*, size: int, b: int, chunk: int = 2048) -> Call:
    """Noise of the distribution TUniform(b) of TFHE-rs: uniform in -2^b..2^b, both ends with half the probability.

    Rounds: ``ceil(size/chunk)*BIT_ROUNDS``
    Bytes: ``size*w*(b+2)*BIT``
    Writes samples (size shares).
    """
    optional = given(
        (chunk, 2048),
    )
    return Call("sample_tuniform", [size, b, *optional], {"samples": size})


def sample_wide_noise(*, size: int, half: int, weight: int, b: int, chunk: int = 16384) -> Call:
    """Wide noise of any variance: weight times a centred binomial of 2*half bits, plus TUniform(b), which fills the gaps.

    Rounds: ``ceil(size/chunk)*(bits(half) + B2A_ROUNDS)``
    Bytes: ``sum((2*half - ones(half))*AND(m) + (bits(half) + 1)*B2A(m) for m in chunks(size, chunk)) + size*w*(b+2)*BIT``
    Writes samples (size shares).
    """
    optional = given(
        (chunk, 16384),
    )
    return Call("sample_wide_noise", [size, half, weight, b, *optional], {"samples": size})


def sum_inputs(*, contributors: int, size: int) -> Call:
    """Summands known to one party each become shares of their sum, in the domain of the program: additive shares change their sharing.

    Rounds: ``1``
    Bytes: ``size*w*contributors*INPUT``
    Writes total (size shares).
    total: the sum of all summands.
    """
    return Call("sum_inputs", [contributors, size], {"total": size})


def trit_inputs(*, contributors: int, N: int) -> Call:
    """Trits of several contributors as shares of their indicators, and proof that they are trits.

    Rounds: ``4``
    Bytes: ``N*w*(contributors*(7*INPUT + 5*OPEN) + OPEN)``
    Writes indicators (2*contributors*N shares).
    for each contributor N bits [a = 1], then N bits [a = 2].
    Output: for each contributor three vectors of N words, which are zero if its u^2 = u, v^2 = v and u v = 0, to all. Whoever runs the program
    refuses the shares.
    """
    return Call("trit_inputs", [contributors, N], {"indicators": 2*contributors*N})


def z2_to_zq(*, contributors: int, size: int, method: Literal["poly", "bits"] = "poly") -> Call:
    """Bits shared by XOR become shares in the domain of the program: x = xor of one bit per contributor.

    Rounds of poly: ``1 + ceil(log2(contributors))``
    Rounds of bits: ``1 + B2A_ROUNDS``
    Bytes of poly: ``size*w*(contributors*INPUT + (contributors-1)*MUL)``
    Bytes of bits: ``size*w*contributors*INPUT + B2A(size)``
    Writes x (size shares).
    """
    optional = given(
        (method, "poly"),
    )
    return Call("z2_to_zq", [contributors, size, *optional], {"x": size})


def z3_to_zq(*, contributors: int, size: int, method: Literal["bilinear", "poly", "bits"] = "bilinear", modulus: int = 0) -> Call:
    """Trits shared by addition modulo 3 become shares in the domain of the program: x = (sum of one trit per contributor) mod 3.

    Rounds of bilinear: ``1 + ceil(log2(contributors))``
    Rounds of poly: ``1 + ceil(log2(contributors))``
    Rounds of bits: ``1 + ceil(log2(contributors)) + B2A_ROUNDS``
    Bytes of bilinear: ``size*w*(2*contributors*INPUT + (2*contributors-3)*DOT(2))``
    Bytes of poly: ``size*w*(contributors*INPUT + (contributors-1)*(MUL + 2*SQUARE + OPEN))``
    Bytes of bits: ``size*w*2*contributors*INPUT + 2*B2A(size) + 3*(contributors-1)*AND(size)``
    modulus: the prime, for poly.
    Writes x (size shares).
    x: 0, 1 or 2.
    """
    optional = given(
        (method, "bilinear"),
        (modulus, 0),
    )
    return Call("z3_to_zq", [contributors, size, *optional], {"x": size})


def zq_to_z2_circuit(*, contributors: int, size: int, q: int, out: int = 64, adder: Literal["prefix", "ripple"] = "prefix") -> Call:
    """Shares modulo an odd q become bits of x, in the binary domain: a circuit adds the parties' additive shares modulo q.

    Rounds: ``1 + sum_mod_levels(contributors, q, adder) + (out > 0)*B2A_ROUNDS``
    Bytes: ``size*w*(contributors*m + ceil(log2(contributors)))*INPUT + AND(size)*sum_mod_ands(contributors, q, adder) + out*B2A(size)``
    q below 2^62; out: how many of the bits go to the share file, lowest first.
    Writes x_bits (min(out, q.bit_length())*size shares).
    x_bits: the lowest `out` bits of x, one after another, size shares each.
    """
    optional = given(
        (out, 64),
        (adder, "prefix"),
    )
    return Call("zq_to_z2_circuit", [contributors, size, q, *optional], {"x_bits": min(out, q.bit_length())*size})


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
    Bytes: ``(m + out)*B2A(size) + size*w*OPEN + AND(size)*unmask_ands(q, adder)``
    q below 2^62; out: how many of the bits go to the share file, lowest first.
    Reads x (size shares) at ``at``.
    Writes x_bits (min(out, q.bit_length())*size shares).
    x_bits: the lowest `out` bits of x, one after another, size shares each.
    """
    optional = given(
        (out, 64),
        (adder, "prefix"),
        (position("zq_to_z2_mask", "x", x, 0, size), 0),
        (lam, 40),
    )
    return Call("zq_to_z2_mask", [size, q, *optional], {"x_bits": min(out, q.bit_length())*size})
