"""The setting `sasl.jaas.config`: one login module with its options.

Pure. The rules are those of Kafka's `JaasConfig`, which reads it with a `java.io.StreamTokenizer`. Messages
name places by count and by well-known option names only, because any token may be part of a password.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from migrate.errors import ConfigError

FLAGS = ("required", "requisite", "sufficient", "optional")
KNOWN_OPTIONS = frozenset(
    ("username", "password", "tokenauth", "clientId", "clientSecret", "scope", "keyTab", "principal")
)

LOGIN_HANDLER = "sasl.login.callback.handler.class"
# The packages with the classes for OAUTHBEARER: Kafka's own, and those of Amazon's library for MSK.
OAUTH_CLASSES = "org.apache.kafka.common.security.oauthbearer"
MSK_CLASSES = "software.amazon.msk.auth.iam"
# What to do where Kerberos lets nobody in: what its libraries say names no place to look.
KERBEROS_ADVICE = (
    "It takes a ticket that has not expired, or a key of the principal: klist shows the tickets (kinit gets a new "
    "one), klist -k FILE whose keys a keytab has. sasl.kerberos.service.name is the brokers' principal up to the /, "
    "a KDC has to answer, and all clocks have to agree."
)

# What Kafka 4.1 has settings for (KIP-1139), and what its login module calls them.
CLIENT_CREDENTIALS = "sasl.oauthbearer.client.credentials.client"
OAUTH_SETTINGS: Mapping[str, str] = {
    f"{CLIENT_CREDENTIALS}.id": "clientId", f"{CLIENT_CREDENTIALS}.secret": "clientSecret",
    "sasl.oauthbearer.scope": "scope",
}  # fmt: skip

_TOKENS = re.compile(
    r"""
      (?P<blank>[\x00-\x20]+ | /\*.*?(?:\*/|\Z) | /[^\r\n]*)
    | (?P<number>-?[0-9.]+)
    | (?P<text>[A-Za-z_$\u00a0-\U0010ffff][A-Za-z0-9_$.\-\u00a0-\U0010ffff]*)
    | (?P<quoted>"(?:\\.|[^"\\\r\n])*" | '(?:\\.|[^'\\\r\n])*')
    | (?P<open>["'])
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_TO_ESCAPE = re.compile(r'["\\\x00-\x1f]')
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_QUOTING = (
    'Put values in double quotes, with \\" for a quote and \\\\ for a backslash inside; a .properties file '
    "takes one backslash of each pair away first, so double them there."
)


@dataclass(frozen=True, slots=True)
class LoginModule:
    """A login module's class, its control flag in lower case, and its options, which may be secret."""

    name: str
    flag: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def short_name(self) -> str:
        """The class's name without its package."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str = field(repr=False)


_END, _EQUALS = _Token("sign", ";"), _Token("sign", "=")


def parse_jaas(text: str, origin: str) -> LoginModule:
    """Return the login module that the setting names.

    `origin` names the file, for errors. Raises `ConfigError` where Kafka would not take the setting either.
    """
    tokens = list(_tokens(text))
    if not tokens:
        raise _error(origin, "is empty", 'Write LoginModuleClass required key="value";')
    if any(token.kind == "open" for token in tokens):
        raise _error(origin, "has a quote that is not closed on its line", _QUOTING)
    if tokens[0].kind != "text":
        raise _error(origin, "does not start with the class of a login module", "Put the class first.")
    if len(tokens) < 2 or tokens[1].kind != "text" or tokens[1].text.lower() not in FLAGS:
        raise _error(origin, f"does not have one of {', '.join(FLAGS)} after the login module", "Write required there.")
    options, end = _options(tokens, origin)
    if end < len(tokens):
        todo = "A Kafka client takes one login module: leave out the others."
        raise _error(origin, "goes on after the first ';'", todo)
    return LoginModule(tokens[0].text, tokens[1].text.lower(), options)


def jaas_text(module: LoginModule) -> str:
    """Return the setting that names this login module: what `parse_jaas` reads again as it is."""
    options = (f'{key}="{_TO_ESCAPE.sub(_escaped, value)}"' for key, value in module.options.items())
    return " ".join([module.name, module.flag, *options]) + ";"


def _escaped(match: re.Match[str]) -> str:
    # In three digits: one that follows would be taken for another of them.
    return f"\\{ord(match[0]):03o}" if match[0] < " " else f"\\{match[0]}"


def _options(tokens: list[_Token], origin: str) -> tuple[dict[str, str], int]:
    """Return the options, and the place behind the ';' that ends them."""
    options: dict[str, str] = {}
    at = 2
    while at < len(tokens) and tokens[at] != _END:
        key, rest = tokens[at], tokens[at + 1 : at + 3]
        named = f"option {(at - 2) // 3 + 1}"
        if key.kind == "text" and key.text in KNOWN_OPTIONS:
            named += f" ({key.text})"
        if key.kind != "text":
            raise _error(origin, f"has a character that must be in quotes at or before {named}", _QUOTING)
        if len(rest) < 2 or rest[0] != _EQUALS or rest[1].kind != "text":
            raise _error(origin, f"has no value that can be read for {named}", _QUOTING)
        options[key.text] = rest[1].text
        at += 3
    if at >= len(tokens):
        raise _error(origin, "does not end with ';'", f"End it with ';'. An unquoted / starts a comment. {_QUOTING}")
    return options, at + 1


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKENS.finditer(text):
        kind = match.lastgroup or ""
        if kind == "quoted":
            yield _Token("text", _ESCAPE.sub(_unescaped, match[0][1:-1]))
        elif kind != "blank":
            yield _Token(kind, match[0])


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED.get(code, code)


def _error(origin: str, what: str, todo: str) -> ConfigError:
    return ConfigError(f"sasl.jaas.config in {origin} {what}.", todo)
