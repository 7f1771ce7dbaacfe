"""Private randomness of several parties, public vectors, and shares handed from program to program."""

from Compiler.library import fixinput
from Compiler.types import cint, sint


def contributions(contributors, size):
    """The next `size` private words of each of the parties 0..contributors-1, as secret vectors. One round."""
    return [sint.get_input_from(party, size=size, binary=True) for party in range(contributors)]


def public(size):
    """The next `size` words that all parties hold alike."""
    words = cint(size=size)
    fixinput(-1, words, 0, 0)
    return words


def stored(position, size):
    """`size` shares of the share file, from `position` on."""
    return sint.read_from_file(position, size=size)[1][0]


def send(secret, receiver):
    """Opens a vector to one party (to all if the receiver is -1), which writes it to its binary output: one round. -2: appends the
    shares to the share file instead."""
    if receiver == -2:
        sint.write_to_file(secret)
    else:
        (secret.reveal() if receiver < 0 else secret.reveal_to(receiver)).binary_output()
