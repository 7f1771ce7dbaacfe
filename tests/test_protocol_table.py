"""The table of protocols: its capabilities are those of real engines, and no other code names protocols."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import bench
import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.model.committee import Committee, Party
from keyquorum.model.errors import CommitteeError, ParameterError
from keyquorum.model.protocols import (
    ANY_SIZE_COMMITTEE,
    CLEAR_TEXT,
    COMMITTEES,
    DEFAULT_COMMITTEE,
    DEFAULT_PROTOCOL,
    PROTOCOLS,
    Protocol,
    named,
    names,
)
from keyquorum.parties.jobs import PACKAGES, check_alone, find_job, job_kinds
from keyquorum.plans.program import ProgramRequest
from keyquorum.schemes import load_parameters, parameter_set_names, scheme_of

ROOT = Path(__file__).parent.parent
RING, FIELD, BITS = "Z2^64", "F_1152921504606584833", "bits"
ALL = list(PROTOCOLS.values())
BY_NAME = [p.name for p in ALL]
LARGEST = 6
"""Numbers of parties that are tried."""

ALLOWED: dict[str, tuple[set[str], str]] = {
    "harness/keyquorum/model/chosen_committees.py": ({"rep-field", "shamir", "semi", "mascot"}, "the choices of benchmarks, as data in one place"),
    "harness/keyquorum/model/published.py": ({"ring"}, "a column of published tables"),
    "harness/keyquorum/report/published_bars.py": ({"ring"}, "a column of published tables"),
    "harness/keyquorum/plans/program.py": ({"ring"}, "a field of the request: the option -R"),
    "harness/keyquorum/cli/compile_run.py": ({"ring"}, "the option --ring"),
    "Source/python/src/protocols.rs": ({"ring"}, "a kind of domain"),
    "harness/keyquorum/model/protocols.py": ({"ring"}, "a kind of domain"),
    "harness/keyquorum/programs/header.py": ({"ring"}, "a kind of domain: a word of `needs`"),
}
"""Quoted names outside the table that are no protocols, or are data: file, names, reason."""
TABLE = "Source/protocols/src/"
"""Descriptors, each beside its implementation."""


def _opened(protocol: Protocol, parties: int, domain: str, threshold: int | None = None, openings: str = "direct") -> list[Any]:
    """An engine of every party; raises what the first party's raises."""
    sessions = _engine.local_sessions(parties, 30.0)

    def one(session: Any) -> Any:
        session.set_openings(openings)
        return session.engine(protocol.name, domain, "test", threshold, b"table")

    with ThreadPoolExecutor(parties) as pool:
        return list(pool.map(one, sessions))


def _together(engines: list[Any], body: Any) -> list[Any]:
    with ThreadPoolExecutor(len(engines)) as pool:
        return list(pool.map(body, engines))


def _domains(protocol: Protocol) -> list[str]:
    return [d for d, has in ((RING, protocol.ring), (FIELD, protocol.field), (BITS, protocol.bits)) if has]


# The table against engines


def test_the_table_is_the_engines() -> None:
    assert [row["name"] for row in _engine.protocol_table()] == BY_NAME
    assert len(set(BY_NAME)) == len(BY_NAME) and list(COMMITTEES) == [p.name for p in ALL if p.committee]
    for name in BY_NAME:
        assert named(name) is PROTOCOLS[name]
    with pytest.raises(ParameterError, match=f"unknown protocol 'bmr': choose one of {re.escape(names())}"):
        named("bmr")
    with pytest.raises(_engine.UsageError, match=f'unknown protocol "bmr": choose one of {re.escape(names())}'):
        _engine.local_sessions(1)[0].engine("bmr", RING)


def test_an_unknown_protocol_leaves_the_session_usable() -> None:
    session = _engine.local_sessions(1)[0]
    for name in ("bmr", "", "Shamir", "shamir "):
        with pytest.raises(_engine.UsageError, match="unknown protocol"):
            session.engine(name, FIELD)
    assert session.engine(CLEAR_TEXT, FIELD).protocol == CLEAR_TEXT


@pytest.mark.parametrize("name", BY_NAME)
def test_numbers_of_parties(name: str) -> None:
    protocol = PROTOCOLS[name]
    for n in range(1, LARGEST + 1):
        fits = protocol.least_parties <= n <= (protocol.most_parties or n)
        domain = _domains(protocol)[0]
        if fits:
            engines = _opened(protocol, n, domain)
            assert {e.threshold for e in engines} == {protocol.most_corruptions(n)}
            assert 0 <= protocol.most_corruptions(n) < n
            assert (2 * protocol.most_corruptions(n) >= n) == protocol.dishonest_majority
        else:
            with pytest.raises(_engine.UsageError, match=name):
                _opened(protocol, n, domain)
            with pytest.raises(ParameterError, match=name):
                protocol.most_corruptions(n)


