"""A Kerberos realm of the lab's own: a KDC on 127.0.0.1, keytabs, tickets, and what brokers and clients need of it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.ports import HOST, free_ports
from tests.lab.process import GuardedProcess
from tests.lab.waiting import wait_until

REALM = "LAB"
SERVICE = "kafka"
# Beside its login, a broker is set to this for all mechanisms of a listener: where one is Kerberos, they look for it.
OVERRIDES = {"sasl.kerberos.service.name": SERVICE}
MODULE = "com.sun.security.auth.module.Krb5LoginModule"
# Debian has them where no ordinary user's PATH leads.
PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


def kdc_program() -> str | None:
    """The program of MIT's KDC; None where it is not installed."""
    return shutil.which("krb5kdc", path=PATH)


class Realm:
    """A KDC with the brokers' principal and those of `users`. Stands where brokers have a `TokenServer` else.

    `environment` is what programs of MIT's, librdkafka among them, and Java are told of it by.
    """

    own_classes = None

    def __init__(self, folder: Path, *users: str) -> None:
        self.folder = folder
        self.config = folder / "krb5.conf"
        self.environment = {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{folder / 'nobody.tickets'}",
            "JAVA_TOOL_OPTIONS": " ".join(self.jvm_flags),
        }
        # Both families of clients ask for the name of an address.
        self._broker = f"{SERVICE}/{socket.gethostbyaddr(HOST)[0].lower()}"
        self._names = (self._broker, *users)
        self._port = free_ports(1)[0]
        told = (f"{key}={value}" for key, value in self.environment.items())
        self._command = ["env", *told, kdc_program() or "krb5kdc", "-n"]
        self.kdc = GuardedProcess(f"the KDC of {REALM}", self._command, folder / "kdc.log")

    @property
    def jvm_flags(self) -> tuple[str, ...]:
        return (f"-Djava.security.krb5.conf={self.config}",)

    @property
    def logins(self) -> dict[str, dict[str, str]]:
        """What a broker is set to, by mechanism."""
        return {"GSSAPI": {"sasl.jaas.config": self.jaas(self._broker)}}

    def jaas(self, user: str) -> str:
        """A login by keytab, as it is written in a Java client's properties."""
        keytab = f'useKeyTab=true storeKey=true keyTab="{self.keytab(user)}" principal="{user}@{REALM}"'
        return f"{MODULE} required {keytab};"

    def keytab(self, user: str) -> Path:
        return self.folder / f"{user.replace('/', '-')}.keytab"

    def ticket(self, user: str, life: str = "1h") -> dict[str, str]:
        """Get a ticket by keytab that ends after so long; return the environment that names it."""
        environment = self.environment | {"KRB5CCNAME": f"FILE:{self.folder / f'{user}-{life}.tickets'}"}
        self._run("kinit", "-l", life, "-k", "-t", str(self.keytab(user)), f"{user}@{REALM}", environment=environment)
        return environment

    def start(self) -> Realm:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.config.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            f" udp_preference_limit = 1\n[realms]\n {REALM} = {{\n  kdc = {HOST}:{self._port}\n }}\n"
        )
        (self.folder / "kdc.conf").write_text(
            f'[kdcdefaults]\n kdc_listen = ""\n kdc_tcp_listen = {HOST}:{self._port}\n[realms]\n {REALM} = {{\n'
            f"  database_name = {self.folder}/principals\n  key_stash_file = {self.folder}/stash\n }}\n"
        )
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "of-the-lab")
        for name in self._names:
            self._run("kadmin.local", "-r", REALM, "addprinc", "-randkey", name)
            self._run("kadmin.local", "-r", REALM, "ktadd", "-k", str(self.keytab(name)), name)
        self._start_kdc()
        return self

    def stop(self) -> None:
        self.kdc.kill()

    @contextmanager
    def an_hour_ahead(self, faketime: Path) -> Iterator[None]:
        """Have the KDC's clock be an hour ahead of all others, by the library of libfaketime."""
        self._restart_kdc("env", f"LD_PRELOAD={faketime}", "FAKETIME=+1h")
        try:
            yield
        finally:
            self._restart_kdc()

    def wait_over(self, ticket: dict[str, str]) -> None:
        """Wait until a ticket has ended."""

        def ended() -> bool:
            return subprocess.run(["klist", "-s"], env=os.environ | ticket, check=False).returncode != 0

        wait_until(ended, 60, "the ticket to end")

    def _start_kdc(self) -> None:
        self.kdc.start()
        self.kdc.wait_ready(self._answers, 60, "the KDC answered")

    def _restart_kdc(self, *before: str) -> None:
        self.kdc.kill()
        self.kdc.command = [*before, *self._command]
        self._start_kdc()

    def _answers(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1.0)
            return probe.connect_ex((HOST, self._port)) == 0

    def _run(self, *words: str, environment: dict[str, str] | None = None) -> None:
        told = {**os.environ, **(environment or self.environment), "PATH": PATH}
        done = subprocess.run(words, env=told, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
