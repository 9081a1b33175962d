"""The type of every option in seconds: a span of time that ends."""

import math
from typing import Any

import click

# Some 23 days. Kafka's clients take ms in 31 bits, which end at 2,147,483 seconds: beyond, a deadline lies in the past.
MOST_SECONDS = 2_000_000


class Seconds(click.FloatRange):
    """A number of seconds, at least `min` and at most `MOST_SECONDS`; anything else is wrong usage (exit 2)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the seconds as a float."""
        seconds = super().convert(value, param, ctx)
        # Nothing is later than nan: such a deadline never comes. No clock can wait for inf.
        if not math.isfinite(seconds) or seconds > MOST_SECONDS:
            self.fail(f"{value} is no number of seconds up to {MOST_SECONDS:,}.", param, ctx)
        return seconds