@pytest.mark.parametrize("name", BY_NAME)
def test_thresholds(name: str) -> None:
    protocol = PROTOCOLS[name]
    n = LARGEST - 1 if protocol.most_parties is None else protocol.most_parties
    most = protocol.most_corruptions(n)
    possible = range(1, most + 1) if protocol.chooses_threshold else [most]
    assert not protocol.chooses_threshold or len(possible) > 1
    for t in range(n + 1):
        if t in possible:
            assert {e.threshold for e in _opened(protocol, n, _domains(protocol)[0], t)} == {t} == {protocol.threshold(n, t)}
        else:
            with pytest.raises(_engine.UsageError, match=f"{name} .*tolerates"):
                _opened(protocol, n, _domains(protocol)[0], t)
            with pytest.raises(ParameterError, match="tolerates"):
                protocol.threshold(n, t)


@pytest.mark.parametrize("name", BY_NAME)
def test_domains(name: str) -> None:
    protocol = PROTOCOLS[name]
    assert _domains(protocol)
    for domain in (RING, FIELD, BITS):
        if domain in _domains(protocol):
            assert {e.domain for e in _opened(protocol, protocol.least_parties, domain)} == {domain}
        else:
            with pytest.raises(_engine.UsageError, match=f"{name} works .*, not over .*: take "):
                _opened(protocol, protocol.least_parties, domain)


@pytest.mark.parametrize("name", BY_NAME)
def test_capabilities_of_engines(name: str) -> None:
    protocol = PROTOCOLS[name]
    n = protocol.least_parties
    for domain in _domains(protocol):
        for engine in _opened(protocol, n, domain):
            assert engine.has_binary == protocol.binary
            assert engine.has_edabits == protocol.edabits
            assert (engine.mac_key is not None) == protocol.macs
            assert engine.share_parts == protocol.parts(n, protocol.most_corruptions(n))
            assert (engine.summands > 0) == (protocol.splits and domain == RING)
            assert engine.summands in (0, protocol.summands(n))


@pytest.mark.parametrize("name", [p.name for p in ALL if p.ring or p.field])
def test_parts_are_those_of_a_share_file(name: str, tmp_path: Path) -> None:
    """The bytes that a party stores of shared elements, and whether the parties' parts are summands."""
    protocol, count = PROTOCOLS[name], 10
    n = 4 if protocol.most_parties is None else protocol.most_parties
    t = protocol.most_corruptions(n)
    for domain in _domains(protocol):
        if domain == BITS:
            continue

        def share(engine: Any) -> tuple[bytes, int]:
            value = engine.input(0, count, np.arange(count) + 5 if engine.party == 0 else None)
            return engine.export(value), engine.element_bytes

        stored = _together(_opened(protocol, n, domain), share)
        for party, (data, width) in enumerate(stored):
            assert len(data) == count * width * protocol.parts(n, t)
            path, header = tmp_path / f"{name}-{domain}-{party}", {
                "protocol": name, "domain": domain, "parties": n, "threshold": t, "party": party, "key_id": "00" * 16, "length": count,
            }  # fmt: skip
            _engine.ShareFile.write(str(path), header, data)
            assert _engine.ShareFile.read(str(path), {**header, "length": 0}) == data
        width = stored[0][1]
        modulus = 1 << 64 if domain == RING else int(domain[2:])
        held = [_elements(data, width, count * protocol.values(n, t)) for data, _ in stored]
        summands: dict[int, list[int]] = {}
        for party, row in enumerate(held):
            numbers = protocol.held(party, n, t)
            assert len(set(numbers)) == protocol.values(n, t)
            for i, number in enumerate(numbers):
                part = [x % modulus for x in row[i * count : (i + 1) * count]]
                assert summands.setdefault(number, part) == part, "parties that hold a summand hold the same"
        sums = [sum(column) % modulus for column in zip(*summands.values(), strict=True)]
        assert sorted(summands) == list(range(protocol.summands(n) or n))
        assert (sums == [i + 5 for i in range(count)]) == (protocol.summands(n) > 0)


def _elements(data: bytes, width: int, count: int) -> list[int]:
    return [int.from_bytes(data[i * width : (i + 1) * width], "little") for i in range(count)]


@pytest.mark.parametrize("name", [p.name for p in ALL if p.committee])
def test_openings_through_one_party(name: str) -> None:
    """Openings through a king (`star`) need fewer messages, for protocols that have them, or whose quorum's protocol has them."""
    protocol = PROTOCOLS[name]
    opener = protocol if protocol.quorum is None else PROTOCOLS[protocol.quorum[1]]
    n = 4 if opener.most_parties is None else opener.most_parties
    messages = []
    for openings in ("direct", "star"):
        sessions = _engine.local_sessions(n, 30.0)

        def one(session: Any, openings: str = openings) -> int:
            session.set_openings(openings)
            engine = session.engine(opener.name, _domains(opener)[0])
            value = engine.random(4)
            before = session.stats()["messages"]
            engine.read(engine.open(value))
            return int(session.stats()["messages"]) - int(before)

        with ThreadPoolExecutor(n) as pool:
            messages.append(sum(pool.map(one, sessions)))
    assert (messages[1] < messages[0]) == protocol.king_openings, messages


