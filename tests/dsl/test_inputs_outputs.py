"""Inputs, outputs, printing, share files; in memory and at the paths of MP-SPDZ."""

from __future__ import annotations

import re
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.dsl import ProgramIO, ShareVector, load_shares, run_program
from keyquorum.model.errors import ProgramError

from .running import ALL, EMULATE, FIELD, Q60, REP_FIELD, RING, SEMI, SEMI_2K, SHAMIR, Backend, name, printed, run

INPUTS = """
a = sint.get_input_from(0, size=3, binary=True)
b = sint.get_input_from(1, size=2, binary=True)
c = sint.get_input_from(regint(0), size=1, binary=True)
x = cint(size=2)
fixinput(-1, x, 0, 0)
y = cint(size=1)
pubinput(y)
z = cint(size=1)
fixinput(-1, z, 0, 0)
p, p2 = personal.read_int(1), personal.read_int(1)
print_ln('%s %s %s %s %s %s', a.reveal(), b.reveal(), c.reveal(), x, y, z)
q = (a.reveal_to(1) - 1) * cint(2) + 1
print_ln_to(1, 'for 1: %s of %s', q, cint(3))
print_ln_to(0, 'for 0: %s', (a + b.sum()).reveal_to(0))
q.binary_output()
(p + 1).binary_output()
(2 - (-p2)).binary_output()
sint(p * p2).reveal().binary_output()
(a - 100).reveal().binary_output()
a.reveal_to(0).reveal_to(1).get_vector(0, 2).binary_output()
regint([1, -2]).binary_output()
cint(9).binary_output(1)
"""


@pytest.mark.parametrize("backend", ALL, ids=name)
def test_inputs_and_outputs(tmp_path: Path, backend: Backend) -> None:
    parties = run(tmp_path, INPUTS, backend, private={0: [1, -2, 3, 7], 1: [10, 20, 5, -6]}, public=[[11, -12], [13, 14]])
    lines = [[line for line in p.lines if line.startswith("for")] for p in parties]
    assert all("[1, -2, 3] [10, 20] 7 [11, -12] 13 14" in p.lines for p in parties)
    first, second = ["for 0: [31, 28, 33]"], ["for 1: [1, -5, 5] of 3"]
    assert lines == ([second + first] if len(parties) == 1 else [first, second, *[[]] * (len(parties) - 2)])
    owner = parties[-1 if len(parties) == 1 else 1].io
    assert [o.tolist() for o in owner.personal_outputs] == [[1, -5, 5], [6], [-4], [1, -2]]
    public = [[-30], [-99, -102, -97], [1, -2]]
    assert [o.tolist() for o in owner.binary_outputs] == [*public, [9]]
    if len(parties) == 3:
        assert [o.tolist() for o in parties[2].io.binary_outputs] == public
        assert parties[0].io.personal_outputs == parties[2].io.personal_outputs == []
    assert [o.tolist() for o in owner.file_outputs][:3] == [[1, -5, 5], [6], [-4]]


def test_party_numbers(tmp_path: Path) -> None:
    parties = run(tmp_path, "print_ln('%s of %s', get_player_id(), get_number_of_players())", RING)
    assert [p.lines for p in parties] == [["0 of 3"], ["1 of 3"], ["2 of 3"]]


def test_outputs_are_those_of_their_time(tmp_path: Path) -> None:
    source = """
        x, y = regint(1), cint(1)
        x.binary_output()
        y.binary_output()
        x.update(2)
        y.update(2)
        """
    assert [o.tolist() for o in run(tmp_path, source)[0].io.binary_outputs] == [[1], [1]]


