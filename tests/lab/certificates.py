"""A certificate authority of the lab's own: a root, an intermediate, and what they sign; PEM files in one folder."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

VALID = datetime.timedelta(days=2)
HOSTS = (x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")))


@dataclass(frozen=True)
class Signed:
    """A certificate with its key, and the certificates up to the root, which is left out."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    above: tuple[x509.Certificate, ...] = ()

    def key_pem(self, encryption: KeySerializationEncryption | None = None) -> str:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption()).decode()

    def chain_pem(self) -> str:
        return "".join(one.public_bytes(Encoding.PEM).decode() for one in (self.certificate, *self.above))


class Authority:
    """Signs with an intermediate, so that clients and brokers must send their chain. `ca` is the root's PEM file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._root = sign("lab root", None, is_authority=True)
        self._middle = sign("lab intermediate", self._root, is_authority=True)
        self.ca = self._write("ca.pem", self._root.chain_pem())

    def pem(self, name: str, ends_in: datetime.timedelta = VALID) -> Path:
        """Sign a certificate for `name`; key and chain in one file, as Java's PEM key stores are."""
        signed = self.sign(name, ends_in)
        return self._write(f"{name}.pem", signed.key_pem() + signed.chain_pem())

    def sign(self, name: str, ends_in: datetime.timedelta = VALID) -> Signed:
        """Sign a certificate for `name` (its CN), good for both ends of a connection to 127.0.0.1 until it ends."""
        signed = sign(name, self._middle, ends_in=ends_in)
        return Signed(signed.certificate, signed.key, (self._middle.certificate,))

    def _write(self, name: str, content: str) -> Path:
        path = self.folder / name
        path.write_text(content)
        path.chmod(0o600)
        return path


def sign(name: str, by: Signed | None, is_authority: bool = False, ends_in: datetime.timedelta = VALID) -> Signed:
    """Make a key and a certificate for it, signed by another or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID)
        .not_valid_after(now + ends_in)
        .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
    )
    if not is_authority:
        builder = builder.add_extension(x509.SubjectAlternativeName(HOSTS), critical=False)
    return Signed(builder.sign(by.key if by else key, hashes.SHA256()), key)
