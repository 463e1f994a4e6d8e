"""A plain consumer loop: read a topic, let evenflow choose the worker of each record, write it to that
worker's partition.

    pip install '.[kafka]'  # in a clone of evenflow
    python examples/route_topic.py --broker localhost:9092 --source orders --target orders-by-worker

Both topics exist. The target has one partition for each worker: whoever reads partition 3 is worker 3. A key
that is hot is in several partitions, so the workers' results of a key have to be merged.

The loop delivers at least once: a record is committed when its copy is written, so a crash in between writes
it again. `evenflow partition` is this loop with transactions, watermarks and several instances, and delivers
exactly once.
"""

import argparse

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from evenflow.partitioners import create


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    words.add_argument("--broker", default="localhost:9092")
    words.add_argument("--source", required=True)
    words.add_argument("--target", required=True)
    words.add_argument("--partitioner", default="evenflow")
    words.add_argument("--records", type=int, help="stop after at least so many; default: never")
    options = words.parse_args()

    consumer = Consumer(
        {
            "bootstrap.servers": options.broker,
            "group.id": f"{options.target}-router",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,  # we commit what has been written, see below
        }
    )
    producer = Producer({"bootstrap.servers": options.broker, "enable.idempotence": True})

    workers = len(producer.list_topics(options.target, timeout=10).topics[options.target].partitions)
    partitioner = create(options.partitioner, workers=workers)
    consumer.subscribe([options.source])
    try:
        while options.records is None or partitioner.observe().tuples < options.records:
            records = consumer.consume(10_000, timeout=1.0)
            if not records:
                continue
            for record in records:
                if record.error():
                    raise KafkaException(record.error())
            # The key of a tuple is the record's key here. It could as well be a field of its value.
            chosen = partitioner.assign_keys(
                [record.key() or b"" for record in records], [record.timestamp()[1] for record in records]
            )
            for record, worker in zip(records, chosen.tolist(), strict=True):
                producer.produce(
                    options.target,
                    value=record.value(),
                    key=record.key(),
                    partition=worker,
                    on_delivery=raise_failure,
                )
            producer.flush()
            consumer.commit(asynchronous=False)
    except KeyboardInterrupt:
        pass
    finally:
        consumer.close()
    print("tuples of each worker:", partitioner.observe().loads.tolist())


def raise_failure(error: KafkaError | None, record: Message) -> None:
    """Runs inside `flush`, so nothing is committed that was not written."""
    if error is not None:
        raise KafkaException(error)


if __name__ == "__main__":
    main()
