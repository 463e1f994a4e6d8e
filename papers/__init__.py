"""Measures the papers' figures again with the partitioners of this repository. `make reproduce` writes the
page.

What may live here: what the papers found by counting (imbalance, copies of keys, block sizes), and what
follows from counts and kept costs. Nothing here takes a time, so the page is the same on every machine.
(`partly` cites kept times of a benchmark.) Each section is about one paper. A section lists the *cells* that
it needs (one setting each, over all hash seeds), measures a cell, states the paper's claims with a criterion
in code, and draws.
Cells are kept in `docs/reproducing/results.json`. A run measures only the cells that are missing. The page,
docs/reproducing.md, is always made from that file.

    cells       streams and cells of a run (`run_plan`, `parts`), the missing ones computed in processes,
                grouped by stream (`compute`), and the file of results (`store`)
    drawn_streams  streams that stand for data of the papers that is not at hand
    claims      what a paper says, how it is judged, and the verdict
    comparing   whether a figure is lower than another, seed by seed
    routing     a stream through a partitioner, and its windows
    unit_costs  the costs that counts are priced with
    batch_work  what the tasks of a micro-batch do, priced with the kept costs
    paper_*     a section for each paper (two for 001), and `group_ahead` and `partly` for 001's chapters 3
                and 4
    inventory   every figure, table and algorithm of the papers, and where it stands on the page
    report      the page
"""
