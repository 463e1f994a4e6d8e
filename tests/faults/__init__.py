"""A deterministic simulator: the product's own code over a model of Kafka and of Spark's protocol, with faults.

One seed decides everything: the input, how many instances there are, who runs when, and which faults come. So
a failing seed fails again, anywhere. `python -m tests.faults --help` runs it by hand.

    schedule.py     what a seed draws: the input and the faults
    world.py        virtual time, processes, and the place where every fault strikes: a call to a broker
    model/          the broker, and clients that look like confluent-kafka's
    parts.py        the processes: partitioner instances, the Spark driver, who writes the input
    spark.py        Spark's protocol: offset log, commit log, versions of the state
    invariants.py   what must hold after each run
    run.py          one run
    shrink.py       a failing run with fewer faults and fewer records
    mutations.py    the product with one mend taken out, which the simulator must notice
"""
