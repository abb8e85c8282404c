"""A certificate for a server of a test's own, which is its own authority."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

HOST = "127.0.0.1"
VALID = timedelta(days=2)


@dataclass(frozen=True)
class Certificate:
    """The files of a key and of the certificate that it signed itself."""

    key: Path
    file: Path

    def for_a_server(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self.key)
        return context


def certificate_in(folder: Path) -> Certificate:
    """A new one for 127.0.0.1."""
    key, made = ec.generate_private_key(ec.SECP256R1()), Certificate(folder / "key.pem", folder / "cert.pem")
    signed = _unsigned(key).sign(key, hashes.SHA256())
    made.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    made.file.write_bytes(signed.public_bytes(Encoding.PEM))
    return made


def _unsigned(key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    name, now = x509.Name.from_rfc4514_string(f"CN={HOST}"), datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))])
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now, now + VALID
    )
    return builder.add_extension(names, critical=False).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
