"""Replaces this process by another that ends when its parent does: ``python launch.py PARENT COMMAND...``.

A party of MP-SPDZ must not go on with a party's secrets when that party's process was killed. Linux only; elsewhere the
command runs without this.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Asks the kernel for the signal, checks that the parent still lives, and executes the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the party that started this has ended")
    os.execv(command[0], command)


main()
