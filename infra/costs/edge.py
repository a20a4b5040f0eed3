"""What the edge costs: each month, and for a million requests."""

from figures import MILLION, Figures, Table, dollars

TEMPLATE = "infra-edge-template"
SECONDS_PER_DAY = 86_400
FLOOD_PER_SECOND = 1_000


def table(figures: Figures) -> Table:
    made = Table(["What", "$", "Basis"])
    for what, amount, basis in [
        ("web ACL and its rules, each month", firewall(figures), "counted in the template; AWS's price list"),
        ("the secret and its copy, each month", 2 * figures.price("secret_month"), "AWS's price list"),
        (
            "a million requests through WAF, blocked ones too",
            MILLION * figures.price("waf_request"),
            "AWS's price list",
        ),
        (
            "a million requests through CloudFront (HTTPS, United States and Europe). Those that WAF blocks are free",
            MILLION * figures.price("cloudfront_request"),
            "AWS's price list",
        ),
        ("a day with 1,000 requests a second from one address, all blocked", day(figures, "waf_request"), "computed"),
        ("the same without the edge, for the gateway alone", day(figures, "http_api_request"), "computed"),
    ]:
        made.add(what, dollars(amount), basis, usd=amount)
    return made


def firewall(figures: Figures) -> float:
    [firewall] = figures.resources(TEMPLATE, "AWS::WAFv2::WebACL").values()
    return figures.price("waf_month") + len(firewall["Rules"]) * figures.price("waf_rule_month")


def day(figures: Figures, price: str) -> float:
    return FLOOD_PER_SECOND * SECONDS_PER_DAY * figures.price(price)