@pytest.mark.parametrize("backend", [RING, SHAMIR], ids=name)
def test_what_one_party_prints_and_knows_keeps_the_parties_in_step(tmp_path: Path, backend: Backend) -> None:
    """Values for one party are computed at all parties, so that all have the same schedule of rounds."""
    source = """
        a = sint.get_input_from(0, size=2, binary=True)
        p = a.reveal_to(0) + cint(1)
        A = cint.Array(2)
        A.assign([3, 4])
        print_ln_to(1, '%s %s %s', A, [cint(regint([5, 6]))], regint([7, 8]))
        print_ln('%s', (a * a).reveal())
        print_ln_to(0, '%s', p)
        """
    parties = run(tmp_path, source, backend, private={0: [1, 2]})
    assert [p.lines for p in parties] == [["[1, 4]", "[2, 3]"], ["[3, 4] [[5, 6]] [7, 8]", "[1, 4]"], ["[1, 4]"]]


def test_outputs_cost_no_rounds_of_their_own(tmp_path: Path) -> None:
    source = """
        a = sint.get_input_from(0, size=4, binary=True)
        b = sint.get_input_from(1, size=4, binary=True)
        for i in range(10):
            (a + i).reveal().binary_output()
            (b * (i + 1)).reveal_to(2).binary_output()
        sint.write_to_file(a + b)
        """
    parties = run(tmp_path, source, RING, private={0: [1] * 4, 1: [2] * 4})
    assert parties[0].stats["rounds"] == 2
    assert len(parties[0].io.binary_outputs) == len(parties[2].io.personal_outputs) == 10


WRITE = """
sint.write_to_file(sint([1, 2, 3]))
sint.write_to_file([sint([4, 5]), sint([6, 7])])
sint.write_to_file(sint([50]), 4)
sint.write_to_file(sint([9, 9]), regint(9))
A = sint.Array(2)
A.assign([20, 21])
A.write_to_file()
"""
READ = """
stop, vectors = sint.read_from_file(0, n_items=2, size=3)
print_ln('%s %s %s', stop, vectors[0].reveal(), vectors[1].reveal())
stop, (x,) = sint.read_from_file(regint(7), size=4)
print_ln('%s %s', stop, x.reveal())
A = sint.Array(2)
stop = A.read_from_file(11)
print_ln('%s %s', stop, A.reveal())
M = sint.Matrix(2, 2)
M.read_from_file(0)
print_ln('%s', M.reveal())
sint.write_to_file(sint([77]))
print_ln('%s', sint.read_from_file(13)[1][0].reveal())
"""
READ_PRINTED = ["6 [1, 2, 3] [4, 50, 6]", "11 [0, 0, 9, 9]", "-1 [20, 21]", "[[1, 2], [3, 4]]", "77"]


@pytest.mark.parametrize("backend", [*ALL, ("ring", 3, "Z2^72")], ids=name)
def test_share_files(tmp_path: Path, backend: Backend) -> None:
    files = [p.io.shares for p in run(tmp_path, WRITE, backend)]
    assert [f.length for f in files] == [13] * backend[1]
    assert printed(tmp_path, READ, backend, persistences=[f.copy() for f in files]) == READ_PRINTED
    assert all(f.length == 13 for f in files)
    for file in files:
        twin = ShareVector.from_export(file.export(), file.words.shape[0], 16 if backend[2] == "Z2^72" else 8)
        assert twin.export(3, 5) == file.export(3, 5) and twin.length == 13
    file = files[0]
    assert "13" in repr(file) and str(file.words[0, 0]) not in repr(file).replace("13", "")
    words = file.words
    file.wipe()
    assert not file.exists and not words.any()


def test_share_files_refuse(tmp_path: Path) -> None:
    file = run(tmp_path, "sint.write_to_file(sint([1, 2]))")[0].io.shares
    with pytest.raises(ProgramError, match="reading shares 1 to 3, but the share file ends after 2"):
        run(tmp_path, "sint.read_from_file(1, size=3)", persistences=[file])
    with pytest.raises(ProgramError, match="Persistence not found"):
        run(tmp_path, "sint.read_from_file(0)")
    assert printed(tmp_path, "print_ln('%s', sint.read_from_file(0, crash_if_missing=False)[0])") == ["-2"]
    with pytest.raises(ProgramError, match="1 parts of 8 bytes, emulate over Z2\\^72 has 1 of 16"):
        run(tmp_path, "sint.read_from_file(0)", ("emulate", 1, "Z2^72"), persistences=[file])
    with pytest.raises(ProgramError, match="write_to_file stores sint, not cint"):
        run(tmp_path, "sint.write_to_file(cint(1))")
    with pytest.raises(ProgramError, match="vectors of one size, not 1 and 2"):
        run(tmp_path, "sint.write_to_file([sint(1), sint([1, 2])])")


