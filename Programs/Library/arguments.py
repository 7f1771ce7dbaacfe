"""Program arguments: parsed and checked in one place, so that a program starts with one line that names them."""


class ArgumentError(ValueError, SystemExit):
    """A wrong argument: one line that names it and the usage. As a SystemExit it ends a compiler run without a traceback."""

    def __init__(self, message):
        ValueError.__init__(self, message)
        self.code = message


class _Argument:
    def __init__(self, name, parse, wanted, default):
        self.name, self.parse, self.wanted, self.default = name, parse, wanted, default

    def usage(self):
        return self.name if self.default is None else f"[{self.name}={self.default}]"


def integer(name, low=None, high=None, default=None):
    """An integer in [low, high]; optional if there is a default."""

    def parse(word):
        value = int(word)
        if (low is not None and value < low) or (high is not None and value > high):
            raise ValueError
        return value

    limits = [f" {sign} {value}" for sign, value in ((">=", low), ("<=", high)) if value is not None]
    return _Argument(name, parse, "an integer" + " and".join(limits), default)


def choice(name, *words, default=None):
    """One of some words; optional if there is a default."""

    def parse(word):
        if word not in words:
            raise ValueError
        return word

    return _Argument(name, parse, " or ".join(words), default)


def receiver(name):
    """A party, or `all` (the value -1)."""
    return _Argument(name, lambda word: -1 if word == "all" else _natural(word), "a party number or all", None)


def destination(name):
    """A party, `all` (-1), or `share` (-2: the result stays shared)."""
    special = {"all": -1, "share": -2}
    return _Argument(name, lambda word: special[word] if word in special else _natural(word), "a party number, all or share", None)


def _natural(word):
    if int(word) < 0:
        raise ValueError
    return int(word)


def galois_target(name):
    """`relin`, or a Galois element: an odd positive integer."""

    def parse(word):
        if word == "relin":
            return word
        if int(word) < 1 or int(word) % 2 == 0:
            raise ValueError
        return int(word)

    return _Argument(name, parse, "relin or an odd Galois element", None)


def arguments(args, *wanted, rest=None):
    """Values of a program's arguments.

    args: `program.args` (the program's name comes first); wanted: `integer(...)` and `choice(...)` in order, optional ones
    last; rest: description of any number (at least one) of further arguments, returned as a list at the end.
    Raises ArgumentError with one line.
    """
    name, words = args[0], list(args[1:])
    usage = " ".join([name] + [a.usage() for a in wanted] + ([rest.name + "..."] if rest else []))

    def fail(problem):
        raise ArgumentError(f"{name}: {problem} (usage: {usage})")

    def value(argument, word):
        try:
            return argument.parse(word)
        except ValueError:
            fail(f"argument {argument.name} must be {argument.wanted}, not {word!r}")

    if len(words) > len(wanted) and not rest:
        fail(f"{len(words)} arguments given, at most {len(wanted)} expected")
    values = []
    for i, argument in enumerate(wanted):
        if i < len(words):
            values.append(value(argument, words[i]))
        elif argument.default is None:
            fail(f"argument {argument.name} is missing")
        else:
            values.append(argument.default)
    if rest:
        if len(words) <= len(wanted):
            fail(f"argument {rest.name} is missing")
        values.append([value(rest, word) for word in words[len(wanted) :]])
    return values[0] if len(values) == 1 else values


def by_role(args, **roles):
    """The role, which is the first argument, and the values of the arguments that belong to it.

    roles: name -> list of `integer(...)` and `choice(...)`. Raises ArgumentError with one line.
    """
    role = arguments(args[:2], choice("role", *roles))
    return role, arguments([f"{args[0]} {role}", *args[2:]], *roles[role])


def require(condition, args, problem):
    """Raises ArgumentError unless a condition between several arguments holds."""
    if not condition:
        raise ArgumentError(f"{args[0]}: {problem}")
