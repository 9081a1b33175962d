"""Show that the suite fails on every product that is broken on purpose, and by which test."""

import click

from tests.mutants.catalogue import MUTANTS
from tests.mutants.runner import Fate, UnbrokenFails, Verdict, judged


@click.command(help=__doc__, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.argument("names", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="List the mutants and what each breaks, and run none.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="How many run at a time.")
def main(names: tuple[str, ...], listing: bool, jobs: int) -> None:
    unknown = set(names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        raise click.BadParameter(f"no such mutant: {', '.join(sorted(unknown))}", param_hint="NAMES")
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    wide = max(len(mutant.name) for mutant in chosen)
    if listing:
        for mutant in chosen:
            click.echo(f"{mutant.name:{wide}} | {mutant.file}: {mutant.breaks}")
        return

    def tell(verdict: Verdict) -> None:
        told = verdict.told if verdict.fate is Fate.KILLED else f"{verdict.fate}: {verdict.told}"
        click.echo(f"{verdict.mutant.name:{wide}} | {told} | {verdict.seconds:.1f}")

    click.echo(f"{'mutant':{wide}} | killed by | seconds")
    try:
        verdicts = judged(chosen, jobs, tell)
    except UnbrokenFails as error:
        raise click.ClickException(f"the tests fail without any mutant:\n{error}") from None
    counts = {fate: sum(verdict.fate is fate for verdict in verdicts) for fate in Fate}
    click.echo(", ".join(f"{count} {fate}" for fate, count in counts.items()))
    raise SystemExit(0 if counts[Fate.KILLED] == len(verdicts) else 1)


if __name__ == "__main__":
    main()
