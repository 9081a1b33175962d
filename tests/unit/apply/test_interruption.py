import logging

from migrate.spark.machine import _quieten_py4j


def test_what_py4j_logs_by_the_root_logger_is_kept_off_the_terminal_and_nothing_else_is() -> None:
    root, before = logging.getLogger(), list(logging.getLogger().filters)

    def shown(path: str) -> bool:
        said = "KeyboardInterrupt while sending command."
        return bool(root.filter(logging.LogRecord("root", logging.INFO, path, 1, said, None, None)))

    try:
        _quieten_py4j()
        assert not shown("/venv/site-packages/py4j/clientserver.py")
        assert shown("/app/migrate/py4j_like.py") and not logging.getLogger("py4j").propagate
    finally:
        root.filters[:] = before
