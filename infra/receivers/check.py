"""Sends webhooks of the local stack to real web servers, and judges what they received: check.py PROGRAMS FOLDER.

Each server gets many events in a burst. Then it gets some one by one, each sent while the application may still work
after its last answer. At last it gets a few when all connections have been idle for long. Each delivery must be read,
and acknowledged at its first attempt.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
import uuid
from collections import Counter
from pathlib import Path
from urllib.request import Request, urlopen

from servers import Failed, running

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
import stack as local

EVENT = "listing.sold"
BURST, ONE_BY_ONE, LAST = 200, 60, 5
# Seconds without events. The service keeps an idle connection for at most 3 s. Most servers close theirs within this
# pause. Those that do not are nginx (75 s), waitress (120 s) and Go (never).
PAUSE = 7
# The most seconds for which the application works after an answer.
WORK = 0.3
# Seconds after which the check gives up if no server reads anything. How long the bursts of all of them take together,
# and whatever is sent behind them, only tells how busy this machine is.
LIMIT = 60
# Retries come after a second or a few, so a check that fails ends soon.
FLAGS = ["--memory", "--empty", "--allow-loopback-webhooks", "--time-scale", "1000"]


class Progress:
    """When a server last read something."""

    def __init__(self):
        self.read = Counter()
        self.time = time.monotonic()

    def note(self, server, read):
        if self.read[server] != read:
            self.read[server] = read
            self.time = time.monotonic()

    def expect(self):
        if time.monotonic() - self.time > LIMIT:
            raise TimeoutError


class Receiver:
    """An account whose endpoint is one of the servers."""

    def __init__(self, stack, progress, server):
        self.stack = stack
        self.progress = progress
        self.server = server
        self.user = str(uuid.uuid4())
        added = stack.marketctl("webhooks", "add", "--user", self.user, "--url", server.url, "--event", EVENT)
        self.endpoint = added["id"]
        self.sent = 0
        self.problems = []

    async def exercise(self):
        try:
            await self.send_burst(BURST)
            for _ in range(ONE_BY_ONE):
                await asyncio.sleep(random.uniform(0, WORK))
                await asyncio.to_thread(self.send_one)
                await self.all_read()
            await asyncio.sleep(PAUSE)
            await self.send_burst(LAST)
        except TimeoutError:
            self.problems.append(f"gave up after {self.sent} events, because no server read anything for {LIMIT} s")

    async def send_burst(self, count):
        """Sends this many events at once. Returns when all have been read and none is pending."""
        file = self.server.folder / "events"
        file.write_text("".join(f"{json.dumps(self.event())}\n" for _ in range(count)))
        await asyncio.to_thread(self.stack.marketctl, "feed", "send", str(file))
        await self.all_read()
        while await asyncio.to_thread(self.deliveries, "--status", "pending"):
            self.progress.expect()
            await asyncio.sleep(0.5)

    def send_one(self):
        """Sends one event, in less time than it takes to start marketctl."""
        env = self.stack.env
        body = {"QueueUrl": env["FEED_QUEUE_URL"], "MessageBody": json.dumps(self.event())}
        headers = {"X-Amz-Target": "AmazonSQS.SendMessage", "Content-Type": "application/x-amz-json-1.0"}
        urlopen(Request(env["AWS_ENDPOINT_URL"], json.dumps(body).encode(), headers), timeout=LIMIT).close()

    def event(self):
        self.sent += 1
        listing, order = str(uuid.uuid4()), str(uuid.uuid4())
        return {
            "type": "event",
            "id": str(uuid.uuid4()),
            "event": EVENT,
            "account_id": self.user,
            "created_at": "2026-11-20T10:00:00Z",
            "data": {"listing_id": listing, "order_id": order, "price_usd": "12.50", "kind": "bot"},
        }

    def received(self):
        """Returns the delivery's id and the client's port of each request that the server has read."""
        # The last line may not be whole yet.
        lines = self.server.received.read_text().split("\n")[:-1]
        return [line.split()[:2] for line in lines]

    async def all_read(self):
        while (read := len({delivery for delivery, _ in self.received()})) < self.sent:
            self.progress.note(self.server, read)
            self.progress.expect()
            await asyncio.sleep(0.02)

    def deliveries(self, *flags):
        return self.stack.marketctl("webhooks", "deliveries", self.endpoint, *flags)

    def first_error(self, delivery):
        first = self.stack.marketctl("webhooks", "show", delivery["id"])["attempts"][0]
        return first["error"] or f"status {first['status']}"

    def judge(self):
        """Collects what was wrong, and returns the row of the table."""
        requests = self.received()
        read = Counter(delivery for delivery, _ in requests)
        deliveries = self.deliveries()
        wrong = [each for each in deliveries if each["attempts"] != 1 or each["status"] != "delivered"]
        for count, what in [
            (self.sent - len(deliveries), "events made no delivery"),
            (sum(each["id"] not in read for each in deliveries), "deliveries were never read"),
            (sum(each["status"] != "delivered" for each in deliveries), "deliveries are not delivered"),
        ]:
            if count:
                self.problems.append(f"{count} {what}")
        failed = Counter(self.first_error(each) for each in wrong if each["attempts"] > 0)
        self.problems += [f"{count} first attempts failed: {error}" for error, count in failed.most_common()]
        again = sum(count > 1 for count in read.values())
        # About as many as there were connections: a port may be used by one after another.
        ports = len({port for _, port in requests})
        return self.server.name, self.server.version, self.sent, len(read), again, failed.total(), ports


def print_table(rows):
    head = ("server", "version", "events", "read", "read again", "failed first attempts", "client ports")
    widths = [max(len(str(row[column])) for row in [head, *rows]) for column in range(len(head))]
    for row in [head, *rows]:
        # The name and the version begin at the left, and numbers end at the right.
        cells = [str(cell).ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
        cells += [str(cell).rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        print("  ".join(cells))


async def check(programs, made):
    """Returns whether no server had a problem."""
    begun = time.monotonic()
    with running(Path(made).resolve()) as servers, local.running(programs, *FLAGS) as stack:
        for server in servers:
            await server.ready()
        progress = Progress()
        receivers = [Receiver(stack, progress, server) for server in servers]
        async with asyncio.TaskGroup() as tasks:
            for receiver in receivers:
                tasks.create_task(receiver.exercise())
        print_table([await asyncio.to_thread(receiver.judge) for receiver in receivers])
    print(f"   {time.monotonic() - begun:.0f} s")
    wrong = [receiver for receiver in receivers if receiver.problems]
    for receiver in wrong:
        print(f"\n{receiver.server.name}: its log is {os.path.relpath(receiver.server.log)}")
        print("\n".join(f"  {problem}" for problem in receiver.problems))
    return not wrong


# Whatever interrupts this also ends the servers and the stack, because asyncio cancels `check`. A shell may have had
# SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
for ending in [signal.SIGTERM, signal.SIGHUP]:
    signal.signal(ending, lambda *_: signal.raise_signal(signal.SIGINT))
try:
    sys.exit(0 if asyncio.run(check(*sys.argv[1:])) else 1)
except Failed as failure:
    sys.exit(f"\nreceivers: {failure}")
except KeyboardInterrupt:
    sys.exit("\nreceivers: interrupted")
