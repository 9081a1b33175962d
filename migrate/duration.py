"""Spans of time as people say them. Pure."""


def duration_text(seconds: float) -> str:
    """Return "0 s", "45 s", "3 min 20 s", "2 h 5 min", "3 d 4 h": two units are enough to decide by."""
    whole = max(0, round(seconds))
    if whole < 100:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 100:
        return f"{minutes} min {rest} s" if rest and minutes < 10 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"