ACCESS = ["x = sint.read_from_file(0, size=2)[1][0]", "sint.write_to_file(sint(1))", "sint.write_to_file(sint(1), 0)"]


@pytest.mark.parametrize(
    ("first", "second"), [(SEMI_2K, SEMI), (SEMI, SEMI_2K), (SEMI_2K, ("semi2k", 2, "Z2^48")), (REP_FIELD, ("rep-field", 3, "F_65537"))]
)
def test_shares_of_another_protocol_or_domain_are_refused(tmp_path: Path, first: Backend, second: Backend) -> None:
    """Also if their form is the same: parts and words do not depend on the modulus. The stored shares do not change."""
    made = [p.io.shares for p in run(tmp_path, "sint.write_to_file(sint([5, 6]))", first)]
    words = [p.words.copy() for p in made]
    reason = (
        f"holds shares of {first[0]} over {first[2]}, this run computes with {second[0]} over {second[2]}: use one share file per protocol and domain"
    )
    for files in (made, [p.copy() for p in made], [p.head(2) for p in made], unnamed(words, first, tmp_path), replaced(made)):
        for access in ACCESS:
            with pytest.raises(ProgramError, match=re.escape(reason)):
                run(tmp_path, access, second, persistences=files)
            assert all(np.array_equal(p.words, w) for p, w in zip(files, words, strict=True))
        assert printed(tmp_path, "print_ln('%s', sint.read_from_file(0, size=2)[1][0].reveal())", first, persistences=files) == ["[5, 6]"]
    files[0].wipe()
    files[0].bind(second[0], second[2])  # empty: may become anything


def unnamed(words: list[np.ndarray], backend: Backend, folder: Path) -> list[ShareVector]:
    """Share files of words that a plan computed: the first engine that reads them fixes protocol and domain."""
    files = [ShareVector.from_words(w.copy()) for w in words]
    run(folder, "x = sint.read_from_file(0, size=1)[1][0]", backend, persistences=files)
    return files


def replaced(made: list[ShareVector]) -> list[ShareVector]:
    files = [ShareVector() for _ in made]
    for file, other in zip(files, made, strict=True):
        file.replace(other.copy())
    return files


def test_shares_are_what_they_were_when_they_were_read(tmp_path: Path) -> None:
    """Shares are imported at their first use: later writes must not change them, and a table that was only looked up is not imported."""
    source = """
        whole = sint.read_from_file(0, size=4)[1][0]
        table = sint.Array(3)
        table.assign_vector(sint.read_from_file(1, size=3)[1][0])
        print_ln('%s', table.get(regint([2, 0, 2])).reveal())
        sint.write_to_file(sint([70, 80]), 1)
        sint.write_to_file(sint([9]))
        print_ln('%s', sint.read_from_file(0, size=5)[1][0].reveal())
        print_ln('%s %s', whole.reveal(), table.get(regint([1, 0])).reveal())
        table[1] = 5
        print_ln('%s', table.get_vector().reveal())
    """
    expected = ["[3, 1, 3]", "[0, 70, 80, 3, 9]", "[0, 1, 2, 3] [2, 1]", "[1, 5, 3]"]
    for backend in ALL:
        files = [p.io.shares for p in run(tmp_path, "sint.write_to_file(sint([0, 1, 2, 3]))", backend)]
        assert printed(tmp_path, source, backend, persistences=files) == expected


