"""FHE schemes and other keys, a package each, behind one interface (:mod:`keyquorum.schemes.base`). This module finds them."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path

from keyquorum.fhe.errors import UnknownParameterSetError
from keyquorum.model.arguments import checked
from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import read_text, toml_loads

from .base import AnyEncryption, AnyScheme, Scheme
from .keys import KeyInfo, KeyRequest, Parameters


@cache
def schemes() -> tuple[AnyScheme, ...]:
    """All schemes, in the order in which files and names are tried."""
    found = [import_module(f"{__name__}.{entry.name}.scheme").SCHEME for entry in pkgutil.iter_modules(__path__) if entry.ispkg]
    return tuple(sorted(found, key=lambda scheme: scheme.order))


def scheme_named(name: object) -> AnyScheme:
    """The scheme that has parameter sets of this name (``bfv``, ``lwe``). Raises ParameterError."""
    for scheme in schemes():
        if name in scheme.names:
            return scheme
    known = [known for scheme in schemes() for known in scheme.names]
    raise ParameterError(f"unknown scheme {name!r}: choose one of {', '.join(known)}")


def scheme_of(thing: KeyInfo | Parameters | KeyRequest) -> AnyScheme:
    """The scheme of a key, a parameter set, or a request."""
    parameters = thing.parameters if isinstance(thing, (KeyInfo, KeyRequest)) else thing
    return scheme_named(parameters.scheme)


def encryption_of(thing: KeyInfo | Parameters | KeyRequest) -> AnyEncryption:
    """The scheme of a key, a parameter set, or a request, for encryption and decryption. Raises ParameterError for keys of other use."""
    scheme = scheme_of(thing)
    if not isinstance(scheme, Scheme):
        raise ParameterError(f"keys of {scheme.title} encrypt nothing: {scheme.texts.instead}")
    return scheme


def parameter_set_names() -> list[str]:
    """Names of all shipped parameter sets, scheme after scheme."""
    return [name for scheme in schemes() for name in scheme.set_names()]


@checked
def load_parameters(name_or_path: str | Path, warn: bool = True) -> Parameters:
    """A shipped set by name, or a set of a TOML file, whose ``scheme`` says which it is of, or the lines of a file of the first scheme. ``warn``: of sets without claimed security.

    Raises UnknownParameterSetError, or ParameterError for a set that is refused."""
    text = str(name_or_path)
    for scheme in schemes():
        if text in scheme.set_names():
            return scheme.load(text, warn)
    if "\n" in text:
        return schemes()[0].load(text, warn)
    if isinstance(name_or_path, Path) or text.endswith(".toml") or "/" in text:
        return _scheme_of_file(Path(name_or_path)).load(Path(name_or_path), warn)
    first, *others = schemes()
    more = "".join(f"; for {scheme.title} {', '.join(scheme.set_names())}" for scheme in others)
    raise UnknownParameterSetError(f"there is no parameter set {text!r}: choose one of {', '.join(first.set_names())}, or a .toml file{more}")


def _scheme_of_file(path: Path) -> AnyScheme:
    """By the field ``scheme``; a file that has none, or cannot be read, is the first scheme's to refuse."""
    try:
        return scheme_named(toml_loads(read_text(path))["scheme"])
    except (OSError, ValueError, KeyError, ParameterError):
        return schemes()[0]


def recognise(head: bytes) -> AnyEncryption | None:
    """The scheme of a file of ciphertexts by its first bytes; None where they do not determine it."""
    return next((scheme for scheme in schemes() if isinstance(scheme, Scheme) and scheme.recognises(head)), None)


def more_set_names(encryption: bool = False) -> list[str]:
    """Names of the sets of all schemes but the first, for help texts. ``encryption``: of schemes of encryption alone."""
    return [name for scheme in schemes()[1:] if isinstance(scheme, Scheme) or not encryption for name in scheme.set_names()]
