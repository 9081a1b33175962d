"""Java client properties, as people have them, turned into what librdkafka takes: its own names, by a fixed table.

A security setting without a counterpart is refused by name, because the one left out in silence may be what keeps a
connection safe: so is what librdkafka cannot do (Java classes, and Kerberos where it was built without). Others tune
Java's client, and are ignored.
Java's key stores become PEM in memory (`migrate.kafka.key_stores`). Values never reach a message, paths of files
excepted.
"""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import Any
from urllib.parse import quote_plus

from migrate.errors import ConfigError
from migrate.kafka.key_stores import Store, UnreadableStore, joined, read_store
from migrate.kafka.msk_iam import IGNORED, OPTIONS, msk_iam
from migrate.kafka.settings import ClientSettings
from migrate.mm2.config_providers import Providers
from migrate.mm2.flow import CLIENT_ID, NEVER_CREATE, Cluster
from migrate.mm2.jaas import (
    CLIENT_CREDENTIALS,
    LOGIN_HANDLER,
    MSK_CLASSES,
    OAUTH_CLASSES,
    OAUTH_SETTINGS,
    LoginModule,
    parse_jaas,
)
from migrate.mm2.java_properties import BLANKS
from migrate.mm2.secrets import secret_values
from migrate.token_command import TokenCommand

_QUIET = {"log_level": "0", "log.connection.close": "false"}
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_DNS_LOOKUPS = ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")

_SAME = ("bootstrap.servers", "client.id", "client.rack")
# Settings of a Java client's security that librdkafka has no use for, and that make no connection less safe.
_JAVA_ONLY_TEXT = """
    security.providers sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.retry.backoff.ms
    sasl.login.retry.backoff.max.ms sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.login.refresh.window.factor sasl.login.refresh.window.jitter sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.oauthbearer.clock.skew.seconds
    sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer sasl.oauthbearer.header.urlencode
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.scope.claim.name ssl.cipher.suites ssl.enabled.protocols ssl.keymanager.algorithm
    ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
"""
_JAVA_ONLY = frozenset(_JAVA_ONLY_TEXT.split())
_USER_LOGIN = (
    'sasl.jaas.config=org.apache.kafka.common.security.{} required username="..." password="..."; (in one line)'
)
_PEM_KEYS = "ssl.keystore.location (one file with the key and its certificates) and ssl.keystore.type=PEM"
_KERBEROS_LOGIN = (
    'sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="..." '
    'principal="..."; (in one line)'
)
# What librdkafka calls its settings, as services print it for other languages than Java, and how Java's clients are
# told the same: a setting, and what goes with it.
_LIBRDKAFKA_WORDS = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.username": _USER_LOGIN,
    "sasl.password": _USER_LOGIN,
    "sasl.kerberos.principal": _KERBEROS_LOGIN,
    "sasl.kerberos.keytab": _KERBEROS_LOGIN,
    "sasl.oauthbearer.method": f"{LOGIN_HANDLER}={OAUTH_CLASSES}.OAuthBearerLoginCallbackHandler",
    "sasl.oauthbearer.client.id": f"{CLIENT_CREDENTIALS}.id",
    "sasl.oauthbearer.client.secret": f"{CLIENT_CREDENTIALS}.secret",
    "sasl.oauthbearer.extensions": 'sasl.jaas.config with options extension_NAME="..."',
    "ssl.ca.location": "ssl.truststore.location and ssl.truststore.type=PEM",
    "ssl.ca.pem": "ssl.truststore.certificates and ssl.truststore.type=PEM",
    "ssl.certificate.location": _PEM_KEYS,
    "ssl.key.location": _PEM_KEYS,
    "ssl.certificate.pem": "ssl.keystore.certificate.chain and ssl.keystore.type=PEM",
    "ssl.key.pem": "ssl.keystore.key and ssl.keystore.type=PEM",
}
# As Java's clients read an address (Utils.HOST_PORT_PATTERN): what is written before it, they pass over.
_SCHEME = re.compile(r"^[0-9A-Za-z%._-]*://")
_LIKE_SECURITY = re.compile(r"(^|[._-])(security[._-]?protocol|sasl|jaas)", re.IGNORECASE)
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_KERBEROS = "GSSAPI"
_CLIENT_HANDLER = "sasl.client.callback.handler.class"
_IAM_LOGIN = f"{MSK_CLASSES}.IAMOAuthBearerLoginCallbackHandler"
_IAM_CLIENT = f"{MSK_CLASSES}.IAMClientCallbackHandler"
# RFC 4422: what is no such name may be a secret in the wrong place.
_MECHANISM_NAME = re.compile(r"[A-Z0-9_-]{1,20}")
_GRANT = "Only the client credentials grant can be used."
_NO_JAVA_CODE = "loads Java code, which this version cannot use"
_OTHER_CLASS = "names a class that this version cannot use"
_TO_PEM = "keytool -list -rfc -keystore {} > ca.pem; then set {} to that file and {} to PEM"
_TO_PKCS12 = (
    "keytool -importkeystore -srckeystore {} -destkeystore client.p12 -deststoretype PKCS12; then set {} to "
    "that file and {} to PKCS12"
)
_CHECK_STORE = "keytool -list -keystore FILE shows what is in it; ssl.truststore.password may be missing or wrong."
_PEM = re.compile(r"(-----BEGIN [^-]+-----)([^-:]*)(-----END [^-]+-----)")