def test_copies_of_stored_shares_are_what_they_were_when_they_were_read(tmp_path: Path) -> None:
    """Copies of vectors that nothing needed yet, also where the first vector is gone or has another content by now."""
    source = """
        stored = lambda: sint.read_from_file(0, size=4)[1][0]
        first = stored()
        second, gone, changed = sint(first), sint(stored()), stored()
        again, table = sint(sint(changed)), sint.Array(4)
        table.assign_vector(changed)
        changed.update(sint([7, 7, 7, 7]))
        sint.write_to_file(sint([50, 60]), 1)
        print_ln('%s', sint.read_from_file(0, size=4)[1][0].reveal())
        for x in (second, gone, again, table.get_vector(), first, changed):
            print_ln('%s', x.reveal())
    """
    before = "[0, 1, 2, 3]"
    expected = ["[0, 50, 60, 3]", *[before] * 5, "[7, 7, 7, 7]"]
    for backend in ALL:
        files = [p.io.shares for p in run(tmp_path, "sint.write_to_file(sint([0, 1, 2, 3]))", backend)]
        assert printed(tmp_path, source, backend, persistences=files) == expected


def test_sections_are_read_without_widening(tmp_path: Path) -> None:
    """A share file of narrow parts: read within a part, across parts, appended to; the parts stay the caller's."""
    parts = [np.array([[1, 2]], dtype=np.uint64), np.array([[30, 31, 32]], dtype=np.uint16), np.array([[1, 0]], dtype=np.uint8)]
    source = """
        table = sint.Array(3)
        table.assign_vector(sint.read_from_file(2, size=3)[1][0])
        print_ln('%s', table.get(regint([1, 1])).reveal())
        sint.write_to_file(sint([5]))
    """
    file = ShareVector.from_sections(parts)
    assert printed(tmp_path, source, persistences=[file]) == ["[31, 31]"]
    assert file.length == 8 and file.tail(1).tolist() == [[5]]
    assert printed(tmp_path, "print_ln('%s', sint.read_from_file(1, size=7)[1][0].reveal())", persistences=[file]) == ["[2, 30, 31, 32, 1, 0, 5]"]
    assert parts[1].tolist() == [[30, 31, 32]]
    file.wipe()
    assert not file.exists and parts[0].tolist() == [[1, 2]]


def test_public_words_come_in_any_pieces(tmp_path: Path) -> None:
    """Vectors of words are one stream, however the program cuts it."""
    source = """
        for size in (2, 3, 1, 2):
            x = cint(size=size)
            fixinput(-1, x, 0, 0)
            print_ln('%s', x)
    """
    public = [[1, 2, 3], [], [4], [5, 6, 7, 8]]
    assert printed(tmp_path, source, public=public) == ["[1, 2]", "[3, 4, 5]", "6", "[7, 8]"]
    with pytest.raises(ProgramError, match="public input ends after 8 words, the program asks for words 8 to 8"):
        run(tmp_path, source + "    fixinput(-1, cint(size=1), 0, 0)\n", public=public)


def test_words_of_a_plan(tmp_path: Path) -> None:
    """Shares that local computation made: every party's component vectors."""
    parts = np.array([[5, 6, 7]], dtype=np.uint64)
    shares = ShareVector.from_words(parts.copy())
    assert printed(tmp_path, "print_ln('%s', sint.read_from_file(0, size=3)[1][0].reveal())", persistences=[shares]) == ["[5, 6, 7]"]
    with pytest.raises(ValueError, match="matrix"):
        ShareVector.from_words(np.zeros(3))


FOLDER = """
a = sint.get_input_from(0, size=2, binary=True)
x = cint(size=2)
fixinput(-1, x, 0, 0)
y = cint(size=3)
pubinput(y)
stored = sint.read_from_file(0, size=1)[1][0] if program.args[1] == 'again' else sint(40)
sint.write_to_file(stored + 1)
(a + x + y.get_vector(1, 2) + stored).reveal().binary_output()
a.reveal_to(2).binary_output()
"""