# The table against committees and programs


@pytest.mark.parametrize("name", BY_NAME)
def test_committees(name: str) -> None:
    protocol = PROTOCOLS[name]
    for n in range(1, LARGEST + 1):
        for t in range(n + 1):
            members = tuple(Party(i, "host", 1 + i, "") for i in range(n))
            committee = Committee(Path("c"), "c", name, t, members)
            try:
                possible = protocol.committee and protocol.threshold(n, t) == t
            except ParameterError:
                possible = False
            if possible:
                committee.check()
                assert committee.capabilities is protocol and committee.share_parts == protocol.parts(n, t)
            else:
                said = name if protocol.committee else "unknown protocol"
                with pytest.raises(CommitteeError, match=said):
                    committee.check()


@pytest.mark.parametrize("name", list(COMMITTEES))
def test_partners_share_alike(name: str) -> None:
    """Programs of a committee pass shares to one another: shares of both domains have the same form, and the partners agree."""
    protocol = COMMITTEES[name]
    n = protocol.least_parties
    t = protocol.most_corruptions(n)
    for other in filter(None, (protocol.ring_protocol, protocol.field_protocol)):
        partner = COMMITTEES[other]
        assert (partner.ring_protocol, partner.field_protocol) == (protocol.ring_protocol, protocol.field_protocol)
        assert partner.sharing == protocol.sharing and partner.parts(n, t) == protocol.parts(n, t)
    plain = PROTOCOLS[protocol.plain_field_protocol]
    assert not plain.macs and plain.field and plain.values(n, t) == protocol.values(n, t)
    assert protocol.ring_protocol or protocol.quorum or protocol.verifies_products
    if protocol.quorum is not None:  # t + 1 parties, of which t may be corrupt
        assert all(PROTOCOLS[q].most_corruptions(t + 1) == t and PROTOCOLS[q].sharing == "additive" for q in protocol.quorum)


def test_defaults() -> None:
    assert PROTOCOLS[DEFAULT_PROTOCOL].ring and COMMITTEES[DEFAULT_COMMITTEE].field
    assert COMMITTEES[DEFAULT_COMMITTEE].least_parties == 3 and COMMITTEES[ANY_SIZE_COMMITTEE].most_parties is None
    for protocol in ALL:
        request = ProgramRequest("x", protocol=protocol.name)
        assert request.size == protocol.least_parties
        assert request.domain == (RING if protocol.ring else FIELD if protocol.field else BITS)


@pytest.mark.parametrize("name", BY_NAME)
def test_adversaries(name: str) -> None:
    protocol = PROTOCOLS[name]
    assert protocol.emulated == (protocol.adversary == "none") == (protocol.sharing == "none")
    assert protocol.adversary in ("none", "semi-honest", "malicious") and (not protocol.macs or protocol.adversary == "malicious")


def test_the_page_of_protocols_is_up_to_date() -> None:
    """If this fails: run Scripts/protocol_table.py."""
    page = runpy.run_path(str(ROOT / "Scripts" / "protocol_table.py"))["table"]()
    assert (ROOT / "docs" / "pages" / "protocols.md").read_text() == page
    assert all(f"| `{name}` |" in page for name in BY_NAME)


# No other code names protocols


def _is_name(text: str) -> bool:
    """Whether a string is a protocol's name, or a list of several."""
    words = re.findall(r"[^\s,]+", text)
    return bool(words) and all(word in PROTOCOLS for word in words)


