"""The `sign` command."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from migrate.apply.journal import history_beside
from migrate.apply.signatures import add_signature, names_of, person, signature_of, signatures_path
from migrate.cli.console import printed
from migrate.cli.options import LogOptions, argument, option
from migrate.clock import SystemClock, iso
from migrate.plan.file import read_plan
from migrate.plan.plan import signed_so_far
from migrate.plan.totals import totals
from migrate.show.next_steps import spent_refusal
from migrate.show.plan_table import verdict
from migrate.text import name as shown


@dataclass(frozen=True, kw_only=True)
class SignOptions:
    """Which plan is signed, and by whom."""

    plan: Path = argument()
    by: str = option("Who has reviewed the plan. A claim: nothing checks who you are.", metavar="NAME", required=True)
    note: str = option("The reviewer's comment; goes into the journal with the name.", default="", metavar="TEXT")
    log: LogOptions = LogOptions()


def sign(options: SignOptions) -> int:
    """Sign a plan that you have reviewed: its fingerprint, a name and the time go into a file next to it.

    A plan made with --require-signatures N is applied only after N different names have signed it. Names are claims,
    not authentication. The signatures go into the journal when the plan is applied.
    """
    return printed(run_sign(options.plan, options.by, options.note))


def run_sign(path: Path, by: str, note: str) -> list[str]:
    """Sign a plan file; return the lines to print.

    Raises `Refused` for a plan that is spent: nothing can come of it any more.
    """
    plan = read_plan(path)
    state = history_beside(path, plan.fingerprint)
    if state.is_spent:
        raise spent_refusal(plan, str(path), (), state.is_undone)
    return signed(path, plan.fingerprint, plan.header.settings, by, note, verdict(plan, totals(plan))[0])


def signed(path: Path, fingerprint: str, settings: Mapping[str, str], by: str, note: str, what: str) -> list[str]:
    """Add a signature to those beside a file; return the lines to print, in which `what` says what was signed."""
    signature = signature_of(fingerprint, by, note, iso(SystemClock().now_ms()))
    file = signatures_path(path, fingerprint)
    signatures = add_signature(file, signature)
    names = names_of(signatures)
    again = sum(person(s.name) == person(signature.name) for s in signatures) > 1
    return [
        f"SIGNED by {shown(signature.name)}" + (" (again: a name counts once)" if again else ""),
        f"Fingerprint  {fingerprint}",
        f"Plan         {what}",
        f"Signatures   {signed_so_far(settings, names)}",
        f"File         {file.name}",
    ]
