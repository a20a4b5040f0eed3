"""An example of an adapter for `bench -- webhooks --peer`: docs/benchmarks.md describes the protocol.

It is adapter and webhook server in one, and the least that can be called one: it POSTs each event once and stores
nothing.
"""

import http.client
import json
import os
import queue
import sys
import threading
from urllib.parse import urlsplit

SENDERS = 8


def say(answer: dict) -> None:
    print(json.dumps(answer), flush=True)


def send(receiver: str, waiting: queue.SimpleQueue) -> None:
    """POSTs what waits, over one connection, until None comes."""
    connection = http.client.HTTPConnection(urlsplit(receiver).netloc)
    while (delivery := waiting.get()) is not None:
        url, event = delivery
        headers = {"content-type": "application/json", "webhook-id": event["id"]}
        connection.request("POST", urlsplit(url).path, json.dumps(event["body"]), headers)
        connection.getresponse().read()


def main() -> None:
    setup = json.loads(sys.stdin.readline())
    urls = {endpoint["account"]: endpoint["url"] for endpoint in setup["endpoints"]}
    waiting = queue.SimpleQueue()
    senders = [threading.Thread(target=send, args=(setup["receiver"], waiting)) for _ in range(SENDERS)]
    for sender in senders:
        sender.start()
    say({"ready": True, "pids": [os.getpid()]})
    for line in sys.stdin:
        events = json.loads(line)["events"]
        for event in events:
            waiting.put((urls[event["account"]], event))
        say({"accepted": len(events)})
    for _ in senders:
        waiting.put(None)
    for sender in senders:
        sender.join()


if __name__ == "__main__":
    main()
