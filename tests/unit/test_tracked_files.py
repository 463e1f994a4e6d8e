"""No file of the repository holds a secret, and those that may be executed are scripts, and the other way
round.
"""

from __future__ import annotations

import math
import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FORMS = {
    "private key": rb"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s+[A-Za-z0-9+/]{16}",
    "JSON Web Token": rb"\beyJ[A-Za-z0-9_-]{16,}\.eyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    "key of AWS": rb"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "token of GitHub": rb"\bgh[pousr]_[A-Za-z0-9]{36}",
    "token of GitLab": rb"\bglpat-[A-Za-z0-9_-]{20}",
    "token of Slack": rb"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "key of Google": rb"\bAIza[0-9A-Za-z_-]{35}",
    "token of a package index": rb"\bpypi-[A-Za-z0-9_-]{32,}",
    "password in an address": rb"\b[a-z][a-z0-9+]{2,12}://[^\s/:@'\"`{}<>]+:[^\s/@'\"`{}<>*$]{6,}@",
}
"""What secrets of known kinds look like."""
NAMED = (
    rb"(?i)\b\w*(?:passw(?:or)?d|secret|token|api_?key|access_?key)\w*\b[\"']?"
    rb"\s*[:=]\s*[\"']([A-Za-z0-9+/=_.-]{20,})[\"']"
)
"""A value of 20 characters or more under a name of a secret."""
MOST_BITS = 3.8
"""Bits for each character of such a value, from which on it looks drawn. Words have less, 24 random
letters have more.
"""
NO_SECRETS: dict[str, str] = {}
"""File -> why what looks like a secret there is none."""
BINARY = {".png", ".zip", ".gz", ".xz", ".parquet", ".ico", ".woff2", ".avro"}


@cache
def modes() -> dict[str, str]:
    """Tracked file -> its mode in git."""
    done = subprocess.run(["git", "ls-files", "-s", "-z"], cwd=ROOT, capture_output=True, check=True)
    rows = (row.split(maxsplit=3) for row in done.stdout.decode().split("\0") if row)
    return {row[3]: row[0] for row in rows}


@pytest.fixture(scope="module", autouse=True)
def _a_clone() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone, so git does not say which files are tracked")


def bits(value: bytes) -> float:
    """Entropy of a character, in bits, as its frequencies in the value say."""
    counts = Counter(value).values()
    return sum(-count / len(value) * math.log2(count / len(value)) for count in counts)


def suspects(content: bytes) -> list[str]:
    """What in these bytes looks like a secret."""
    seen = [name for name, form in FORMS.items() if re.search(form, content)]
    return seen + [
        f"drawn value {match[1][:6].decode()}..."
        for match in re.finditer(NAMED, content)
        if bits(match[1]) > MOST_BITS and re.search(rb"\d", match[1])
    ]


def test_no_tracked_file_holds_what_looks_like_a_secret() -> None:
    seen = {}
    for name, mode in modes().items():
        file = ROOT / name
        if mode.startswith("100") and file.suffix not in BINARY and file.exists():
            what = suspects(file.read_bytes())
            if what:
                seen[name] = what
    assert {name: what for name, what in seen.items() if name not in NO_SECRETS} == {}
    assert set(NO_SECRETS) <= set(seen), "these hold nothing any more: take them out of NO_SECRETS"


def test_secrets_of_each_kind_would_be_noticed() -> None:
    drawn = "9fK2mQ7x" + "Zr4Tb1Wc8Lp5Vn3J"
    for secret in (
        "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEpAIBAAKCAQEAxyz",
        "ghp_" + "a1B2" * 9,
        "AKIA" + "ABCDEFGH12345678",
        "postgresql://ann:" + "verysecret@db/x",
        f'sasl_password = "{drawn}"',
        f'{{"api_key": "{drawn}"}}',
    ):
        assert suspects(secret.encode()), secret


def test_only_scripts_may_be_executed_and_each_script_of_the_shell_may() -> None:
    executable = {name for name, mode in modes().items() if mode == "100755"}
    scripts = {
        name
        for name, mode in modes().items()
        if mode.startswith("100") and (ROOT / name).exists() and (ROOT / name).open("rb").read(2) == b"#!"
    }
    assert executable == scripts
    assert set(modes().values()) <= {"100644", "100755"}, "no links and no submodules"
