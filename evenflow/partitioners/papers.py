"""The papers that algorithms come from, as BibTeX. An algorithm names its own in `Partitioner.papers`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Paper:
    """One entry of a bibliography."""

    key: str
    """What `\\cite` takes."""
    kind: str
    """The type of the entry, as in `@inproceedings`."""
    fields: Mapping[str, str]
    """Fields of the entry, in order. Values are BibTeX without braces."""

    @property
    def bibtex(self) -> str:
        """The entry as text, without a newline at its end."""
        lines = [f"  {name} = {{{value}}}," for name, value in self.fields.items()]
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])


DALTON = Paper(
    key="zapridou2022dalton",
    kind="article",
    fields={
        "author": "Zapridou, Eleni and Mytilinis, Ioannis and Ailamaki, Anastasia",
        "title": "{Dalton}: Learned Partitioning for Distributed Data Streams",
        "journal": "Proceedings of the VLDB Endowment",
        "volume": "16",
        "number": "3",
        "pages": "491--504",
        "year": "2022",
        "doi": "10.14778/3570690.3570699",
    },
)
MICRO_BATCHES = Paper(
    key="abdelhamid2021microbatched",
    kind="phdthesis",
    fields={
        "author": "Abdelhamid, Ahmed S.",
        "title": "Efficient Distributed Processing over Micro-batched Data Streams",
        "school": "Purdue University",
        "year": "2021",
    },
)
TWO_CHOICES = Paper(
    key="nasir2016two",
    kind="inproceedings",
    fields={
        "author": (
            "Nasir, Muhammad Anis Uddin and De Francisci Morales, Gianmarco and Kourtellis,"
            " Nicolas and Serafini, Marco"
        ),
        "title": "When Two Choices Are not Enough: Balancing at Scale in Distributed Stream Processing",
        "booktitle": "32nd IEEE International Conference on Data Engineering (ICDE)",
        "year": "2016",
    },
)
BOTH_CHOICES = Paper(
    key="nasir2015power",
    kind="inproceedings",
    fields={
        "author": (
            "Nasir, Muhammad Anis Uddin and De Francisci Morales, Gianmarco and Garc{\\'i}a-Soriano, David "
            "and Kourtellis, Nicolas and Serafini, Marco"
        ),
        "title": (
            "The Power of Both Choices: Practical Load Balancing for Distributed Stream Processing Engines"
        ),
        "booktitle": "31st IEEE International Conference on Data Engineering (ICDE)",
        "pages": "137--148",
        "year": "2015",
        "doi": "10.1109/ICDE.2015.7113279",
    },
)
HOLISTIC_VIEW = Paper(
    key="katsipoulakis2017holistic",
    kind="article",
    fields={
        "author": "Katsipoulakis, Nikos R. and Labrinidis, Alexandros and Chrysanthis, Panos K.",
        "title": "A Holistic View of Stream Partitioning Costs",
        "journal": "Proceedings of the VLDB Endowment",
        "volume": "10",
        "number": "11",
        "year": "2017",
    },
)
HETEROGENEOUS = Paper(
    key="nasir2017heterogeneous",
    kind="misc",
    fields={
        "author": "Nasir, Muhammad Anis Uddin and others",
        "title": "Load Balancing for Skewed Streams on Heterogeneous Clusters",
        "howpublished": "arXiv:1705.09073",
        "year": "2017",
    },
)
DISTRIBUTION_AWARE = Paper(
    key="pacaci2018distribution",
    kind="inproceedings",
    fields={
        "author": 'Pacaci, Anil and {\\"O}zsu, M. Tamer',
        "title": "Distribution-Aware Stream Partitioning for Distributed Stream Processing Systems",
        "booktitle": "5th ACM SIGMOD Workshop on Algorithms and Systems for MapReduce and Beyond (BeyondMR)",
        "year": "2018",
    },
)
DYNAMIC_KEY_GROUPING = Paper(
    key="dalabasmaz2020dynamic",
    kind="misc",
    fields={"author": "Dalabasmaz and Can", "title": "Dynamic Key Grouping", "year": "2020"},
)
EFFICIENT_KEY_GROUPING = Paper(
    key="rivetti2015efficient",
    kind="inproceedings",
    fields={
        "author": (
            "Rivetti, Nicol{\\`o} and Querzoni, Leonardo and Anceaume, Emmanuelle and Busnel, Yann and "
            "Sericola, Bruno"
        ),
        "title": "Efficient Key Grouping for Near-Optimal Load Balancing in Stream Processing Systems",
        "booktitle": "9th ACM International Conference on Distributed Event-Based Systems (DEBS)",
        "year": "2015",
    },
)
SKEWNESS_AND_VARIANCE = Paper(
    key="fang2017parallel",
    kind="inproceedings",
    fields={
        "author": (
            "Fang, Junhua and Zhang, Rong and Fu, Tom Z. J. and Zhang, Zhenjie and Zhou,"
            " Aoying and Zhu, Junhua"
        ),
        "title": "Parallel Stream Processing Against Workload Skewness and Variance",
        "booktitle": (
            "26th International Symposium on High-Performance Parallel and Distributed Computing (HPDC)"
        ),
        "year": "2017",
    },
)
PARTITIONING_FUNCTIONS = Paper(
    key="gedik2014partitioning",
    kind="article",
    fields={
        "author": "Gedik, Bu{\\u{g}}ra",
        "title": "Partitioning functions for stateful data parallelism in stream processing",
        "journal": "The VLDB Journal",
        "volume": "23",
        "number": "4",
        "pages": "517--539",
        "year": "2014",
        "doi": "10.1007/s00778-013-0335-9",
    },
)
ONLINE_SHUFFLE = Paper(
    key="rivetti2016online",
    kind="inproceedings",
    fields={
        "author": (
            "Rivetti, Nicol{\\'o} and Anceaume, Emmanuelle and Busnel, Yann and Querzoni, Leonardo and "
            "Sericola, Bruno"
        ),
        "title": "Online Scheduling for Shuffle Grouping in Distributed Stream Processing Systems",
        "booktitle": "17th International Middleware Conference",
        "year": "2016",
    },
)
PSTREAM = Paper(
    key="chen2021pstream",
    kind="article",
    fields={
        "author": "Chen and Zhang and Jin",
        "title": "{PStream}: A Popularity-Aware Differentiated Distributed Stream Processing System",
        "journal": "IEEE Transactions on Computers",
        "volume": "70",
        "number": "10",
        "year": "2021",
    },
)


def bibliography(papers: Iterable[Paper]) -> str:
    """The entries as a .bib file, each paper once, in the order of their first mention."""
    return "\n\n".join(dict.fromkeys(paper.bibtex for paper in papers))
