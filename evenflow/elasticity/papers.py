"""The papers that evenflow's policies come from. A policy of one's own names its papers in `Policy.papers`.

Only the catalogue imports this module: `Paper` lies in the package of the partitioners, which a controller
never loads.
"""

from __future__ import annotations

from collections.abc import Mapping

from evenflow.partitioners.papers import MICRO_BATCHES, Paper

THREE_STEPS = Paper(
    key="kalavri2018three",
    kind="inproceedings",
    fields={
        "author": (
            "Kalavri, Vasiliki and Liagouris, John and Hoffmann, Moritz and Dimitrova, Desislava and "
            "Forshaw, Matthew and Roscoe, Timothy"
        ),
        "title": (
            "Three Steps is All You Need: Fast, Accurate, Automatic Scaling"
            " Decisions for Distributed Streaming Dataflows"
        ),
        "booktitle": "13th USENIX Symposium on Operating Systems Design and Implementation (OSDI)",
        "pages": "783--798",
        "year": "2018",
    },
)
DHALION = Paper(
    key="floratou2017dhalion",
    kind="article",
    fields={
        "author": (
            "Floratou, Avrilia and Agrawal, Ashvin and Graham, Bill and Rao, Sriram and Ramasamy, Karthik"
        ),
        "title": "{Dhalion}: Self-Regulating Stream Processing in {Heron}",
        "journal": "Proceedings of the VLDB Endowment",
        "volume": "10",
        "number": "12",
        "pages": "1825--1836",
        "year": "2017",
        "doi": "10.14778/3137765.3137786",
    },
)
CONTTUNE = Paper(
    key="lian2023conttune",
    kind="article",
    fields={
        "author": (
            "Lian, Jinqing and Zhang, Xinyi and Shao, Yingxia and Pu, Zenglin and Xiang,"
            " Qingfeng and Li, Yawen and Cui, Bin"
        ),
        "title": (
            "{ContTune}: Continuous Tuning by Conservative {Bayesian} Optimization for Distributed Stream"
            " Data Processing Systems"
        ),
        "journal": "Proceedings of the VLDB Endowment",
        "volume": "16",
        "number": "13",
        "year": "2023",
    },
)
EDGE = Paper(
    key="xu2021model",
    kind="inproceedings",
    fields={
        "author": "Xu, Jinlai and Palanisamy, Balaji",
        "title": "Model-based Reinforcement Learning for Elastic Stream Processing in Edge Computing",
        "booktitle": (
            "28th IEEE International Conference on High Performance Computing, Data, and Analytics (HiPC)"
        ),
        "year": "2021",
    },
)
CONTEXTUAL_BANDIT = Paper(
    key="li2010contextual",
    kind="inproceedings",
    fields={
        "author": "Li, Lihong and Chu, Wei and Langford, John and Schapire, Robert E.",
        "title": "A Contextual-Bandit Approach to Personalized News Article Recommendation",
        "booktitle": "19th International Conference on World Wide Web (WWW)",
        "pages": "661--670",
        "year": "2010",
    },
)
POD_AUTOSCALING = Paper(
    key="kubernetes-hpa",
    kind="misc",
    fields={
        "author": "{The Kubernetes Authors}",
        "title": "Horizontal Pod Autoscaling",
        "howpublished": "Kubernetes documentation",
    },
)
PAPERS: Mapping[str, tuple[Paper, ...]] = {
    "fixed": (),
    "prompt-plus": (MICRO_BATCHES,),
    "threshold": (POD_AUTOSCALING,),
    "ds2": (THREE_STEPS,),
    "dhalion": (DHALION,),
    "conttune": (CONTTUNE,),
    "linucb": (EDGE, CONTEXTUAL_BANDIT),
    "mblinucb": (EDGE, CONTEXTUAL_BANDIT),
}
"""Name of each of evenflow's policies -> what to cite for it. Empty: it was not published."""
