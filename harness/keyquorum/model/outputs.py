"""Output files: written as a whole or not at all. Results that cannot be computed again are not lost when a file cannot be written."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from .committee import write_atomically
from .errors import OutputError


def save_file(path: Path, data: bytes) -> None:
    """Writes a file that the user named, as a whole or not at all. Follows links, and keeps the mode of a file that it replaces. Devices and pipes
    are written directly."""
    target = path.resolve()
    mode = 0o644
    if target.exists():
        found = target.stat()
        mode = stat.S_IMODE(found.st_mode)
        if not stat.S_ISREG(found.st_mode):
            target.write_bytes(data)
            return
    write_atomically(target, data, mode)


class Output:
    """The output file of a result, mode 0600, checked and reserved before the result is computed. An existing file is replaced. ``size``: bytes that
    are reserved; a result may be longer. ``spare``: a folder for the result if the output file cannot be written in the end."""

    def __init__(self, path: Path, size: int, spare: Path) -> None:
        self.path, self._spare = path, spare
        if not path.parent.is_dir():
            raise OutputError(f"{path}: there is no folder {path.parent}: make it; nothing was decrypted or counted")
        if path.exists() and not path.is_file():
            raise OutputError(f"{path}: is no file that can be replaced: name another output; nothing was decrypted or counted")
        self._temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
        descriptor = -1
        try:
            descriptor = os.open(self._temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            _write(descriptor, bytes(size))
            os.fsync(descriptor)
        except OSError as error:
            if descriptor >= 0:
                os.close(descriptor)
            with suppress(OSError):
                self._temporary.unlink(missing_ok=True)
            raise OutputError(
                f"{path}: cannot be written ({error.strerror or error}): free {size:,} bytes there, or name another output; "
                "nothing was decrypted or counted"
            ) from None
        self._descriptor = descriptor

    def save(self, data: bytes) -> None:
        """Writes the result. Raises OutputError, which says where the result is instead."""
        written = False
        try:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            _write(self._descriptor, data)
            os.ftruncate(self._descriptor, len(data))
            os.fsync(self._descriptor)
            written = True
            os.replace(self._temporary, self.path)
        except OSError as error:
            kept = self._temporary if written and self._temporary.exists() else self._keep(data)
            if kept == self._temporary:
                self._close()
            raise OutputError(
                f"{self.path}: cannot be written ({error.strerror or error}); the result is kept in {kept}: move it from there"
            ) from None
        self._close()

    def _keep(self, data: bytes) -> Path:
        """Writes the result to another folder and returns its path. Raises OutputError if no folder can be written."""
        failures = []
        for folder in (self._spare, Path(tempfile.gettempdir())):
            path = folder / f"{self.path.name}.{secrets.token_hex(8)}"
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                write_atomically(path, data, 0o600)
                return path
            except OSError as error:
                failures.append(f"{folder}: {error.strerror or error}")
        raise OutputError(
            f"{self.path}: the result is lost, it could not be written anywhere ({'; '.join(failures)}): free disk space, and decrypt again"
        )

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def discard(self) -> None:
        """Releases the reserved space, if nothing was saved."""
        if self._descriptor >= 0:
            self._close()
            with suppress(OSError):
                self._temporary.unlink(missing_ok=True)


def _write(descriptor: int, data: bytes) -> None:
    """Writes all bytes: on a full disk one call writes a part without an error."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


@contextmanager
def reserved(paths: Sequence[Path], sizes: Sequence[int], spare: Path) -> Iterator[list[Output]]:
    """An :class:`Output` for each path; those that were not saved are discarded."""
    if len(set(paths)) < len(paths):
        raise OutputError(f"{next(p for p in paths if list(paths).count(p) > 1)}: two results would go to the same file: name each output once")
    with ExitStack() as stack:
        outputs = []
        for path, size in zip(paths, sizes, strict=True):
            outputs.append(Output(path, size, spare))
            stack.callback(outputs[-1].discard)
        yield outputs


def save_all(outputs: Sequence[Output], results: Sequence[bytes]) -> None:
    """Saves every result, also after a failure; then raises OutputError with all failures."""
    failures = []
    for output, data in zip(outputs, results, strict=True):
        try:
            output.save(data)
        except OutputError as error:
            failures.append(str(error))
    if failures:
        raise OutputError("; ".join(failures))
