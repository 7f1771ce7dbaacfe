"""keygen, share, refresh-shares, recover, reshare, inspect."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Annotated

import typer

from keyquorum import api
from keyquorum.fhe.parameters import NOISE_BITS_MAX
from keyquorum.inspection import examine
from keyquorum.model.errors import ParameterError, PolicyError
from keyquorum.model.plain import Json
from keyquorum.model.subset import numbers_text, parse_numbers
from keyquorum.schemes import scheme_of
from keyquorum.terminal.output import console, costs, emit, print_reports, printed
from keyquorum.terminal.progress import progress_bars

from . import completion
from .jobs import JobFile, hand_over
from .options import (
    Approvals,
    BackendName,
    Decryptions,
    FloodBits,
    Folder,
    LinkSpec,
    MpSpdzFolder,
    NewKey,
    NoiseBits,
    ParameterSetName,
    Place,
    SchemeOptions,
    Steps,
)  # fmt: skip


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("keygen")(keygen)
    app.command("share")(share)
    app.command("refresh-shares")(refresh_shares)
    app.command("recover")(recover)
    app.command("reshare")(reshare)
    app.command("inspect")(inspect)


def keygen(
    folder: Folder,
    key: NewKey,
    params: ParameterSetName = "ckks-8192-demo",
    relin: Annotated[bool, typer.Option(help="Make a relinearisation key.")] = True,
    step: Steps = None,
    error: Annotated[str, typer.Option(help="Distribution of the noise: cbd (SEAL's own) or gaussian (sigma 3.2).")] = "cbd",
    flood_bits: FloodBits = None,
    decryptions: Decryptions = None,
    noise_bits: NoiseBits = None,
    approvals: Approvals = False,
    option: SchemeOptions = None,
    job: JobFile = None,
    backend: BackendName = "embedded",
    mp_spdz: MpSpdzFolder = None,
    link: LinkSpec = None,
) -> None:
    """Make a key jointly: every party of this host is started as a process of its own, connected by TLS.

    The secret key exists as shares only. The public files (public.key, relin.key, galois.key) are stock SEAL; an LWE key has public.lwepk, a TFHE key
    the files *.kqt, a FHEW key the files *.kqf.
    Where all parties are needed (semi, semi2k, mascot, spdz2k) a lost disk is a lost key, without a backup or a standby: keyquorum reshare --keep-old.
    """
    parameters = api.load_parameters(params)
    given = {
        "--flood-bits": flood_bits is not None, "--decryptions": decryptions is not None, "--noise-bits": noise_bits is not None, "--approvals": approvals,
    }  # fmt: skip
    _refuse_policy(given, parameters.name, parameters.scheme)
    if noise_bits is not None and noise_bits < 1:
        raise PolicyError(f"noise of {noise_bits} bits: choose 1 to {NOISE_BITS_MAX}, or leave it to the parameter set")
    usual = api.FloodPolicy()
    policy = api.FloodPolicy(
        usual.bits if flood_bits is None else flood_bits, usual.decryptions if decryptions is None else decryptions, noise_bits or 0, int(approvals)
    )
    chosen = policy if any(given.values()) else None
    elements = scheme_of(parameters).rotations(parameters, step or ())
    more, place = _options(option or ()), Place(backend=backend, mp_spdz=mp_spdz, link=link)
    if job is not None:
        hand_over(job, api.keygen_job(key, parameters, relin, elements, error, chosen, **place, **more))
        return
    if backend == "embedded":
        needs = api.keygen_needs(folder, parameters, relin, elements, error, chosen, **more)
        if needs is not None:
            console.print(f"needs {needs.text()}", highlight=False)
    with progress_bars() as report:
        result = api.keygen(folder, key, parameters, relin, elements, error, chosen, progress=report, **place, **more)
    print_reports(result.reports)
    lines, public = scheme_of(result.info).texts.made(key, result.folder, result.info)
    for line in lines:
        console.print(line, markup=False)
    emit({
        "key": key, "key_id": result.info.key_id, "folder": result.folder, "parameters": parameters.name, "files": result.info.files,
        "largest_error": None if result.precision is None else result.precision.largest, **public, "costs": costs(result.reports),
    })  # fmt: skip


def share(
    folder: Folder,
    key: Annotated[str, typer.Argument(help="Name of a key of LWE, TFHE or a PRF.", show_default=False, autocompletion=completion.keys)],
    members: Annotated[int, typer.Option("-t", help="Parties that use the key, and that together have it.", show_default=False)],
    job: JobFile = None,
) -> None:
    """Share a key anew, so that any t parties use it without the others (--parties). Nothing is opened.

    Any t parties together have the key from now on, whatever the committee tolerates; the committee's own shares stay. A new run replaces the old shares.
    """
    if job is not None:
        hand_over(job, api.share_job(folder, key, members))
        return
    with progress_bars() as report:
        size = api.share(folder, key, members, report)
    emit(say_shared(folder, key, members, size))


def refresh_shares(
    folder: Folder,
    absent: Annotated[
        str | None,
        typer.Option(
            help="Parties that are away, as 2 or 1,2 (Shamir's sharing). They have no shares afterwards until they are recovered.", show_default=False
        ),
    ] = None,
    hold: Annotated[
        bool, typer.Option("--hold", help="Fill pools of the new epoch before it begins: as many items as are left in those of the old one.")
    ] = False,
    job: JobFile = None,
) -> None:
    """Replace the shares of all keys of a committee by new ones, and erase the old ones. Keys, public files and ciphertexts stay.

    Old shares of t parties and new ones of t parties together give nothing; a party that is corrupt meanwhile counts in both. Pools are dropped, and shares for subsets are erased: fill and make them again.
    Parties that serve go on until the new shares are there, and pause for about a second. With --hold they also go on until the new pools are full. The new shares and pools are secret on the disk by then, beside the old ones: a change takes minutes, not days.
    Backups of before still hold the old shares: destroy them. With --absent the others go on without parties that are away: at most t, and 2t + 1 must be there where parties may be malicious. The old share of an absent party counts
    as stolen, one of t, until keyquorum recover has brought the party into the new epoch.
    """
    away = () if absent is None else parse_numbers(absent, "--absent")
    if job is not None:
        hand_over(job, api.refresh_shares_job(folder, away, hold))
        _say_absent(away)
        return
    with progress_bars() as report:
        result = api.refresh_shares(folder, report, absent=away, hold=hold)
    print_reports(result.reports)
    console.print(
        f"epoch {result.epoch} ({result.name}): new shares of {', '.join(result.keys)}; {result.bytes_erased:,} bytes of old shares erased at each party",
        markup=False,
    )
    for name, items in result.pools.items():
        console.print(f"pool {name}: {items:,} items of the new epoch", markup=False)
    console.print("t + 1 backups of one epoch are the key: destroy those of before", markup=False)
    for number in sorted(away):
        console.print(f"party {number} has no share of this epoch: keyquorum recover {folder} {number}", markup=False)
    emit(
        {
            "epoch": result.epoch,
            "name": result.name,
            "keys": result.keys,
            "bytes_erased": result.bytes_erased,
            "absent": sorted(away),
            "pools": result.pools,
            "costs": costs(result.reports),
        }
    )


def _say_absent(away: Sequence[int]) -> None:
    if away:
        console.print(f"at all parties whose operators agree add --absent {','.join(map(str, sorted(away)))}", markup=False)


def recover(
    folder: Folder,
    party: Annotated[
        str,
        typer.Argument(
            help="The party that lost its folder, as 2; several at once, as 3,4, where they may be malicious and fewer than 2t + 1 others have shares.",
            show_default=False,
        ),
    ],
    helpers: Annotated[str | None, typer.Option("--from", help="Parties that help, as 0,2. By default all others.", show_default=False)] = None,
    absent: Annotated[
        str | None, typer.Option(help="Parties whose hosts are down, as 4: they take no part (Shamir's sharing).", show_default=False)
    ] = None,
    job: JobFile = None,
) -> None:
    """Give a party that lost its folder its shares of all keys again, from those of the others. The secret is not rebuilt anywhere.

    For replicated and Shamir's sharing: from t + 1 parties, or 2t + 1 where parties may be malicious. With fewer of those only keys for SEAL come back, and all that take part, 2t + 1 or more, test their shares against the public key first. Committees with additive shares need a backup of the party.
    Restore identity.pem in the party's folder before, from its own backup. Pools, shares for subsets, approvals, receivers and counts of evaluations do not come back: see the page on the life of a committee.
    """
    chosen = None if helpers is None else parse_numbers(helpers, "--from")
    lost, away = parse_numbers(party, "recover COMMITTEE"), () if absent is None else parse_numbers(absent, "--absent")
    if job is not None:
        hand_over(job, api.recover_job(folder, lost, chosen, away))
        _say_absent(away)
        return
    with progress_bars() as report:
        result = api.recover(folder, lost, chosen, report, absent=away)
    print_reports(result.reports)
    who = f"party {lost[0]} has its" if len(lost) == 1 else f"parties {numbers_text(lost)} have their"
    console.print(
        f"{who} shares of {', '.join(result.keys) or 'all keys already'}, in epoch {result.epoch}" + (f" ({result.name})" if result.name else ""),
        markup=False,
    )
    if any(status["recovered"] for status in api.epoch_status(folder)):
        console.print(
            f"run keyquorum refresh-shares {folder} now: so few helpers do not show that these are the shares of before; until then no backup or older folder of a recovered party may come back",
            markup=False,
        )
    emit(
        {
            "party": result.party,
            "parties": result.parties,
            "keys": result.keys,
            "epoch": result.epoch,
            "name": result.name,
            "costs": costs(result.reports),
        }
    )


def reshare(
    folder: Annotated[Path, typer.Argument(help="Folder of the committee that has the keys.", show_default=False)],
    new: Annotated[Path, typer.Argument(help="Folder of the committee that gets them: keyquorum init NEW --after OLD.", show_default=False)],
    dealers: Annotated[
        str | None, typer.Option(help="Old members that take part, as 0,2,3, when others are lost. By default all.", show_default=False)
    ] = None,
    accept_origin: Annotated[
        str | None,
        typer.Option(
            help="semi-honest: pass keys of a committee whose parties follow the protocol on to one for malicious parties; burned: pass keys of a committee with a burned MAC key on without its MACs.",
            show_default=False,
        ),
    ] = None,
    keep_old: Annotated[
        bool,
        typer.Option("--keep-old", help="The old members keep their shares and go on; the new committee is a standby. The keys fall if either does."),
    ] = False,
    job: JobFile = None,
) -> None:
    """Pass all keys of a committee on to a new one, which may have another protocol and other members. Keys, public files and ciphertexts stay; no secret is rebuilt anywhere.

    The old members erase their shares, and refuse to use the keys from then on. Where parties may be malicious, the new members check what they get, and all old members take part. On several hosts start keyquorum party with the job at each old member, with its folder
    and number there and --to NEW, or the digest of NEW; and at each new one, with its folder and number there and --from OLD, or the digest of OLD. Messages count the parties of both: old members first.
    With --keep-old nothing is erased, and each committee may use half of what policies and tests of the keys leave; keys of PRFs are refused.
    """
    chosen = None if dealers is None else parse_numbers(dealers)
    if job is not None:
        digests = {"from": api.as_committee(folder).digest.hex(), "to": api.as_committee(new).digest.hex()}
        hand_over(job, api.reshare_job(folder, new, chosen, accept_origin, keep_old), digests)
        for members, option, other in (("old", "to", new), ("new", "from", folder)):
            said = f"--{option} {digests[option]}, the digest of {other}"
            console.print(f"at {members} members add {said}: tell it to them over a channel that you trust, not with the job", markup=False)
        if accept_origin is not None:
            console.print(f"at all members whose operators agree add --accept-origin {accept_origin}", markup=False)
        if keep_old:
            console.print("at all members whose operators agree add --keep-old", markup=False)
        return
    with progress_bars() as report:
        result = api.reshare(folder, new, chosen, report, accept_origin=accept_origin, keep_old=keep_old)
    print_reports(result.reports)
    said = f"epoch {result.epoch} ({result.name}): {new} has {', '.join(result.keys)}"
    if keep_old:
        console.print(f"{said} as well; {folder} keeps its shares: the keys fall if either committee does", markup=False)
    else:
        console.print(f"{said}; {result.bytes_erased:,} bytes of old shares erased at each old member", markup=False)
        console.print("t + 1 backups of one epoch are the key: destroy those of before", markup=False)
    emit({"epoch": result.epoch, "name": result.name, "keys": result.keys, "bytes_erased": result.bytes_erased, "costs": costs(result.reports)})


def say_shared(folder: Path, key: str, members: int, size: int) -> Json:
    """Prints what a sharing among subsets means; returns it as plain data."""
    tolerated = api.as_committee(folder).threshold
    console.print(f"key {key}: any {members} parties use it (--parties), and have it together; {size:,} bytes at each party", markup=False)
    console.print(f"corrupt parties that learn nothing of the key: before up to {tolerated}, from now on up to {members - 1}", markup=False)
    return {"key": key, "members": members, "threshold_before": tolerated, "threshold": members - 1, "bytes_a_party": size}


def _options(given: Sequence[str]) -> Json:
    """Options of a scheme from texts NAME=VALUE; the scheme reads the values. Refuses names that are no words, and names that have an option of their
    own."""
    named = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or not name.isidentifier() or name in signature(api.keygen).parameters:
            raise ParameterError(f"--option {text}: give NAME=VALUE, with the name of an option of the scheme that has none on the command line")
        named[name] = value
    return named


def _refuse_policy(given: dict[str, bool], name: str, scheme: str) -> None:
    """Refuses options of CKKS policies for sets of other schemes."""
    for option, there in given.items():
        if there and scheme != "ckks":
            raise ParameterError(f"{option} is for CKKS, and {name} is a set of {scheme.upper()}: leave it out")


def inspect(
    path: Annotated[Path, typer.Argument(help="A folder of a committee, party, key or pool, or any file of SEAL or KeyQuorum.", show_default=False)],
) -> None:
    """Describe a file or folder, and check that it is whole: hashes and checksums are verified where there are any.

    Nothing secret is shown. A damaged file gives one line that says what to do, and exit code 1.
    """
    found = examine(path)
    for line in found.lines:
        printed.print(line, markup=False)
    printed.print(f"checked: {found.checked}", markup=False)
    emit({"path": path, "kind": found.kind, "checked": found.checked, "lines": found.lines, **found.details})
