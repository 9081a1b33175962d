"""The ACLs that keep a plan's groups from starting again on the cluster that they leave: printed, never run. Pure.

A group needs READ on itself to join, to stay and to commit; DESCRIBE, which `plan`, `apply` and `verify` ask for there,
is another operation, and a DENY of READ leaves it alone (`StandardAuthorizer`: only ALLOW of READ implies DESCRIBE).
The words are those of `kafka-acls` (`AclCommand`).
"""

from collections.abc import Iterator, Sequence

from migrate.errors import UsageError
from migrate.mm2.commands import COMMAND
from migrate.plan.plan import Header, Plan
from migrate.show.lines import wrapped
from migrate.text import Colour, many, name, shell_word, some

EVERYBODY = "User:*"
GROUPS_AT_ONCE = 50
# A file that only the user can name: who may write ACLs needs more rights than this tool ever asks for.
SETTINGS_FILE = "admin.properties"
_INDENT = "  "
# What Java's `String.trim` cuts off: not the blanks of Unicode, which Python's `strip` cuts too, and not only blanks.
_CUT = "".join(map(chr, range(0x21)))


def fence(
    plan: Plan, group: str | None, principals: Sequence[str], *, width: int = 80, colour: bool = False
) -> Iterator[str]:
    """Return the lines that fence the groups of a plan, or one of them, against `principals` ("User:app").

    Without a name those that the plan blocks are left open: they get no offsets on the target, and would run nowhere.
    Raises `UsageError` at once for a principal or a group that no ACL can name, for a group that the plan does not
    have, and for an undo, whose groups go back.
    """
    header = plan.header
    if header.kind != "plan":
        raise UsageError(
            f"This plan is an {header.kind}: its groups go back to where they came from.",
            "Fence the plan that it undoes.",
        )
    for principal in principals:
        kind, colon, who = principal.partition(":")
        if not (kind and colon and who) or principal != principal.strip(_CUT):
            raise UsageError(f"--principal {principal}: expected TYPE:NAME.", "For example User:app.")
    blocked = plan.blocked_groups()
    groups = [g for g in plan.groups() if g not in blocked]
    if group is not None:
        group = plan.group_called(group)
        if group not in plan.groups():
            raise UsageError(f"The plan has no group {name(group)}.", "`show` lists the groups that it has.")
        groups, blocked = [group], blocked & {group}
    if not groups and blocked:
        raise UsageError(
            f"The plan blocks all of its groups, {some(map(name, sorted(blocked)), 5)}: none is moved.",
            "`show` says why; name one to fence it all the same.",
        )
    fenced = [g for g in groups if _has_acl_of_its_own(g)]
    if not fenced:
        what = f"Group {name(groups[0])}" if len(groups) == 1 else "No group of this plan"
        raise UsageError(
            f"{what} cannot be named in an ACL of its own.", "Keep its consumers from starting by other means."
        )
    notes = []
    if others := [g for g in groups if g not in fenced]:
        notes.append(f"{many(len(others), 'group')} not fenced: no ACL can name {some(map(name, others), 5)} alone.")
    if blocked and group is None:
        notes.append(
            f"{many(len(blocked), 'group')} not fenced: the plan blocks {some(map(name, sorted(blocked)), 5)}, and a "
            "group that is not moved would run nowhere."
        )
    elif blocked:
        notes.append(f"WARNING: the plan blocks {name(fenced[0])}, which gets no offsets and would run nowhere.")
    return _lines(header, fenced, notes, principals or (EVERYBODY,), width, colour)


def _has_acl_of_its_own(group: str) -> bool:
    """False for names that `kafka-acls` takes for another: it cuts their ends, `*` is every group, NUL ends a word."""
    return bool(group) and group != "*" and group == group.strip(_CUT) and "\x00" not in group


def _lines(
    header: Header, groups: Sequence[str], notes: Sequence[str], principals: Sequence[str], width: int, colour: bool
) -> Iterator[str]:
    alias, brokers = name(header.source_alias), shell_word(header.flow.get("source_bootstrap") or "HOST:PORT")
    title = f"A FENCE for {many(len(groups), 'group')} on {alias}: printed here, run by you, never by this tool"
    yield from wrapped(title, width, colour=Colour.BOLD if colour else None)
    yield from wrapped(
        "Stop their consumers first. One that is fenced while it runs cannot commit what it has read, which is then "
        "read twice, nor leave its group: it fails at its next heartbeat or commit (GROUP_AUTHORIZATION_FAILED), and "
        "its group is empty when its session has timed out.",
        width,
        _INDENT,
    )
    for note in notes:
        yield from wrapped(note, width, _INDENT)
    denied = " ".join(f"--deny-principal {shell_word(p)}" for p in principals)
    for what, words in (
        (f"No client joins or commits for them on {alias} from here on:", f"--add {denied} --operation Read"),
        (
            f"To take it away, before they are started on {alias} again, and before offsets are written there "
            "(--failback):",
            f"--remove --force {denied} --operation Read",
        ),
        (
            f"Only where {alias} has allow.everyone.if.no.acl.found=true: there a first rule on a group shuts "
            "everybody else out of it as well, plan and apply too, unless this is allowed besides (take it away with "
            "--remove --force instead of --add):",
            f"--add --allow-principal {shell_word(EVERYBODY)} --operation Describe",
        ),
    ):
        yield from wrapped(what, width, _INDENT)
        for at in range(0, len(groups), GROUPS_AT_ONCE):
            named = " ".join(f"--group {shell_word(g)}" for g in groups[at : at + GROUPS_AT_ONCE])
            yield (
                f"{_INDENT}{COMMAND}kafka-acls.sh --bootstrap-server {brokers} --command-config "
                f"{SETTINGS_FILE} {words} {named}"
            )
    everybody = f"{EVERYBODY} is everybody; --principal User:app fences that one only. "
    yield from wrapped(
        f"{SETTINGS_FILE} holds the client settings of a principal that may ALTER the cluster. "
        + (everybody if EVERYBODY in principals else "")
        + "What this does not do: super users are never denied; who reads with assign() goes on reading, and cannot "
        "commit; another group.id is another group. Plan, apply and verify only need DESCRIBE there, and work on. "
        "Without an authorizer the brokers refuse ACLs (SecurityDisabledException).",
        width,
        _INDENT,
    )
