"""Batches on the embedded engine, all parties in this process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from keyquorum import _engine
from keyquorum.dsl import ProgramIO, ProgramOptions, run_program

from .batch import Batch, Observed
from .targets import Target


def run_text(text: str, target: Target, folder: Path, private: dict[int, list[int]] | None = None, listed: list[int] | None = None) -> Observed:
    """Runs a program at all parties."""
    path = folder / "Programs" / "Source" / "batch.mpc"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    words = {p: np.array(w, dtype=np.int64) for p, w in (private or {}).items()}
    nothing = np.empty(0, dtype=np.int64)
    options = ProgramOptions(field=0 if target.domain.ring else target.domain.length)

    def one(session: _engine.Session) -> tuple[list[str], list[int]]:
        io = ProgramIO(
            private_inputs=words.get(session.party, nothing),
            listed_inputs=np.array(listed or [], dtype=np.int64),
            other_inputs=words if target.parties == 1 else {},
            one_stream=True,
        )
        printed: list[str] = []
        io.stdout = printed.append
        try:
            engine = session.engine(target.protocol, target.domain.name, "differential")
            run_program(engine, path, [], io, options)
        except BaseException as error:
            session.abort(str(error))
            raise
        return "".join(printed).splitlines(), [int(w) for part in io.file_outputs for w in part]

    sessions = _engine.local_sessions(target.parties, 60.0)
    with ThreadPoolExecutor(target.parties) as pool:
        futures = [pool.submit(one, s) for s in sessions]
        errors = [e for e in (f.exception() for f in futures) if e is not None]
    if errors:
        own = [e for e in errors if not isinstance(e, _engine.NetworkError)]
        return Observed(error=str((own or errors)[0]))
    results = [f.result() for f in futures]
    return Observed({p: r[0] for p, r in enumerate(results)}, {p: r[1] for p, r in enumerate(results)})


def run_batch(batch: Batch, folder: Path) -> Observed:
    """Runs a batch with the inputs that it consumes."""
    parties = range(3 if batch.target.parties == 1 else batch.target.parties)
    return run_text(batch.text, batch.target, folder, {p: batch.private(p) for p in parties}, batch.listed)
