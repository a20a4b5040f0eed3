"""Uses the client that openapi-python-client generates."""

import hashlib
import hmac
import json
import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

from market import AuthenticatedClient
from market.api.account import get_balance, list_orders
from market.api.catalog import get_item, get_prices, list_marketplaces, search_catalog
from market.api.description import get_description
from market.api.key import get_me
from market.api.listings import search_listings
from market.models import (
    ErrorEnvelope,
    ListingSoldEvent,
    PagedPublicItem,
    PagedPublicListing,
    PagedPublicOrder,
    PublicBalance,
    PublicItem,
    PublicItemDetail,
    PublicMe,
    SearchListingsSort,
    VariantPrices,
)

PAGE_SIZE = 100


def main() -> None:
    base_url, key = os.environ["API_BASE_URL"], os.environ["API_KEY"]
    with AuthenticatedClient(base_url=base_url, token=key) as client:
        call_every_endpoint(client)
        walk(client)
        send_a_bad_parameter(client)
        use_up_a_budget(client)
    receive_a_webhook(int(os.environ["WEBHOOK_PORT"]), os.environ["WEBHOOK_SECRET"])


def call_every_endpoint(client: AuthenticatedClient) -> None:
    assert isinstance(get_me.sync(client=client), PublicMe)
    listings = search_listings.sync(client=client, sort=SearchListingsSort.PRICE_ASC, page_size=1)
    assert isinstance(listings, PagedPublicListing)
    listing = listings.items[0]
    assert listing.item_id and listing.variant_id
    item = get_item.sync(listing.item_id, client=client)
    assert isinstance(item, PublicItemDetail)
    assert listing.variant_id in [variant.variant_id for variant in item.variants]
    prices = get_prices.sync(listing.variant_id, client=client)
    assert isinstance(prices, VariantPrices)
    marketplaces = list_marketplaces.sync(client=client)
    assert isinstance(marketplaces, list) and marketplaces
    orders = list_orders.sync(client=client)
    assert isinstance(orders, PagedPublicOrder) and orders.items
    assert isinstance(get_balance.sync(client=client), PublicBalance)
    assert get_description.sync_detailed(client=client).status_code == 200


def walk(client: AuthenticatedClient) -> None:
    total = search_catalog.sync(client=client, page_size=1)
    assert isinstance(total, PagedPublicItem)
    ids = {item.id for item in all_items(client)}
    assert len(ids) == total.total
    print(f"walked {len(ids)} items")


def all_items(client: AuthenticatedClient) -> Iterator[PublicItem]:
    page = 1
    while True:
        answer = search_catalog.sync(client=client, page=page, page_size=PAGE_SIZE)
        assert isinstance(answer, PagedPublicItem)
        yield from answer.items
        if page * PAGE_SIZE >= answer.total:
            return
        page += 1


def send_a_bad_parameter(client: AuthenticatedClient) -> None:
    answer = search_catalog.sync(client=client, page_size=PAGE_SIZE + 1)
    assert isinstance(answer, ErrorEnvelope) and answer.error.fields
    field = answer.error.fields[0]
    assert (field.field, field.code) == ("page_size", "out_of_range")


def use_up_a_budget(client: AuthenticatedClient) -> None:
    response = get_me.sync_detailed(client=client)
    while response.status_code == 200:
        response = get_me.sync_detailed(client=client)
    assert response.status_code == 429 and isinstance(response.parsed, ErrorEnvelope)
    assert response.parsed.error.code == "rate_limits.exceeded"
    print(f"must wait {int(response.headers['Retry-After'])} seconds")


def receive_a_webhook(port: int, secret: str) -> None:
    received: list[ListingSoldEvent] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
            assert hmac.compare_digest(expected, self.headers["X-Service-Signature"])
            received.append(ListingSoldEvent.from_dict(json.loads(body)))
            self.send_response(204)
            self.end_headers()

    with HTTPServer(("127.0.0.1", port), Receiver) as server:
        print("listening", flush=True)
        server.handle_request()
    print(f"sold: {received[0].data.listing_id} for {received[0].data.price_usd}")


main()
