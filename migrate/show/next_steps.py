"""What comes next with a plan, with the commands to copy: one answer for each state, whichever command is asked. Pure.

`show`, the report and a plan just made know what the files beside the plan say; `apply` also what the clusters say now.
"""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from migrate.errors import Refused
from migrate.plan.plan import UNDO, Plan, signatures_required, signed_so_far
from migrate.plan.totals import Totals
from migrate.show.aftermath import Aftermath, Beside
from migrate.text import shell_word

OPTIONS_TO_ADD = "With the cluster options of `plan` added (or in MM2_MIGRATE_* variables):"
GROUPS_TYPED = 20
# Choices of a plan that say what it is of; what a reviewer decided or waived is decided anew.
_FLAGS = ("failback", "source-down", "no-match")
_SAME = ("group-map", "commits-from", "commits-as-of", "by", "max-fetch")
_TOPICS, _GROUPS = ("topic", "exclude-topic"), ("group", "exclude-group")

Steps = tuple[tuple[str, ...], list[tuple[str, str]]]
"""Sentences, and the commands to copy, each with what it is for."""


@dataclass(frozen=True, slots=True)
class Typed:
    """The command as it was typed, for the next one to copy: command, plan path, and its cluster options.

    `to_sign` says how the plan is signed, "" where it need not be: it comes before anything that writes.
    """

    command: str
    path: str
    options: tuple[str, ...]
    to_sign: str = ""

    def line(self, *more: str) -> str:
        """Return a command line to copy."""
        return command_line(*self.command.split(), self.path, *self.options, *more)


def command_line(*words: str) -> str:
    """Return a command of this tool as it is typed."""
    return " ".join(["mm2-migrate", *map(shell_word, words)])


def plan_anew(plan: Plan, path: str, options: tuple[str, ...], groups: Collection[str] = ()) -> str:
    """Return the command that makes a new plan of these groups, or of all that a plan is of, under a name of its own.

    It has what the plan was made of; decisions and waivers are made anew. More than `GROUPS_TYPED` groups are not
    typed: then it is of all.
    """
    settings = plan.header.settings
    words = [f"--{flag}" for flag in _FLAGS if settings.get(flag)]
    words += [word for name in _SAME if (value := settings.get(name)) for word in (f"--{name}", value)]
    if required := signatures_required(settings):
        words += ["--require-signatures", str(required)]
    if 0 < len(groups) <= GROUPS_TYPED:
        words += group_words(groups)
    else:
        words += ["--groups-file", listed] if (listed := settings.get("groups-file", "")) else []
        words += _repeated(settings, _GROUPS)
    words += _repeated(settings, _TOPICS)
    # By bash's own clock: no plan may take the file of one that was applied, this one or one made after it.
    out = f'{shell_word(str(PurePath(path).with_suffix("")))}-"$(date +%F-%H%M%S)".plan'
    return f"{command_line('plan', *options, *words, '--out')} {out}"


def _repeated(settings: Mapping[str, str], names: Collection[str]) -> list[str]:
    return [word for name in names for each in shlex.split(settings.get(name, "")) for word in (f"--{name}", each)]


def group_words(groups: Collection[str]) -> list[str]:
    """Return the `--group` options that select just these groups, as words that are not quoted yet."""
    # Python escapes a hyphen, which is one anyway: names are to be read.
    return [word for group in groups for word in ("--group", re.escape(group).replace("\\-", "-"))]


def next_steps(
    plan: Plan, t: Totals, path: str, cluster_options: tuple[str, ...] | None, beside: Beside | None = None
) -> Steps:
    """Return what to do next in sentences, and the commands to copy, each with what it is for.

    `path` is the plan file's, the options those of `plan`, None where they are not known. `beside` is what the files
    beside the plan say, None where nobody looked.
    """
    beside = beside or Beside()
    sentences, applying = _applying(plan, t, path, cluster_options)
    if not beside.after.runs:
        if len(applying) > 1 and len(beside.signed) < signatures_required(plan.header.settings):
            so_far = signed_so_far(plan.header.settings, beside.signed)
            sign = f"mm2-migrate sign {shell_word(path)} --by NAME --note TEXT"
            return sentences, [(f"Whoever has read it signs; so far: {so_far}", sign), *applying]
        return sentences, applying
    sentences = () if cluster_options is not None else (OPTIONS_TO_ADD,)
    return sentences, list(_after(plan, path, cluster_options or (), beside.after, applying))


