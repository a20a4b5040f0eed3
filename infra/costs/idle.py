"""What a stack costs each month that nobody uses."""

import json

from figures import Figures, Table, dollars
from traffic import keyless

# The templates of alarms that somebody is told of.
ALARMS = ("infra-monitoring-api-alarms", "infra-monitoring-queue-alarms", "infra-monitoring-spending")
ROLLBACK = "infra-monitoring-rollback-alarms"
PROBE = "infra-monitoring-probe"
# A custom dashboard with more metrics costs money (AWS's price list).
FREE_METRICS = 50
WORDS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}


def table(figures: Figures) -> Table:
    made = Table(["What", "$", "Basis"])
    total = 0.0

    def add(what: str, amount: float, basis: str) -> None:
        made.add(what, dollars(amount), basis, usd=amount)

    for what, amount, basis in always(figures):
        add(what, amount, basis)
        total += amount
    made.add("**total**", f"**{dollars(total)}**", "", usd=total)
    watched = sum(metrics(figures, template) for template in ALARMS)
    alarm = figures.price("alarm_metric_month")
    add(f"alarms, if you want them: they look at {watched} metrics", watched * alarm, "counted in the templates")
    shown = graphed(figures)
    dashboard = figures.price("dashboard_month") if shown > FREE_METRICS else 0.0
    what = f"the dashboard, which shows {shown} metrics; up to {FREE_METRICS} are free"
    add(what, dashboard, "counted; AWS's price list, for an account with two others or fewer")
    add("[the probe](#the-probe), if you want it", probe(figures), "computed; the number of its requests is assumed")
    stored = figures.price("dynamodb_gb_month") + figures.price("dynamodb_backup_gb_month")
    add("stored data with its backup, per gigabyte", stored, "AWS's price list")
    return made


def always(figures: Figures) -> list[tuple[str, float, str]]:
    """Returns what is there without any option: what it is, what it costs, and where that comes from."""
    secrets = len(figures.resources("infra-data-template", "AWS::SecretsManager::Secret"))
    minutes = figures.input("minutes_per_month")
    queues = len(figures.resources("template", "AWS::Lambda::EventSourceMapping"))
    pollers, per_minute = figures.input("pollers_per_queue"), figures.input("polls_per_poller_and_minute")
    polls = queues * pollers * per_minute * minutes
    rules = figures.resources("template", "AWS::Events::Rule")
    assert all(rule["ScheduleExpression"] == "rate(1 minute)" for rule in rules.values()), rules
    functions = [rule["Targets"][0]["Arn"]["Ref"].removesuffix("Aliaslive") for rule in rules.values()]
    reads, millis = figures.input("idle_read_units_per_minute"), figures.input("idle_run_ms")
    lines = figures.input("idle_log_lines_per_minute")
    run = sum(figures.invocation(name, millis) for name in functions)
    run += figures.log(lines * figures.input("line_kb"))
    run += reads * figures.price("dynamodb_read_unit")
    watched, alarm = metrics(figures, ROLLBACK), figures.price("alarm_metric_month")
    sent = figures.input("idle_metrics") * figures.price("metric_month")
    names = " and ".join(f"`{name.removesuffix('Function').lower()}`" for name in sorted(functions, reverse=True))
    return [
        ("keyring in Secrets Manager", secrets * figures.price("secret_month"), "AWS's price list"),
        (
            f"polling of {WORDS.get(queues, queues)} queues: for each, {WORDS[pollers]} long polls in parallel, "
            f"{WORDS[per_minute]} a minute each; {polls / 1e6:.2f} million calls",
            polls * figures.price("sqs_request"),
            "computed from AWS's documentation",
        ),
        (
            f"{names}, once a minute: {minutes:,.0f} runs each; "
            f"about {reads} read units and {WORDS[lines]} log lines a minute, {millis} ms each",
            run * minutes,
            "computed; units measured, time assumed",
        ),
        ("the two metrics that `compact` always sends", sent, "counted in the code"),
        (f"the rollback alarms: they look at {watched} metrics", watched * alarm, "counted in the template"),
    ]


def probe(figures: Figures) -> float:
    """Returns what the probe costs: its health check, its alarm, and its requests, which need no key."""
    [check] = figures.resources(PROBE, "AWS::Route53::HealthCheck").values()
    settings = check["HealthCheckConfig"]
    features = ("HTTPS" in settings["Type"]) + ("SearchString" in settings)
    requests = figures.input("minutes_per_month") * figures.input("probes_per_minute")
    return (
        figures.price("health_check_month")
        + features * figures.price("health_check_feature_month")
        + metrics(figures, PROBE) * figures.price("alarm_metric_month")
        + requests * keyless(figures)
    )


def metrics(figures: Figures, template: str) -> int:
    """Returns how many metrics the alarms of a template look at."""
    count = 0
    for alarm in figures.resources(template, "AWS::CloudWatch::Alarm").values():
        queries = [query for query in alarm.get("Metrics", []) if "MetricStat" in query]
        count += len(queries) or 1
    return count


def graphed(figures: Figures) -> int:
    """Returns how many metrics the dashboard shows. One that is in two graphs counts once."""
    [dashboard] = figures.resources("infra-monitoring-dashboard", "AWS::CloudWatch::Dashboard").values()
    body = json.loads(dashboard["DashboardBody"]["Fn::Sub"])
    shown = set()
    for widget in body["widgets"]:
        row: list[str] = []
        for columns in widget["properties"].get("metrics", []):
            names = [name for name in columns if isinstance(name, str)]
            if names[0] == "...":
                names = row[: len(row) - len(names) + 1] + names[1:]
            row = [row[at] if name == "." else name for at, name in enumerate(names)]
            shown.add(tuple(row))
    return len(shown)
