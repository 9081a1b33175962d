"""Java's key and trust stores, JKS and PKCS12, turned into PEM text in memory: librdkafka reads no Java store.

JKS is read here: the format is frozen since JDK 1.2 (`sun.security.provider.JavaKeyStore`, `KeyProtector`), and the one
library for it needs a C compiler to install. PKCS12 is read by `cryptography`. As in Java since version 9
the file's first bytes tell which of the two it is, whatever the setting says (`DualFormatJKS`, JEP 229).

Passwords and keys never reach a message.
"""

import base64
import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from textwrap import wrap

_JKS = b"\xfe\xed\xfe\xed"
_SALT_BYTES = 20
_WHITENER = b"Mighty Aphrodite"
_KEY_ENTRY, _CERTIFICATE_ENTRY = 1, 2
# DER of the object identifier 1.3.6.1.4.1.42.2.17.1.1, by which JKS marks a key that it protects.
_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")


class UnreadableStore(Exception):  # becomes a ConfigError where the setting's name is known
    """Raised where a store cannot be used; says why, in half a sentence without any secret."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key and its certificates, the key's own first; all PEM."""

    key: str = field(repr=False)
    chain: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Store:
    """What a store holds: certificates that it trusts, as PEM, and keys."""

    trusted: tuple[str, ...]
    keys: tuple[KeyPair, ...] = field(repr=False)


def read_store(content: bytes, password: str, key_password: str = "") -> Store:
    """Return what a store of either format holds.

    `key_password` is that of the keys, by default the store's. Without `password` a JKS store's integrity is not
    checked, as in Java. Raises `UnreadableStore`.
    """
    if content.startswith(_JKS):
        return _jks(content, password, key_password or password)
    if content[:1] == b"\x30":  # an ASN.1 sequence
        return _pkcs12(content, password)
    if content.lstrip().startswith(b"-----BEGIN"):
        raise UnreadableStore("it is PEM text")
    raise UnreadableStore("it is neither a JKS nor a PKCS12 store")


def pem(kind: str, der: bytes) -> str:
    """Return DER as PEM text; `kind` is such as "CERTIFICATE"."""
    lines = wrap(base64.b64encode(der).decode(), 64)
    return "\n".join((f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""))


def _pkcs12(content: bytes, password: str) -> Store:
    # Here, because few clusters need it, and `--help` answers at once.
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

    try:
        store = pkcs12.load_pkcs12(content, password.encode() if password else None)
    except ValueError:
        raise UnreadableStore("the password is wrong, or the file is damaged") from None
    except Exception as error:  # what an old cipher or an odd structure raises differs by version
        raise UnreadableStore(f"it cannot be read ({type(error).__name__})") from None

    def certificate(one: pkcs12.PKCS12Certificate) -> str:
        return one.certificate.public_bytes(Encoding.PEM).decode()

    own = (certificate(store.cert),) if store.cert else ()
    others = tuple(map(certificate, store.additional_certs))
    if store.key is None:
        return Store(own + others, ())
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return Store(others, (KeyPair(key, own + others),))


def _jks(content: bytes, password: str, key_password: str) -> Store:
    body, digest = content[:-_SALT_BYTES], content[-_SALT_BYTES:]
    if password and hashlib.sha1(password.encode("utf-16-be") + _WHITENER + body).digest() != digest:
        raise UnreadableStore("the password is wrong, or the file is damaged")
    reader = _Reader(body[4:])
    trusted: list[str] = []
    keys: list[KeyPair] = []
    try:
        version, count = reader.number(), reader.number()
        if version not in (1, 2):
            raise UnreadableStore(f"it is a JKS store of the unknown version {version}")
        for _ in range(count):
            tag = reader.number()
            reader.text()
            reader.take(8)
            if tag == _KEY_ENTRY:
                protected = reader.take(reader.number())
                chain = tuple(reader.certificate(version) for _ in range(reader.number()))
                keys.append(KeyPair(pem("PRIVATE KEY", _unprotected(protected, key_password)), chain))
            elif tag == _CERTIFICATE_ENTRY:
                trusted.append(reader.certificate(version))
            else:
                raise UnreadableStore("the file is damaged")
    except (struct.error, UnicodeDecodeError):
        raise UnreadableStore("the file is damaged or cut short") from None
    return Store(tuple(trusted), tuple(keys))


class _Reader:
    """Java's DataInput, over bytes; raises `struct.error` at their end."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, count: int) -> bytes:
        part = self._content[self._at : self._at + count]
        if len(part) != count:
            raise struct.error("cut short")
        self._at += count
        return part

    def number(self) -> int:
        return int.from_bytes(self.take(4))

    def text(self) -> str:
        return self.take(int.from_bytes(self.take(2))).decode("utf-8", "surrogatepass")

    def certificate(self, version: int) -> str:
        if version == 2 and self.text() != "X.509":
            raise UnreadableStore("it holds a certificate that is not X.509")
        return pem("CERTIFICATE", self.take(self.number()))


def _unprotected(protected: bytes, password: str) -> bytes:
    """Return the PKCS8 key that a `KeyProtector` hides: SHA-1 chained over password and salt, as a key stream."""
    algorithm, secret = _der_parts(_der(protected)[1])[:2]
    if not algorithm[1].startswith(_PROTECTOR):
        raise UnreadableStore("it holds a key that is not protected the way JKS does")
    hidden, known = secret[1], password.encode("utf-16-be")
    salt, body, check = hidden[:_SALT_BYTES], hidden[_SALT_BYTES:-_SALT_BYTES], hidden[-_SALT_BYTES:]
    stream, digest = b"", salt
    while len(stream) < len(body):
        digest = hashlib.sha1(known + digest).digest()
        stream += digest
    key = bytes(a ^ b for a, b in zip(body, stream, strict=False))
    if hashlib.sha1(known + key).digest() != check:
        raise UnreadableStore("the password of its key is wrong")
    return key


def _der(content: bytes) -> tuple[int, bytes, bytes]:
    """Return the tag of the first ASN.1 value in DER, what is in it, and what follows it."""
    tag, length, at = *struct.unpack(">BB", content[:2]), 2
    if length & 0x80:
        at += length & 0x7F
        length = int.from_bytes(content[2:at])
    if len(content) < at + length:
        raise struct.error("cut short")
    return tag, content[at : at + length], content[at + length :]


def _der_parts(content: bytes) -> list[tuple[int, bytes]]:
    parts: list[tuple[int, bytes]] = []
    while content:
        tag, inside, content = _der(content)
        parts.append((tag, inside))
    return parts


def joined(texts: Iterable[str]) -> str:
    """Return PEM texts as one, none twice."""
    return "".join(dict.fromkeys(texts))
