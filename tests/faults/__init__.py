"""A deterministic simulator: the product's own code over a model of Kafka and of Spark's protocol, with
faults.

One seed decides everything: the input, how many instances there are, who runs when, and which faults come. So
a failing seed fails again, anywhere. `python -m tests.faults --help` runs it by hand.

    schedule.py     what a run depends on: the shape of the query, the input and the faults
    drawing.py      what a seed draws
    focus.py        where a hole of one kind would be: some seeds look there
    world.py        virtual time, processes, and the place where every fault strikes: a call to a broker
    model/          the broker, clients that look like confluent-kafka's, files, and Spark's protocol
    parts.py        the processes: partitioner instances, the Spark driver, who writes the input
    operator.py     who orders to skip batches that cannot be fetched
    strikes.py      what faults do to topics, offsets and files
    losses.py       what was lost, and how a refusal because of it reads
    modelled.py     what stands in the place of the product's clients, clocks and files
    remembered.py   answers of the product that never change, kept for one run
    invariants.py   what must hold after each run
    expected.py     the rows that must come out, and the records that must be rejected
    results.py      the rows that a reader sees
    verified.py     what `evenflow verify` says of a run
    growth.py       whether added partitions are taken in, and at which mark
    given_marks.py  whether idle partitions are given marks that only one clock said
    damage.py       a bit of stored state that flips
    run.py          one run
    shrink.py       a failing run with fewer faults and fewer records
    mutations.py    the product with one mend taken out, which the simulator must notice
    taken_out.py    what stands in the place of such a mend
    ledger.py       what has run, which seeds show each mend: runs.csv, mends.csv, docs/correctness.md
"""