@pytest.mark.parametrize("backend", [RING, SHAMIR, EMULATE], ids=name)
def test_folders(tmp_path: Path, backend: Backend) -> None:
    """MP-SPDZ's paths: fixinput(-1, ...) reads from each party's own binary input."""
    protocol, n, domain = backend
    source = tmp_path / "program.mpc"
    source.write_text(FOLDER)
    data = tmp_path / "Player-Data"
    data.mkdir()
    for i in range(n):
        np.array([1, 2, 10, 20] if i == 0 else [10, 20], dtype="<i8").tofile(data / f"Input-Binary-P{i}-0")
    (tmp_path / "Programs" / "Public-Input").mkdir(parents=True)

    def one(session: _engine.Session, word: str) -> None:
        engine = session.engine(protocol, domain)
        io = ProgramIO.from_folder(tmp_path, engine, f"program-{word}")
        run_program(engine, source, [word], io)
        io.save(tmp_path, engine)

    for word, value in (("first", 40), ("again", 41)):
        (tmp_path / "Programs" / "Public-Input" / f"program-{word}").write_text("0 100\n200")
        with ThreadPoolExecutor(n) as pool:
            list(pool.map(one, _engine.local_sessions(n, 20.0), [word] * n))
        for i in range(n):
            out = np.fromfile(data / f"Binary-Output-P{i}-0", dtype="<i8").tolist()
            assert out == [111 + value, 222 + value] + ([1, 2] if i == 2 or n == 1 else [])
    shares = tmp_path / "Persistence" / "Shares-P0"
    assert stat.S_IMODE(shares.stat().st_mode) == 0o600
    assert stat.S_IMODE(shares.parent.stat().st_mode) == 0o700
    other = _engine.local_sessions(1)[0].engine("emulate", "Z2^63")
    with pytest.raises(ProgramError, match=r"this run is emulate over Z2\^63"):
        load_shares(shares, other)


def test_emulation_reads_the_files_of_all_parties(tmp_path: Path) -> None:
    """Public words stand in each of them, as where every party reads its own."""
    source = tmp_path / "program.mpc"
    source.write_text(
        "a = sint.get_input_from(1, size=1, binary=True)\nx = cint(size=2)\nfixinput(-1, x, 0, 0)\n"
        "b = sint.get_input_from(1, size=1, binary=True)\nsint.concat([a, b]).reveal().binary_output()\n"
    )
    data = tmp_path / "Player-Data"
    data.mkdir()

    def out() -> list[int]:
        engine = _engine.local_sessions(1)[0].engine("emulate", "Z2^64")
        io = ProgramIO.from_folder(tmp_path, engine, "program")
        run_program(engine, source, [], io)
        return io.file_outputs[0].tolist()

    np.array([7, 8], dtype="<i8").tofile(data / "Input-Binary-P0-0")
    np.array([1, 7, 8, 2], dtype="<i8").tofile(data / "Input-Binary-P1-0")
    assert out() == [1, 2]
    np.array([1, 7, 9, 2], dtype="<i8").tofile(data / "Input-Binary-P1-0")
    with pytest.raises(ProgramError, match="public words differ between the binary inputs of parties 0 and 1"):
        out()


def test_folders_refuse(tmp_path: Path) -> None:
    engine = _engine.local_sessions(1)[0].engine("emulate", "Z2^64")
    (tmp_path / "Player-Data").mkdir()
    (tmp_path / "Player-Data" / "Input-Binary-P0-0").write_bytes(b"12345")
    with pytest.raises(ProgramError, match="5 bytes are no whole number of 64-bit words"):
        ProgramIO.from_folder(tmp_path, engine, "x")
    (tmp_path / "Player-Data" / "Input-Binary-P0-0").unlink()
    (tmp_path / "Programs" / "Public-Input").mkdir(parents=True)
    (tmp_path / "Programs" / "Public-Input" / "x").write_text("1 two")
    with pytest.raises(ProgramError, match="64-bit decimal numbers"):
        ProgramIO.from_folder(tmp_path, engine, "x")


