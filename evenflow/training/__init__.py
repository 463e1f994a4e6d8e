"""What learns before it is used: environments and the training of the policies that ship as files.

Training needs the extra `rl`. Nothing else here does. `import evenflow.training` registers the Gymnasium
environment `evenflow/PartitionBatch-v0`.
"""

import gymnasium

gymnasium.register(
    id="evenflow/PartitionBatch-v0", entry_point="evenflow.training.environment:PartitionBatch"
)
