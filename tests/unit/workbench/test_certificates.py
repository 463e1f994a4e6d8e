"""Certificates that end soon are named before they do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import trustme
from cryptography import x509

from evenflow.settings import Settings, load_settings
from monitoring.instruments.controller import ControllerInstruments
from topics import certificates
from topics.certificates import certificate_ends, ending_soon
from workbench.assist.doctor.checks import check_certificates

END = datetime(2030, 6, 15, 12, tzinfo=UTC)
DAY = 86_400


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A client's certificate, an authority that ends before it, and a file that holds something else."""
    authority = trustme.CA()
    mine = authority.issue_cert("127.0.0.1", not_after=END)
    certificate, key, ca = tmp_path / "crt.pem", tmp_path / "key.pem", tmp_path / "ca.pem"
    mine.private_key_pem.write_to_path(key)
    # Of several certificates in a file, the first to end counts.
    other = authority.issue_cert("other", not_after=datetime(2031, 1, 1, tzinfo=UTC))
    certificate.write_bytes(other.cert_chain_pems[0].bytes() + mine.cert_chain_pems[0].bytes())
    ca.write_text("no certificate")
    kafka = {"security_protocol": "SSL", "ssl_ca": ca, "ssl_certificate": certificate, "ssl_key": key}
    return load_settings(kafka=kafka, query={"name": "q"})


def test_the_first_end_in_each_file_counts_and_what_is_no_certificate_is_left_out(settings: Settings) -> None:
    (one,) = certificate_ends(settings)
    assert (one.setting, one.end) == ("kafka.ssl_certificate", END.timestamp())


def test_of_authorities_the_last_to_end_counts(tmp_path: Path, settings: Settings) -> None:
    authorities = [trustme.CA(), trustme.CA()]
    file = tmp_path / "bundle.pem"
    ended = authorities[0].issue_cert("former", not_after=datetime(2020, 1, 1, tzinfo=UTC))
    file.write_bytes(ended.cert_chain_pems[0].bytes() + authorities[1].cert_pem.bytes())
    kafka = settings.kafka.model_copy(update={"ssl_ca": file, "ssl_certificate": None})
    assert ending_soon(settings.model_copy(update={"kafka": kafka})) == []


def test_a_certificate_is_named_two_weeks_before_it_ends(settings: Settings) -> None:
    end = END.timestamp()
    assert ending_soon(settings, now=lambda: end - 15 * DAY) == []
    (one,) = ending_soon(settings, now=lambda: end - 13.5 * DAY)
    assert one.left(end - 13.5 * DAY).endswith("crt.pem ends on 2030-06-15, in 13 days")
    for days, status, words in (
        (15, "ok", "in 15 days"),
        (3, "warning", "in 3 days"),
        (-1, "problem", "ended on"),
    ):
        (finding,) = check_certificates(settings, now=lambda days=days: end - days * DAY)  # type: ignore[misc]
        assert finding.status == status
        assert words in finding.what
        assert bool(finding.do) == (status != "ok")


def test_a_part_exports_the_end_of_the_certificate_that_its_pages_have_now(tmp_path: Path) -> None:
    file = tmp_path / "page.pem"
    settings = load_settings(
        query={"name": "q"}, input={"partitions": 2}, web={"tls_certificate": str(file), "tls_key": str(file)}
    )
    instruments = ControllerInstruments(settings)
    labels = {"query": "q", "setting": "web.tls_certificate"}
    for end in (END, END + timedelta(days=90)):
        own = trustme.CA().issue_cert("127.0.0.1", not_after=end)
        own.cert_chain_pems[0].write_to_path(file)
        value = instruments.registry.get_sample_value("evenflow_certificate_end_timestamp_seconds", labels)
        assert value == end.timestamp()


def test_a_scrape_reads_the_certificate_of_the_pages_alone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = settings.kafka.ssl_certificate
    web = settings.web.model_copy(update={"tls_certificate": file, "tls_key": settings.kafka.ssl_key})
    instruments = ControllerInstruments(settings.model_copy(update={"web": web}))
    read: list[bytes] = []

    def parsed(content: bytes) -> list[x509.Certificate]:
        read.append(content)
        return x509.load_pem_x509_certificates(content)

    monkeypatch.setattr(certificates, "x509", SimpleNamespace(load_pem_x509_certificates=parsed))
    (family,) = (one for one in instruments.collect() if one.name.startswith("evenflow_certificate_end"))
    assert {sample.labels["setting"] for sample in family.samples} == {
        "kafka.ssl_certificate",
        "web.tls_certificate",
    }
    assert len(read) == 1


def test_a_part_exports_the_end_of_what_it_started_with(settings: Settings) -> None:
    instruments = ControllerInstruments(settings)
    file = settings.kafka.ssl_certificate
    assert file is not None
    file.write_text("")
    labels = {"query": "q", "setting": "kafka.ssl_certificate"}
    end = instruments.registry.get_sample_value("evenflow_certificate_end_timestamp_seconds", labels)
    assert end == END.timestamp()
