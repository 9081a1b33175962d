"""What a rollback cannot take back, as text. Pure."""

from collections.abc import Iterator

from migrate.apply.elsewhere import Elsewhere
from migrate.show.table import at_most, names, wrapped
from migrate.text import Colour, many, name, paint, safe

NAMED = 20


def elsewhere_lines(found: Elsewhere, width: int, colour: bool) -> Iterator[str]:
    """Yield what is to be said before the outcome of a rollback; nothing where nothing was found."""
    if found.rows:
        groups = len({row.group for row in found.rows})
        verdict = (
            f"NOT ALL OF IT: {many(len(found.rows), 'offset')} of {many(groups, 'group')} "
            f"{'is' if len(found.rows) == 1 else 'are'} as planned, and this journal did not write "
            f"{'it' if len(found.rows) == 1 else 'them'}"
        )
        yield from wrapped(paint(verdict, Colour.YELLOW, colour), width, "", "  ")
        places = [f"{name(r.group)} {name(r.target_topic)}:{r.partition}: at {r.target_offset}" for r in found.rows]
        yield from at_most(places, NAMED, width)
        yield from wrapped(
            "Was the plan applied from a copy in another folder? Roll back there too: that journal has what was there "
            "before. Another plan, or MM2, may have written them as well.", width, "  > ",
        )  # fmt: skip
    if found.unread:
        verdict = f"NOT LOOKED AT: {many(len(found.unread), 'group')} that this journal did not write"
        yield from wrapped(paint(verdict, Colour.YELLOW, colour), width, "", "  ")
        yield from wrapped(f"{names(found.unread, NAMED)}: {safe(found.why)}", width, "  ", "    ")
        yield from wrapped("Run the same command again to know whether they are as planned.", width, "  > ")
    if found:
        yield ""
