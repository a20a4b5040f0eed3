"""What it costs in five lines."""

from figures import Points, Table, dollars

FIXED_ADDRESSES = "[Fixed sender addresses](#what-fixed-addresses-cost), if you want them: about $73 a month."


def points(idle: Table, requests: Table, feed: Table, deliveries: Table) -> Points:
    [month] = [row["usd"] for row in idle.rows if row["cells"][0] == "**total**"]
    return Points(
        [
            f"A stack that nobody uses: about ${month:.0f} a month, and its stored data.",
            f"A million requests: {span(requests.rows)}.",
            f"A million feed messages: {span(feed.rows)}.",
            f"A million webhook deliveries that succeed: {span(deliveries.rows[:2])}.",
            FIXED_ADDRESSES,
        ]
    )


def span(rows: list[dict]) -> str:
    amounts = [amount for row in rows for amount in row["usd"]]
    return "$" + dollars(min(amounts), max(amounts)).replace(" to ", " to $")
