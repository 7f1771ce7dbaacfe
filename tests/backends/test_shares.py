"""Share files of MP-SPDZ: bytes, round trips, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keyquorum.backends.mpspdz.shares import decode, encode, header, mac_key_path, mac_key_text, word_domain
from keyquorum.dsl import ShareVector
from keyquorum.model.domains import Domain
from keyquorum.model.errors import ParameterError, ProgramError

Q60 = 1152921504606584833
FORMS = {"emulate": (1, 1), "ring": (2, 1), "rep-field": (2, 1), "shamir": (1, 1), "semi2k": (1, 1), "semi": (1, 1),
         "spdz2k": (2, 2), "mascot": (2, 1)}  # fmt: skip
"""Components, and words of each."""
RINGS = ("emulate", "ring", "semi2k", "spdz2k")


def domains(protocol: str) -> list[Domain]:
    if protocol in RINGS:
        return [Domain.parse("Z2^64")]
    return [Domain.parse(f"F_{q}") for q in (65537, 68719403009, Q60, (1 << 61) - 1)]


def made(protocol: str, domain: Domain, values: list[list[int]], key: int = 0) -> ShareVector:
    """Shares with the components given."""
    shares = ShareVector.from_words(np.array(values, dtype=np.uint64), FORMS[protocol][1])
    if protocol in ("spdz2k", "mascot"):
        shares.mac_key = np.array([key], dtype=np.uint64)
    return shares


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_round_trip(data: st.DataObject) -> None:
    protocol = data.draw(st.sampled_from(sorted(FORMS)))
    domain = data.draw(st.sampled_from(domains(protocol)))
    parts, width = FORMS[protocol]
    length = width * data.draw(st.integers(0, 5))
    bound = domain.modulus - 1
    row = st.lists(st.integers(0, bound), min_size=length, max_size=length)
    values = data.draw(st.lists(row, min_size=parts, max_size=parts))
    key = data.draw(st.integers(0, bound))
    back = decode(protocol, domain, encode(protocol, domain, made(protocol, domain, values, key)))
    assert back.words.tolist() == values and back.element_words == width
    assert (back.mac_key is None) == (protocol not in ("spdz2k", "mascot"))
    assert back.mac_key is None or back.mac_key.tolist() == [key]


def test_bytes_of_a_ring() -> None:
    got = encode("ring", Domain.parse("Z2^64"), made("ring", Domain.parse("Z2^64"), [[1, 2], [3, 1 << 63]]))
    head = b"replicated Z2^64" + bytes([64, 0, 0, 0])
    words = [1, 3, 2, 1 << 63]  # element by element
    assert got == len(head).to_bytes(8, "little") + head + b"".join(w.to_bytes(8, "little") for w in words)


def test_bytes_of_a_field_are_in_montgomery_form() -> None:
    domain = Domain.parse("F_65537")
    got = encode("semi", domain, made("semi", domain, [[1, 2, 65536]]))
    head = b"gfp" + bytes([0, 3, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0])  # sign, length, the prime, Montgomery
    one = (1 << 64) % 65537
    words = [one, 2 * one % 65537, -one % 65537]
    assert got == len(head).to_bytes(8, "little") + head + b"".join(w.to_bytes(8, "little") for w in words)


def test_bytes_of_authenticated_shares() -> None:
    ring = Domain.parse("Z2^64")
    got = encode("spdz2k", ring, made("spdz2k", ring, [[1, 2], [3, 4]], key=5))
    head = b"SPDZ2^(64+64)" + (128).to_bytes(4, "little")
    words = [5, 0, 1, 2, 3, 4]  # the key has the size of an element; value before MAC, low word first
    assert got == (len(head) + 16).to_bytes(8, "little") + head + b"".join(w.to_bytes(8, "little") for w in words)
    field = Domain.parse(f"F_{Q60}")
    got = encode("mascot", field, made("mascot", field, [[7], [8]], key=9))
    assert got[8:16] == b"SPDZ gfp" and len(got) == 8 + 8 + 1 + 4 + 8 + 4 + 8 + 16
    assert int.from_bytes(got[33:41], "little") == 9 * 2**64 % Q60


def test_places_of_mac_keys() -> None:
    assert mac_key_path("mascot", Domain.parse(f"F_{Q60}"), 3, 1) == "3-p-60/Player-MAC-Keys-p-P1"
    assert mac_key_path("spdz2k", Domain.parse("Z2^64"), 2, 0) == "2-Z64,64-64/Player-MAC-Keys-R-P0"
    assert mac_key_text(2, np.array([1 << 63], dtype=np.uint64)) == b"2\n9223372036854775808"


def test_foreign_and_torn_files_are_refused() -> None:
    ring, field = Domain.parse("Z2^64"), Domain.parse(f"F_{Q60}")
    data = encode("rep-field", field, made("rep-field", field, [[1, 2], [3, 4]]))
    for protocol, domain in (("shamir", field), ("rep-field", Domain.parse("F_65537")), ("ring", ring)):
        with pytest.raises(ProgramError, match="not a share file of"):
            decode(protocol, domain, data)
    for cut in (0, 5, 20):
        with pytest.raises(ProgramError, match="not a share file of"):
            decode("rep-field", field, data[:cut])
    with pytest.raises(ProgramError, match="ends inside an element"):
        decode("rep-field", field, data[:-8])
    with pytest.raises(ProgramError, match="not below"):
        decode("rep-field", field, data[:-8] + b"\xff" * 8)


def test_shares_of_another_form_are_refused() -> None:
    field = Domain.parse(f"F_{Q60}")
    with pytest.raises(ProgramError, match="2 parts of 8 bytes are not of shamir"):
        encode("shamir", field, made("rep-field", field, [[1], [2]]))
    with pytest.raises(ProgramError, match="without a MAC key"):
        encode("mascot", field, made("rep-field", field, [[1], [2]]))


def test_shares_of_another_protocol_or_domain_are_refused() -> None:
    """For shares from files and from engines. Shares that a plan computed belong to the protocol and domain under which they are first written."""
    ring, field = Domain.parse("Z2^64"), Domain.parse(f"F_{Q60}")
    shares = ShareVector.from_words(np.array([[1, 2, 3]], dtype=np.uint64))
    data = encode("semi", field, shares)
    for bound in (shares, decode("semi", field, data)):
        for protocol, domain in (("semi2k", ring), ("shamir", field), ("semi", Domain.parse("F_65537"))):
            with pytest.raises(ProgramError, match=f"holds shares of semi over F_{Q60}, this run computes with {protocol} over"):
                encode(protocol, domain, bound)
        assert encode("semi", field, bound) == data


def test_domains() -> None:
    for text in ("Z2^65", "Z2^0", "F_2", "F_x", "GF2", f"F_{1 << 62}"):
        with pytest.raises(ParameterError, match="domain"):
            word_domain(text)
    for protocol, text in (("ring", "F_65537"), ("shamir", "Z2^64")):
        with pytest.raises(ParameterError, match=protocol):
            header(protocol, Domain.parse(text))