class Settings:
    """One run over one file's properties: what librdkafka gets, and which settings were dealt with so far."""

    def __init__(self, properties: Mapping[str, str], origin: str) -> None:
        self.properties = properties
        self.origin = origin
        self.config: dict[str, Any] = {}
        self.taken: set[str] = set()
        self._providers = Providers(properties, origin)

    def take(self, key: str) -> str:
        """Return a setting's value, "" if it is absent or blank.

        Raises `ConfigError` if a configuration provider that it refers to has no value for it.
        """
        self.taken.add(key)
        return self._providers.value(key).strip(BLANKS)

    def refusal(self, key: str, why: str, todo: str) -> ConfigError:
        """Return the error that names a setting, but not its value."""
        return ConfigError(f"{key} in {self.origin} {why}.", todo)

    def existing(self, key: str, location: str) -> str:
        """Return the path of a file that a setting names; raises `ConfigError` if it is not there."""
        if not Path(location).is_file():
            raise self.refusal(
                key,
                f"names {location}, and there is no such file",
                "Check the path; a relative one starts where the command runs.",
            )
        return location

    def content(self, key: str, location: str) -> bytes:
        """Return what is in a file that a setting names; raises `ConfigError` if it cannot be read."""
        path = Path(self.existing(key, location))
        try:
            return path.read_bytes()
        except OSError as error:
            why = f"names {path}, which cannot be read: {error.strerror}"
            raise self.refusal(key, why, "Make it readable.") from None


