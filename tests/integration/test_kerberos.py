"""Kerberos, on brokers with a KDC of the lab: Java logs in as it is, librdkafka where it was built for it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.kafka.client_config import has_kerberos
from migrate.model import Side
from tests.integration.cli import REPOSITORY, CommandLine, without_settings_of_ours
from tests.integration.securescene import USER, SecureScene, granted_scene
from tests.lab.kerberos import MODULE, OVERRIDES, SERVICE, Realm, kdc_program

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not kdc_program(), reason="Kerberos' KDC is missing (apt-get install krb5-kdc krb5-user)"),
]

COMMANDS = ("plan", "apply", "verify", "verify --records", "rollback", "status")
BY_TICKET = f"{MODULE} required useTicketCache=true;"

# Logs in by Kafka's Java client, and by Spark's Kafka source, with each of these properties; says what came of it.
LOOK = """
import json, sys
from migrate.errors import MigrateError
from migrate.mm2.flow import Cluster
from migrate.model import Side
from migrate.spark.background import background_spark
from migrate.spark.java_admin import KafkaJava
from migrate.spark.java_settings import java_settings
topic, cases, seconds = json.loads(sys.stdin.read())
with background_spark("local[1]", {}) as spark:
    for properties in cases:
        settings = java_settings(Cluster(Side.SOURCE, "A", properties))
        try:
            KafkaJava(spark.machine, settings, seconds).prove()
            read = spark().read.format("kafka").options(**settings.source).option("subscribe", topic)
            print(json.dumps(f"{read.load().count()} records"))
        except MigrateError as error:
            print(json.dumps(f"{error.problem} > {error.todo}"))
"""


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    realm = Realm(tmp_path_factory.mktemp("realm"), USER)
    try:
        yield realm.start()
    finally:
        realm.stop()


@pytest.fixture(scope="module")
def secure(realm: Realm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureScene]:
    overrides = {"source_overrides": OVERRIDES, "target_overrides": OVERRIDES}
    with granted_scene(tmp_path_factory, ("kerberos",), COMMANDS, realm, **overrides) as scene:
        yield scene


def login(jaas: str, service: str = SERVICE) -> dict[str, str]:
    return {"sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": service, "sasl.jaas.config": jaas}


def properties(secure: SecureScene, jaas: str, service: str = SERVICE) -> dict[str, str]:
    return secure.client_properties(Side.SOURCE) | login(jaas, service)


def commands(secure: SecureScene, folder: Path, of_source: str, of_target: str) -> CommandLine:
    logins = {Side.SOURCE: login(of_source), Side.TARGET: login(of_target)}
    lines = {side: "".join(f"{key}={value}\n" for key, value in each.items()) for side, each in logins.items()}
    return secure.by_files(folder, lines)


def looked(secure: SecureScene, environment: dict[str, str], *cases: dict[str, str], seconds: float = 60) -> list[str]:
    """What Java says to each of these properties."""
    ran = subprocess.run(
        [sys.executable, "-c", LOOK], input=json.dumps([secure.pool, cases, seconds]), capture_output=True, text=True,
        check=False, timeout=600, env=without_settings_of_ours() | environment | {"PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_java_logs_in_by_keytab_and_by_ticket_or_says_why_not(secure: SecureScene, realm: Realm) -> None:
    valid, short = realm.ticket(USER), realm.ticket(USER, "3s")
    realm.wait_over(short)
    ended = BY_TICKET.replace(";", f' ticketCache="{short["KRB5CCNAME"].removeprefix("FILE:")}";')
    stranger = realm.jaas(USER).replace(f"{USER}@", "stranger@")
    by_keytab, by_ticket, too_late, wrong_service, unknown = looked(
        secure, valid,
        properties(secure, realm.jaas(USER)), properties(secure, BY_TICKET),
        properties(secure, ended), properties(secure, BY_TICKET, "kafak"),
        properties(secure, stranger),
    )  # fmt: skip
    assert by_keytab == by_ticket and by_keytab.endswith(" records") and int(by_keytab.split()[0]) > 0
    assert "klist shows the tickets (kinit gets a new one)" in too_late
    assert "Server not found in Kerberos database" in wrong_service
    assert "klist -k FILE whose keys a keytab has" in unknown and "klist" in wrong_service


def test_a_clock_that_is_not_the_kdcs_ends_java_in_a_time_out_whose_advice_names_clocks(
    secure: SecureScene, realm: Realm
) -> None:
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if library is None:
        pytest.skip("Kerberos' KDC is missing another clock (apt-get install faketime)")
    with realm.an_hour_ahead(library):
        (refused,) = looked(secure, realm.environment, properties(secure, realm.jaas(USER)), seconds=10)
    assert "TimeoutException" in refused and "all clocks have to agree" in refused


def test_a_wheel_without_kerberos_is_refused_before_any_cluster_is_asked(
    secure: SecureScene, realm: Realm, tmp_path: Path
) -> None:
    if has_kerberos():
        pytest.skip("confluent-kafka was built with Kerberos here")
    ran = commands(secure, tmp_path, realm.jaas(USER), BY_TICKET).plan("cutover.plan").expect(2)
    told = " ".join(ran.complaint().split())
    assert "conda install -c conda-forge python-confluent-kafka" in told and "pip install --no-binary" in told


def test_a_cutover_by_keytab_on_one_side_and_a_ticket_on_the_other(
    secure: SecureScene, realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_kerberos():
        pytest.skip("confluent-kafka was built without Kerberos")
    for name, value in realm.ticket(USER).items():
        monkeypatch.setenv(name, value)
    by_both = commands(secure, tmp_path, realm.jaas(USER), BY_TICKET)
    chosen = ("--group", f".*{secure.scene.suffix}")
    by_both.run("doctor", *by_both.clusters, *chosen).expect(0)
    by_both.plan("cutover.plan", *chosen).expect(0)
    rows = by_both.document("cutover.plan")["rows"]
    assert len(rows) == 2 and {row["grade"] for row in rows} == {"exact"}
    by_both.execute("cutover.plan").expect(0)
    by_both.verify("cutover.plan", "--records").expect(0)
    by_both.undo("cutover.plan").expect(0)