def test_centred_outputs(tmp_path: Path) -> None:
    """(q-1)/2 is printed as it is, but comes out, and counts in comparisons, as -(q+1)/2."""
    half = Q60 // 2
    source = f"""
        x = cint([0, 1, {half - 1}, {half}, {half + 1}, {Q60 - 1}])
        x.binary_output()
        print_ln('%s %s', x, cint(x < 0))
        """
    party = run(tmp_path, source, ("emulate", 1, FIELD))[0]
    assert party.io.binary_outputs[0].tolist() == [0, 1, half - 1, -half - 1, -half, -1]
    assert party.lines == [f"[0, 1, {half - 1}, {half}, {-half}, -1] [0, 0, 0, 1, 1, 1]"]


def _in_folder(folder: Path, backend: Backend, source: str) -> list[list[str]]:
    """Runs a program with the files of a folder at all parties; returns what each printed. The first own error of a party is raised."""
    protocol, n, domain = backend
    file = folder / "Programs" / "Source" / "program.mpc"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)

    def one(session: _engine.Session) -> list[str]:
        printed: list[str] = []
        try:
            engine = session.engine(protocol, domain, "test")
            io = ProgramIO.from_folder(folder, engine, "program")
            io.stdout = printed.append
            run_program(engine, file, [], io)
            io.save(folder, engine)
        except BaseException as error:
            session.abort(str(error))
            raise
        return printed

    with ThreadPoolExecutor(n) as pool:
        futures = [pool.submit(one, s) for s in _engine.local_sessions(n, 20.0)]
        errors = [e for e in (f.exception() for f in futures) if e is not None]
        own = [e for e in errors if not isinstance(e, _engine.NetworkError)]
        if errors:
            raise (own or errors)[0]
        return [f.result() for f in futures]


@pytest.mark.parametrize("backend", [RING, SHAMIR, EMULATE], ids=name)
def test_missing_inputs_name_their_file(tmp_path: Path, backend: Backend) -> None:
    data = tmp_path / "Player-Data"
    data.mkdir()
    wanted = "sint.get_input_from(1, size=1, binary=True)\nsint.get_input_from(1, size=2, binary=True)"
    with pytest.raises(ProgramError) as caught:
        _in_folder(tmp_path, backend, wanted)
    assert f"program.mpc:1: no input file {data}/Input-Binary-P1-0, the program wants at least 1: 64-bit words of party 1" in str(caught.value)
    np.array([5, 6], dtype="<i8").tofile(data / "Input-Binary-P1-0")
    with pytest.raises(ProgramError) as caught:
        _in_folder(tmp_path, backend, wanted)
    assert f"program.mpc:2: {data}/Input-Binary-P1-0 has 2 values, the program wants at least 3: 64-bit words" in str(caught.value)
    assert "not read here" not in str(caught.value)
    (data / "Input-P1-0").write_text("5 6 7")
    with pytest.raises(ProgramError, match="Input-P1-0 is not read here"):
        _in_folder(tmp_path, backend, wanted)
    np.array([5, 6, 7], dtype="<i8").tofile(data / "Input-Binary-P1-0")
    _in_folder(tmp_path, backend, wanted)


def test_missing_text_and_public_inputs_name_their_file(tmp_path: Path) -> None:
    with pytest.raises(ProgramError) as caught:
        _in_folder(tmp_path, EMULATE, "pubinput(cint(size=2))")
    assert f"no input file {tmp_path}/Programs/Public-Input/program, the program wants at least 2: decimal numbers" in str(caught.value)
    with pytest.raises(ProgramError) as caught:
        _in_folder(tmp_path, EMULATE, "fixinput(-1, cint(size=2), 0, 0)")
    assert f"no input file {tmp_path}/Player-Data/Input-Binary-P0-0, the program wants at least 2" in str(caught.value)
    (tmp_path / "Player-Data").mkdir()
    (tmp_path / "Player-Data" / "Input-P2-0").write_text("7")
    with pytest.raises(ProgramError) as caught:
        _in_folder(tmp_path, EMULATE, "for _ in range(2): sbits.get_type(8).get_input_from(2)")
    assert f"{tmp_path}/Player-Data/Input-P2-0 has 1 value, the program wants at least 2: decimal numbers of party 2" in str(caught.value)


