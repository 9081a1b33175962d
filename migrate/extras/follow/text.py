"""What `follow` prints of its passes, and of how they ended: JSON lines, and text. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from migrate.clock import iso
from migrate.extras.follow.delay import DelaySum, Waiting
from migrate.extras.follow.engine import PassResult
from migrate.extras.follow.mandate_text import LABELS, mandate_facts
from migrate.extras.follow.passes import PassSum
from migrate.plan.plan import Plan
from migrate.show.lines import aligned, wrapped
from migrate.text import Colour, both_names, duration_text, many, name, paint, safe, shell_word, some

GROUPS_SHOWN = 40
NO_GROUP = "NOTHING TO FOLLOW: no commit of any group is inside the mandate's filters"


def pass_document(result: PassResult) -> dict[str, Any]:
    """Return one pass as a JSON line has it.

    `refused` counts groups by reason; it and the unsafe groups are null where no group was judged: nobody knows then.
    """
    delays = DelaySum()
    delays.add(result.delays)
    # Writing has its troubles too, but only with groups that were judged before.
    was_judged = not result.trouble or result.groups > 0
    return {
        "pass": result.number,
        "at": iso(result.at_ms),
        "seconds": result.seconds,
        "groups": result.groups,
        "rows": result.rows,
        "rows_changed": result.rows_changed,
        "rows_set": result.rows_set,
        "rows_already_there": result.rows_already_there,
        "refused": _counted(r.reason for r in result.refused.values()) if was_judged else None,
        "unsafe_to_fail_over": list(result.unsafe) if was_judged else None,
        "delay_seconds": delays.document(),
        "waiting_for_mm2": {"rows": result.waiting.rows, "oldest_seconds": result.waiting.oldest_seconds},
        "source_bytes": result.source_bytes,
        "target_bytes": result.target_bytes,
        "offsets_topic_records": result.offsets_topic_records,
        "trouble": result.trouble or None,
    }


def _counted(reasons: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(reasons).items()))


def status_file_document(
    plan: Plan, total: PassSum, every_seconds: float, process: str, ended: str,
    earlier: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return what the status file says: the newest pass, each group that was refused and why, all passes together.

    The groups are those of the newest pass without trouble, which began at `refused_at`. Until there is one, they are
    those of `earlier`, the file that a run before has left; null where there is none.
    """
    last = total.last_whole
    known = earlier or {}
    return {
        "fingerprint": plan.fingerprint,
        "until": plan.header.settings["until"],
        "every_seconds": every_seconds,
        "process": process,
        "ended": ended or None,
        "pass": None if total.last is None else pass_document(total.last),
        "refused_at": iso(last.at_ms) if last else known.get("refused_at"),
        "refused_groups": _refused_groups(last) if last else known.get("refused_groups"),
        "uncovered_groups": dict(last.uncovered) if last else known.get("uncovered_groups"),
        "run": {
            "passes": total.passes,
            "failed": total.failed,
            "rows_set": total.rows_set,
            "longest_pass_seconds": total.longest_seconds,
            "delay_seconds": total.delays.document(),
        },
    }


def _refused_groups(result: PassResult) -> dict[str, Any]:
    return {
        group: {
            "target_group": result.target_names.get(group, ""),
            "reason": r.reason,
            "sentence": r.sentence,
            "unsafe_to_fail_over": r.is_unsafe,
        }
        for group, r in result.refused.items()
    }


def delay_text(delay: Mapping[str, Any]) -> str:
    """Return delays as a sentence, from the document of a `DelaySum`."""
    if not delay["rows"]:
        return "none measured yet"
    rest = f", {delay['from_first_seen']} of them from when the commit was first seen" * bool(delay["from_first_seen"])
    rows = many(delay["rows"], "row")
    return f"p50 {delay['p50']:g} s, p99 {delay['p99']:g} s, at most {delay['max']:g} s ({rows}{rest})"


def follow_lines(plan: Plan, total: PassSum, ended: str, width: int, colour: bool) -> Iterator[str]:
    """Yield how a run ended: verdict, what was set and how late, and each group that was left out, with the reason."""
    last = total.last_whole
    left = len(last.refused) if last else 0
    verdict = "FOLLOWED" if total.exit_code == 0 else "FOLLOWED IN PART" if last else "FAILED"
    tail = f"; {many(left, 'group')} left out" if left else ""
    text = f"{verdict}: {_passes(total.passes)}, {many(total.rows_set, 'row')} set{tail}{_waiting(last)}"
    if last is not None and last.is_empty:
        text = f"{NO_GROUP}: {_passes(total.passes)}"
    yield from wrapped(text, width, colour=_colour(total.exit_code, colour))
    facts = [("Mandate", plan.fingerprint), ("Ended", safe(ended))]
    if last is not None:
        facts.append(("Groups", f"{many(last.groups, 'group')} with {many(last.rows, 'row')} in the newest pass"))
    facts.append(("Delay", delay_text(total.delays.document())))
    if total.failed:
        trouble = total.last.trouble if total.last and total.last.trouble else "the newest pass succeeded"
        facts.append(("Trouble", f"{_passes(total.failed)} failed; {safe(trouble)}"))
    yield from aligned(facts, width, LABELS)
    yield from refused_lines(last, width, colour)


