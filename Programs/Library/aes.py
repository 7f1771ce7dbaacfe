"""AES-128 (FIPS-197) on rows of secret bits. A byte is a list of 8 rows, least significant bit first; a row is one bit of every block of a batch. A state is
16 bytes in the order of the block. XOR and NOT are local; an S-box has 36 ANDs of depth 4: 9, 3, 6 and 18 of them on its levels.

The S-box inverts in a tower of fields: GF(4) = GF(2)[w]/(w^2 + w + 1), GF(16) = GF(4)[Y]/(Y^2 + Y + w), GF(256) = GF(16)[Z]/(Z^2 + Z + 8). Elements are lists
of bits, of the low half and then of the high half. Source: Satoh, Morioka, Takano, Munetoh, "A Compact Rijndael Hardware Architecture with S-Box Optimization"
(ASIACRYPT 2001); the maps between the fields are computed here. `tests/programs/test_aes.py` compares all 256 values.
"""

from functools import reduce
from operator import xor

ROUNDS = 10
BLOCK_BITS = 128
KEY_ROWS = BLOCK_BITS * (ROUNDS + 1)
S_BOXES = 16 * ROUNDS
"""Of a block."""

INTO_TOWER = (0x01, 0x41, 0x66, 0x6C, 0x56, 0x9A, 0x58, 0xC4)
"""Images of the bits 0 to 7 of a byte of AES in the tower. A linear map is a tuple of its columns."""
OUT_OF_TOWER = (0x1F, 0x19, 0xB2, 0x9D, 0x7B, 0xF6, 0x21, 0x1C)
"""Images of the bits of an element of the tower: back to AES, then the matrix of SubBytes."""
CONSTANT = 0x63
SQUARE_TIMES_8 = (0x8, 0x4, 0x7, 0xE)
SQUARE = (0x1, 0x3, 0x6, 0xD)
"""In GF(16)."""


def linear(columns, bits):
    """The map with these columns."""
    return [reduce(xor, [bit for bit, column in zip(bits, columns, strict=True) if column >> i & 1]) for i in range(len(bits))]


def inverse(columns):
    """Columns of the inverse of a linear map of bytes."""
    images = {reduce(xor, [c for j, c in enumerate(columns) if x >> j & 1], 0): x for x in range(256)}
    return tuple(images[1 << i] for i in range(8))


def add(a, b):
    """Sum of two elements of one field."""
    return [x ^ y for x, y in zip(a, b, strict=True)]


def add_constant(bits, constant):
    """Sum with a public element."""
    return [~bit if constant >> i & 1 else bit for i, bit in enumerate(bits)]


def product(a, b, times_root):
    """Product in a quadratic extension, by three products of its halves. `times_root(c)`: c times the constant term of the extension's polynomial."""
    if len(a) == 1:
        return [a[0] & b[0]]
    half = len(a) // 2
    low, high = product(a[:half], b[:half], times_root), product(a[half:], b[half:], times_root)
    mixed = product(add(a[:half], a[half:]), add(b[:half], b[half:]), times_root)
    return add(low, times_root(high)) + add(mixed, low)


def times_root(c):
    """The constant term of the polynomial of GF(4) is 1, and of that of GF(16) it is w."""
    return c if len(c) == 1 else [c[1], c[0] ^ c[1]]


def multiply(a, b):
    """Product in GF(4): 3 ANDs, or in GF(16): 9; depth 1."""
    return product(a, b, times_root)


def invert_16(v):
    """Inverse in GF(16), 0 of 0: 9 ANDs, depth 2."""
    a, b = v[:2], v[2:]

    def square(c):
        return [c[0] ^ c[1], c[1]]

    norm = add(add(times_root(square(b)), multiply(a, b)), square(a))
    inverted = square(norm)  # c^-1 = c^2 in GF(4)
    return multiply(add(a, b), inverted) + multiply(b, inverted)


def invert_256(v):
    """Inverse in GF(256) as the tower, 0 of 0: 36 ANDs, depth 4."""
    low, high = v[:4], v[4:]
    norm = add(add(linear(SQUARE_TIMES_8, high), multiply(high, low)), linear(SQUARE, low))
    inverted = invert_16(norm)
    return multiply(add(high, low), inverted) + multiply(high, inverted)


def sub_byte(x):
    """The S-box of a byte."""
    return add_constant(linear(OUT_OF_TOWER, invert_256(linear(INTO_TOWER, x))), CONSTANT)


def inv_sub_byte(x):
    """Its inverse."""
    return linear(inverse(INTO_TOWER), invert_256(linear(inverse(OUT_OF_TOWER), add_constant(x, CONSTANT))))


def xtime(a):
    """2 a in GF(256) of AES."""
    return [a[7], a[0] ^ a[7], a[1], a[2] ^ a[7], a[3] ^ a[7], a[4], a[5], a[6]]


