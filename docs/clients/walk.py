"""Walks the catalog, and then keeps the active listings up to date: `walk.py ROUNDS SECONDS`

`BASE_URL` and `API_KEY` are in the environment. Prints a line of JSON for the catalog, for one item with its prices, and
for each round.
"""

import json
import os
import random
import re
import sys
import time
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request, urlopen

PAGE_SIZE = int(os.environ.get("PAGE_SIZE", "100"))


class Client:
    """Asks the API within the budget of one scope."""

    def __init__(self, base_url, api_key):
        self.base_url, self.api_key = base_url, api_key
        self.copies = {}  # the tag and the body of each path
        self.free_at = 0.0  # when the budget has a request left

    def get(self, path):
        """Returns the body of a path, and the position in the log of the state that it shows."""
        for failures in range(10):
            time.sleep(max(0.0, self.free_at - time.monotonic()))
            status, headers, body = self.send(path)
            left = re.search(r";r=(\d+);t=(\d+)", headers.get("RateLimit", ""))
            if left and left[1] == "0":
                # A random time more, so that clients do not come together when the minute begins.
                self.free_at = time.monotonic() + int(left[2]) + random.random()
            if status == 200:
                self.copies[path] = headers["ETag"], json.loads(body)
            if status in (200, 304):
                return self.copies[path][1], headers.get("X-Log-Position")
            if 400 <= status < 500 and status != 429:
                raise RuntimeError(f"{path}: {status} {body}")
            # No answer, 429 or 5xx: as long as the API says, and a random time more.
            told = headers.get("Retry-After", "")
            time.sleep((int(told) if told.isdecimal() else 0) + random.uniform(0, min(30, 0.25 * 2**failures)))
        raise RuntimeError(f"{path}: no answer")

    def send(self, path):
        request = Request(self.base_url + path, headers={"Authorization": f"Bearer {self.api_key}"})
        if path in self.copies:
            request.add_header("If-None-Match", self.copies[path][0])
        try:
            try:
                response = urlopen(request, timeout=10)
            except HTTPError as error:
                response = error
            with response:
                return response.status, response.headers, response.read()
        except (OSError, HTTPException):
            return 0, {}, b""


def walk(client, path):
    """Returns all records of a list by their ids, and the position of the one state that they show.

    If the state changes during the walk, it begins again. The third try goes on to the end, and has no position then.
    """
    for is_last in (False, False, True):
        records, positions, page, total = {}, set(), 0, 1
        while page * PAGE_SIZE < total and (len(positions) < 2 or is_last):
            page += 1
            body, position = client.get(f"{path}?page={page}&page_size={PAGE_SIZE}")
            records |= {record["id"]: record for record in body["items"]}
            positions.add(position)
            total = body["total"]
        if len(positions) == 1:
            return records, positions.pop()
    return records, None


def follow(client, path, rounds, seconds):
    """Yields all records of a list, once for each round. If nothing has changed, a round takes one request."""
    records, known = walk(client, path)
    yield records
    for _ in range(rounds - 1):
        time.sleep(seconds)
        _, position = client.get(f"{path}?page=1&page_size={PAGE_SIZE}")
        if position != known:
            records, known = walk(client, path)
        yield records


def main(rounds, seconds):
    base_url, api_key = os.environ["BASE_URL"], os.environ["API_KEY"]
    catalog, listings = Client(base_url, api_key), Client(base_url, api_key)
    items, position = walk(catalog, "/v1/public/catalog")
    print(json.dumps({"items": sorted(items), "one_state": position is not None}), flush=True)
    if items:
        # All variants with their prices take one request.
        item, _ = catalog.get(f"/v1/public/items/{min(items)}?include=prices")
        print(json.dumps({"priced": sum(one["prices"] is not None for one in item["variants"])}), flush=True)
    for found in follow(listings, "/v1/public/listings", rounds, seconds):
        print(json.dumps({"listings": sorted(found)}), flush=True)


main(int(sys.argv[1]), float(sys.argv[2]))
