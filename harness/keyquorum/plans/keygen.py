"""Joint generation of a key, of whatever scheme: the secret key exists as shares only.

1. The scheme's own plan: the parties toss public seeds, sample secret and noise as shares, open the public parts, and compare what is public.
2. Every party stores its shares, then the public files. When the files of all parties are on disk, the parties compare the metadata and store it.
3. Every party publishes its folder: from now on the key counts. All parties compare the metadata once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from keyquorum.model.committee import Committee, require_embedded
from keyquorum.model.errors import KeyFileError, ParameterError
from keyquorum.model.needs import require_disk, require_memory
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.schemes import scheme_named, scheme_of
from keyquorum.schemes.base import AnyScheme
from keyquorum.schemes.counts import start_count
from keyquorum.schemes.key_folder import NewKey, check_public_file, holds_a_key, write_info, write_public_files, write_share
from keyquorum.schemes.keys import K, KeyMaterial, KeyRequest

from .weakness import warn_all


def request_of(job: Json) -> KeyRequest:
    """The request of a ``keygen`` job; its fields must be there."""
    return _scheme(job).request_from_job(job)


def _scheme(job: Json) -> AnyScheme:
    try:
        return scheme_named(job["parameters"].get("scheme"))
    except ParameterError as error:
        raise ParameterError(f"not a parameter set ({error}): write the job file again") from None


def _scheme_fields(job: Json) -> Mapping[str, type]:
    return _scheme(job).job_fields


def check_keygen(committee: Committee, party: int, job: Json) -> None:
    """The checks of the job ``keygen`` that a party makes alone, before it connects: the request, and that the name is free."""
    request_of(job).check_plan(committee)
    require_embedded(committee, job["backend"])
    folder = committee.key_folder(party, job["key"])
    if holds_a_key(folder):
        raise KeyFileError(f"{folder}: there is a key of this name already: choose another name")


@party_job("keygen", {"key": str, "parameters": dict, "backend": str, "local": dict}, check=check_keygen, more_fields=_scheme_fields, verified=True)
def keygen_job(context: PartyContext, job: Json) -> Json:
    """The job ``keygen``: makes a key and stores it in this party's folder. Keys: ``key``, ``parameters``, and those of the scheme
    (:attr:`.Scheme.job_fields`)."""
    request = request_of(job)
    request.check_plan(context.committee)
    request.check(context.committee.threshold + 1)
    warn_all(request.warnings())
    warn_all(request.warnings(context.committee))
    needs = request.needs(context.committee)
    if needs is not None:
        if context.backend.name == "embedded":
            require_memory(needs, 1)
        require_disk("key generation", needs.disk, context.committee.party_folder(context.party))
    with NewKey(context, job["key"]) as new:
        material = scheme_of(request).generate(context, request, folder=new.folder)
        with context.phase("store"):
            info = store(context, material, new.folder, new.publish)
    folder = context.committee.key_folder(context.party, job["key"])
    return {"key_id": info.key_id, "transcript": info.transcript, "folder": str(folder)}


def store(context: PartyContext, material: KeyMaterial[K], folder: Path, publish: Callable[[], None] = lambda: None) -> K:
    """Writes this party's shares, then the public files, and checks what it wrote; when those of all parties are on disk, the metadata, and ``publish`` makes the
    key count. A party that dies before leaves no key anywhere, and its name free."""
    for j, share in enumerate(material.shares):
        write_share(folder, material.info, context.party, j, share)
    if material.info.counted:
        start_count(folder, material.info)
    scheme_of(material.info).start(folder, material.info)
    info = write_public_files(folder, material.info, material.public, material.written)
    for name in info.files:
        check_public_file(folder, info, name)
    scheme_of(info).check_made(folder, info)
    context.session.compare("stored key", info.digest)
    write_info(folder, info)
    publish()
    context.session.compare("end of the key generation", info.digest)
    return info


__all__ = ["check_keygen", "keygen_job", "request_of", "store"]