def _after(
    plan: Plan, path: str, options: tuple[str, ...], after: Aftermath, applying: list[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yield the commands of a plan that was carried out, in the order in which they help."""
    if after.spent:
        yield from spent_steps(plan, path, options, after.undone)
        return
    if after.half_undone:
        back = Typed("rollback", path, options).line(*group_words(sorted(after.half_undone)))
        yield "Finish the rollback of these groups alone that has begun", back
    anew = after.spent_groups | plan.blocked_groups()
    if applying and after.unwritten:
        partly = ["--allow-partial"] if anew or not plan.is_clean_to_apply() else []
        if after.left_out or plan.is_rehearsal:
            yield "The last apply left groups out: what it would do now", Typed("apply", path, options).line(*partly)
        else:
            again = Typed("apply", path, options).line("--approve", plan.fingerprint, "--execute", *partly)
            yield "Take up what is left: the same command again", again
    yield "Read the target afresh, and compare", Typed("verify", path, options).line()
    if plan.header.kind == UNDO:  # an undo is not undone: forward again is a new plan
        return
    yield "The way back, as a dry run", Typed("rollback", path, options).line()
    if anew:
        yield only_anew(plan, path, options, anew)


def only_anew(plan: Plan, path: str, options: tuple[str, ...], groups: Collection[str]) -> tuple[str, str]:
    """Return what it is for, and the command, where only a new plan helps these groups; of all groups where none."""
    rest = "; the rest of this one stays applied, or can be" if groups else ""
    return (
        f"Only a new plan helps what is blocked, was rolled back alone, or has changed{rest}",
        plan_anew(plan, path, options, sorted(groups)),
    )


def spent_steps(plan: Plan, path: str, options: tuple[str, ...], undone: bool | None) -> Iterator[tuple[str, str]]:
    """Yield what helps with a plan that is spent; `undone` is whether all of it was restored, None where not known."""
    if undone is False:
        finish = Typed("rollback", path, options).line("--approve", plan.fingerprint, "--execute")
        yield "Finish the rollback that has begun", finish
    yield "To go forward again, make a new plan", plan_anew(plan, path, options)


def spent_refusal(plan: Plan, path: str, options: tuple[str, ...], undone: bool | None) -> Refused:
    """Return why a spent plan is neither signed nor applied, with what helps; parameters as those of `spent_steps`."""
    why = "has been rolled back" if undone else "is spent, because a rollback of it has begun,"
    purpose, command = next(spent_steps(plan, path, options, undone))
    return Refused(
        f"Plan {plan.short_fingerprint} {why} and cannot be applied again. Nothing was written.",
        f"{purpose}: {command}",
    )


def _applying(plan: Plan, t: Totals, path: str, cluster_options: tuple[str, ...] | None) -> Steps:
    """Return how a plan is applied: sentences, and the dry run and the writing, or none."""
    if not t.groups_to_write or plan.cluster_blocks():
        clean = plan.is_clean()
        if plan.is_empty:
            return ("There is nothing to apply: correct the filters, then make a new plan.",), []
        return ("There is nothing to apply." if clean else "Fix what is blocked, then make a new plan.",), []
    lines, partial = [], [] if plan.is_clean_to_apply() else ["--allow-partial"]
    if partial and not plan.is_rehearsal:
        lines.append("Fix what is blocked and make a new plan, or leave the blocked groups out with --allow-partial:")
    if cluster_options is None:
        lines.append(OPTIONS_TO_ADD)
    typed = Typed("apply", path, cluster_options or ())
    dry_run = ("Dry run: every check, nothing written", typed.line(*partial))
    if plan.is_rehearsal:
        lines.insert(
            0, "A rehearsal: groups were alive. Stop them, then make a new plan; this shows what apply would do:"
        )
        return tuple(lines), [dry_run]
    writing = typed.line(*partial, "--approve", plan.fingerprint, "--execute")
    return tuple(lines), [dry_run, ("Apply what was approved", writing)]
