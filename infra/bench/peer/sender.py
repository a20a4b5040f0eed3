"""An example of an adapter for `bench -- webhooks --peer`.

An adapter operates the other webhook server. It exchanges lines with the benchmark, each of which is one JSON document.
It reads them from standard input and writes them to standard output:

1. The benchmark names the receiver's base URL, and an endpoint for each account:
   {"receiver":"http://127.0.0.1:4000","endpoints":[{"account":"…","url":"http://127.0.0.1:4000/0"}]}
2. The adapter answers {"ready":true,"pids":[12,34]} once the server runs and knows the endpoints. The CPU time of these
   processes counts, with that of everything they have started. The adapter's own CPU time counts in any case.
3. The benchmark sends up to ten events a line:
   {"events":[{"id":"…","account":"…","event":"listing.sold","body":{"id":"…","created_at":"…",…}}]}
   The server must POST the `body` of each to the endpoint of its account, as JSON.
4. The adapter answers {"accepted":10}: the server has taken ten more events. At most 40 events are open at a time.

The first 500 events warm the server up. The time runs from the first event after them to the last arrival. The receiver
counts every POST whose body has a `created_at`, and answers 204. Each turn starts the adapter anew. It must end with
exit code 0 when its standard input ends. If it writes another line than the benchmark expects, or none for two minutes,
the benchmark ends and says which line that was. What the adapter writes to standard error is shown.

This example is adapter and server in one: it POSTs each event once and stores nothing.
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