def shift_rows(state, direction=1):
    """Row r of the state rotated by r bytes to the left, or with -1 to the right."""
    return [state[r + 4 * ((c + direction * r) % 4)] for c in range(4) for r in range(4)]


def mix_columns(state):
    """Each column times 2, 3, 1, 1, rotated."""
    mixed = []
    for c in range(4):
        column = state[4 * c : 4 * c + 4]
        total = reduce(add, column)
        mixed += [add(add(column[r], total), xtime(add(column[r], column[(r + 1) % 4]))) for r in range(4)]
    return mixed


def inv_mix_columns(state):
    """The inverse: MixColumns after a column times 5, 0, 4, 0, rotated."""
    prepared = []
    for c in range(4):
        column = state[4 * c : 4 * c + 4]
        extra = [xtime(xtime(add(column[r], column[r + 2]))) for r in range(2)]
        prepared += [add(column[r], extra[r % 2]) for r in range(4)]
    return mix_columns(prepared)


def add_round_key(state, key):
    """The XOR with 16 bytes of the key schedule."""
    return [add(a, b) for a, b in zip(state, key, strict=True)]


def in_bytes(rows):
    """Rows in the order of bytes, each byte from its lowest bit, as bytes."""
    return [rows[8 * i : 8 * i + 8] for i in range(len(rows) // 8)]


def in_rows(state):
    """The inverse of `in_bytes`."""
    return [row for byte in state for row in byte]


def key_schedule(rows):
    """The rows of the 11 round keys, from the 128 rows of a key: 40 S-boxes, depth 40."""
    key = in_bytes(rows)
    words = [key[4 * i : 4 * i + 4] for i in range(4)]
    constant = 1
    for i in range(4, 4 * (ROUNDS + 1)):
        word = words[i - 1]
        if i % 4 == 0:
            word = [sub_byte(byte) for byte in [*word[1:], word[0]]]
            word[0] = add_constant(word[0], constant)
            constant = constant << 1 ^ (0x11B if constant >> 7 else 0)
        words.append([add(a, b) for a, b in zip(words[i - 4], word, strict=True)])
    return in_rows(byte for word in words for byte in word)


def whiten(state, key):
    """The XOR with a round key."""
    return in_rows(add_round_key(in_bytes(state), in_bytes(key)))


def after_s_boxes(state, key):
    """What follows SubBytes in a round: ShiftRows, MixColumns, AddRoundKey. Local."""
    return in_rows(add_round_key(mix_columns(shift_rows(in_bytes(state))), in_bytes(key)))


def after_last_s_boxes(state, key):
    """The same in the last round, which does not mix columns."""
    return in_rows(add_round_key(shift_rows(in_bytes(state)), in_bytes(key)))


def after_inv_s_boxes(state, key):
    """What follows InvShiftRows and InvSubBytes, which commute, in a round of the inverse cipher. Local."""
    return in_rows(inv_mix_columns(add_round_key(shift_rows(in_bytes(state), -1), in_bytes(key))))


def after_last_inv_s_boxes(state, key):
    """The same in the last round."""
    return in_rows(add_round_key(shift_rows(in_bytes(state), -1), in_bytes(key)))


def sub_bytes(state, encrypts):
    """SubBytes of `BitRows`, or its inverse: 16 S-boxes, 576 ANDs of depth 4."""
    return state.map(sub_byte if encrypts else inv_sub_byte, copies=16)


def s_box_table(encrypts):
    """The 256 values of the S-box, or of its inverse: of rows whose bit x belongs to the input x."""
    rows = [sum((x >> j & 1) << x for x in range(256)) for j in range(8)]
    values = sub_byte(rows) if encrypts else inv_sub_byte(rows)
    return [sum((row >> x & 1) << j for j, row in enumerate(values)) for x in range(256)]


def masked_bytes(state, masks):
    """State and masks added, where masks and result have bit 0 of all bytes first, then bit 1 of all, .."""
    return [state[8 * i + j] ^ masks[16 * j + i] for j in range(8) for i in range(16)]


def by_bytes(rows):
    """Rows that have bit 0 of all bytes first in the order of a state."""
    return [rows[16 * j + i] for i in range(16) for j in range(8)]


def cipher(state, keys, encrypts, s_boxes):
    """AES-128 of `BitRows` in the order of a block, or its inverse; keys: `BitRows` of the key schedule. s_boxes(state, round): SubBytes, or its inverse;
    rounds count from 0."""

    def key(r):
        return keys.part(r * BLOCK_BITS, BLOCK_BITS)

    if encrypts:
        order, middle, last = range(ROUNDS + 1), after_s_boxes, after_last_s_boxes
    else:
        order, middle, last = range(ROUNDS, -1, -1), after_inv_s_boxes, after_last_inv_s_boxes
    state = state.map(whiten, key(order[0]))
    for r in range(1, ROUNDS):
        state = s_boxes(state, r - 1).map(middle, key(order[r]))
    return s_boxes(state, ROUNDS - 1).map(last, key(order[ROUNDS]))