def dry_run_lines(
    plan: Plan, path: str, result: PassResult, width: int, colour: bool, to_sign: str = ""
) -> Iterator[str]:
    """Yield what one pass would do, and what to type so that it does, or how to sign (`to_sign`) where that lacks."""
    text = f"DRY RUN: a pass would set {many(result.rows_to_set, 'row')} of {many(result.groups, 'group')}"
    text = f"DRY RUN: {NO_GROUP}" if result.is_empty else text + _waiting(result)
    yield from wrapped(text + "; nothing was written", width, colour=Colour.YELLOW if colour else None)
    yield from aligned(mandate_facts(plan), width, LABELS)
    yield from refused_lines(result, width, colour)
    yield ""
    if to_sign:
        yield to_sign
        return
    yield "With the cluster options added:"
    yield f"  mm2-migrate follow run {shell_word(path)} --approve {plan.fingerprint} --execute"


def refused_lines(result: PassResult | None, width: int, colour: bool) -> Iterator[str]:
    """Yield each group that is left out and why, those first that would skip records on the target now."""
    if result is not None and result.uncovered:
        yield ""
        yield paint("UNSAFE TO FAIL OVER", Colour.BOLD, colour)
        for group, lacking in list(result.uncovered.items())[:GROUPS_SHOWN]:
            yield from wrapped(f"{name(group)}  {safe(lacking)}: auto.offset.reset decides there", width, "  ", "    ")
        if len(result.uncovered) > GROUPS_SHOWN:
            yield f"  and {many(len(result.uncovered) - GROUPS_SHOWN, 'more group')}: the status file has them all"
    refused = sorted(result.refused.items(), key=lambda item: (not item[1].is_unsafe, item[0])) if result else []
    if not refused:
        return
    yield ""
    yield paint("LEFT OUT", Colour.BOLD, colour)
    for group, refusal in refused[:GROUPS_SHOWN]:
        unsafe = "unsafe-to-fail-over: it may skip records on the target. " if refusal.is_unsafe else ""
        called = both_names(group, result.target_names.get(group, group) if result else group)
        yield from wrapped(f"{called}  {refusal.reason}: {unsafe}{safe(refusal.sentence)}", width, "  ", "    ")
    if len(refused) > GROUPS_SHOWN:
        yield f"  and {many(len(refused) - GROUPS_SHOWN, 'more group')}: the status file has them all"


def status_facts(document: Mapping[str, Any] | None, now_ms: int, at_ms: int | None) -> Iterator[tuple[str, str]]:
    """Yield what a status file says, as labels and sentences; `at_ms` is when its newest pass began, None for none."""
    if document is None:
        yield "Follow", "it has not made a pass: there is no status file beside the mandate"
        return
    last, run = document["pass"], document["run"]
    age = "no pass yet" if at_ms is None else f"pass {last['pass']}, {duration_text(max(0, now_ms - at_ms) / 1000)} ago"
    state = f"ended: {document['ended']}" if document["ended"] else "running by its own account"
    if last is not None and not document["ended"] and at_ms is not None:
        due_seconds = max(document["every_seconds"], last["seconds"]) + run["longest_pass_seconds"]
        if now_ms - at_ms > due_seconds * 1000:
            due = duration_text(due_seconds)
            state = f"overdue: the next pass should have ended after {due}; its process may be dead"
    if last is not None and (waiting := last["waiting_for_mm2"])["rows"]:
        age += f"; {_waiting_text(waiting['rows'], waiting['oldest_seconds'])}"
    yield "Follow", safe(f"{age}; {state} ({document['process']})")
    if not document["ended"]:
        writes = (
            "may move commits of groups without members on the target (commits-moving); end it before the night's plan"
        )
        yield "Writes", f"{safe(document['process'])} {writes}"
    if last is not None:
        if last["refused"] is not None:
            groups = f"{many(last['groups'], 'group')}, {many(last['rows'], 'row')}, {last['rows_set']} set"
            groups += f", {last['rows_already_there']} already there" * bool(last["rows_already_there"])
            yield "Pass", safe(f"{groups}; {_left_out(last['refused'])}")
            unsafe = last["unsafe_to_fail_over"]
        elif (known := document["refused_groups"]) is not None:
            counts = _counted(group["reason"] for group in known.values())
            yield "Pass", safe(f"ended before any group was judged; at {document['refused_at']}, {_left_out(counts)}")
            unsafe = [name for name, group in known.items() if group["unsafe_to_fail_over"]]
        else:
            yield "Pass", "ended before any group was judged, as all before it: which are left out is not known"
            unsafe = []
        if last["trouble"]:
            yield "Trouble", safe(last["trouble"])
        if unsafe:
            yield "Unsafe", f"unsafe-to-fail-over: {safe(some(unsafe, GROUPS_SHOWN))}"
    yield "Delay", delay_text(run["delay_seconds"])


def _waiting(result: PassResult | None) -> str:
    waiting = Waiting() if result is None else result.waiting
    return f"; {_waiting_text(waiting.rows, waiting.oldest_seconds)}" if waiting.rows else ""


def _waiting_text(rows: int, oldest_seconds: float) -> str:
    verb = "waits" if rows == 1 else "wait"
    return f"{many(rows, 'row')} {verb} for MM2, the oldest for {duration_text(oldest_seconds)}"


def _left_out(refused: Mapping[str, int]) -> str:
    return f"left out: {', '.join(f'{n} {reason}' for reason, n in refused.items()) or 'none'}"


def _passes(count: int) -> str:
    return "1 pass" if count == 1 else f"{count} passes"


def _colour(code: int, colour: bool) -> Colour | None:
    return (Colour.GREEN if code == 0 else Colour.RED) if colour else None
