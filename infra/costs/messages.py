"""What a million messages of the feed cost, and a million deliveries of webhooks."""

from dataclasses import dataclass

from figures import MILLION, Figures, Table, dollars


@dataclass
class Work:
    """What one message or delivery costs on average: units, calls of queues, and invocations with their time."""

    write_units: float
    read_units: float
    queue_calls: float
    # Function, invocations, milliseconds of each.
    invocations: list[tuple[str, float, float]]

    def stores(self, figures: Figures) -> float:
        return (
            self.write_units * figures.price("dynamodb_write_unit")
            + self.read_units * figures.price("dynamodb_read_unit")
            + self.queue_calls * figures.price("sqs_request")
        )

    def functions(self, figures: Figures) -> float:
        return sum(count * figures.invocation(name, millis) for name, count, millis in self.invocations)


def feed(figures: Figures) -> Table:
    made = Table(["", "for each message", "DynamoDB and SQS", "Lambda", "$"])
    for name, work in [
        ("ten in a batch", one_message(figures, "feed_batched", 10)),
        ("one at a time", one_message(figures, "feed_single", 1)),
    ]:
        what = f"{work.write_units:g} write units, {work.queue_calls:g} SQS calls"
        add(made, figures, work, name, what)
    return made


def deliveries(figures: Figures) -> Table:
    made = Table(["", "for each delivery", "DynamoDB and SQS", "Lambda", "$"])
    attempts, prompt = figures.input("attempts"), figures.input("receiver_ms")
    silent = figures.input("silent_ms")
    for name, work in [
        ("acknowledged within 100 ms, ten in a batch", one_delivery(figures, "delivery_batched", 10, 1, prompt)),
        ("acknowledged within 100 ms, one at a time", one_delivery(figures, "delivery_single", 1, 1, prompt)),
        (
            "never acknowledged: seven attempts, each refused at once",
            one_delivery(figures, "delivery_failed", 1, attempts, 0),
        ),
        (
            "never acknowledged: seven attempts, each ten seconds of silence, one at a time",
            one_delivery(figures, "delivery_failed", 1, attempts, silent),
        ),
    ]:
        what = f"{work.write_units:g} write and {work.read_units:g} read units, {work.queue_calls:g} SQS calls"
        add(made, figures, work, name, what)
    return made


def one_message(figures: Figures, prefix: str, batch: int) -> Work:
    """Returns the work of a message in such a batch. The calls of a batch follow one another."""
    millis = batch * figures.input(f"{prefix}_calls") * figures.input("call_ms")
    ingest = ("IngestFunction", 1 / batch, millis)
    return Work(figures.input(f"{prefix}_write_units"), 0.0, figures.input(f"{prefix}_queue_calls"), [ingest])


def one_delivery(figures: Figures, prefix: str, batch: int, attempts: int, receiver_ms: float) -> Work:
    """Returns the work of a delivery in such a batch. The deliveries of a batch are made at the same time."""
    call = figures.input("call_ms")
    ingest = ("IngestFunction", 1 / batch, figures.input("fan_out_calls") * call)
    webhook = ("WebhookFunction", attempts / batch, figures.input("attempt_calls") * call + receiver_ms)
    units, reads = figures.input(f"{prefix}_write_units"), figures.input(f"{prefix}_read_units")
    return Work(units, reads, figures.input(f"{prefix}_queue_calls"), [ingest, webhook])


def add(made: Table, figures: Figures, work: Work, name: str, what: str) -> None:
    stores, functions = MILLION * work.stores(figures), MILLION * work.functions(figures)
    total = stores + functions
    made.add(name, what, dollars(stores), dollars(functions), f"**{dollars(total)}**", usd=[total, total])
