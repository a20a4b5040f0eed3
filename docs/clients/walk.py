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
# region: plain
OVERLAP = 2  # how many records a page has in common with the one before, at least
# endregion


class Client:
    """Asks the API within the budget of one scope."""

    def __init__(self, base_url, api_key):
        self.base_url, self.api_key = base_url, api_key
        self.free_at = 0.0  # when the budget has a request left

    def ask(self, path):
        """Returns the body, or nothing if it is gone, and the position in the log of the state that it shows."""
        for failures in range(10):
            time.sleep(max(0.0, self.free_at - time.monotonic()))
            status, headers, body = self.send(path)
            left = re.search(r";r=(\d+);t=(\d+)", headers.get("RateLimit", ""))
            if left and left[1] == "0":
                # A random time more, so that clients do not come together when the minute begins.
                self.free_at = time.monotonic() + int(left[2]) + random.random()
            if status == 200:
                return json.loads(body), int(headers.get("X-Log-Position", "0"))
            # The log no longer goes back so far, or was begun anew.
            if status == 410 or "out_of_range" in str(body):
                return None, None
            if 400 <= status < 500 and status != 429:
                raise RuntimeError(f"{path}: {status} {body}")
            # No answer, 429 or 5xx: as long as the API says, and a random time more.
            told = headers.get("Retry-After", "")
            time.sleep((int(told) if told.isdecimal() else 0) + random.uniform(0, min(30, 0.25 * 2**failures)))
        raise RuntimeError(f"{path}: no answer")

    def send(self, path):
        request = Request(self.base_url + path, headers={"Authorization": f"Bearer {self.api_key}"})
        try:
            try:
                response = urlopen(request, timeout=10)
            except HTTPError as error:
                response = error
            with response:
                return response.status, response.headers, response.read()
        except (OSError, HTTPException):
            return 0, {}, b""


# region: plain
def page_from(begin):
    """Returns the number and the size of the page that begins at this record or before, and reaches furthest.

    A page begins at a multiple of its size. So only a page of another size can begin within the one before.
    """
    size = max(range(PAGE_SIZE, 0, -1), key=lambda size: begin // size * size + size)
    return begin // size + 1, size


def walk(client, path):
    """Returns all records of a list by their ids, and the lowest position of the states that they show.

    Finds every record that stays as it is during the walk: a page that has no record of those before may leave a gap.
    """
    records, positions, read, overlap = {}, [], 0, OVERLAP
    while True:
        page, size = page_from(max(0, read - overlap))
        body, position = client.ask(f"{path}?page={page}&page_size={size}")
        positions.append(position)
        found = body["items"]
        if page > 1 and not any(records.get(record["id"]) == record for record in found):
            overlap *= 2  # Records before this page have gone. Others, not yet read, have taken their places.
            continue
        records |= {record["id"]: record for record in found}
        read, overlap = (page - 1) * size + len(found), OVERLAP
        if read >= body["total"]:
            return records, min(positions)


def follow(client, path, rounds, seconds):
    """Yields all listings, once for each round. After the walk, a round takes one request per thousand changes."""
    records, position = walk(client, path)
    for number in range(rounds):
        if number > 0:
            time.sleep(seconds)
        more = True
        while more:
            page, _ = client.ask(f"{path}/changes?after={position}")
            if page is None:  # No round came for weeks.
                records, position = walk(client, path)
                continue
            for change in page["changes"]:
                if "removed" in change:
                    records.pop(change["removed"], None)
                else:
                    records[change["listing"]["id"]] = change["listing"]
            position, more = page["position"], page["more"]
        yield records
# endregion


def main(rounds, seconds):
    base_url, api_key = os.environ["BASE_URL"], os.environ["API_KEY"]
    catalog, listings = Client(base_url, api_key), Client(base_url, api_key)
    items, _ = walk(catalog, "/v1/public/catalog")
    print(json.dumps({"items": sorted(items)}), flush=True)
    if items:
        # All variants with their prices take one request.
        item, _ = catalog.ask(f"/v1/public/items/{min(items)}?include=prices")
        print(json.dumps({"priced": sum(one["prices"] is not None for one in item["variants"])}), flush=True)
    for found in follow(listings, "/v1/public/listings", rounds, seconds):
        print(json.dumps({"listings": sorted(found)}), flush=True)


main(int(sys.argv[1]), float(sys.argv[2]))
