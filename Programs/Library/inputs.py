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


class StoredReader:
    """Reads the share file from `position` on, one vector after another."""

    def __init__(self, position):
        self.position = position

    def next(self, size):
        """The next `size` shares."""
        self.position += size
        return stored(self.position - size, size)


def send(secret, destination):
    """Opens a vector to a party, or to `all`, who write it to their binary output: one round. `share`: appends its shares to the share
    file instead."""
    if destination == "share":
        sint.write_to_file(secret)
    else:
        (secret.reveal() if destination == "all" else secret.reveal_to(destination)).binary_output()
