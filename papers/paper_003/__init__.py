"""003, "Model-based Reinforcement Learning for Elastic Stream Processing in Edge Computing": figures 5-9.

One operator runs in `evenflow.elasticity.simulated.environments.ElasticStage` with the paper's defaults. The
paper's taxi trace is replaced by the flights from New York in 2013, hour by hour. Rewards are those of the
steps that were played while the policy learned.

    grid       the settings: which cells there are
    measuring  a cell, with every seed
    baselines  PPO, A2C and DQN, where the extra `rl` is installed
    claims     what the paper says, and how it is judged
    page       tables and charts
"""

from papers.paper_003.claims import CLAIMS
from papers.paper_003.grid import NAME, cells
from papers.paper_003.measuring import measurable, measure
from papers.paper_003.page import TITLE, pictures, text

__all__ = ["CLAIMS", "NAME", "TITLE", "cells", "measurable", "measure", "pictures", "text"]
