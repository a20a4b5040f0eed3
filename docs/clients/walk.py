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

    def ask(self, method, path):
        """Returns the body, or nothing for HEAD, and the position in the log of the state that it shows."""
        for failures in range(10):
            time.sleep(max(0.0, self.free_at - time.monotonic()))
            status, headers, body = self.send(method, path)
            left = re.search(r";r=(\d+);t=(\d+)", headers.get("RateLimit", ""))
            if left and left[1] == "0":
                # A random time more, so that clients do not come together when the minute begins.
                self.free_at = time.monotonic() + int(left[2]) + random.random()
            if status == 200:
                return json.loads(body or "null"), headers.get("X-Log-Position")
            if 400 <= status < 500 and status != 429:
                raise RuntimeError(f"{path}: {status} {body}")
            # No answer, 429 or 5xx: as long as the API says, and a random time more.
            told = headers.get("Retry-After", "")
            time.sleep((int(told) if told.isdecimal() else 0) + random.uniform(0, min(30, 0.25 * 2**failures)))
        raise RuntimeError(f"{path}: no answer")

    def send(self, method, path):
        headers = {"Authorization": f"Bearer {self.api_key}"}
        request = Request(self.base_url + path, headers=headers, method=method)
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


def walk(client, path, by_price=False):
    """Returns all records of a list by their ids, and the position of the state that they show, if they show one.

    Finds every record that stays as it is during the walk: a page that has no record of those before may leave a gap.
    `read` counts the records of the list as it is asked for. By price, that begins at the last price.
    """
    records, positions, price, read, overlap = {}, set(), "0.00", 0, OVERLAP
    while True:
        page, size = page_from(max(0, read - overlap))
        query = f"page={page}&page_size={size}" + (f"&sort=price_asc&min_price={price}" if by_price else "")
        body, position = client.ask("GET", f"{path}?{query}")
        positions.add(position)
        found = body["items"]
        if page > 1 and not any(records.get(record["id"]) == record for record in found):
            overlap *= 2  # Records before this page have gone. Others, not yet read, have taken their places.
            continue
        records |= {record["id"]: record for record in found}
        read, overlap = (page - 1) * size + len(found), OVERLAP
        if read >= body["total"]:
            return records, positions.pop() if len(positions) == 1 else None
        if by_price and found[-1]["price_usd"] != price:
            price = found[-1]["price_usd"]
            read = sum(record["price_usd"] == price for record in found)
# endregion


def follow(client, path, rounds, seconds):
    """Yields all records of a list, once for each round. If nothing has changed, a round takes one request."""
    records, known = walk(client, path, by_price=True)
    yield records
    for _ in range(rounds - 1):
        time.sleep(seconds)
        _, position = client.ask("HEAD", f"{path}?page_size=1")
        if position != known:
            records, known = walk(client, path, by_price=True)
        yield records


def main(rounds, seconds):
    base_url, api_key = os.environ["BASE_URL"], os.environ["API_KEY"]
    catalog, listings = Client(base_url, api_key), Client(base_url, api_key)
    items, _ = walk(catalog, "/v1/public/catalog")
    print(json.dumps({"items": sorted(items)}), flush=True)
    if items:
        # All variants with their prices take one request.
        item, _ = catalog.ask("GET", f"/v1/public/items/{min(items)}?include=prices")
        print(json.dumps({"priced": sum(one["prices"] is not None for one in item["variants"])}), flush=True)
    for found in follow(listings, "/v1/public/listings", rounds, seconds):
        print(json.dumps({"listings": sorted(found)}), flush=True)


main(int(sys.argv[1]), float(sys.argv[2]))