def map_sasl(settings: Settings) -> None:
    """Map the login; raises `ConfigError` for a mechanism or a login module that librdkafka cannot use."""
    set_to = settings.take("sasl.mechanism").upper()
    if set_to == "AWS_MSK_IAM" or settings.properties.get(LOGIN_HANDLER, "").strip(BLANKS) == _IAM_LOGIN:
        _msk_iam(settings, set_to)
        return
    mechanism = set_to or _KERBEROS
    others = f"one of {', '.join(_MECHANISMS)}, which brokers can offer beside the present one"
    if mechanism == _KERBEROS and not has_kerberos():
        why = "is GSSAPI (Kerberos)" if set_to else "is not set, which means GSSAPI (Kerberos)"
        raise settings.refusal(
            "sasl.mechanism", f"{why}, and the confluent-kafka here was built without it, as all wheels of PyPI are",
            "Install one that has it: from conda-forge (conda install -c conda-forge python-confluent-kafka), or built "
            "from source (pip install --no-binary confluent-kafka confluent-kafka) on a librdkafka that was built with "
            f"libsasl2. Or use {others}.",
        )  # fmt: skip
    if mechanism not in (*_MECHANISMS, _KERBEROS):
        named = f"is {mechanism}, a mechanism" if _MECHANISM_NAME.fullmatch(mechanism) else "names a mechanism"
        raise settings.refusal("sasl.mechanism", f"{named} that this version cannot use", f"Use {others}.")
    settings.config["sasl.mechanism"] = mechanism
    for key in (_CLIENT_HANDLER, "sasl.login.class"):
        if settings.take(key):
            raise settings.refusal(key, _NO_JAVA_CODE, "Log in without it.")
    handler = settings.take(LOGIN_HANDLER).rpartition(".")[2]
    if handler and (mechanism, handler) != ("OAUTHBEARER", "OAuthBearerLoginCallbackHandler"):
        raise settings.refusal(
            LOGIN_HANDLER,
            _OTHER_CLASS,
            "Of callback handlers only Kafka's own OAuthBearerLoginCallbackHandler can be used; else use one of "
            f"{', '.join(_MECHANISMS[:3])}.",
        )
    text = settings.take("sasl.jaas.config")
    module = parse_jaas(text, settings.origin) if text else None
    if mechanism == "OAUTHBEARER":
        _oauth(settings, module)
    elif mechanism == _KERBEROS:
        _kerberos(settings, module)
    else:
        _user(settings, module, "PlainLoginModule" if mechanism == "PLAIN" else "ScramLoginModule")


