"""toprf keygen, share, encrypt-key, circuit, fill, serve, eval, derive, status."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError, ParameterError
from keyquorum.model.outputs import reserved, save_all
from keyquorum.plans.decrypt import RESULTS
from keyquorum.schemes import scheme_of
from keyquorum.schemes.prf.evaluate import METHODS
from keyquorum.schemes.prf.functions import inner_of
from keyquorum.schemes.prf.key import load_prf_key
from keyquorum.schemes.prf.policy import POLICY, parse_rate, read_policy
from keyquorum.schemes.prf.tables import CHUNK
from keyquorum.serve.kinds import Own, Service
from keyquorum.serve.signals import DRAIN_SECONDS
from keyquorum.terminal.output import console, costs, emit, print_reports, printed
from keyquorum.terminal.progress import progress_bars
from keyquorum.toprf import (
    EvaluationStatus,
    Toprf,
    set_policy,
    toprf_encrypt,
    toprf_encrypt_job,
    toprf_fill,
    toprf_fill_job,
    toprf_keygen,
    toprf_keygen_job,
    toprf_share,
    toprf_status,
    write_circuit,
)
from keyquorum.toprf.client import check_derived
from keyquorum.toprf.service import FUNCTIONS

from . import completion
from .app import App
from .jobs import JobFile, hand_over
from .keys import say_shared
from .options import Asking, Folder, NewKey, Parties, chosen
from .service import AcceptAssumed, AuditLog, Chunk, Drain, Host, MetricsHost, MetricsPort, Patience, Port, check_party, run_party, serving

Key = Annotated[str, typer.Argument(help="Name of a key that toprf keygen made.", show_default=False, autocompletion=completion.keys)]
Method = Annotated[str, typer.Option(help=f"How AES is evaluated: {' or '.join(METHODS)}, with one-time tables.")]
Identity = Annotated[Path, typer.Option("--identity", help="Identity of the receiver, as keyquorum receiver makes it.", show_default=False)]
At = Annotated[
    list[str] | None, typer.Option("--at", help="HOST:PORT of each party in turn (default: the parties of this host).", show_default=False)
]
Wait = Annotated[float, typer.Option(help="Seconds to wait for parties that do not listen yet.")]
Domain = Annotated[str, typer.Option(help="Separates uses of one key: other domains have other values.")]
Stdin = Annotated[bool, typer.Option("--stdin", help="Read the input from standard input, all bytes to its end.")]
Text = Annotated[str | None, typer.Argument(help="The input, as text; others on this host can see it. For secrets: --stdin.", show_default=False)]


app = App(help="Oblivious pseudorandom function: a committee holds the key, the receiver alone learns input and value.", no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    """Adds the commands."""
    parent.add_typer(app, name="toprf")


@app.command("keygen")
def keygen(
    folder: Folder,
    key: NewKey,
    prf: Annotated[str, typer.Option(help=f"The function: {' or '.join(FUNCTIONS)}.")] = "aes",
    job: JobFile = None,
) -> None:
    """Make a key jointly: it exists as shares only. The same as keyquorum keygen -p prf-aes128, or with --prf legendre -p prf-legendre127.

    The key states its function: serve, eval and derive take it from there.
    """
    if job is not None:
        hand_over(job, toprf_keygen_job(key, prf))
        return
    with progress_bars() as report:
        result = toprf_keygen(folder, key, report, prf)
    print_reports(result.reports)
    for line in scheme_of(result.info).texts.made(key, result.folder, result.info)[0]:
        console.print(line, markup=False)
    emit({"key": key, "prf": prf, "key_id": result.info.key_id, "folder": result.folder, "costs": costs(result.reports)})


@app.command("share")
def share(
    folder: Folder,
    key: Key,
    members: Annotated[int, typer.Option("-t", help="Parties that evaluate, and that together have the key.", show_default=False)],
    job: JobFile = None,
) -> None:
    """Share a key anew, so that any t parties evaluate without the others. Nothing is opened. The same as keyquorum share.

    Any t parties together have the key from now on, whatever the committee tolerates; the committee's own shares stay. A new run replaces the old shares.
    """
    if job is not None:
        load_prf_key(api.key_folder(folder, key))
        hand_over(job, api.share_job(folder, key, members))
        return
    with progress_bars() as report:
        size = toprf_share(folder, key, members, report)
    emit(say_shared(folder, key, members, size))


@app.command("encrypt-key")
def encrypt_key(
    folder: Folder,
    key: Key,
    tfhe: Annotated[str, typer.Argument(help="Name of a key for TFHE-rs of the same committee.", show_default=False, autocompletion=completion.keys)],
    job: JobFile = None,
) -> None:
    """Encrypt a key under a key for TFHE-rs: then anybody evaluates on encrypted inputs, and the committee decrypts the results alone.

    keyquorum toprf circuit writes the circuit, keyquorum tfhe circuit evaluates it, in about four minutes on two cores.
    """
    if job is not None:
        hand_over(job, toprf_encrypt_job(folder, key, tfhe))
        return
    with progress_bars() as report:
        made = toprf_encrypt(folder, key, tfhe, report)
    console.print(f"{made}: 1,408 ciphertexts of the round keys of {key}, the same file at each party", markup=False)
    emit({"key": key, "tfhe": tfhe, "file": made})


@app.command("circuit")
def circuit(output: Annotated[Path, typer.Argument(help="The file to write.", show_default=False)]) -> None:
    """Write AES-128 as bootstraps of TFHE-rs, for keyquorum tfhe circuit."""
    count = write_circuit(output)
    console.print(f"{output}: {count:,} bootstraps", markup=False)
    emit({"file": output, "bootstraps": count})


@app.command("fill")
def fill(
    folder: Folder,
    items: Annotated[int, typer.Option("--items", "-n", help="Blocks: a value of 16 bytes takes one, one of 32 bytes two.", show_default=False)],
    method: Method = "table",
    chunk: Annotated[int, typer.Option(help="Blocks that are made at a time; bounds the memory.")] = CHUNK,
    parties: Parties = None,
    job: JobFile = None,
) -> None:
    """Make one-time tables ahead, among all parties of this host. The circuit takes none.

    All keys of the committee take them from one pool, which keyquorum pool status and pool drop name prf-aes128-table; a subset (--parties) has a pool of its own. A party that serves holds its
    pool: stop it first, or serve with --keep, which makes tables while there is nothing else to do.
    """
    if job is not None:
        hand_over(job, toprf_fill_job(folder, items, method, chunk, chosen(parties)))
        return
    with progress_bars() as report:
        made = toprf_fill(folder, items, method, chunk, report, parties=chosen(parties))
    if made.reports:
        print_reports(list(made.reports))
    console.print(made.line, markup=False)
    emit({"method": method, "made": made.made, "pool": made.pool, "left": made.left, "reason": made.line, "costs": costs(list(made.reports))})


@app.command("serve")
def serve(
    folder: Folder,
    index: Annotated[int, typer.Argument(help="Which party this is.", show_default=False)],
    key: Key,
    rate: Annotated[
        str | None, typer.Option(help="Evaluations of each receiver in any hour, as 100/h (default: the policy on file).", show_default=False)
    ] = None,
    total: Annotated[
        int | None, typer.Option(help="Evaluations that the key may ever serve; 0: any number (default: as on file).", show_default=False)
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="A receiver that may ask, by name or SHA-256, or all; repeat (default: as on file).", show_default=False),
    ] = None,
    method: Method = "circuit",
    keep: Annotated[int, typer.Option(help="Blocks up to which the pool of tables is filled when there is nothing else to do.")] = 0,
    chunk: Chunk = 0,
    batch: Annotated[int, typer.Option(help="Most blocks in a batch; 0: 2048.")] = 0,
    parties: Parties = None,
    patience: Patience = 30.0,
    host: Host = "127.0.0.1",
    port: Port = 0,
    metrics_port: MetricsPort = 0,
    audit_log: AuditLog = None,
    drain: Drain = DRAIN_SECONDS,
    metrics_host: MetricsHost = "127.0.0.1",
    accept_assumed: AcceptAssumed = False,
) -> None:
    """Run one party that evaluates for receivers, within its policy, until interrupted.

    Every party has a policy of its own, party-<i>/keys/KEY/evaluations.json, which --rate, --total and --allow change: what is not named stays. A request is evaluated by all
    parties or by none, and counted on the disk before it is answered. All parties give the same --method, --keep, --chunk, --batch and --patience. --method table takes
    an item of the pool that toprf fill makes for each block, and refuses requests for which there are not enough.
    """
    whole = api.as_committee(folder)
    check_party(whole, index, port, metrics_port)
    committee = serving(whole, parties)
    if rate is None and (total is not None or allow):
        raise ParameterError("--total and --allow are parts of a new policy: name its --rate as well")
    hourly = None if rate is None else parse_rate(rate)
    inner_of(load_prf_key(whole.key_folder(index, key)).parameters).check(committee, method)

    def prepare() -> None:
        if hourly is not None:
            _change_policy(whole, index, key, hourly, total, allow)
        place = whole.key_folder(index, key)
        console.print(f"party {index}: policy {read_policy(place / POLICY, load_prf_key(place).key_id).text()}", markup=False)

    service = Service(key, batch=batch, patience=patience, method=method, keep=keep, chunk=chunk)
    run_party(committee, committee.index_of(index), service, Own(host, (port, metrics_port), audit_log, drain, metrics_host, accept_assumed), prepare)


def _change_policy(committee: Committee, index: int, key: str, rate: int, total: int | None, allow: list[str] | None) -> None:
    """Writes the policy of a party. Limits that are not named stay as they are on file."""
    place = committee.key_folder(index, key)
    old = read_policy(place / POLICY, load_prf_key(place).key_id) if (place / POLICY).exists() else None
    if total is None and old is not None:
        total = old.total
    receivers = None if allow and "all" in allow else allow or (list(old.receivers) if old is not None and old.receivers is not None else None)
    set_policy(committee, index, key, rate, total or None, receivers)


@app.command("eval")
def evaluate(
    folder: Folder,
    key: Key,
    identity: Identity,
    text: Text = None,
    stdin: Stdin = False,
    batch: Annotated[
        Path | None, typer.Option(help="File with an input on each line, without its end of line; a value for each line.", show_default=False)
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File for the values (default: standard output).", show_default=False)] = None,
    output_bytes: Annotated[int, typer.Option(help="Bytes of a value: 16 or 32.")] = 32,
    domain: Domain = "",
    parties: Parties = None,
    at: At = None,
    wait: Wait = 0.0,
) -> None:
    """Evaluate the function at an input, or at each line of a file. Values are hexadecimal, one on each line.

    A file is sent in requests of up to 1,024 lines. If one is refused, as by the policy, the values of those before are written all the same, and the error
    says how many they are.
    """
    inputs = _inputs(text, stdin, batch)
    failure: KeyQuorumError | None
    with _open(folder, key, Asking.of(identity, at, wait), domain, output_bytes, parties) as toprf:
        if output is None:
            values, failure = _values(toprf, inputs)
            for value in values:
                printed.print(value.hex(), markup=False)
        else:
            with reserved([output], [(2 * output_bytes + 1) * len(inputs)], Path(folder) / RESULTS) as places:
                values, failure = _values(toprf, inputs)
                save_all(places, [b"".join(value.hex().encode() + b"\n" for value in values)])
            console.print(f"{output}: {len(values):,} values under key {key}", markup=False)
    emit({"key": key, "count": len(values), **({"values": [value.hex() for value in values]} if output is None else {"output": output})})
    if failure is not None:
        where = "printed" if output is None else f"in {output}"
        raise KeyQuorumError(f"{failure}; the first {len(values):,} of {len(inputs):,} values are {where}: send the other lines later") from failure


def _values(toprf: Toprf, inputs: list[bytes]) -> tuple[list[bytes], KeyQuorumError | None]:
    """The values up to the first request that fails, and its error. Raises it if there are none."""
    values: list[bytes] = []
    try:
        for value in toprf.evaluate_each(inputs):
            values.append(value)
    except KeyQuorumError as error:
        if not values:
            raise
        return values, error
    return values, None


@app.command("derive")
def derive(
    folder: Folder,
    key: Key,
    identity: Identity,
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the derived key, mode 0600.", show_default=False)],
    text: Text = None,
    stdin: Stdin = False,
    info: Annotated[str, typer.Option(help="Use of the derived key: other uses have other keys.")] = "",
    salt: Annotated[str, typer.Option(help="Salt of HKDF, hexadecimal: another one for each user.")] = "",
    length: Annotated[int, typer.Option(help="Bytes of the derived key, 1 to 8160.")] = 32,
    domain: Domain = "",
    parties: Parties = None,
    at: At = None,
    wait: Wait = 0.0,
) -> None:
    """Derive a key from an input, as a password, and the committee: HKDF with SHA-256 of a value that eval does not print."""
    try:
        salted = bytes.fromhex(salt)
    except ValueError:
        raise ParameterError(f"--salt {salt}: give hexadecimal digits") from None
    use = _bytes(info, "--info")
    check_derived(length)
    inputs = _inputs(text, stdin, None)
    with (
        reserved([output], [length], Path(folder) / RESULTS) as places,
        _open(folder, key, Asking.of(identity, at, wait), domain, 32, parties) as toprf,
    ):
        save_all(places, [toprf.derive(inputs[0], use, salted, length)])
    console.print(f"{output}: a key of {length} bytes", markup=False)
    emit({"key": key, "output": output, "bytes": length})


@app.command("status")
def status(folder: Folder, key: Key) -> None:
    """Print the policy and the counted evaluations of the parties of this host."""
    found = toprf_status(folder, key)
    for each in found:
        for line in _status_lines(each):
            printed.print(line, markup=False)
    emit({"parties": [
        {"party": s.party, "prf": s.prf, "policy": None if s.policy is None else s.policy.to_json(), "total": s.total, "last_hour": s.last_hour} for s in found
    ]})  # fmt: skip


def _status_lines(each: EvaluationStatus) -> list[str]:
    policy = "no policy, so it does not serve" if each.policy is None else each.policy.text()
    lines = [f"party {each.party}: {each.prf}, {each.total:,} evaluations counted; policy: {policy}"]
    return [*lines, *(f"party {each.party}: receiver {receiver[:16]}...: {used:,} in the last hour" for receiver, used in each.last_hour.items())]


def _inputs(text: str | None, stdin: bool, batch: Path | None) -> list[bytes]:
    """The inputs, of the one source that was named."""
    if (text is not None) + stdin + (batch is not None) != 1:
        raise ParameterError("name one input: a text, --stdin, or --batch FILE where there is one")
    if batch is not None:
        if not batch.is_file():
            raise ParameterError(f"{batch}: no such file")
        data = batch.read_bytes()
        if not data:
            raise ParameterError(f"{batch}: no inputs: give one on each line")
        return [line.removesuffix(b"\r") for line in data.removesuffix(b"\n").split(b"\n")]
    return [sys.stdin.buffer.read()] if text is None else [_bytes(text, "the input")]


def _bytes(text: str, what: str) -> bytes:
    """A word of the command line as its bytes."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise ParameterError(f"{what} is no text: read the input with --stdin") from None


def _open(folder: Path, key: str, asking: Asking, domain: str, output_bytes: int, parties: str | None) -> Toprf:
    return Toprf(
        folder, key, asking.identity, asking.places, domain=_bytes(domain, "--domain"), output_bytes=output_bytes, wait=asking.wait,
        parties=chosen(parties),
    )  # fmt: skip
