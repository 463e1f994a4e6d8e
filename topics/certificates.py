"""When the certificates that the settings name come to their end, read from their PEM files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509

from evenflow.settings import Settings

SOON_SECONDS = 14 * 24 * 3_600
"""A certificate that ends earlier than this from now should be replaced."""
PAGES = "web.tls_certificate"
"""The setting whose file is read again when it is another one. Clients read theirs once."""
_MOST_BYTES = 4_000_000
"""Larger than the system's bundle of all authorities."""


@dataclass(frozen=True)
class CertificateEnd:
    """When the certificates in a file end."""

    setting: str
    """Name of the setting that names the file, such as "kafka.ssl_ca"."""
    file: Path
    """The file as the setting names it."""
    end: float
    """Seconds since 1970. Of several certificates the earliest end counts,
    of several authorities the latest."""

    def left(self, now: float) -> str:
        """How long it still counts, in words. now: seconds since 1970."""
        day = time.strftime("%Y-%m-%d", time.gmtime(self.end))
        days = int((self.end - now) // 86_400)
        if self.end <= now:
            return f"{self.setting}: {self.file} ended on {day}"
        return f"{self.setting}: {self.file} ends on {day}, in {days} days"


def certificate_ends(settings: Settings, *, only: str | None = None) -> list[CertificateEnd]:
    """The earliest end in each file of certificates that the settings name.
    The system's authorities are left out.

    only: the name of a setting. Then no other file is read.

    A file that cannot be read, or holds something else, is left out: the client that needs it refuses it by
    name.
    """
    ends = []
    for name, file in _files(settings):
        if only not in (None, name):
            continue
        try:
            with file.open("rb") as opened:
                content = opened.read(_MOST_BYTES)
            certificates = x509.load_pem_x509_certificates(content)
        except (OSError, ValueError):
            continue
        times = [certificate.not_valid_after_utc.timestamp() for certificate in certificates]
        # A file of authorities may hold former ones, which nobody uses any more. A chain is as good as its
        # weakest link.
        end = max(times) if name.endswith("_ca") else min(times)
        ends.append(CertificateEnd(name, file, end))
    return ends


def ending_soon(settings: Settings, *, now: Callable[[], float] = time.time) -> list[CertificateEnd]:
    """The files whose certificates end within `SOON_SECONDS`, or have ended. now: seconds since 1970."""
    moment = now()
    return [
        certificate for certificate in certificate_ends(settings) if certificate.end - moment < SOON_SECONDS
    ]


def _files(settings: Settings) -> Iterator[tuple[str, Path]]:
    kafka, web = settings.kafka, settings.web
    registries = (("input", settings.input.registry), ("results", settings.results.registry))
    files = {
        "kafka.ssl_ca": kafka.ssl_ca,
        "kafka.ssl_certificate": kafka.ssl_certificate,
        PAGES: web.tls_certificate,
        "web.tls_ca": web.tls_ca,
        **{
            f"{section}.registry.ssl_ca": registry.ssl_ca
            for section, registry in registries
            if registry is not None
        },
    }
    for name, file in files.items():
        if file is not None:
            yield name, file
