// Uses openapi-fetch with the types that openapi-typescript generates.

import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import createClient from "openapi-fetch";
import { Webhook } from "standardwebhooks";
import type { components, paths } from "./generated.js";

type Item = components["schemas"]["PublicItem"];

const PAGE_SIZE = 100;

const client = createClient<paths>({
  baseUrl: process.env["API_BASE_URL"] ?? "",
  headers: { Authorization: `Bearer ${process.env["API_KEY"]}` },
});

/** Returns the body of a 200, and fails for every other response. */
async function ok<T>(call: Promise<{ data?: T; error?: unknown }>): Promise<T> {
  const { data, error } = await call;
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

async function callEveryEndpoint(): Promise<void> {
  const me = await ok(client.GET("/v1/public/me"));
  assert(me.scopes.includes("catalog:read"));
  const query = { sort: "price_asc", page_size: 1 } as const;
  const [listing] = (await ok(client.GET("/v1/public/listings", { params: { query } }))).items;
  assert(listing?.item_id && listing.variant_id);
  const item = await ok(client.GET("/v1/public/items/{id}", { params: { path: { id: listing.item_id } } }));
  assert(item.variants.some((variant) => variant.variant_id === listing.variant_id));
  const path = { variant_id: listing.variant_id };
  const prices = await ok(client.GET("/v1/public/prices/{variant_id}", { params: { path } }));
  assert(prices.sample_size > 0);
  assert((await ok(client.GET("/v1/public/marketplaces"))).length > 0);
  assert((await ok(client.GET("/v1/public/orders"))).items.length > 0);
  assert((await ok(client.GET("/v1/public/wallet/balance"))).available_usd);
  assert(await ok(client.GET("/v1/openapi.json")));
}

async function* allItems(): AsyncGenerator<Item> {
  for (let page = 1; ; page++) {
    const query = { page, page_size: PAGE_SIZE };
    const { items, total } = await ok(client.GET("/v1/public/catalog", { params: { query } }));
    yield* items;
    if (page * PAGE_SIZE >= total) return;
  }
}

async function walk(): Promise<void> {
  const { total } = await ok(client.GET("/v1/public/catalog", { params: { query: { page_size: 1 } } }));
  const ids = new Set<string>();
  for await (const item of allItems()) ids.add(item.id);
  assert.equal(ids.size, total);
  console.log(`walked ${total} items`);
}

async function sendABadParameter(): Promise<void> {
  const query = { page_size: PAGE_SIZE + 1 };
  const { error } = await client.GET("/v1/public/catalog", { params: { query } });
  const field = error?.error.fields?.[0];
  assert.equal(field?.field, "page_size");
  assert.equal(field.code, "out_of_range");
}

async function useUpABudget(): Promise<void> {
  let { response, error } = await client.GET("/v1/public/me");
  while (response.ok) ({ response, error } = await client.GET("/v1/public/me"));
  assert.equal(response.status, 429);
  assert.equal(error?.error.code, "rate_limits.exceeded");
  console.log(`must wait ${Number(response.headers.get("Retry-After"))} seconds`);
}

/** Returns the body of the next delivery, once its signature is verified. */
function receive<T>(): Promise<T> {
  const webhook = new Webhook(process.env["WEBHOOK_SECRET"] ?? "");
  return new Promise((resolve, reject) => {
    const server = createServer((request, response) => {
      const delivery = bytes(request).then((body) => webhook.verify(body, request.headers as Record<string, string>));
      delivery
        .then((event) => resolve(event as T), reject)
        .finally(() => {
          response.writeHead(204).end();
          server.close();
          server.closeIdleConnections();
        });
    });
    server.listen(Number(process.env["WEBHOOK_PORT"]), "127.0.0.1", () => console.log("listening"));
  });
}

async function bytes(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

await callEveryEndpoint();
await walk();
await sendABadParameter();
await useUpABudget();
const sold = await receive<components["schemas"]["ListingSoldEvent"]>();
console.log(`sold: ${sold.data.listing_id} for ${sold.data.price_usd}`);
