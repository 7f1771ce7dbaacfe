"""parameters, parameters new, parameters check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyquorum import api
from keyquorum.fhe.parameters import ParameterSet, most_bits, problems
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.outputs import save_file
from keyquorum.model.plain import Json, read_text
from keyquorum.model.protocols import COMMITTEES, DEFAULT_COMMITTEE
from keyquorum.schemes import scheme_of
from keyquorum.schemes.seal.advice import Possible, Wish, budgets, design, possible
from keyquorum.terminal.output import console, emit, printed

from .app import App, with_shared_options

PARTIES = 3
"""Parties of the committees that are looked at, where their protocol takes so many."""
USUAL = api.FloodPolicy()
app = App(help="Parameter sets: list those that come with KeyQuorum, make your own, and see what a set is good for.")
Policy = Annotated[int, typer.Option(help="CKKS: decryptions that a key may ever serve.")]
Bits = Annotated[int, typer.Option(help="CKKS: bits of the flooding, all decryptions together.")]
NoiseBits = Annotated[int, typer.Option(help="CKKS: log2 of the bound on the noise of ciphertexts; 0: computed from the set.")]


def register(parent: typer.Typer) -> None:
    """Adds the commands."""
    app.callback(invoke_without_command=True)(with_shared_options(listed))
    parent.add_typer(app, name="parameters")


def listed(context: typer.Context) -> None:
    """List the parameter sets that come with KeyQuorum, make your own (new), or see what a set is good for (check)."""
    if context.invoked_subcommand is not None:
        return
    sets: list[dict[str, object]] = []
    for name in api.parameter_set_names():
        chosen = api.load_parameters(name, warn=False)
        line, details = scheme_of(chosen).texts.parameter_set(chosen)
        printed.print(f"{name:24} {line}", markup=False)
        sets.append({"name": name, **details})
    emit({"parameters": sets})


@app.command("new")
def new(
    output: Annotated[Path, typer.Argument(help="TOML file to write, for keygen -p.", show_default=False)],
    scheme: Annotated[str, typer.Option("--scheme", help="bfv, bgv or ckks.", show_default=False)],
    depth: Annotated[int, typer.Option(help="Products one after another.")] = 1,
    plain_bits: Annotated[int, typer.Option(help="BFV, BGV: bits of the plain modulus, which is prime and gives N slots.")] = 17,
    spare: Annotated[int, typer.Option(help="BFV, BGV: bits of noise budget after the products, for sums and rotations.")] = 4,
    precision: Annotated[int, typer.Option(help="CKKS: bits of a value of size 1 after decryption.")] = 5,
    decryptions: Policy = USUAL.decryptions,
    flood_bits: Bits = USUAL.bits,
    noise_bits: NoiseBits = 0,
    protocol: Annotated[str, typer.Option("--protocol", "-E", help="Protocol of the committee.")] = DEFAULT_COMMITTEE,
    parties: Annotated[int, typer.Option("--parties", "-n", help="Parties of the committee.")] = PARTIES,
) -> None:
    """Make a parameter set: the least ring degree of 128-bit security, then the fewest and shortest primes, that do what you ask for."""
    if output.suffix != ".toml":
        raise ParameterError(f"{output}: a parameter set is a TOML file: name one that ends in .toml")
    if output.exists():
        raise ParameterError(f"{output}: there is such a file already: name another one")
    policy = api.FloodPolicy(flood_bits, decryptions, noise_bits)
    wish = Wish(scheme, depth, plain_bits, spare, precision, policy)  # type: ignore[arg-type]
    made = design(output.stem, wish, api.in_process_committee(parties, protocol))
    save_file(output, made.to_toml().encode())
    console.print(f"{output}: keyquorum keygen FOLDER KEY -p {output}", markup=False)
    emit({"output": output, **_described(made, policy)})


@app.command("check")
def check(
    params: Annotated[str, typer.Argument(help="A TOML file, or the name of a set of SEAL.", show_default=False)],
    decryptions: Policy = USUAL.decryptions,
    flood_bits: Bits = USUAL.bits,
    noise_bits: NoiseBits = 0,
) -> None:
    """Say what a parameter set is good for: security, products, and which committees decrypt; or all that is wrong with it.

    Nothing is written. Committees have three parties, where their protocol takes so many. Exit code 1 if the set is wrong, or no committee can decrypt.
    """
    path = Path(params)
    if path.suffix == ".toml" and path.is_file():
        try:
            found = problems(read_text(path), params)
        except ValueError as error:
            raise ParameterError(f"{path}: not a parameter set ({error}): name a TOML file of one") from None
        for line in found[:-1]:
            printed.print(line, markup=False)
        if found:
            raise ParameterError(found[-1])
    chosen = api.load_parameters(params, warn=False)
    if not isinstance(chosen, ParameterSet):
        raise ParameterError(
            f"{params}: a set of {chosen.scheme.upper()}, of which nothing can be chosen: name a TOML file, or a set that keyquorum parameters lists"
        )
    described = _described(chosen, api.FloodPolicy(flood_bits, decryptions, noise_bits))
    emit(described)
    if not any(committee["decrypts"] for committee in described["committees"]):
        raise ParameterError(f"{params}: no committee can decrypt what is encrypted with it: see the reasons above")


def _committees() -> list[Committee]:
    """A committee of each protocol over prime fields, which stands for its partner over rings too."""
    names = [name for name, protocol in COMMITTEES.items() if protocol.field_protocol == name]
    return [api.in_process_committee(PARTIES, name) for name in names]


def _described(chosen: ParameterSet, policy: api.FloodPolicy) -> Json:
    """Prints what a set is good for; returns it as plain data."""
    bits, most = [q.bit_length() for q in chosen.coeff_modulus], most_bits(chosen.ring_degree)
    own = f"scale 2^{chosen.scale_bits}" if chosen.scheme == "ckks" else f"plain modulus {chosen.plain_modulus}, {chosen.slots:,} slots"
    secure = (
        f"{chosen.total_bits} of the {most} bits of 128-bit security"
        if chosen.total_bits <= most
        else f"{chosen.total_bits} bits, ABOVE the {most} of 128-bit security"
    )
    printed.print(
        f"{chosen.name}: {chosen.scheme.upper()}, N = {chosen.ring_degree}, primes of {','.join(map(str, bits))} bits ({secure}), {own}", markup=False
    )
    left = None if chosen.scheme == "ckks" else [round(budget, 1) for budget in budgets(chosen)]
    if left is not None:
        shown = ", ".join(f"{max(budget, 0):.0f}" for budget in left)
        printed.print(
            f"bits of noise budget when decrypted, by estimate: fresh, and after 1, 2, ... products one after another: {shown}", markup=False
        )
    found = [possible(chosen, policy, committee) for committee in _committees()]
    for one in found:
        printed.print(_line(one), markup=False)
    committees = [
        {
            "protocol": one.committee.protocol, "parties": one.committee.size, "decrypts": not one.why_not, "why_not": one.why_not, "products": one.products,
            "noise_budget": one.budget, "largest_error": None if one.precision is None else one.precision.largest,
        }
        for one in found
    ]  # fmt: skip
    return {
        "name": chosen.name,
        "scheme": chosen.scheme,
        "ring_degree": chosen.ring_degree,
        "prime_bits": bits,
        "noise_budgets": left,
        "committees": committees,
    }


def _line(found: Possible) -> str:
    who = f"{found.committee.protocol}, {found.committee.size} parties"
    if found.why_not:
        return f"{who}: CANNOT decrypt: {found.why_not}"
    products = f"{found.products} product{'s' * (found.products != 1)} one after another"
    if found.precision is None:
        return f"{who}: decrypts exactly, after {products}"
    return f"{who}: decrypts after {products}, with {found.precision.bits:.1f} bits of a value of size 1"
