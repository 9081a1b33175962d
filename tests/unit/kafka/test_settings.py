"""Settings travel to processes and tasks, and show nothing of themselves on the way."""

import pickle

from migrate.kafka.settings import ClientSettings
from migrate.model import Side


def test_settings_arrive_as_they_were_sent_and_their_repr_shows_no_secret():
    settings = ClientSettings(Side.SOURCE, "A", "source A", {"sasl.password": "hunter2"}, frozenset({"hunter2"}))
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert "hunter2" not in repr(settings)
