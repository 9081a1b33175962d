"""`follow` by tokens that a command prints and that live for seconds: it outlives many of them without any trouble."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.checks.rights import COMMANDS
from tests.extras.follow.integration.followedscene import Mandated, passes, wait_pass
from tests.integration.clusters import commits_on
from tests.integration.running import started
from tests.integration.securescene import SecureScene, found_in, granted_scene
from tests.lab.waiting import wait_until

pytestmark = pytest.mark.long

VALID_SECONDS = 10
# By all processes of a `follow` together, each of which makes one in half a life: over two minutes.
RENEWED = 44


@pytest.fixture
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureScene]:
    with granted_scene(tmp_path_factory, ("moves",), COMMANDS) as scene:
        yield scene


def test_tokens_of_seconds_are_renewed_without_any_trouble(secure: SecureScene, tmp_path: Path) -> None:
    secure.tokens.valid_seconds = VALID_SECONDS
    commands, group = secure.by_token_command(tmp_path), secure.scene.group("moves")
    copy, printed = secure.scene.copy(secure.pool), secure.secrets / "printed"
    mandate = Mandated.made(commands, secure.scene)

    def held() -> int:
        return commits_on(secure.target.bootstrap, [group]).get(group, {}).get((copy, 0), -1)

    with started(commands, *mandate.words("2s", "--settle", "1")) as running:
        wait_pass(running, "what was committed before", lambda _: held() > 0)
        for offset in (130, 170):
            before, enough = held(), len(tokens_in(printed)) + RENEWED // 2
            wait_until(lambda enough=enough: len(tokens_in(printed)) > enough, 600, "tokens to be renewed")
            secure.scene.commit({group: {(secure.pool, 0): offset}})
            wait_pass(running, "what was committed since", lambda _, before=before: held() > before)
        refused = [seen["trouble"] for seen in passes(running) if "uthenticat" in str(seen["trouble"])]
        running.process.terminate()
        running.result().expect(0)
    assert not refused and not found_in(tokens_in(printed), tmp_path)


def tokens_in(printed: Path) -> list[str]:
    return printed.read_text().split()
