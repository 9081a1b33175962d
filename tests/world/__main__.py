"""Judge the matching in many simulated worlds, and show the smallest that it gets wrong."""

import click

from tests.world.broken import BROKEN, MATCHERS
from tests.world.kinds import EXCUSED, KINDS
from tests.world.notation import explained
from tests.world.tally import SHORT, Asked, Draw, Tally, tally
from tests.world.troubles import TROUBLES

Names = click.Choice(sorted(TROUBLES))


@click.command(help=__doc__, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--rows", default=10_000, show_default=True, help="How many commits to judge.")
@click.option("--seed", default=1, show_default=True)
@click.option("--trouble", "wanted", multiple=True, type=Names, help="Every world has it.")
@click.option("--without", multiple=True, type=Names, help="No world has it.")
@click.option("--only", is_flag=True, help="Worlds have the troubles of --trouble and no other.")
@click.option("--size", default=1.0, show_default=True, help="How much happens in a world; 0.2 makes tiny ones.")
@click.option("--match-limit", default=1_000_000)
@click.option("--matcher", type=click.Choice(["matching", *MATCHERS, *BROKEN]), default="matching", show_default=True)
@click.option("--excused", is_flag=True, help="Show also what is excused, and rows short of the best.")
@click.option("--show", type=int, multiple=True, help="Print this world (the seed in an example) and its answers.")
def main(
    rows: int, seed: int, wanted: tuple[str, ...], without: tuple[str, ...], only: bool, size: float,
    match_limit: int, matcher: str, excused: bool, show: tuple[int, ...],
) -> None:  # fmt: skip
    draw = Draw(wanted, frozenset(without), only, size)
    ask = Asked({**MATCHERS, **BROKEN}.get(matcher), match_limit)
    for number in show:
        _show(draw, ask, number)
    if show:
        return
    sums = tally(ask, draw, seed, rows)
    _print(sums)
    for kind in sorted(sums.smallest, key=lambda k: (k.startswith(SHORT), k in EXCUSED, k)):
        if excused or kind in sums.failures:
            meaning = KINDS.get(kind, "not at the best, in a world that neither drops nor changes records")
            print(f"\n=== {kind}: {meaning}\n    smallest world: --show {sums.smallest[kind].seed}; made smaller:\n")
            print(sums.example(kind, ask))
    raise SystemExit(1 if sums.failures else 0)


def _show(draw: Draw, ask: Asked, number: int) -> None:
    world = draw.world(number)
    judged, run = ask(world)
    if run is None:
        raise click.ClickException(f"no answer: {judged.violations}")
    print(explained(judged, run))


def _print(sums: Tally) -> None:
    def share(part: int, whole: int) -> str:
        return f"{100 * part / whole:.3f} %" if whole else "-"

    print(f"{sums.rows} rows in {sums.worlds} worlds")
    print(f"at the best {share(sums.at_best, sums.rows)}, exact {share(sums.exact, sums.rows)}")
    print(f"where nothing is dropped or changed: at the best {share(sums.kept_at_best, sums.kept_rows)}")
    print(
        f"tails: drained {sums.drained_told} of {sums.drained} told, others {sums.undrained_told} of {sums.undrained}"
    )
    least = sorted((sums.matched_by_trouble[n] / many, n) for n, many in sums.rows_by_trouble.items())[:4]
    print("least rows matched: " + ", ".join(f"{name} {100 * rate:.1f} %" for rate, name in least))
    print("violations:" if sums.broken else "no violation")
    for kind, many in sorted(sums.broken.items()):
        print(f"  {kind:24} {many:7}{'  (excused)' if kind in EXCUSED else ''}  {KINDS[kind]}")


if __name__ == "__main__":
    main()
