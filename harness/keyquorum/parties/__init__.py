"""Running jobs among parties: threads of this process, processes of this host, or one party of a deployment."""

from .context import PartyContext, PhaseReport, RunReport
from .local import run_in_process
from .processes import run_processes
from .worker import run_party

__all__ = ["PartyContext", "PhaseReport", "RunReport", "run_in_process", "run_party", "run_processes"]
