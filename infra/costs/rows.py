"""The rows of the guide's tables: what costs something, how much, and the parts of that."""

from dataclasses import dataclass

from figures import MILLION, Figures, dollars

ALARMS = "infra-monitoring-alarms"
PROBE = "infra-monitoring-probe"
EDGE = "infra-edge-template"
NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five"}
VOLUMES = {0: "no request", 1: "1 million", 100: "100 million", 1_000: "1,000 million"}


@dataclass
class Part:
    """A part of a cost, in dollars. It may lie between two amounts."""

    name: str
    low: float
    high: float | None = None

    def times(self, count: float) -> "Part":
        return Part(self.name, self.low * count, None if self.high is None else self.high * count)


class Row:
    def __init__(self, what: str, *parts: Part) -> None:
        self.what, self.parts = what, parts
        self.low = sum(part.low for part in parts)
        self.high = sum(part.low if part.high is None else part.high for part in parts)

    def cells(self) -> list[str]:
        shown = ", ".join(f"{part.name} {dollars(part.low, part.high)}" for part in self.parts)
        return [self.what, dollars(self.low, self.high), shown]


def totals(figures: Figures) -> dict[str, list[float]]:
    """Returns what a month costs in all, by its volume. Each request is one of `items` with a line of its own."""
    watched, discounted = figures.watched(ALARMS), figures.price("http_api_request_above_300_million")
    fixed = [Part("keyring", figures.price("secret_month")), polling(figures), schedules(figures)]
    fixed.append(Part(f"alarms on {watched} metrics", watched * figures.price("alarm_metric_month")))
    metrics = [figures.input("busy_metrics" if volume else "idle_metrics") for volume in VOLUMES]
    gateway, *used = answered(figures, "MeFunction", figures.input("request_ms"))
    used.append(Part("DynamoDB", figures.stores(writes=1, reads=1)))
    used.append(Part("data to clients", figures.input("response_kb") / MILLION * figures.price("data_out_gb")))
    months = {part.name: [part.low for _ in VOLUMES] for part in fixed}
    months["custom metrics, at most"] = [count * figures.price("metric_month") for count in metrics]
    cheaper = [max(0, volume - 300) * (gateway.low - discounted) for volume in VOLUMES]
    months[gateway.name] = [MILLION * (volume * gateway.low - less) for volume, less in zip(VOLUMES, cheaper)]
    months |= {part.name: [MILLION * volume * part.low for volume in VOLUMES] for part in used}
    return {"**in all**": [sum(costs) for costs in zip(*months.values())], **months}


def rows(figures: Figures) -> dict[str, list[Row]]:
    """Returns the rows of each group."""
    used = [*requests(figures), *refusals(figures), *messages(figures), *deliveries(figures)]
    million = [Row(row.what, *(part.times(MILLION) for part in row.parts)) for row in used]
    return {"each month": months(figures), "a million": million, "a day of flood at the throttle": floods(figures)}


def months(figures: Figures) -> list[Row]:
    """Returns what is paid each month for what a stack need not have."""
    minutes, hours = figures.input("minutes_per_month"), figures.input("minutes_per_month") / 60
    probes = minutes * figures.input("probes_per_minute")
    answer = answered(figures, "MeFunction", figures.input("early_refusal_ms"))
    [firewall] = figures.resources(EDGE, "AWS::WAFv2::WebACL").values()
    rules = len(firewall["Rules"])
    return [
        Row(
            "[the probe](#the-probe)",
            Part("health check", health_check(figures)),
            Part("alarm", figures.watched(PROBE) * figures.price("alarm_metric_month")),
            Part(f"{probes / MILLION:.2f} million requests", probes * sum(part.low for part in answer)),
        ),
        Row(
            "[the edge](#the-edge)",
            Part("firewall", figures.price("waf_month")),
            Part(f"{NUMBERS[rules]} rules", rules * figures.price("waf_rule_month")),
            Part("secret and its copy", 2 * figures.price("secret_month")),
        ),
        Row(
            "[fixed addresses](#fixed-sender-addresses)",
            Part("two NAT gateways", 2 * hours * figures.price("nat_gateway_hour")),
            Part("two IPv4 addresses", 2 * hours * figures.price("public_address_hour")),
        ),
        Row(
            "a gigabyte of data",
            Part("storage", figures.price("dynamodb_gb_month")),
            Part("backup", figures.price("dynamodb_backup_gb_month")),
        ),
    ]


