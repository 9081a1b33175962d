"""The documentation: a short front page, links that lead somewhere, and only options that a command has."""

import re
from pathlib import Path

from click import Group

from migrate.checks.checklist import CHECKS, NEVER_ACCEPTABLE
from migrate.cli import main
from migrate.cli.main import cli

ROOT = Path(__file__).parents[2]
PAGES = {str(path.relative_to(ROOT)): path for path in (
    ROOT / "README.md", ROOT / "RUNBOOK.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")),
)}  # fmt: skip
FENCE = re.compile(r"^ *```.*?^ *```$", re.M | re.S)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
# Options of other programs that the pages name: kafka-consumer-groups, and what developers use.
KAFKA = {"--all-groups", "--describe", "--reset-offsets", "--from-file"}
DEVELOPERS = {"--against", "--long", "--list", "--quick", "--mutants", "--excused", "--dist", "--strict"}

COMMANDS = {
    " ".join(words): {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    for name, group in cli.commands.items()
    for words, command in (
        [((name, sub), c) for sub, c in group.commands.items()] if isinstance(group, Group) else [((name,), group)]
    )
}
ANY = set().union(*COMMANDS.values()) | {"--help", "--version"}
# The README's table of extras says which commands each has, and its page. One may be taken out, and its page may stay.
EXTRAS = re.findall(r"^\| (\w+) \| (.*?) \| .* \| \[.*?\]\((docs/.*?)\) \|$", (ROOT / "README.md").read_text(), re.M)
ABSENT = {
    name: page for _, names, page in EXTRAS for name in CODE.findall(names) if name.partition(" --")[0] not in COMMANDS
}


def prose(page: str) -> str:
    """A page without its code blocks."""
    return FENCE.sub("", PAGES[page].read_text())


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, made as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def command_of(words: str) -> str | None:
    """The command that `words` begin with, if they begin with one."""
    words = words.removeprefix("mm2-migrate ")
    return next((name for name in COMMANDS if f"{words} ".startswith(f"{name} ")), None)


def pieces(page: str) -> list[str]:
    """Everything on a page that is set as code and may name options of mm2-migrate."""
    found = CODE.findall(prose(page))
    for block in FENCE.findall(PAGES[page].read_text()):
        lines = block.replace("\\\n", " ").splitlines()
        found += [line.strip().removeprefix("$ ").partition(" #")[0] for line in lines if "mm2-migrate " in line]
    named = [piece for piece in found if OPTION.search(piece)]
    return [piece for piece in named if not piece.removeprefix("mm2-migrate ").startswith(tuple(ABSENT))]


def known_options(page: str, piece: str) -> set[str]:
    """The options that may stand in a piece of code: of its script, of its command, or of any command."""
    script = re.match(r"scripts/[\w-]+", piece)
    if script:
        return set(OPTION.findall((ROOT / script[0]).read_text()))
    elsewhere = DEVELOPERS if page in ("CONTRIBUTING.md", "docs/decisions.md") else KAFKA
    return elsewhere | {"--help"} | COMMANDS.get(command_of(piece) or "", ANY)


def test_every_page_is_one_click_away_and_begins_with_the_question_that_it_answers():
    offenders = []
    assert len((ROOT / "README.md").read_text().splitlines()) < 200, "the README is a front page"
    for page in (name for name in PAGES if name.startswith("docs/")):
        title, first = prose(page).split("\n\n")[:2]
        if f"]({page})" not in prose("README.md"):
            offenders.append(f"{page}: the README has no link to it")
        if not (title.startswith("# ") and "?" in first):
            offenders.append(f"{page}: does not begin with a title and a question")
    assert not offenders, "\n".join(offenders)


def test_the_readme_has_every_extra_in_its_table():
    assert {name for name, _, _ in EXTRAS} >= set(main.EXTRAS)
    assert all(page in PAGES for _, _, page in EXTRAS)


def test_what_the_screen_says_is_sorted_by_its_first_words_in_the_runbook():
    table = prose("RUNBOOK.md").partition("| the screen says | do |\n")[2].partition("\n\n")[0]
    verdicts = re.findall(r"^\| `(.*?)`", table, re.M)
    assert len(verdicts) > 15 and verdicts == sorted(verdicts)
    product = "".join(path.read_text() for path in sorted((ROOT / "migrate").rglob("*.py")))
    words = {word for verdict in verdicts for word in re.findall(r"[A-Z]{2,}", verdict)}
    assert not {word for word in words if word not in product}


def test_every_link_leads_to_a_file_and_a_heading_that_exist():
    offenders, links = [], 0
    for page in PAGES:
        for link in (link for link in LINK.findall(prose(page)) if not re.match(r"[a-z]+:", link)):
            name, _, anchor = link.partition("#")
            path = PAGES[page].parent / name if name else PAGES[page]
            links += 1
            if not path.exists() or anchor and anchor not in anchors(path.read_text()):
                offenders.append(f"{page}: {link}")
    assert links > 50
    assert not offenders, "\n".join(offenders)


def test_every_option_that_a_page_names_is_one_of_its_command():
    offenders = [
        f"{page}: {', '.join(sorted(unknown))} in `{piece}`"
        for page in PAGES.keys() - set(ABSENT.values())
        for piece in pieces(page)
        if (unknown := set(OPTION.findall(piece)) - known_options(page, piece))
    ]
    assert not offenders, "\n".join(offenders)


def test_every_check_is_named_and_so_are_those_that_nobody_can_accept():
    named = set(CODE.findall(PAGES["docs/checks.md"].read_text()))
    reasons = set(CODE.findall(PAGES["docs/translation.md"].read_text()))
    assert not {check.name for check in CHECKS} - named - reasons
    never = re.search(r"Never accepted are (.*?)\.", PAGES["docs/checks.md"].read_text(), re.S)
    assert never and set(CODE.findall(never[1])) - {"log-not-visible"} == NEVER_ACCEPTABLE
