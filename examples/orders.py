"""Somebody's live topic: orders as JSON, keyed by customer, a little out of order. For docs/first-hour.md.

    python examples/orders.py --broker localhost:9092

One customer in four orders is the same. The script makes the topic if it is missing, and runs until Ctrl-C.
"""

import argparse
import json
import random
import time

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

LATEST_MS = 2_000
"""An order reaches the topic at most so long after it was placed."""


def order(draw: random.Random, now_ms: int) -> tuple[str, dict[str, object]]:
    customer = "c0" if draw.random() < 0.25 else f"c{draw.randrange(1, 5_000)}"
    placed = now_ms - draw.randrange(LATEST_MS)
    return customer, {"customer": customer, "amount": round(draw.expovariate(1 / 40), 2), "at": placed}


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    words.add_argument("--broker", default="localhost:9092")
    words.add_argument("--topic", default="orders")
    words.add_argument("--partitions", type=int, default=4)
    words.add_argument("--rate", type=int, default=1_000, help="orders per second")
    options = words.parse_args()

    admin = AdminClient({"bootstrap.servers": options.broker})
    if options.topic not in admin.list_topics(timeout=10).topics:
        made = admin.create_topics([NewTopic(options.topic, num_partitions=options.partitions)])
        made[options.topic].result()

    producer = Producer({"bootstrap.servers": options.broker, "enable.idempotence": True, "linger.ms": 20})
    draw = random.Random(7)
    try:
        while True:
            for _ in range(options.rate // 10):
                customer, fields = order(draw, int(time.time() * 1000))
                producer.produce(options.topic, key=customer, value=json.dumps(fields))
            producer.poll(0)
            time.sleep(0.1)
    except KeyboardInterrupt:
        pass
    finally:
        producer.flush(10)


if __name__ == "__main__":
    main()
