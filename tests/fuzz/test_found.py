"""Inputs that fuzzing found, one test each."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from keyquorum.fhe._stream import InflatingSource
from keyquorum.fhe.errors import DecompressionError, ValuesError
from keyquorum.fhe.lwe import MAGIC, read_lwe
from keyquorum.fhe.parameters import from_toml
from keyquorum.fhe.values import read_values
from keyquorum.model.committee import Committee
from keyquorum.model.errors import (
    LONGEST,
    CiphertextError,
    CommitteeError,
    KeyFileError,
    KeyQuorumError,
    ParameterError,
    PartyError,
    PoolError,
)
from keyquorum.parties.jobs import read_job
from keyquorum.plans.pool_list import read_pool
from keyquorum.plans.pool_store import last_claim
from keyquorum.plans.pools import read_report
from keyquorum.plans.program import ProgramRequest
from keyquorum.schemes.counts import decryptions_used
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.lwe.key import load_lwe_key
from keyquorum.schemes.seal.receipts import check_receipt
from keyquorum.serve.client import local_addresses
from keyquorum.serve.plan import read_plan
from keyquorum.serve.wire import receive_message

from .memory import Channel, MemoryFile, MemoryFolder
from .targets import TARGETS, _committee, _key_info, _report

DEEP = b"[" * 100_000
POOL_ID = "0123456789abcdef" * 2


def _corpus(name: str, index: int = 0) -> Any:
    return json.loads(TARGETS[name].corpus()[index])


def _files(**files: bytes) -> Any:
    return MemoryFolder(**files)


def test_an_error_is_one_bounded_line_and_keeps_its_cure() -> None:
    text = str(KeyQuorumError("a\nb\x1b[2J \ud800: " + "x" * 10_000 + ": do this"))
    assert text.isprintable()
    assert text.startswith("a b\\x1b[2J \\ud800: ")
    assert text.endswith(": do this")
    assert len(text) == LONGEST


READERS: dict[str, tuple[type[KeyQuorumError], Callable[[bytes], object]]] = {
    "decryptions.json": (KeyFileError, lambda data: decryptions_used(_files(decryptions_json=data), _key_info())),
    "key.json": (KeyFileError, lambda data: load_key(_files(key_json=data))),
    "pool.json": (PoolError, lambda data: read_pool(_files(pool_json=data))),
    "a job": (ParameterError, lambda data: read_job(MemoryFile("job.json", data))),  # type: ignore[arg-type]
    "a file of LWE": (CiphertextError, lambda data: read_lwe(MAGIC + struct.pack("<I", len(data)) + data, "the file")),
    "a plan": (PartyError, read_plan),
    "committee.toml": (CommitteeError, lambda data: Committee.load(_files(committee_toml=b"name = " + data))),
    "parameters": (ParameterError, lambda data: from_toml("name = " + data.decode(), "the file")),
}


@pytest.mark.parametrize("name", READERS)
def test_what_is_nested_too_deeply_is_refused(name: str) -> None:
    error, read = READERS[name]
    with pytest.raises(error):
        read(DEEP)


def test_a_receipt_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.ct.json").write_bytes(DEEP)
    with pytest.raises(CiphertextError, match="damaged"):
        check_receipt(tmp_path / "c.ct", b"", _key_info())


@pytest.mark.parametrize("text", ["not json", "{}", "[]", '{"start": 0}', DEEP.decode()])
def test_a_journal_with_a_right_checksum_over_no_claim_is_damaged(text: str) -> None:
    checksum = hashlib.sha256(f"keyquorum claim {POOL_ID} {text}".encode()).hexdigest()[:32]
    journal: Any = MemoryFile("cursor.journal", f"{checksum} {text}\n".encode())
    assert last_claim(journal, POOL_ID) is None


@pytest.mark.parametrize(
    ("field", "value"), [("start", "0"), ("end", 1.5), ("end", -1), ("chain", None), ("before", 3), ("before", [[0, 1]]), ("start", 1 << 70)]
)
def test_a_claim_with_entries_of_other_types_is_damaged(field: str, value: object) -> None:
    claim = {"start": 0, "end": 7, "chain": "ab" * 32, "before": [], field: value}
    text = json.dumps(claim)
    checksum = hashlib.sha256(f"keyquorum claim {POOL_ID} {text}".encode()).hexdigest()[:32]
    journal: Any = MemoryFile("cursor.journal", f"{checksum} {text}\n".encode())
    assert last_claim(journal, POOL_ID) is None


@pytest.mark.parametrize(
    "chunk", [{"id": "../../x", "count": 1}, {"id": "ab" * 16, "count": []}, {"id": "ab" * 16, "count": -5}, {"id": 3, "count": 1}]
)
def test_chunks_are_named_by_hexadecimal_digits_and_have_a_count(chunk: dict[str, Any]) -> None:
    data = {**_corpus("pool-file"), "chunks": [chunk]}
    with pytest.raises(PoolError, match="proper id or count"):
        read_pool(_files(pool_json=json.dumps(data).encode()))


@pytest.mark.parametrize(
    "change", [{"chunks": 7}, {"chunks": "ab"}, {"end": "7"}, {"next": 1e999}, {"before": [[1]]}, {"chain": []}, {"nonce": None}]
)
def test_a_report_of_other_types_is_refused(change: dict[str, Any]) -> None:
    assert read_report(json.dumps(vars(_report())).encode()) == _report()
    with pytest.raises((ValueError, TypeError)):
        read_report(json.dumps({**vars(_report()), **change}).encode())


@pytest.mark.parametrize(
    "change", [{"fill": "1"}, {"fill": -1}, {"decrypt": [["a"]]}, {"decrypt": [[1, 2]]}, {"refuse": [["a", 1, "x"]]}, {"more": 1}]
)
def test_a_plan_of_other_types_names_party_0(change: dict[str, Any]) -> None:
    with pytest.raises(PartyError, match="party 0"):
        read_plan(json.dumps({"fill": 0, "decrypt": [], "refuse": [], **change}).encode())


def test_a_plan_fills_no_more_than_it_may() -> None:
    data = json.dumps({"fill": 1025, "decrypt": [], "refuse": []}).encode()
    assert read_plan(data, 1025).fill == 1025
    with pytest.raises(PartyError, match="party 0 would fill 1,025 items at once"):
        read_plan(data, 1024)


@pytest.mark.parametrize("change", [{"parties": "3"}, {"files": {"public.key": 1}}, {"relin": 1}, {"key_id": "../x"}, {"galois_elements": [1.5]}])
def test_key_metadata_of_other_types_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(KeyFileError, match="not the metadata of a key"):
        load_key(_files(key_json=json.dumps({**_corpus("key-info"), **change}).encode()))


@pytest.mark.parametrize("change", [{"key_id": 5}, {"parties": None}, {"protocol": []}])
def test_lwe_key_metadata_of_other_types_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(KeyFileError, match="not the metadata of a key"):
        load_lwe_key(_files(key_json=json.dumps({**_corpus("key-info", 2), **change}).encode()))


@pytest.mark.parametrize("number", ["inf", "nan", "0x" + "f" * 5000, "9" * 5000, "1e999"])
def test_numbers_that_are_no_ports_are_refused(number: str) -> None:
    text = TARGETS["committee"].corpus()[0].decode().replace("7000", number)
    with pytest.raises(CommitteeError, match="not a committee file"):
        Committee.load(_files(committee_toml=text.encode()))


@pytest.mark.parametrize("number", ["0x" + "f" * 5000, "9" * 5000, "-0b" + "1" * 70])
def test_integers_that_cannot_be_shown_are_refused(number: str) -> None:
    text = TARGETS["parameters"].corpus()[1].decode().replace("12289", number)
    with pytest.raises(ParameterError, match="no valid TOML"):
        from_toml(text, "the file")


@pytest.mark.parametrize(
    "change",
    [
        {"request": {}},
        {"request": {"program": 3}},
        {"request": {"program": "x", "args": [1]}},
        {"request": {"program": "x", "bits": 3}},
        {"local": {}},
    ],
)
def test_a_program_job_of_other_fields_is_refused(change: dict[str, Any]) -> None:
    job = {**_corpus("job-file", 5), **change}
    with pytest.raises(KeyQuorumError, match="write the job file again"):
        TARGETS["job-file"].parse(json.dumps(job).encode())


@pytest.mark.parametrize("path", [None, 3, "a\0b", ["a\0b"], []])
def test_a_job_without_a_path_of_this_host_is_refused(path: object) -> None:
    job = _corpus("job-file", 3)
    job["local"]["ciphertexts"] = path
    with pytest.raises(KeyQuorumError, match="needs 1 paths under local, ciphertexts"):
        TARGETS["job-file"].parse(json.dumps(job).encode())


def test_a_program_request_survives_its_job() -> None:
    request = ProgramRequest.from_json(_corpus("job-file", 5)["request"], Path("here"))
    assert request == ProgramRequest("millionaires", ("8",), "ring", 3, 64, folder="here")


@pytest.mark.parametrize("text", ["", "[]", '{"host": "h"}', '{"host": "h", "port": 1e999}', DEEP.decode()])
def test_a_damaged_place_of_a_service_names_its_file(text: str, tmp_path: Path) -> None:
    committee = replace(_committee(tmp_path), protocol="shamir")
    committee.party_folder(0).mkdir()
    (committee.party_folder(0) / "serve.json").write_text(text)
    with pytest.raises(CommitteeError, match=r"serve\.json: damaged"):
        local_addresses(committee)


def test_a_message_reserves_no_memory_on_the_word_of_its_header() -> None:
    data: Any = Channel((2).to_bytes(4, "little") + (800 << 20).to_bytes(8, "little") + b"{}")
    tracemalloc.start()
    try:
        with pytest.raises(ConnectionError, match="in the middle"):
            receive_message(data, 1 << 30)
        assert tracemalloc.get_traced_memory()[1] < 1 << 21
    finally:
        tracemalloc.stop()


def _npy(shape: str) -> bytes:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


@pytest.mark.parametrize("data", [_npy("(1000000000000,)"), _npy("(3,"), _npy("(\x01"), b"PK\x03\x04" + bytes(40), b""])
def test_damaged_npy_files_are_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    path.write_bytes(data)
    with pytest.raises(ValuesError, match=r"v\.npy"):
        read_values(path)


def test_npy_files_are_read_in_every_order(tmp_path: Path) -> None:
    for array in (np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3))):
        np.save(tmp_path / "v.npy", array)
        assert read_values(tmp_path / "v.npy").tolist() == array.reshape(-1).tolist()


def _source(payload: bytes, mode: int) -> InflatingSource:
    return InflatingSource(memoryview(payload), mode, "the file")


def test_zstd_gets_no_window_of_any_size() -> None:
    wide = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    payload = zstandard.ZstdCompressor(compression_params=wide).compressobj().compress(bytes(1 << 22))
    with pytest.raises(DecompressionError):
        _source(payload, 2).take(8)


def test_small_reads_of_a_large_zlib_payload_do_not_copy_it_each_time() -> None:
    payload = zlib.compress(bytes(8 * 4096) + os.urandom(1 << 24), 1)
    source, start = _source(payload, 1), time.process_time()
    for _ in range(4096):
        assert source.take(8) == bytes(8)
    assert time.process_time() - start < 5  # 64 GiB of copies


def test_zlib_payloads_longer_than_a_piece_are_read_to_their_end() -> None:
    data = os.urandom(300_000)
    source = _source(zlib.compress(data), 1)
    assert bytes(source.take(100_000)) + bytes(source.take(200_000)) == data
    source.finish()


def test_a_field_of_another_kind_of_job() -> None:
    """A job of a program with the field of a decryption."""
    job = {
        "kind": "program",
        "sha256": None,
        "local": {"folder": "folder"},
        "request": {"program": "millionaires", "args": ["8"], "protocol": "ring"},
    }
    with pytest.raises(KeyQuorumError, match="'sha256' that is no printable text"):
        read_job(MemoryFile("job.json", json.dumps(job).encode()))  # type: ignore[arg-type]