def polling(figures: Figures) -> Part:
    queues = len(figures.resources("template", "AWS::Lambda::EventSourceMapping"))
    polls = queues * figures.input("pollers_per_queue") * figures.input("polls_per_poller_and_minute")
    polls *= figures.input("minutes_per_month")
    name = f"{polls / MILLION:.2f} million polls of {NUMBERS[queues]} queues"
    return Part(name, polls * figures.price("sqs_request"))


def schedules(figures: Figures) -> Part:
    rules = figures.resources("template", "AWS::Events::Rule").values()
    assert all(rule["ScheduleExpression"] == "rate(1 minute)" for rule in rules), rules
    functions = [rule["Targets"][0]["Arn"]["Ref"].removesuffix("Aliaslive") for rule in rules]
    run = sum(figures.invocation(name, figures.input("idle_run_ms")) for name in functions)
    run += figures.log(figures.input("idle_log_lines_per_minute") * figures.input("line_kb"))
    run += figures.stores(reads=figures.input("idle_read_units_per_minute"))
    names = " and ".join(f"`{name.removesuffix('Function').lower()}`" for name in sorted(functions, reverse=True))
    return Part(f"{names} once a minute", run * figures.input("minutes_per_month"))


def health_check(figures: Figures) -> float:
    [check] = figures.resources(PROBE, "AWS::Route53::HealthCheck").values()
    settings = check["HealthCheckConfig"]
    features = ("HTTPS" in settings["Type"]) + ("SearchString" in settings)
    return figures.price("health_check_month") + features * figures.price("health_check_feature_month")


def requests(figures: Figures) -> list[Row]:
    """Returns what requests of the endpoints cost. Each takes a write unit for its key, and some read units."""
    millis, write = figures.input("request_ms"), Part("a write unit", figures.stores(writes=1))
    me = Row("`me`", *answered(figures, "MeFunction", millis), write)
    memory = invoked(figures, ("CatalogFunction", 1, millis)).low - invoked(figures, ("MeFunction", 1, millis)).low
    line = Part("a longer line", figures.log(figures.input("replica_line_kb") - figures.input("line_kb")))
    shared = answered(figures, "MeFunction", millis, "shared_line_kb")
    made = [me, Row("`me`, eighty [alike](runbook.md#looking-around) in a second", *shared, write)]
    for name, fewest, most, reads, more in [
        ("`items`, `prices`, `marketplaces`, `balance`", 1, 1, "a read unit", []),
        ("`items` with ten prices", 11, 11, "11 read units", []),
        ("`items` with the prices of 25 variants", 26, 26, "26 read units", []),
        ("pages of `orders`", 2, 15, "2 to 15 read units", []),
        ("pages of `changes`", 1, 275, "1 to 275 read units", []),
        ("`catalog`, `listings`", 0, 1, "a read unit at times", [Part("memory", memory), line]),
    ]:
        units = Part(reads, figures.stores(reads=fewest), figures.stores(reads=most))
        made.append(Row(name, Part("as `me`", me.low), *more, units))
    return made


def refusals(figures: Figures) -> list[Row]:
    """Returns what refused requests cost."""
    firewall, delivery = figures.price("waf_request"), figures.price("cloudfront_request")
    return [
        Row("401 of an invented key", *invented(figures)),
        Row("4xx for which no key is read", *repeated(figures)),
        Row("through the edge, in addition", Part("firewall", firewall), Part("CloudFront if admitted", 0, delivery)),
    ]


