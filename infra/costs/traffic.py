"""What a million requests cost, and a million refusals."""

from figures import MILLION, Figures, Table, dollars

HEAD = ["", "gateway", "Lambda", "DynamoDB", "logs", "$"]
# Endpoints, one of their functions, the read units beside the one write unit, and what they are.
ENDPOINTS = [
    ("`me`", "MeFunction", 0, 0, "one write unit"),
    ("`items`, `prices`, `marketplaces`, `balance`", "ItemFunction", 1, 1, "one read unit more"),
    (
        "`items` with the prices of ten variants",
        "ItemFunction",
        11,
        11,
        "a read unit for the item and for each variant",
    ),
    ("`orders`, a page of 50", "OrdersFunction", 2, 5, "two to five read units more"),
    (
        "the same, deep inside a month of 128 orders or more",
        "OrdersFunction",
        2,
        15,
        "up to seven read units on top of these, or ten in a month of 100,000 orders",
    ),
    (
        "`catalog`, `listings`",
        "CatalogFunction",
        0,
        1,
        "one read unit more per second and instance, or more [if many changes come](#following-the-log)",
    ),
]


def table(figures: Figures) -> Table:
    made = Table(HEAD)
    for name, function, fewest, most, what in ENDPOINTS:
        store = (units(figures, 1, fewest), units(figures, 1, most))
        add(made, name, figures, figures.invocation(function, figures.input("request_ms")), store, logs(figures), what)
    return made


def refusals(figures: Figures) -> Table:
    """Returns what refused and unchanged requests cost."""
    made = Table(HEAD)
    early = early_invocation(figures)
    full = figures.invocation("MeFunction", figures.input("request_ms"))
    shared = shared_lines(figures)
    write, read = units(figures, 1, 0), units(figures, 1, 1)
    unread = "401 without a key or with a malformed one, 403 without the edge's secret, 404 of a path, 405"
    for name, invocation, store, lines, what in [
        ("304, of any endpoint", full, (write, read), logs(figures), "as the 200: nothing is left out but the body"),
        ("400 of a parameter, 404 of an id", full, (write, read), logs(figures), "the key is counted first"),
        ("401 of a key, 403 of a scope, 429 of a budget", full, (write,) * 2, logs(figures), "a write that is refused"),
        ("the same again within a second on an instance", early, (0.0, 0.0), logs(figures), "none"),
        (unread, early, (0.0, 0.0), shared, "none"),
    ]:
        add(made, name, figures, invocation, store, lines, what)
    gateway, line = figures.price("http_api_request"), figures.log(figures.input("gateway_log_kb"))
    low, high = MILLION * line, MILLION * (gateway + line)
    note = f"0 or {dollars(MILLION * gateway)}: not known whether it is billed"
    made.add("429 of the gateway", note, "", "", dollars(low), f"**{dollars(low, high)}**", usd=[low, high])
    blocked = MILLION * figures.price("waf_request")
    made.add("403 or 429 of [the edge](#the-edge)", "", "", "", "", f"**{dollars(blocked)}**", usd=[blocked, blocked])
    return made


def keyless(figures: Figures) -> float:
    """Returns what one request costs for which no key is read."""
    return figures.price("http_api_request") + early_invocation(figures) + shared_lines(figures)


def early_invocation(figures: Figures) -> float:
    return figures.invocation("MeFunction", figures.input("early_refusal_ms"))


def shared_lines(figures: Figures) -> float:
    return figures.log(figures.input("gateway_log_kb") + figures.input("shared_refusal_log_kb"))


def add(
    made: Table, name: str, figures: Figures, invocation: float, store: tuple[float, float], lines: float, what: str
) -> None:
    gateway = figures.price("http_api_request")
    totals = [MILLION * (gateway + invocation + one + lines) for one in store]
    stored = what if store[1] == 0 else f"{dollars(*(MILLION * one for one in store))}: {what}"
    cells = [dollars(MILLION * gateway), dollars(MILLION * invocation), stored, dollars(MILLION * lines)]
    made.add(name, *cells, f"**{dollars(*totals)}**", usd=totals)


def units(figures: Figures, writes: int, reads: int) -> float:
    return writes * figures.price("dynamodb_write_unit") + reads * figures.price("dynamodb_read_unit")


def logs(figures: Figures) -> float:
    """Returns the cost of a request's two log lines."""
    return figures.log(figures.input("line_kb") + figures.input("gateway_log_kb"))
