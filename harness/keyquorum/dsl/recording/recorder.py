"""Recordings of small programs that run repeatedly: the calls of one run are repeated without the program.

Design. A run is the list of its calls to the engine, to the share file and to the input and output, and of the operations on public numbers
between them. If Python's control flow does not depend on data, every run with the same arguments and inputs of the same sizes makes
the same calls, with other data. So one run is recorded:

* The engine gives each of its calls to a :class:`Recorder` (``Engine.record``), as a typed step (``mpc/src/recording`` in the sources).
  Stand-ins of the share file and the io (:mod:`.stand_ins`) do the same. The recorder refuses inconsistent steps.
* The result of a call is opaque to the program. Vectors of the engine are handles; public numbers are
  :class:`~.recorded.RecordedNumbers`, which record the operations of numpy.
* A call without a step, and any other use of numbers, ends the recording, but not the run: then later runs execute the program.
* Shares, inputs and randomness are those of each run. A recording has only steps and constants: clear vectors, and numbers of the program.

At the end of the run :mod:`keyquorum.dsl.control.imports` determines whether the program depends on more than its arguments and inputs. The engine alone repeats a
:class:`.Recording`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from keyquorum import _engine

from .recorded import Operand, RecordsNumbers
from .recording import Recording
from .stand_ins import RecordedIO


class Recorder(RecordsNumbers):
    """Records one run of ``engine``. ``io``: stand-in for the run. ``kept``: vectors of the engine that outlive the run. ``files``: set at the end of a
    run that can be repeated as long as these files stay."""

    def __init__(self, engine: _engine.Engine, io: Operand, kept: Iterable[_engine.Value] = ()) -> None:
        super().__init__(engine)
        self.files: Sequence[tuple[str, Operand]] | None = None
        self.io = RecordedIO(self, io)
        engine.record(self, list(kept))

    def close(self) -> None:
        """Removes the references to the run."""
        self.fail("the recording is over")
        self.engine.record(None)
        del self.io, self.engine

    def recording(self) -> Recording | None:
        """The recording of the run; None after :meth:`fail`."""
        if self.files is None:
            self.fail("the program keeps something, or looks at something that is not its input")
        steps = _engine.Recording.of(self)
        if steps is None or self.files is None:
            return None
        return Recording(steps, steps.uses_shares or self.checked, steps.prints, self.files)