STORE, LOAD = "sint.write_to_file(sint([1, 2, 3]))", "print_ln('%s', sint.read_from_file(0, size=3)[1][0].reveal())"


@pytest.mark.parametrize(
    ("first", "second", "reason", "cure"),
    [
        (RING, SHAMIR, "ring over Z2^64 among 3 parties wrote, this run is shamir over F_1152921504606584833 among 3 parties (threshold 1)", "-E ring -R 64, "),
        (SHAMIR, RING, "shamir over F_1152921504606584833 among 3 parties (threshold 1) wrote, this run is ring over Z2^64", f"-E shamir -P {Q60} -T 1, "),
        (SEMI_2K, RING, "semi2k over Z2^64 among 2 parties wrote, this run is ring over Z2^64 among 3", "-E semi2k -R 64 -N 2, "),
        (RING, ("ring", 3, "Z2^72"), "ring over Z2^64 among 3 parties wrote, this run is ring over Z2^72", "-E ring -R 64, "),
        (SHAMIR, ("shamir", 3, "F_65537"), f"shamir over F_{Q60} among 3 parties (threshold 1) wrote, this run is shamir over F_65537", f"-E shamir -P {Q60} "),
    ],
    ids=lambda v: name(v) if isinstance(v, tuple) else "",
)  # fmt: skip
def test_shares_of_another_run_say_which_and_the_cure(tmp_path: Path, first: Backend, second: Backend, reason: str, cure: str) -> None:
    """Programs that use no share file run; others are refused at the line that uses the file, which does not change."""
    _in_folder(tmp_path, first, STORE)
    files = {path: path.read_bytes() for path in (tmp_path / "Persistence").iterdir()}
    for source in (STORE, LOAD, "sint.Array(3).write_to_file()", "sint.Array(3).read_from_file(0)", "sint.read_from_file(0, crash_if_missing=False)"):
        with pytest.raises(ProgramError) as caught:
            _in_folder(tmp_path, second, source)
        text = str(caught.value)
        assert text.startswith("Programs/Source/program.mpc:1: ") and reason in text and f"Run it with {cure}" in text
        assert f"{tmp_path}/Persistence/Shares-P" in text and f"move {tmp_path}/Persistence away" in text
        assert "foreign" not in text and "restore" not in text
    assert _in_folder(tmp_path, second, "print_ln('%s', (sint(2) * 3).reveal())")[0] == ["6\n"]
    assert {path: path.read_bytes() for path in (tmp_path / "Persistence").iterdir()} == files
    assert _in_folder(tmp_path, first, LOAD)[0] == ["[1, 2, 3]\n"]
    (tmp_path / "Persistence").rename(tmp_path / "old")
    _in_folder(tmp_path, second, STORE)


def test_share_files_of_other_parties_stay_foreign(tmp_path: Path) -> None:
    """A copy of another party's file is refused, under every protocol."""
    _in_folder(tmp_path, RING, STORE)
    folder = tmp_path / "Persistence"
    shutil.copy(folder / "Shares-P1", folder / "Shares-P0")
    with pytest.raises(_engine.StoreError, match="its party is 1, not 0: restore this party's own file"):
        _in_folder(tmp_path, RING, LOAD)


def test_shares_of_another_run_are_refused_where_they_are_loaded_at_once(tmp_path: Path) -> None:
    _in_folder(tmp_path, EMULATE, STORE)
    other = _engine.local_sessions(1)[0].engine("emulate", FIELD)
    path = tmp_path / "Persistence" / "Shares-P0"
    with pytest.raises(ProgramError, match="emulate over Z2\\^64 among 1 party wrote, this run is emulate over F_"):
        load_shares(path, other)
    refused = load_shares(path, other, if_needed=True)
    for access in (lambda: refused.read(other, 0, 1), lambda: refused.check(other, 0, 0), lambda: refused.write(other, b""), refused.require_own):
        with pytest.raises(ProgramError, match="Run it with -E emulate -R 64"):
            access()
