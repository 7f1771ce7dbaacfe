"""A folder with at least one file of every kind that the project writes, made by the project's own code; and the path of each kind."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from keyquorum import _engine, api
from keyquorum.cnn.model import CLASSES, FEATURES, HIDDEN, KERNEL, MAPS, Model
from keyquorum.deploy.compose import prepare
from keyquorum.dsl import ProgramIO
from keyquorum.dsl.files.share_files import claim, identity, shares_path
from keyquorum.fhe import fhew, ghs
from keyquorum.fhe.ghs_ciphertexts import GhsCiphertext
from keyquorum.fhe.lwe import FHEW_SETS, TFHE_SETS
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.tfhe import COMPACT, KEY_FILES
from keyquorum.fhe.values import write_values
from keyquorum.model.committee import Committee
from keyquorum.model.locks import FileLock
from keyquorum.parties import mac_key
from keyquorum.parties.audit.chain import Signer
from keyquorum.parties.audit.log import NAME as AUDIT_LOG
from keyquorum.parties.audit.log import AuditLog
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.subset_shares import SubsetSharing, publish
from keyquorum.serve.client import make_receiver
from keyquorum.serve.daemon import Daemon, Service
from keyquorum.serve.limits import NAME as LIMITS
from keyquorum.serve.sessions import NAME as SESSIONS
from keyquorum.serve.sessions import BrokenSessions
from keyquorum.sweep import rows
from keyquorum.toprf import set_policy, toprf_keygen, write_circuit

from tests.fhe.dealer import Dealer, find_primes
from tests.fhe.test_block_types import tfhe_file
from tests.parties.epochs import changes

KEYS = "committee/party-0/keys"
POOL = "committee/party-0/pools/lwe64-p2-round_mask_open"
EPOCH = "ef" * 16
SAMPLES = {
    "temporary file": ".x.lwe.0123456789abcdef.tmp",
    "job": "keygen-job.json",
    "parameter set": "set.toml",
    "address of a served party": "committee/party-0/serve.json",
    "record of served sessions": "committee/party-0/sessions.json",
    "limits of receivers": "committee/party-0/limits.json",
    "audit log": "committee/party-0/audit.jsonl",
    "head of an audit log": "committee/party-0/audit.jsonl.head",
    "lock": "some.lock",
    "Compose file": "deployment/compose.yaml",
    "output of a program": "Player-Data/Binary-Output-P0-0",
    "committee folder": "committee",
    "committee file": "committee/committee.toml",
    "pool folder": POOL,
    "list of a pool": f"{POOL}/pool.json",
    "journal of a pool": f"{POOL}/cursor.journal",
    "party folder": "committee/party-0",
    "key folder": f"{KEYS}/bfv",
    "metadata of a key": f"{KEYS}/bfv/key.json",
    "public key of LWE": f"{KEYS}/lwe/public.lwepk",
    "public key for TFHE-rs": "compact.kqt",
    "public key of FHEW": "public.kqf",
    "public key of GHS": "public.kqg",
    "ciphertext of GHS": "x.ghs",
    "count of decryptions": f"{KEYS}/ckks/decryptions.json",
    "count of failed checks of noise": f"{KEYS}/bfv/noise-checks.json",
    "count of tests of shares": f"{KEYS}/ckks/proofs.json",
    "shares for subsets": f"{KEYS}/prf/lisss.json",
    "policy of evaluations": f"{KEYS}/prf/evaluations.json",
    "count of evaluations": f"{KEYS}/prf/evaluations.journal",
    "values of a pseudorandom function": "pseudonyms.txt",
    "circuit for TFHE-rs": "aes.txt",
    "file of TFHE-rs": "FheUint8.bin",
    "SEAL object of other parameters": "elsewhere/own.ct",
    "epoch of a party": "epochs/committee/party-0/epoch.json",
    "journal of epochs": "epochs/committee/party-0/epochs.journal",
    "mark of audited epochs": "epochs/committee/party-0/epochs.audited",
    "record of a change of epoch": f"epochs/committee/party-0/epochs/{EPOCH}.json",
    "votes for an epoch": f"epochs/committee/party-0/epochs/{EPOCH}.votes",
    "approvals": f"{KEYS}/ckks/approved.json",
    "share file": f"{KEYS}/bfv/share-0.kqs",
    "MAC key": "authenticated/party-0/mac.key",
    "mark of a burned MAC key": "authenticated/party-1/mac.key.burned",
    "session of a MAC key": "authenticated/party-0/mac.key.session",
    "checks of a MAC key": "authenticated/party-0/mac.key.checks",
    "mark of used shares": "Persistence/Shares-P0.claimed",
    "identity": "committee/party-0/identity.pem",
    "certificate": "committee/receiver-alice.crt",
    "table of results": "rows.csv",
    "published figures": "004_table2_gaussian.csv",
    "rules for published figures": "without_ours.toml",
    "plot": "plot.png",
    "report": "index.html",
    "table of roundings": "decrypt-tradeoff.md",
    "weights of the CNN": "weights.npz",
    "LWE ciphertexts": "x.lwe",
    "SEAL ciphertext": "x.ct",
    "SEAL encryption parameters": "public/keys/bfv/parms",
    "SEAL public key": f"{KEYS}/bfv/public.key",
    "SEAL key-switching keys": f"{KEYS}/bfv/relin.key",
    "SEAL plaintext": "x.ct.plain",
    "receipt": "x.ct.json",
    "messages of LWE": "x.lwe.plain",
    "values": "x.json",
}
"""Of every kind of :data:`keyquorum.inspection.KINDS`: where one is."""
HIT = {
    "committee folder": "committee.toml", "party folder": "identity.pem", "key folder": "share-1.kqs",
    "pool folder": "cursor.journal",
}  # fmt: skip
"""Of a folder: the file that is damaged."""
ROOT = Path(__file__).resolve().parents[2]


def build(folder: Path) -> None:
    """Makes all files in an empty folder."""
    committee = api.init(folder / "committee", 2, "semi")
    api.keygen(committee, "bfv", "bfv-4096")
    api.keygen(committee, "ckks", "ckks-8192-demo", relin=False, policy=api.FloodPolicy(approvals=1))
    api.keygen(committee, "lwe", "lwe64-p2")
    toprf_keygen(committee, "prf")
    set_policy(committee, 0, "prf", 100)
    prf = load_key(committee.key_folder(0, "prf"))
    publish(committee.key_folder(0, "prf"), prf, SubsetSharing(prf.key_id, "cd" * 16, 2))
    _epochs(folder)
    _files_of_keys(folder, committee)
    _deployments(folder, committee)
    _measured(folder)


def _epochs(folder: Path) -> None:
    (folder / "epochs").mkdir()
    made = changes.committee_of(folder / "epochs")
    record = replace(changes.record_of(made), name=EPOCH, keys={"k": {"key_id": "ab" * 16, "sharing": EPOCH}})
    changes.talk([changes.prepare(made, party, record) for party in range(3)])
    for party in range(3):
        shutil.rmtree(made.key_folder(party, "k"))  # stand-ins, not share files


def _files_of_keys(folder: Path, committee: Committee) -> None:
    from keyquorum.fhe import seal

    for key in ("bfv", "lwe"):
        api.export_key(committee, key, committee.key_folder(0, key), folder / "public")
    (folder / "x.json").write_text("[0, 1, 1]")
    write_circuit(folder / "aes.txt")
    (folder / "FheUint8.bin").write_bytes(tfhe_file("high_level_api::FheUint"))
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "own.ct").write_bytes(seal.encrypt(own_set(), Dealer(own_set()).public_key(), [1, 2]))
    (folder / "pseudonyms.txt").write_text("".join(f"{i:064x}\n" for i in range(3)))
    for key, name in (("bfv", "x.ct"), ("ckks", "y.ct")):
        info = load_key(committee.key_folder(0, key))
        data = seal.encrypt(info.parameters, (committee.key_folder(0, key) / "public.key").read_bytes(), np.array([0, 1, 1]))
        (folder / name).write_bytes(data)
        api.write_receipt(folder / name, data, info)
    api.approve(committee, "ckks", folder / "y.ct")
    api.decrypt(committee, "bfv", [folder / "x.ct"], 0, [folder / "x.ct.plain"], check_noise=True)
    api.epoch_prove(committee, "ckks")
    api.encrypt(committee, "lwe", [0, 1, 1], folder / "x.lwe")
    set_ = TFHE_SETS["tfhers-2-2"]
    with (folder / "compact.kqt").open("wb") as file:
        key = KEY_FILES.writer(file, set_, COMPACT, "ab" * 16, bytes(16))
        key.write(np.arange(set_.dimension, dtype=np.uint64))
        key.finish()
    other = FHEW_SETS["ajax53"]
    with (folder / "public.kqf").open("wb") as file:
        count = fhew.body_residues(other, fhew.PUBLIC)
        made = fhew.KEY_FILES.writer(file, other, fhew.PUBLIC, "ab" * 16, bytes(16))
        made.write(np.arange(count, dtype=np.uint64))
        made.finish()
    small = ghs.GhsParameters("ghs-15", 15, (4801, 7681), 1, 4, (2,))
    with (folder / "public.kqg").open("wb") as file:
        own = ghs.key_writer(file, small, ghs.PUBLIC, "ab" * 16, bytes(16))
        own.write(np.arange(small.residues(ghs.PUBLIC), dtype=np.uint64))
        own.finish()
    parts = np.arange(2 * small.degree, dtype=np.uint64).reshape(2, 1, -1)
    (folder / "x.ghs").write_bytes(GhsCiphertext(15, small.primes[:1], parts).to_bytes("ab" * 16))
    for items in (5, 6):
        api.pool_fill(committee, "lwe64-p2", "round_mask_open", items)
    api.decrypt(committee, "lwe", [folder / "x.lwe"], 0, [folder / "x.lwe.plain"], "round_mask_open")
    (folder / "Persistence").mkdir()
    claim(shares_path(folder, 0), identity(shares_path(folder, 0)))
    for values in ("v.csv", "v.npy"):
        write_values(folder / values, np.array([1.5, -2.0]))


def own_set() -> ParameterSet:
    """A set that is not shipped."""
    return replace(api.load_parameters("bfv-4096"), name="own", coeff_modulus=(*find_primes(4096, 35, 2), *find_primes(4096, 36, 1)))


def _deployments(folder: Path, committee: Committee) -> None:
    prepare(folder / "deployment", 3)
    api.write_job(folder / "keygen-job.json", api.keygen_job("key", api.load_parameters("bfv-4096")))
    (folder / "set.toml").write_text(api.load_parameters("bfv-4096").to_toml())
    (folder / ".x.lwe.0123456789abcdef.tmp").write_bytes(b"half of it")
    make_receiver(committee, "alice")
    served = Daemon(committee, 0, Service("lwe"))
    address = (committee.party_folder(0) / "serve.json").read_bytes()
    served.stop()
    served.run()
    (committee.party_folder(0) / "serve.json").write_bytes(address)  # as a killed party leaves it
    log = AuditLog(committee.party_folder(0) / AUDIT_LOG, {"party": 0}, signer=Signer(committee.identity_path(0)))
    for number in range(3):
        log.write({"receiver": "ab" * 32, "request": f"r{number}", "sha256": "cd" * 32, "bytes": 8, "result": "answered"})
    log.close()
    (committee.party_folder(0) / LIMITS).write_text('{"all": ["20 requests/s"], "receivers": {"receiver-alice": ["5 items/day"]}}')
    sessions = BrokenSessions(committee.party_folder(0) / SESSIONS, 2)
    sessions.claim()
    sessions.broke_off("lost")
    lock = FileLock(folder / "some.lock", "a test")
    assert lock.take()
    lock.release()
    other = api.init(folder / "authenticated", 2, "mascot")
    for party in range(2):
        mac_key.mac_key(other.mac_key_path(party))
    _engine.burn_mac_key(str(other.mac_key_path(1)), "a test")
    mac_key.use(_engine.local_sessions(2, 5.0)[0], other.mac_key_path(0))
    io = ProgramIO()
    io.file_outputs.append(np.arange(5))
    io.save(folder, SimpleNamespace(party=0, protocol="ring"))


def _measured(folder: Path) -> None:
    rows.write(folder / "rows.csv", [dict.fromkeys(rows.COLUMNS, "1"), dict.fromkeys(rows.COLUMNS, "2")])
    for source in (
        "params/published/004_table2_gaussian.csv",
        "params/published/without_ours.toml",
        "results/decrypt-tradeoff.md",
        "results/report/index.html",
    ):
        (folder / Path(source).name).write_bytes((ROOT / source).read_bytes())
    (folder / "plot.png").write_bytes((ROOT / "results/decrypt-tradeoff.png").read_bytes())
    shapes = [(MAPS, KERNEL**2), (MAPS,), (HIDDEN, FEATURES), (HIDDEN,), (CLASSES, HIDDEN), (CLASSES,)]
    rng = np.random.default_rng(1)
    Model(*(rng.normal(size=shape) for shape in shapes)).save(folder / "weights.npz")
