"""A flow as an mm2.properties file, a Connect worker or a Strimzi resource tells it, and how one is refused."""

import pytest

from migrate.cli.options import resolve_flow
from migrate.errors import ConfigError
from tests.facts import options
from tests.fakeworker import worker
from tests.unit.connectscene import rest, strimzi_file

BASE = """
clusters = A, B ,C
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
C.bootstrap.servers = c:1
A->B.enabled = true
B->A.enabled = false
C->A.enabled = TRUE
"""

FILE_PROVIDER = (
    "config.providers=file\nconfig.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n"
)


def refusal(flow_of, *args, **kwargs):
    with pytest.raises(ConfigError) as caught:
        flow_of(*args, **kwargs)
    assert caught.value.todo
    return str(caught.value)


def from_properties(tmp_path, settings, **given):
    """The flow A -> B of a file whose settings are those of that flow."""
    path = tmp_path / "mm2.properties"
    path.write_text(BASE + "".join(f"A->B.{key} = {value}\n" for key, value in settings.items()))
    return resolve_flow(options(mm2_config=path, **given))


def from_worker(listed, version="4.1.0", **given):
    """The flow that the connectors of a worker make up."""
    with worker(rest(listed, version)) as url:
        return resolve_flow(options(connect_url=url, **given))


def from_strimzi(tmp_path, *documents, **given):
    return resolve_flow(options(strimzi=strimzi_file(tmp_path, *documents), **given))
