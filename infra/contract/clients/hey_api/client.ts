// Uses the client that @hey-api/openapi-ts generates.

import assert from "node:assert/strict";
import { receive } from "../receiver.js";
import { client } from "./generated/client.gen.js";
import type { ListingSoldEvent, PublicItem } from "./generated/index.js";
import {
  getBalance,
  getDescription,
  getItem,
  getMe,
  getPrices,
  listMarketplaces,
  listOrders,
  searchCatalog,
  searchListings,
} from "./generated/index.js";

const PAGE_SIZE = 100;

client.setConfig({ baseUrl: process.env["API_BASE_URL"] ?? "", auth: process.env["API_KEY"] });

/** Makes a call fail for every response that is not a 200. */
const throwOnError = true;

async function callEveryEndpoint(): Promise<void> {
  const me = await getMe({ throwOnError });
  assert(me.data.scopes.includes("catalog:read"));
  const listings = await searchListings({ query: { sort: "price_asc", page_size: 1 }, throwOnError });
  const [listing] = listings.data.items;
  assert(listing?.item_id && listing.variant_id);
  const item = await getItem({ path: { id: listing.item_id }, throwOnError });
  assert(item.data.variants.some((variant) => variant.variant_id === listing.variant_id));
  const prices = await getPrices({ path: { variant_id: listing.variant_id }, throwOnError });
  assert(prices.data.sample_size > 0);
  assert((await listMarketplaces({ throwOnError })).data.length > 0);
  assert((await listOrders({ throwOnError })).data.items.length > 0);
  assert((await getBalance({ throwOnError })).data.available_usd);
  assert((await getDescription({ throwOnError })).data);
}

async function* allItems(): AsyncGenerator<PublicItem> {
  for (let page = 1; ; page++) {
    const { data } = await searchCatalog({ query: { page, page_size: PAGE_SIZE }, throwOnError });
    yield* data.items;
    if (page * PAGE_SIZE >= data.total) return;
  }
}

async function walk(): Promise<void> {
  const { data } = await searchCatalog({ query: { page_size: 1 }, throwOnError });
  const ids = new Set<string>();
  for await (const item of allItems()) ids.add(item.id);
  assert.equal(ids.size, data.total);
  console.log(`walked ${data.total} items`);
}

async function sendABadParameter(): Promise<void> {
  const { error } = await searchCatalog({ query: { page_size: PAGE_SIZE + 1 } });
  const field = error?.error.fields?.[0];
  assert.equal(field?.field, "page_size");
  assert.equal(field.code, "out_of_range");
}

async function useUpABudget(): Promise<void> {
  let { response, error } = await getMe();
  while (response?.ok) ({ response, error } = await getMe());
  assert.equal(response?.status, 429);
  assert.equal(error?.error.code, "rate_limits.exceeded");
  console.log(`must wait ${Number(response.headers.get("Retry-After"))} seconds`);
}

await callEveryEndpoint();
await walk();
await sendABadParameter();
await useUpABudget();
const sold = await receive<ListingSoldEvent>();
console.log(`sold: ${sold.data.listing_id} for ${sold.data.price_usd}`);
