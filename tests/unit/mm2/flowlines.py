"""Lines of an mm2.properties file, and how one is refused."""

import pytest

from migrate.errors import ConfigError

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


IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def refusal(flow_of, *args, **kwargs):
    with pytest.raises(ConfigError) as caught:
        flow_of(*args, **kwargs)
    assert caught.value.todo
    return str(caught.value)
