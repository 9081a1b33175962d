"""A small world of one partition and its copy, in memory: what the matching laws are judged in.

`simulation` makes seeded worlds (a source log, MirrorMaker 2, a target log, and troubles that cross), `notation`
makes them by hand from `u@d` strings, `runner` asks `migrate.match.matcher.matching` about one, `judge` holds the
answer against `tests.integration.oracle`, which knows the records' true identities. By hand: `python -m tests.world
--help`.
"""