def floods(figures: Figures) -> list[Row]:
    """Returns what a day costs of as many refused requests as the throttle lets through, for all routes together or for
    each."""
    [api] = figures.resources("template", "AWS::ApiGatewayV2::Api").values()
    routes = len(api["Body"]["paths"])
    day = 24 * 3_600 * figures.templates["template"]["Parameters"]["ThrottleRate"]["Default"]
    made = []
    for name, parts in [("without a key", repeated(figures)), ("with invented keys", invented(figures))]:
        cost = day * sum(part.low for part in parts)
        made.append(Row(name, Part(f"if it holds for the stage, or for each of {routes} routes", cost, routes * cost)))
    return made


def invented(figures: Figures) -> list[Part]:
    """Returns what a request with a key costs that nobody was given, beyond the first twenty a second of an instance."""
    parts = answered(figures, "MeFunction", figures.input("request_ms"), "shared_line_kb")
    return [*parts, Part("a read unit", figures.stores(reads=1))]


def answered(figures: Figures, function: str, millis: float, line_kb: str = "line_kb") -> list[Part]:
    """Returns what a request costs beside its DynamoDB units. The function and the gateway log a line each."""
    lines = figures.log(figures.input(line_kb) + figures.input("gateway_log_kb"))
    gateway = Part("gateway", figures.price("http_api_request"))
    return [gateway, invoked(figures, (function, 1, millis)), Part("logs", lines)]


def repeated(figures: Figures) -> list[Part]:
    """Returns what a request costs for which no key is read. Many share a line of the function's log."""
    return answered(figures, "MeFunction", figures.input("early_refusal_ms"), "shared_line_kb")


def messages(figures: Figures) -> list[Row]:
    """Returns what messages of the feed cost. The calls of a batch follow one another."""
    made = []
    for name, prefix, batch in [("ten in a batch", "feed_batched", 10), ("one at a time", "feed_single", 1)]:
        writes, calls = figures.input(f"{prefix}_write_units"), figures.input(f"{prefix}_queue_calls")
        millis = batch * figures.input(f"{prefix}_calls") * figures.input("call_ms")
        stored = Part(f"{writes:g} write units, {calls:g} SQS calls", figures.stores(writes, queue_calls=calls))
        made.append(Row(f"feed messages, {name}", stored, invoked(figures, ("IngestFunction", 1 / batch, millis))))
    return made


def deliveries(figures: Figures) -> list[Row]:
    """Returns what deliveries of webhooks cost. Those of a batch are made at the same time."""
    call, tries = figures.input("call_ms"), figures.input("attempts")
    prompt, silent = figures.input("receiver_ms"), figures.input("silent_ms")
    made = []
    for name, prefix, batch, attempts, receiver in [
        ("ten in a batch", "delivery_batched", 10, 1, prompt),
        ("one at a time", "delivery_single", 1, 1, prompt),
        (f"silent receiver, {tries:g} attempts", "delivery_failed", 1, tries, silent),
    ]:
        writes, reads = figures.input(f"{prefix}_write_units"), figures.input(f"{prefix}_read_units")
        calls = figures.input(f"{prefix}_queue_calls")
        units = f"{writes:g} write units, {reads:g} read units, {calls:g} SQS calls"
        stored = Part(units, figures.stores(writes, reads, calls))
        ingest = ("IngestFunction", 1 / batch, figures.input("fan_out_calls") * call)
        webhook = ("WebhookFunction", attempts / batch, figures.input("attempt_calls") * call + receiver)
        made.append(Row(f"deliveries, {name}", stored, invoked(figures, ingest, webhook)))
    return made


def invoked(figures: Figures, *invocations: tuple[str, float, float]) -> Part:
    """Returns what invocations cost: of which function, how many, and how many milliseconds each takes."""
    return Part("Lambda", sum(count * figures.invocation(name, millis) for name, count, millis in invocations))