def _by_token(settings: Settings, protocol: str, command: TokenCommand) -> None:
    """Log in with what a command prints; what the file says of a login is for another."""
    if not protocol.startswith("SASL"):
        raise settings.refusal(
            "security.protocol", f"is {protocol}, by which nobody logs in", f"Use SASL_SSL, or omit {command.option}."
        )
    settings.taken |= {key for key in settings.properties if key.startswith("sasl.")}
    settings.config |= {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": command}


def map_tls(settings: Settings) -> None:
    """Map trust and key store; raises `ConfigError` for a store that librdkafka cannot read."""
    if "ssl.endpoint.identification.algorithm" in settings.properties:
        checked = settings.take("ssl.endpoint.identification.algorithm").lower()
        if checked not in ("", "https"):
            raise settings.refusal(
                "ssl.endpoint.identification.algorithm",
                "is neither https nor empty",
                "Use https; empty means that names in certificates are not checked.",
            )
        settings.config["ssl.endpoint.identification.algorithm"] = checked or "none"
    if settings.take("ssl.engine.factory.class"):
        raise settings.refusal(
            "ssl.engine.factory.class",
            _NO_JAVA_CODE,
            "Give PEM files by ssl.truststore.location and ssl.keystore.location.",
        )
    _trust_store(settings)
    _key_store(settings)


def _login_module(settings: Settings, module: LoginModule | None, name: str) -> LoginModule:
    if module is None:
        raise ConfigError(
            f"{settings.origin} has no sasl.jaas.config, which SASL needs.",
            "Add it; a JAAS file that a Java system property names is not read.",
        )
    if module.short_name != name:
        raise settings.refusal(
            "sasl.jaas.config", f"does not name the {name} that sasl.mechanism asks for", "Make the two agree."
        )
    return module


def _user(settings: Settings, module: LoginModule | None, name: str) -> None:
    options = _login_module(settings, module, name).options
    if options.get("tokenauth", "").lower() == "true":
        raise settings.refusal(
            "sasl.jaas.config",
            "logs in with a delegation token (tokenauth), which this version cannot use",
            "Use a user and a password.",
        )
    for option in ("username", "password"):
        if not options.get(option):
            raise settings.refusal("sasl.jaas.config", f"has no option {option}", f'Add {option}="...".')
        settings.config[f"sasl.{option}"] = options[option]


def has_kerberos() -> bool:
    """Return whether librdkafka was built with Kerberos."""
    # Here, because few need it, and it takes a while to import.
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        AdminClient({"builtin.features": "sasl_gssapi", **_QUIET})
    except KafkaException:
        return False
    return True


def _kerberos(settings: Settings, module: LoginModule | None) -> None:
    options = _login_module(settings, module, "Krb5LoginModule").options
    service = settings.take("sasl.kerberos.service.name") or options.get("serviceName", "")
    if not service:
        raise ConfigError(
            f"{settings.origin} has no sasl.kerberos.service.name.", "Add it: the brokers' principal up to the /."
        )
    settings.config["sasl.kerberos.service.name"] = service
    if options.get("useKeyTab", "").lower() != "true":
        # A ticket that somebody else renews: librdkafka would run kinit for a keytab.
        settings.config["sasl.kerberos.min.time.before.relogin"] = "0"
        return
    for option in ("keyTab", "principal"):
        if not options.get(option):
            raise settings.refusal("sasl.jaas.config", f"has no option {option}", f'Add {option}="...".')
        settings.config[f"sasl.kerberos.{option.lower()}"] = options[option]
    settings.existing("sasl.jaas.config", options["keyTab"])


def _msk_iam(settings: Settings, mechanism: str) -> None:
    """Log in by IAM: brokers of MSK take OAUTHBEARER where they take AWS_MSK_IAM, which librdkafka does not have."""
    iam = mechanism == "AWS_MSK_IAM"
    wanted = {LOGIN_HANDLER: "" if iam else _IAM_LOGIN, _CLIENT_HANDLER: _IAM_CLIENT if iam else ""}
    if not iam and mechanism != "OAUTHBEARER":
        raise settings.refusal("sasl.mechanism", "does not fit its callback handler", "Set it to OAUTHBEARER.")
    for key, handler in wanted.items():
        if settings.take(key) != handler:
            todo = f"Set it to {handler}." if handler else "Leave it out."
            raise settings.refusal(key, f"does not fit {mechanism}", todo)
    text = settings.take("sasl.jaas.config")
    module = parse_jaas(text, settings.origin) if text else None
    options = _login_module(settings, module, "IAMLoginModule" if iam else "OAuthBearerLoginModule").options
    if unknown := sorted(key for key in options if key.startswith("aws") and key not in (*OPTIONS, *IGNORED)):
        raise settings.refusal("sasl.jaas.config", f"has {', '.join(unknown)}, which cannot be used", "Leave it out.")
    if not find_spec("aws_msk_iam_sasl_signer"):
        raise settings.refusal(
            "sasl.mechanism", "logs in to MSK by IAM, and aws-msk-iam-sasl-signer-python is not installed here",
            "Install the extra msk-iam: pip install 'mm2-migrate[msk-iam]', or pipx inject mm2-migrate "
            "aws-msk-iam-sasl-signer-python.",
        )  # fmt: skip
    login = msk_iam(settings.take("bootstrap.servers"), options)
    if login is None:
        raise settings.refusal("bootstrap.servers", "does not tell the AWS region", "Set AWS_REGION.")
    settings.config |= {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": login}


def _oauth(settings: Settings, module: LoginModule | None) -> None:
    options = dict(_login_module(settings, module, "OAuthBearerLoginModule").options)
    for key, option in OAUTH_SETTINGS.items():
        if value := settings.take(key):
            options[option] = value
    for option, named in (("clientId", "id"), ("clientSecret", "secret")):
        if not options.get(option):
            raise settings.refusal(
                "sasl.jaas.config", f"has no option {option}, and {CLIENT_CREDENTIALS}.{named} is not set", _GRANT
            )
    if settings.take("sasl.oauthbearer.header.urlencode").lower() == "true":
        # librdkafka puts both into the header as they are.
        options |= {option: quote_plus(options[option]) for option in ("clientId", "clientSecret")}
    url = settings.take("sasl.oauthbearer.token.endpoint.url")
    if not url.lower().startswith(("https://", "http://")):
        raise settings.refusal(
            "sasl.oauthbearer.token.endpoint.url",
            "is not the http address of a token endpoint",
            "Give the https:// address that hands out tokens; token files cannot be used.",
        )
    retriever = settings.take("sasl.oauthbearer.jwt.retriever.class").rpartition(".")[2]
    if retriever not in ("", "DefaultJwtRetriever", "ClientCredentialsJwtRetriever"):
        raise settings.refusal("sasl.oauthbearer.jwt.retriever.class", _OTHER_CLASS, _GRANT)
    settings.take("sasl.oauthbearer.jwt.validator.class")
    extensions = [f"{k.removeprefix('extension_')}={v}" for k, v in options.items() if k.startswith("extension_")]
    mapped = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.oauthbearer.client.id": options["clientId"],
        "sasl.oauthbearer.client.secret": options["clientSecret"],
        "sasl.oauthbearer.scope": options.get("scope", ""),
        "sasl.oauthbearer.sub.claim.name": settings.take("sasl.oauthbearer.sub.claim.name"),
        "sasl.oauthbearer.extensions": ",".join(extensions),
    } | _token_endpoint_trust(settings, options)
    settings.config |= {name: value for name, value in mapped.items() if value}


def _token_endpoint_trust(settings: Settings, options: Mapping[str, str]) -> dict[str, str]:
    """The login module's own ssl.* options say which certificates the token endpoint may have."""
    given = {name: value for name, value in options.items() if name.startswith("ssl.")}
    location, password = given.pop("ssl.truststore.location", ""), given.pop("ssl.truststore.password", "")
    kind = given.pop("ssl.truststore.type", "JKS").upper()
    given.pop("ssl.protocol", "")
    convert = f"Convert it: {_TO_PEM.format('STORE', 'ssl.truststore.location', 'ssl.truststore.type')}."
    if given:
        raise settings.refusal(
            "sasl.jaas.config", "has options for the token endpoint's TLS other than a trust store", convert
        )
    if not location:
        return {}
    if kind == "PEM":
        return {"https.ca.location": settings.existing("sasl.jaas.config", location)}
    try:
        return {"https.ca.pem": joined(read_store(settings.content("sasl.jaas.config", location), password).trusted)}
    except UnreadableStore as why:
        raise settings.refusal(
            "sasl.jaas.config", f"names {location} for the token endpoint, which cannot be used: {why}", convert
        ) from None


def _trust_store(settings: Settings) -> None:
    location, inline = settings.take("ssl.truststore.location"), settings.take("ssl.truststore.certificates")
    kind, password = _kind_of(settings, "ssl.truststore"), settings.take("ssl.truststore.password")
    if location and kind == "PEM":
        settings.config["ssl.ca.location"] = settings.existing("ssl.truststore.location", location)
    elif location:
        store = _store(settings, "ssl.truststore", location, password)
        # Java trusts the certificate of a key that lies in a trust store, too.
        trusted = joined((*store.trusted, *(pair.chain[0] for pair in store.keys if pair.chain)))
        if not trusted:
            why = "the password is needed to see any" if not password else "it holds keys only, or nothing"
            raise settings.refusal("ssl.truststore.location", f"holds no certificate to trust: {why}", _CHECK_STORE)
        settings.config["ssl.ca.pem"] = trusted
    elif inline:
        settings.config["ssl.ca.pem"] = _in_lines(inline)


def _key_store(settings: Settings) -> None:
    location, kind = settings.take("ssl.keystore.location"), _kind_of(settings, "ssl.keystore")
    key, chain = settings.take("ssl.keystore.key"), settings.take("ssl.keystore.certificate.chain")
    password, key_password = settings.take("ssl.keystore.password"), settings.take("ssl.key.password")
    if location and kind != "PEM":
        _java_key_store(settings, location, password, key_password)
        return
    if location:
        path = settings.existing("ssl.keystore.location", location)
        settings.config |= {"ssl.key.location": path, "ssl.certificate.location": path}
    elif key and chain:
        settings.config |= {"ssl.key.pem": _in_lines(key), "ssl.certificate.pem": _in_lines(chain)}
    elif key or chain:
        present, absent = ("key", "certificate.chain") if key else ("certificate.chain", "key")
        raise settings.refusal(f"ssl.keystore.{present}", f"is set without ssl.keystore.{absent}", "Give both.")
    if key_password and (location or key):
        settings.config["ssl.key.password"] = key_password


def _java_key_store(settings: Settings, location: str, password: str, key_password: str) -> None:
    # librdkafka reads PKCS12 too, but by an OpenSSL without the old ciphers that many stores have.
    keys = _store(settings, "ssl.keystore", location, password, key_password).keys
    if len(keys) != 1:
        raise settings.refusal(
            "ssl.keystore.location",
            f"holds {len(keys) or 'no'} private keys: this version takes a store with one",
            "Make a store of that key alone: keytool -importkeystore -srcalias ALIAS.",
        )
    settings.config |= {"ssl.key.pem": keys[0].key, "ssl.certificate.pem": "".join(keys[0].chain)}


def _kind_of(settings: Settings, store: str) -> str:
    """Return the type of a store, in capitals; raises `ConfigError` for one that this version cannot read."""
    kind = settings.take(f"{store}.type").upper() or "JKS"
    if kind not in ("PEM", "JKS", "PKCS12") and settings.take(f"{store}.location"):
        raise settings.refusal(
            f"{store}.type", "is none of PEM, PKCS12 and JKS, which this version can read", _convert(settings, store)
        )
    return kind


def _store(settings: Settings, store: str, location: str, password: str, key_password: str = "") -> Store:
    """Read a Java store; raises `ConfigError` naming its setting."""
    key = f"{store}.location"
    try:
        return read_store(settings.content(key, location), password, key_password)
    except UnreadableStore as why:
        why_not = f"names {location}, which cannot be used: {why}"
        raise settings.refusal(key, why_not, _convert(settings, store)) from None


def _convert(settings: Settings, store: str) -> str:
    template = _TO_PEM if store == "ssl.truststore" else _TO_PKCS12
    convert = template.format(settings.take(f"{store}.location"), f"{store}.location", f"{store}.type")
    return f"Check {store}.password. If the file is PEM, set {store}.type=PEM. Else convert it: {convert}."


def _in_lines(text: str) -> str:
    """Return PEM text in lines: Java takes a whole block on one line, OpenSSL does not."""

    def wrapped(match: re.Match[str]) -> str:
        return "\n".join((match[1], *wrap("".join(match[2].split()), 64), match[3])) + "\n"

    return _PEM.sub(wrapped, text)


def librdkafka_config(
    properties: Mapping[str, str], origin: str, token_command: TokenCommand | None = None
) -> dict[str, Any]:
    """Map Java client properties to librdkafka's.

    `origin` names the file, for errors; `token_command` prints what is logged in with instead of what they say. Raises
    `ConfigError` naming the setting that cannot be mapped, and what to do instead. Settings of TLS or SASL are ignored
    where `security.protocol` does not use these.
    """
    settings = Settings(properties, origin)
    _refuse_quoted(settings)
    protocol = (settings.take("security.protocol") or "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise settings.refusal("security.protocol", "is none that Kafka has", f"Use {', '.join(_PROTOCOLS)}.")
    settings.config["security.protocol"] = protocol
    used = ("security.", *(["ssl."] if protocol.endswith("SSL") else ()), *(["sasl."] if "SASL" in protocol else ()))
    _refuse_librdkafka_words(settings, used if token_command is None else ("security.", "ssl."))
    _map_connection(settings)
    if token_command:
        _by_token(settings, protocol, token_command)
    elif protocol.startswith("SASL"):
        map_sasl(settings)
    if protocol.endswith("SSL"):
        map_tls(settings)
    _refuse_unknown(settings, used)
    return {"client.id": CLIENT_ID} | settings.config | NEVER_CREATE | _QUIET


def client_settings(cluster: Cluster) -> ClientSettings:
    """Return what every client of librdkafka to this cluster is made with; raises as `librdkafka_config` does."""
    origin = cluster.origin or f"{cluster.side} {cluster.alias}"
    config = librdkafka_config(cluster.properties, origin, cluster.token_command)
    secrets = secret_values(cluster.properties)
    if sent := config.get("sasl.oauthbearer.client.secret"):
        secrets |= {sent}  # it may be encoded
    return ClientSettings(cluster.side, cluster.alias, cluster.name, config, secrets)


def _map_connection(settings: Settings) -> None:
    for key in _SAME:
        if value := settings.take(key):
            settings.config[key] = value
    if "bootstrap.servers" not in settings.config:
        raise ConfigError(f"{settings.origin} has no bootstrap.servers.", "Add bootstrap.servers=HOST:PORT.")
    brokers = settings.config["bootstrap.servers"].split(",")
    settings.config["bootstrap.servers"] = ",".join(_SCHEME.sub("", broker.strip(BLANKS)) for broker in brokers)
    if (lookup := settings.take("client.dns.lookup").lower()) in _DNS_LOOKUPS:
        settings.config["client.dns.lookup"] = lookup


def _refuse_quoted(settings: Settings) -> None:
    """Raise `ConfigError` for values in quotes, which Java takes for a part of them; passwords may have some."""
    quoted = [
        key
        for key, value in settings.properties.items()
        if key.startswith(("bootstrap.servers", "security.", "sasl.", "ssl.")) and not key.endswith("password")
        if re.fullmatch(r"""(["']).*\1""", value.strip(BLANKS), re.DOTALL)
    ]
    if quoted:
        keys, quotes = ", ".join(quoted), "quotes, which Java takes for a part of the value"
        raise settings.refusal(keys, f"{'has' if len(quoted) == 1 else 'have'} {quotes}", "Leave the outer quotes out.")


def _refuse_librdkafka_words(settings: Settings, used: tuple[str, ...]) -> None:
    """Raise `ConfigError` that translates all settings which only librdkafka has.

    One beside the setting of Java clients that says the same is passed over, as these clients do.
    """
    foreign: dict[str, list[str]] = {}
    for key in sorted(settings.properties.keys() & _LIBRDKAFKA_WORDS.keys()):
        words = _LIBRDKAFKA_WORDS[key]
        if re.split("[ =]", words)[0] in settings.properties:
            settings.taken.add(key)
        elif key.startswith((*used, "metadata.")):
            foreign.setdefault(words, []).append(key)
    if foreign:
        mechanism = settings.take("sasl.mechanism") or settings.take("sasl.mechanisms") or "PLAIN"
        module = "plain.PlainLoginModule" if mechanism.upper() == "PLAIN" else "scram.ScramLoginModule"
        told = "; ".join(f"for {' and '.join(keys)}: {words}" for words, keys in foreign.items()).format(module)
        raise ConfigError(
            f"{settings.origin} has librdkafka's words: {', '.join(sum(foreign.values(), []))}.",
            f"Write what Java's clients read: {told}.",
        )


def _refuse_unknown(settings: Settings, used: tuple[str, ...]) -> None:
    """Raise `ConfigError` for security settings that were not mapped and may have a meaning."""
    unknown = sorted(settings.properties.keys() - settings.taken - _JAVA_ONLY)
    meant = [key for key in unknown if key.startswith(used)]
    if "security.protocol" not in settings.properties:
        # As an environment variable or another client spells it: ignored, it would leave the connection in plain text.
        meant += [k for k in unknown if _LIKE_SECURITY.search(k) and not k.startswith(("security.", "ssl.", "sasl."))]
    if meant:
        raise settings.refusal(
            ", ".join(meant),
            f"{'is no setting' if len(meant) == 1 else 'are no settings'} of Kafka's Java clients that can be used",
            "Check the spelling, or leave it out.",
        )
