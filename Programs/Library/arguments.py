"""Program arguments: parsed and checked in one place, so that a program starts with one line that names them."""


class ArgumentError(ValueError, SystemExit):
    """A wrong argument: one line that names it and the usage. As a SystemExit it ends a compiler run without a traceback."""

    def __init__(self, message):
        ValueError.__init__(self, message)
        self.code = message


class _Argument:
    """`words`: what stands for the values in the usage. `same_as`: the earlier argument whose value is the default."""

    def __init__(self, name, parse, wanted, default=None, words=(), same_as=None):
        self.name, self.parse, self.wanted, self.default, self.words, self.same_as = name, parse, wanted, default, words, same_as

    @property
    def optional(self):
        return self.default is not None or self.same_as is not None

    def usage(self):
        """As in the header of the program: `name`, `name(word|word)`, or `[name=default]`, where the first of several words is the default."""
        words = "|".join(self.words)
        if not self.optional:
            return f"{self.name}({words})" if words else self.name
        return f"[{self.name}={words or self.same_as or self.default}]"


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
    """One of some words; optional if there is a default, which is the first of them."""

    def parse(word):
        if word not in words:
            raise ValueError
        return word

    return _Argument(name, parse, " or ".join(words), default, words)


def position(name, default=None):
    """Where shares begin in the share file. `default`: a number, or the name of an earlier argument that has the same value."""
    same_as = default if isinstance(default, str) else None
    return _Argument(name, _natural, "an integer >= 0", None if same_as else default, same_as=same_as)


def receiver(name):
    """The party that gets the result, or `all`."""
    return _Argument(name, lambda word: word if word == "all" else _natural(word), "a party number or all", words=("party", "all"))


def destination(name):
    """The party that gets the result, `all`, or `share`: the result stays shared."""
    return _Argument(
        name, lambda word: word if word in ("all", "share") else _natural(word), "a party number, all or share", words=("party", "all", "share")
    )


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

    return _Argument(name, parse, "relin or an odd Galois element", words=("relin", "odd"))


def arguments(args, *wanted, rest=None):
    """Values of a program's arguments.

    args: `program.args` (the program's name comes first); wanted: `integer(...)` and `choice(...)` in order, optional ones
    last; rest: description of any number (at least one) of further arguments, returned as a list at the end.
    Raises ArgumentError with one line.
    """
    name, words = args[0], list(args[1:])
    usage = " ".join([name] + [a.usage() for a in wanted] + ([rest.usage() + "..."] if rest else []))

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
        elif not argument.optional:
            fail(f"argument {argument.name} is missing")
        elif argument.same_as:
            values.append(values[[earlier.name for earlier in wanted].index(argument.same_as)])
        else:
            values.append(argument.default)
    if rest:
        if len(words) <= len(wanted):
            fail(f"argument {rest.name} is missing")
        values.append([value(rest, word) for word in words[len(wanted) :]])
    return values[0] if len(values) == 1 else values


def require(condition, args, problem):
    """Raises ArgumentError unless a condition between several arguments holds."""
    if not condition:
        raise ArgumentError(f"{args[0]}: {problem}")
