"""CITATION.cff says what the package and its bibliography say."""

import tomllib
from pathlib import Path

import yaml

import evenflow
from evenflow.partitioners import papers

ROOT = Path(__file__).parents[2]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_version_licence_and_authors_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert CITATION["version"] == project["version"] == evenflow.__version__
    assert CITATION["license"] == project["license"]
    assert CITATION["authors"] == project["authors"]


def test_the_five_papers_are_cited_as_the_bibliography_cites_them() -> None:
    cited = {entry["title"]: entry for entry in CITATION["references"]}
    assert len(cited) == 5
    for paper in (papers.DALTON, papers.MICRO_BATCHES, papers.TWO_CHOICES, papers.HOLISTIC_VIEW):
        entry = cited[paper.fields["title"].replace("{", "").replace("}", "")]
        names = [f"{author['family-names']}, {author['given-names']}" for author in entry["authors"]]
        assert " and ".join(names) == paper.fields["author"]
        assert str(entry["year"]) == paper.fields["year"]
        assert entry.get("doi") == paper.fields.get("doi")
