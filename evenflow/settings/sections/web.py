"""The pages of all parts: under which names they answer, to whom, and over which transport."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import Field, field_validator, model_validator

from evenflow.settings.sections.section import Section

_NAME = re.compile(r"[a-z0-9_]([-a-z0-9_.]{0,251}[a-z0-9_])?")


class WebSettings(Section):
    """The pages that the parts serve (docs/operations/logs-and-pages.md#pages-of-each-part).
    No page changes anything.
    """

    hosts: list[str] = Field(
        default_factory=list,
        description=(
            "Further names under which the pages answer, such as that of a service or a proxy. They always"
            " answer under an IP address, `localhost`, this machine's name and the part's `web_host`, and"
            " refuse any other name (421): a foreign web site could else read them through the browser of"
            " someone who can reach them."
        ),
    )
    connections: int = Field(
        default=64,
        ge=4,
        le=4096,
        description="Most connections to the pages of a part at once. A further one closes the oldest.",
    )
    token_file: Path | None = Field(
        default=None,
        description=(
            "File with a token of at least 16 characters that each page asks for: as `Authorization: Bearer"
            " TOKEN`, or in a browser as the password of any user. A new token in the file counts at once."
            " Without the token, `/alive/` and `/healthy/` answer probes with yes or no alone. None: the"
            " pages ask for nothing."
        ),
    )
    tls_certificate: Path | None = Field(
        default=None,
        description="PEM file of the pages' certificate and its chain. None: the pages are HTTP.",
    )
    tls_key: Path | None = Field(
        default=None, description="PEM file of the key of tls_certificate, not encrypted. None: no TLS."
    )
    tls_ca: Path | None = Field(
        default=None,
        description=(
            "PEM file of the authority that signed tls_certificate, by which `evenflow key` and `evenflow"
            " doctor` know the pages. None: the system's."
        ),
    )

    @field_validator("hosts")
    @classmethod
    def _hosts_are_names(cls, value: list[str]) -> list[str]:
        names = [name.lower().removesuffix(".") for name in value]
        for name in names:
            if not _NAME.fullmatch(name):
                raise ValueError(
                    f"{name!r} is no name of a host: write it without http:// and without a port"
                )
        return names

    @model_validator(mode="after")
    def _certificate_and_key_go_together(self) -> WebSettings:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together")
        return self

    @property
    def scheme(self) -> str:
        """`https` if the pages have a certificate, else `http`."""
        return "http" if self.tls_certificate is None else "https"
