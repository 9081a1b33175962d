"""A mandate of `follow` as people read it before they approve it. Pure: text in lines, no printing."""

from collections.abc import Iterator

from migrate.clock import minute
from migrate.extras.follow.mandate import Mandate, mandate_of
from migrate.mm2.name_map import REGEX
from migrate.plan.plan import Plan
from migrate.show.lines import aligned, wrapped
from migrate.survey.policies import Untranslatable, parse_untranslatable
from migrate.text import Colour, many, name, paint, safe, shell_word, some

LABELS = 11
NAMES_SHOWN = 40


def mandate_lines(plan: Plan, path: str, width: int, colour: bool) -> Iterator[str]:
    """Yield a mandate as people read it before they approve it."""
    yield from wrapped(mandate_verdict(plan), width, colour=Colour.GREEN if colour else None)
    yield ""
    yield f"Fingerprint  {paint(plan.fingerprint, Colour.BOLD, colour)}"
    yield from aligned(mandate_facts(plan), width, LABELS)
    yield ""
    whole = "whole in the partitions that are not skipped" if _skips(mandate_of(plan)) else "whole"
    text = (
        f"In each pass a group is set {whole} or not at all: never while it has members on "
        f"{name(plan.header.target_alias)}, never over what somebody else wrote there since we began, never back but "
        "behind our own write."
    )
    yield from wrapped(text, width)
    yield ""
    yield "Dry run, with the cluster options added:"
    yield f"  mm2-migrate follow run {shell_word(path)}"


def mandate_verdict(plan: Plan) -> str:
    """Return a mandate in one line."""
    header, mandate = plan.header, mandate_of(plan)
    return (
        f"MANDATE: keep the offsets of groups of {name(header.source_alias)} fresh on {name(header.target_alias)} "
        f"until {minute(mandate.until_ms)}"
    )


def mandate_facts(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield what a mandate allows, as labels and sentences."""
    header, mandate = plan.header, mandate_of(plan)
    yield (
        "Flow",
        f"{name(header.source_alias)} ({safe(header.source_cluster_id)}) -> {name(header.target_alias)} "
        f"({safe(header.target_cluster_id)})",
    )
    yield "Until", f"{minute(mandate.until_ms)}"
    yield "Groups", _selection(mandate)
    topics = [*mandate.topic, *(f"not {text}" for text in mandate.exclude_topic)]
    yield "Topics", safe(", ".join(topics)) or "all that are copied"
    limits = (
        f"grades {safe(', '.join(mandate.grades))}; at most {many(mandate.max_rereads, 'record')} read twice by a group"
    )
    yield "Limits", limits
    if skips := _skips(mandate):
        yield "May skip", f"{safe(', '.join(skips))}: such partitions are left out, and their group set without them"
    budget = "" if mandate.max_fetch is None else f", {mandate.max_fetch} bytes from either cluster"
    yield "Reading", f"at most {many(mandate.match_limit, 'offset')} of a partition{budget} in a pass"
    if mandate.group_map:
        yield "Names", _names(mandate)
    if mandate.moving_group:
        yield (
            "Moving",
            f"followed although their commits move without a member: {safe(', '.join(mandate.moving_group))}",
        )
    yield "Waivers", ", ".join(map(safe, header.waivers)) or "none"
    if header.settings.get("require-signatures"):
        yield "Signatures", f"{header.settings['require-signatures']} are required"


def _skips(mandate: Mandate) -> list[str]:
    """Return for which reasons a partition without a translation is left out, where its group is refused by default."""
    default, by_reason = parse_untranslatable(mandate.untranslatable)
    if default is not Untranslatable.SKIP:
        return [reason for reason, choice in by_reason.items() if choice is Untranslatable.SKIP]
    kept = [reason for reason, choice in by_reason.items() if choice is not Untranslatable.SKIP]
    return [f"every reason but {', '.join(kept)}" if kept else "every reason"]


def _selection(mandate: Mandate) -> str:
    parts = [safe(", ".join(mandate.group)) or "all"]
    if mandate.named_groups is not None:
        listed = f": {some(map(name, mandate.named_groups), NAMES_SHOWN)}" if mandate.named_groups else ""
        parts.append(f"of the {many(len(mandate.named_groups), 'name')} of a groups file{listed}")
    if mandate.exclude_group:
        parts.append(f"not {safe(', '.join(mandate.exclude_group))}")
    return ", ".join(parts)


def _names(mandate: Mandate) -> str:
    """Return what groups are called on the target: whoever approves a mandate approves that too."""
    lines = (f"{REGEX * is_regex}{name(source)} -> {name(target)}" for source, target, is_regex in mandate.group_map)
    rest = "; `show --format json` has them all" * (len(mandate.group_map) > NAMES_SHOWN)
    return "on the target, by the first that fits: " + some(lines, NAMES_SHOWN, "; ") + rest
