"""The text of a page and of a plan's formats, as a reader sees it."""

import html
import re
from collections.abc import Iterator, Sequence

from migrate.plan.plan import Plan
from migrate.show.plan_export import FORMATS, select
from migrate.show.plan_table import Page


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", text)))


def render(
    plan: Plan,
    form: str,
    path: str,
    *,
    groups: Sequence[str] = (),
    only: Sequence[str] = (),
    width: int = 80,
    colour: bool = False,
) -> Iterator[str]:
    """The lines that `show` prints of a plan."""
    return FORMATS[form](plan, select(plan.rows, groups, only), Page(path, width, colour))
