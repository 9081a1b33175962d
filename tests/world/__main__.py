"""Judge the matching in many simulated worlds, and show the smallest that it gets wrong."""

import time
from pathlib import Path

import click

from tests.world.broken import BROKEN
from tests.world.kinds import EXCUSED, KINDS
from tests.world.notation import explained
from tests.world.reference import MATCHERS
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
@click.option("--short", is_flag=True, help="Show the smallest rows that are short of the best, too.")
@click.option("--excused", is_flag=True, help="Show examples of excused kinds, too.")
@click.option("--shrink/--no-shrink", default=True, help="Make the examples as small as they go.")
@click.option("--show", type=int, multiple=True, help="Print this world (the seed in an example) and its answers.")
@click.option("--list", "listing", is_flag=True, help="List troubles and kinds of violation.")
@click.option("--profile", type=Path, help="Write a profile for snakeviz or pstats.")
def main(
    rows: int, seed: int, wanted: tuple[str, ...], without: tuple[str, ...], only: bool, size: float,
    match_limit: int, matcher: str, short: bool, excused: bool, shrink: bool, show: tuple[int, ...],
    listing: bool, profile: Path | None,
) -> None:  # fmt: skip
    if listing:
        for title, names in (("troubles", TROUBLES), ("violations", KINDS)):
            print(f"{title}\n" + "\n".join(f"  {name:24} {what}" for name, what in names.items()))
        return
    draw = Draw(wanted, frozenset(without), only, size)
    ask = Asked(None if matcher == "matching" else {**MATCHERS, **BROKEN}[matcher], match_limit)
    for number in show:
        _show(draw, ask, number)
    if show:
        return
    began = time.process_time()
    if profile:
        import cProfile

        profiler = cProfile.Profile()
        sums = profiler.runcall(tally, ask, draw, seed, rows)
        profiler.dump_stats(profile)
    else:
        sums = tally(ask, draw, seed, rows)
    _print(sums, time.process_time() - began)
    for kind in sorted(sums.smallest, key=lambda k: (k.startswith(SHORT), k in EXCUSED, k)):
        if (kind in EXCUSED and not excused) or (kind.startswith(SHORT) and not short):
            continue
        print(f"\n=== {kind}: {KINDS.get(kind, 'not at the best, in a world that neither drops nor changes records')}")
        print(f"    smallest world: --show {sums.smallest[kind].seed}; made smaller:" if shrink else "")
        print(sums.example(kind, ask, shrink))
    raise SystemExit(1 if sums.failures else 0)


def _show(draw: Draw, ask: Asked, number: int) -> None:
    world = draw.world(number)
    judged, run = ask(world)
    if run is None:
        raise click.ClickException(f"no answer: {judged.violations}")
    print(explained(judged, run))


def _print(sums: Tally, seconds: float) -> None:
    def share(part: int, whole: int) -> str:
        return f"{100 * part / whole:.3f} %" if whole else "-"

    print(f"{sums.rows} rows in {sums.worlds} worlds, {seconds:.1f} s of CPU")
    print(f"at the best {share(sums.at_best, sums.rows)}, exact {share(sums.exact, sums.rows)}")
    print(
        f"where nothing is dropped or changed: {sums.kept_rows} rows, "
        f"at the best {share(sums.kept_at_best, sums.kept_rows)}"
    )
    read = sums.source_read + sums.target_read
    print(
        f"read {read} of {sums.logs} offsets ({share(read, sums.logs)}), {sums.read_twice} of them twice; "
        f"worlds by rounds: {', '.join(f'{n}: {many}' for n, many in sorted(sums.rounds.items())[:8])} ..."
    )
    print(
        f"tails of {sums.drained} drained worlds: {sums.drained_told} tell it; "
        f"of {sums.undrained} that are not: {sums.undrained_told} tell it"
    )
    least = sorted((sums.matched_by_trouble[n] / many, n) for n, many in sums.rows_by_trouble.items())[:4]
    print("least rows matched: " + ", ".join(f"{name} {100 * rate:.1f} %" for rate, name in least))
    print("\nrows by reason (at the best):")
    for why, many in sums.whys.most_common():
        print(f"  {why:32} {many:8}  {share(sums.best_by_why[why], many)}")
    print(f"\n{'trouble':24} {'rows':>7} {'short of best':>14}  violations")
    for name in sorted(sums.rows_by_trouble):
        broken = {kind: many for (kind, trouble), many in sums.broken_by_trouble.items() if trouble == name}
        short = f"{sums.short_by_trouble[name]} of {sums.kept_by_trouble[name]}"
        print(
            f"  {name:22} {sums.rows_by_trouble[name]:7} {short:>14}  "
            + " ".join(f"{kind}:{many}" for kind, many in sorted(broken.items(), key=lambda kv: kv[0] in EXCUSED))
        )
    print("\nviolations:")
    for kind, many in sorted(sums.broken.items()):
        print(f"  {kind:24} {many:7}{'  (excused)' if kind in EXCUSED else ''}  {KINDS[kind]}")
    if not sums.broken:
        print("  none")


if __name__ == "__main__":
    main()
