"""The fingerprint of one record, as the product makes them by the million."""

from migrate.match.equality import Content, Equality, fingerprints


def fingerprint(content: Content, equality: Equality) -> int:
    """Return the fingerprint of the parts that `equality` looks at."""
    parts = ([content.timestamp], [content.key], [content.value], [content.headers])
    return fingerprints(equality, *parts)[0]