def _python_names(path: Path) -> Iterator[tuple[int, str]]:
    """Strings of a Python file that are names of protocols, docstrings apart; in f-strings as well."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_name(node.value):
            yield from ((node.lineno, word) for word in re.findall(r"[^\s,]+", node.value))


_TESTS = re.compile(r"^#\[cfg\(test\)\]\n(?:#\[.*\n)*(?:pub(?:\(\w+\))? )?mod \w+ \{$", re.M)


def _rust_names(path: Path) -> Iterator[tuple[int, str]]:
    """The same of a Rust file, without comments and without its tests, which are the last module of a file."""
    code = path.read_text()
    tests = _TESTS.search(code)
    for number, line in enumerate(code[: tests.start() if tests else None].splitlines(), 1):
        if not line.lstrip().startswith("//"):
            yield from ((number, name) for name in re.findall(r'"([^"\\]*)"', line) if _is_name(name))


def _rust_files() -> Iterator[Path]:
    """Library code: modules that exist in tests alone have `tests` in their path, or stand under `#[cfg(test)]`."""
    for path in sorted(ROOT.glob("Source/*/src/**/*.rs")):
        parts = path.relative_to(ROOT).parts
        if parts[1] != "fuzz" and not any(part.removesuffix(".rs") == "tests" for part in parts) and not _only_in_tests(path):
            yield path


def _only_in_tests(path: Path) -> bool:
    parents = [path.with_name("mod.rs"), path.with_name("lib.rs"), path.parent.with_suffix(".rs")]
    declared = re.compile(rf"#\[cfg\(test\)\]\n(?:#\[.*\n)*(?:pub(?:\(\w+\))? )?mod {path.stem};")
    return any(parent.exists() and declared.search(parent.read_text()) for parent in parents)


def _found() -> Iterator[tuple[str, int, str]]:
    for folder in ("harness", "Scripts"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield from ((str(path.relative_to(ROOT)), line, name) for line, name in _python_names(path))
    for path in _rust_files():
        where = str(path.relative_to(ROOT))
        if not where.startswith(TABLE):
            yield from ((where, line, name) for line, name in _rust_names(path))
        else:
            allowed = _described(path)
            yield from ((where, line, name) for line, name in _rust_names(path) if (line, name) not in allowed)


def _described(path: Path) -> set[tuple[int, str]]:
    """Lines of a protocol's own file that give its descriptor its name."""
    lines = enumerate(path.read_text().splitlines(), 1)
    return {(number, match[1]) for number, line in lines if (match := re.fullmatch(r'\s*name: "([^"]+)",', line))}


def test_no_other_code_names_protocols() -> None:
    wrong = [f"{path}:{line}: {name!r}" for path, line, name in _found() if name not in ALLOWED.get(path, (set(), ""))[0]]
    assert not wrong, "protocols are named outside the table: ask the table for a capability\n" + "\n".join(wrong)


def test_every_exception_is_needed() -> None:
    found = {(path, name) for path, _, name in _found()}
    unused = [(path, name) for path, (allowed, _) in ALLOWED.items() for name in allowed if (path, name) not in found]
    assert not unused


def test_the_search_finds_names(tmp_path: Path) -> None:
    python = tmp_path / "a.py"
    python.write_text('"""ring"""\nx = y == "shamir" or z in ("semi", f"ring{y}", "semi2k mascot")\n')
    assert sorted(_python_names(python)) == [(1, "ring"), (2, "mascot"), (2, "ring"), (2, "semi"), (2, "semi2k"), (2, "shamir")]
    rust = tmp_path / "a.rs"
    rust.write_text('// "ring"\nmatch p { "semi" => 1, "x" => 2 }\n#[cfg(test)]\nmod tests {\n    "mascot"\n}\n')
    assert list(_rust_names(rust)) == [(2, "semi")]


def test_committees_that_verify_products_refuse_other_plans() -> None:
    """Programs run with them, and committees are made; every plan that is not for malicious parties refuses them, in one line."""
    verified = [p for p in PROTOCOLS.values() if p.verifies_products]
    assert verified and all(p.name in COMMITTEES for p in verified)
    assert bench.JOBS and {"", "sweep", "bench"} <= set(PACKAGES)
    kinds = {kind for of in PACKAGES for kind in job_kinds(of)}
    assert {kind for kind in kinds if find_job(kind).verified} == {
        "keygen", "decrypt", "pool_fill", "program", "refresh_shares", "recover", "reshare", "epoch_prove", "sweep:program", "sweep:decrypt", "bench:parity", "bench:primitives",
    }  # fmt: skip
    for protocol in verified:
        ProgramRequest("sample_bits", ("1",), protocol.name).check()
        committee = api.in_process_committee(3, protocol.name)
        said = f"is semi-honest so far, and {protocol.name} is for malicious parties: it makes keys of seal and lwe, and decrypts BFV, BGV, CKKS and LWE; with shares modulo 2^k it also evaluates a PRF"
        if protocol.ring_protocol is None:
            with pytest.raises(CommitteeError, match=rf"^a rounding without shares modulo 2\^k {re.escape(said)}$"):
                _ = committee.rounding_protocols
        with pytest.raises(CommitteeError, match=f"^the job toprf_fill {re.escape(said)}$"):
            check_alone(committee, 0, {"kind": "toprf_fill", "count": 1, "chunk": 1})
        for name in parameter_set_names():
            parameters = load_parameters(name, warn=False)
            request = scheme_of(parameters).request(parameters, {})
            if parameters.scheme in ("bfv", "bgv", "ckks", "lwe", "prf"):
                assert type(request).verified
                continue
            with pytest.raises(CommitteeError, match=f"^key generation of {parameters.scheme} keys {re.escape(said)}$"):
                request.check_plan(committee)
