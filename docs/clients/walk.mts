// Walks the catalog, and then keeps the active listings up to date: `walk.mts ROUNDS SECONDS`
//
// `BASE_URL` and `API_KEY` are in the environment. Prints a line of JSON for the catalog, for one item with its prices,
// and for each round.

import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";

const PAGE_SIZE = Number(process.env.PAGE_SIZE ?? "100");
/** How many records a page has in common with the one before, at least. */
const OVERLAP = 2;

interface Listed {
  id: string;
  price_usd?: string;
}

interface Page {
  items: Listed[];
  total: number;
}

interface Item {
  variants: { prices: unknown }[];
}

/** Asks the API within the budget of one scope. */
class Client {
  /** When the budget has a request left, in milliseconds. */
  private freeAt = 0;
  private readonly baseUrl: string;
  private readonly apiKey: string;

  constructor(baseUrl: string, apiKey: string) {
    this.baseUrl = baseUrl;
    this.apiKey = apiKey;
  }

  /** Returns the body, or nothing for HEAD, and the position in the log of the state that it shows. */
  async ask<T>(method: "GET" | "HEAD", path: string): Promise<{ body: T; position: string | null }> {
    for (let failures = 0; failures < 10; failures++) {
      await sleep(Math.max(0, this.freeAt - performance.now()));
      const response = await this.send(method, path);
      const headers = response?.headers ?? new Headers();
      const left = /;r=(\d+);t=(\d+)/.exec(headers.get("RateLimit") ?? "");
      if (left?.[1] === "0") {
        // A random time more, so that clients do not come together when the minute begins.
        this.freeAt = performance.now() + 1000 * (Number(left[2]) + Math.random());
      }
      if (response?.status === 200) {
        return { body: JSON.parse(response.text || "null") as T, position: headers.get("X-Log-Position") };
      }
      if (response && response.status < 500 && response.status !== 429) {
        throw new Error(`${path}: ${response.status} ${response.text}`);
      }
      // No answer, 429 or 5xx: as long as the API says, and a random time more.
      const told = Number(headers.get("Retry-After")) || 0;
      await sleep(1000 * (told + Math.random() * Math.min(30, 0.25 * 2 ** failures)));
    }
    throw new Error(`${path}: no answer`);
  }

  private async send(
    method: string,
    path: string,
  ): Promise<{ status: number; headers: Headers; text: string } | undefined> {
    const headers = { Authorization: `Bearer ${this.apiKey}` };
    try {
      const response = await fetch(this.baseUrl + path, { method, headers, signal: AbortSignal.timeout(10_000) });
      return { status: response.status, headers: response.headers, text: await response.text() };
    } catch {
      return undefined;
    }
  }
}

/**
 * Returns the number and the size of the page that begins at this record or before, and reaches furthest. A page begins
 * at a multiple of its size. So only a page of another size can begin within the one before.
 */
function pageFrom(begin: number): { page: number; size: number } {
  const end = (size: number) => (Math.floor(begin / size) + 1) * size;
  let best = PAGE_SIZE;
  for (let size = PAGE_SIZE; size > 0; size--) if (end(size) > end(best)) best = size;
  return { page: end(best) / best, size: best };
}

interface Walked {
  records: Map<string, Listed>;
  position: string | null;
}

/**
 * Returns all records of a list by their ids, and the position of the state that they show, if they show one.
 *
 * Finds every record that stays as it is during the walk: a page that has no record of those before may leave a gap.
 * `read` counts the records of the list as it is asked for. By price, that begins at the last price.
 */
async function walk(client: Client, path: string, byPrice = false): Promise<Walked> {
  const [records, positions] = [new Map<string, Listed>(), new Set<string | null>()];
  for (let price = "0.00", read = 0, overlap = OVERLAP; ; ) {
    const { page, size } = pageFrom(Math.max(0, read - overlap));
    const query = `page=${page}&page_size=${size}` + (byPrice ? `&sort=price_asc&min_price=${price}` : "");
    const { body, position } = await client.ask<Page>("GET", `${path}?${query}`);
    positions.add(position);
    if (page > 1 && !body.items.some((record) => isDeepStrictEqual(records.get(record.id), record))) {
      overlap *= 2; // Records before this page have gone. Others, not yet read, have taken their places.
      continue;
    }
    for (const record of body.items) records.set(record.id, record);
    [read, overlap] = [(page - 1) * size + body.items.length, OVERLAP];
    if (read >= body.total) {
      return { records, position: positions.size === 1 ? position : null };
    }
    const last = body.items.at(-1)?.price_usd;
    if (byPrice && last !== undefined && last !== price) {
      price = last;
      read = body.items.filter((record) => record.price_usd === price).length;
    }
  }
}

/** Yields all records of a list, once for each round. If nothing has changed, a round takes one request. */
async function* follow(client: Client, path: string, rounds: number, seconds: number) {
  let walked = await walk(client, path, true);
  yield walked.records;
  for (let round = 1; round < rounds; round++) {
    await sleep(seconds * 1000);
    const { position } = await client.ask("HEAD", `${path}?page_size=1`);
    if (position !== walked.position) walked = await walk(client, path, true);
    yield walked.records;
  }
}

async function main(rounds: number, seconds: number): Promise<void> {
  const [baseUrl, apiKey] = [process.env.BASE_URL ?? "", process.env.API_KEY ?? ""];
  const [catalog, listings] = [new Client(baseUrl, apiKey), new Client(baseUrl, apiKey)];
  const { records } = await walk(catalog, "/v1/public/catalog");
  const items = [...records.keys()].sort();
  console.log(JSON.stringify({ items }));
  if (items.length > 0) {
    // All variants with their prices take one request.
    const { body } = await catalog.ask<Item>("GET", `/v1/public/items/${items[0]}?include=prices`);
    console.log(JSON.stringify({ priced: body.variants.filter((one) => one.prices !== null).length }));
  }
  for await (const found of follow(listings, "/v1/public/listings", rounds, seconds)) {
    console.log(JSON.stringify({ listings: [...found.keys()].sort() }));
  }
}

await main(Number(process.argv[2]), Number(process.argv[3]));
