"""Lets httplint judge the responses of a running service, of every status that can be provoked."""

import contextlib
import http.client
import json
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

from httplint import HttpRequestLinter, HttpResponseLinter, levels

sys.path.insert(0, str(Path(__file__).parent.parent))
import stack

STATUSES = {200, 304, 400, 401, 403, 404, 405, 429, 503}

# What httplint says of responses that are right, with the reason.
EXEMPT = {
    # It tells every reader of a 400 that the request was bad. That is what the status is for, and the body says why.
    "STATUS_BAD_REQUEST": lambda status, path: status == 400,
    # A CDN may store these for all. `public` is unnecessary without `Authorization`, but a client that always sends its
    # key would lose the shared copy without it (RFC 9111 section 3.5).
    "STORE_PUBLIC_UNNECESSARY": lambda status, path: status in (200, 304) and not path.startswith("/v1/public/"),
}


class Judge:
    """Makes requests, and collects what httplint says of the responses."""

    def __init__(self):
        self.findings, self.exempted, self.statuses, self.judged = [], set(), set(), 0

    def request(self, base_url, expected, path, key=None, method="GET", **headers):
        """Makes a request, judges its response, and returns the response's headers."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()} | {"User-Agent": "judge"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        response, body = exchange(base_url, method, path, headers)
        self.judged += 1
        self.statuses.add(response.status)
        if response.status != expected:
            self.findings.append(f"{method} {path}: {response.status} instead of {expected}")
        for note in lint(base_url, method, path, headers, response, body):
            self.judge(note, f"{method} {path}: {response.status}", response.status, path)
        return response.headers

    def judge(self, note, where, status, path):
        kind = type(note).__name__
        if note.level in (levels.WARN, levels.BAD):
            if kind in EXEMPT and EXEMPT[kind](status, path):
                self.exempted.add(kind)
            else:
                self.findings.append(f"{where}: {kind}: {note.summary}")
        for part in note.subnotes:
            self.judge(part, where, status, path)


def exchange(base_url, method, path, headers):
    url = urllib.parse.urlsplit(base_url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
    with contextlib.closing(connection):
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response, response.read()


def lint(base_url, method, path, headers, response, body):
    now = time.time()
    asked = HttpRequestLinter(start_time=now)
    asked.process_request_topline(method.encode(), (base_url + path).encode(), b"1.1")
    asked.process_headers(encoded(headers.items()))
    asked.finish_content(True)
    told = HttpResponseLinter(start_time=now, _related=asked)
    told.is_head_response = method == "HEAD"
    told.process_response_topline(b"1.1", str(response.status).encode(), response.reason.encode())
    told.process_headers(encoded(response.getheaders()))
    told.feed_content(body)
    told.finish_content(True)
    return told.notes


def encoded(headers):
    return [(name.encode(), value.encode()) for name, value in headers]


TEXTS = ["/docs", "/docs.md", "/llms.txt"]


def targets(document):
    """Returns each path of the description with its examples in place, and whether it needs a key or a scope."""
    for path, item in document["paths"].items():
        operation = item["get"]
        for parameter in operation.get("parameters", []):
            if parameter.get("in") == "path":
                path = path.replace("{" + parameter["name"] + "}", str(parameter["example"]))
            elif parameter.get("required"):
                path += f"?{parameter['name']}={parameter['example']}"
        needs = [scope for requirement in operation["security"] for scope in requirement.get("ApiKey", [])]
        yield path, bool(operation["security"]), needs


def judge_routes(judge, service, document):
    key = service.new_key(tier="business")
    for path, needs_key, scopes in [*targets(document), *((path, False, []) for path in TEXTS)]:
        sent = key if needs_key else None
        for encoding in ("identity", "gzip"):
            tag = judge.request(service.base_url, 200, path, sent, Accept_Encoding=encoding)["ETag"] or ""
            judge.request(service.base_url, 304, path, sent, Accept_Encoding=encoding, If_None_Match=tag)
            judge.request(service.base_url, 200, path, sent, "HEAD", Accept_Encoding=encoding)
        judge.request(service.base_url, 405, path, sent, "POST")
        if needs_key:
            judge.request(service.base_url, 400, path + "?unknown=1", sent)
            judge.request(service.base_url, 401, path)
            judge.request(service.base_url, 401, path, "sk_unknown")
        for scope in scopes:
            others = [other for other in stack.SCOPES if other != scope]
            judge.request(service.base_url, 403, path, service.new_key(*others))


def judge_refusals(judge, service):
    key = service.new_key()
    unknown = "00000000-0000-4000-8000-000000000000"
    judge.request(service.base_url, 404, "/v1/unknown")
    judge.request(service.base_url, 404, "/v1/public/items/unknown", key)
    judge.request(service.base_url, 404, f"/v1/public/prices/{unknown}", key)
    judge.request(service.base_url, 400, "/v1/public/listings?min_price=2&max_price=1", key)
    # The minute may end meanwhile, so there may be two budgets to use up.
    for _ in range(2 * 60):
        response, _body = exchange(service.base_url, "GET", "/v1/public/me", {"Authorization": f"Bearer {key}"})
        if response.status == 429:
            break
    judge.request(service.base_url, 429, "/v1/public/me", key)


@contextlib.contextmanager
def another_instance(programs, service):
    """Runs only the functions, against the store of a running service."""
    store = service.env["AWS_ENDPOINT_URL"]
    command = [f"{programs}/local", "--listen", "127.0.0.1:0", "--aws-endpoint", store, "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, env=service.env, **pipes) as process:
        try:
            yield json.loads(process.stdout.readline())["base_url"]
        finally:
            process.terminate()


def main(programs, description):
    document = json.loads(Path(description).read_text())
    judge = Judge()
    with contextlib.ExitStack() as left:
        with stack.running(programs) as service:
            judge_routes(judge, service, document)
            judge_refusals(judge, service)
            base_url = left.enter_context(another_instance(programs, service))
            key = service.new_key()
        # The store ended with the service.
        judge.request(base_url, 503, "/v1/public/me", key)
    judge.findings += [f"no response of status {status}" for status in STATUSES - judge.statuses]
    judge.findings += [f"no response needs the exemption of {kind}" for kind in EXEMPT.keys() - judge.exempted]
    print("\n".join(judge.findings + [f"{judge.judged} responses, {len(judge.findings)} findings"]))
    sys.exit(bool(judge.findings))


if __name__ == "__main__":
    main(*sys.argv[1:])
