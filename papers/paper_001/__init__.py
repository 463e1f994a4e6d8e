"""001, Abdelhamid's thesis (2021), chapter 2: Prompt's data blocks, and the queues of micro-batches that they
make.

Two sections of the page. Chapter 3 has the section `group_ahead`.

blocks         section `micro-batch`: figure 2.6 and algorithm 3
block_grid     its streams, rules and cells
block_claims   its claims
queues         section `micro-batch-queue`: figures 2.7 to 2.9
queue_grid     its streams, rules and cells
queue_rates    the highest rate of a cell, and what its batches are like at that rate
queue_claims   its claims
planning_claims  those on the cost of planning (figure 2.9)
"""
