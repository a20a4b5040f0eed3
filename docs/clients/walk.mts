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
}

interface Page {
  items: Listed[];
  total: number;
}

interface Changes {
  changes: { listing?: Listed; removed?: string }[];
  position: number;
  more: boolean;
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

  /** Returns the body, and the position in the log of the state that it shows. Returns nothing if it is gone. */
  async ask<T>(path: string): Promise<{ body: T; position: number } | undefined> {
    for (let failures = 0; failures < 10; failures++) {
      await sleep(Math.max(0, this.freeAt - performance.now()));
      const response = await this.send(path);
      const headers = response?.headers ?? new Headers();
      const left = /;r=(\d+);t=(\d+)/.exec(headers.get("RateLimit") ?? "");
      if (left?.[1] === "0") {
        // A random time more, so that clients do not come together when the minute begins.
        this.freeAt = performance.now() + 1000 * (Number(left[2]) + Math.random());
      }
      if (response?.status === 200) {
        return { body: JSON.parse(response.text) as T, position: Number(headers.get("X-Log-Position")) };
      }
      // The log no longer goes back so far, or was begun anew.
      if (response?.status === 410 || response?.text.includes("out_of_range")) return undefined;
      if (response && response.status < 500 && response.status !== 429) {
        throw new Error(`${path}: ${response.status} ${response.text}`);
      }
      // No answer, 429 or 5xx: as long as the API says, and a random time more.
      const told = Number(headers.get("Retry-After")) || 0;
      await sleep(1000 * (told + Math.random() * Math.min(30, 0.25 * 2 ** failures)));
    }
    throw new Error(`${path}: no answer`);
  }

  private async send(path: string): Promise<{ status: number; headers: Headers; text: string } | undefined> {
    const headers = { Authorization: `Bearer ${this.apiKey}` };
    try {
      const response = await fetch(this.baseUrl + path, { headers, signal: AbortSignal.timeout(10_000) });
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
  position: number;
}

/**
 * Returns all records of a list by their ids, and the lowest position of the states that they show.
 *
 * Finds every record that stays as it is during the walk: a page that has no record of those before may leave a gap.
 */
async function walk(client: Client, path: string): Promise<Walked> {
  const [records, positions] = [new Map<string, Listed>(), [] as number[]];
  for (let read = 0, overlap = OVERLAP; ; ) {
    const { page, size } = pageFrom(Math.max(0, read - overlap));
    const answer = await client.ask<Page>(`${path}?page=${page}&page_size=${size}`);
    if (!answer) throw new Error(`${path} is gone`);
    const { items, total } = answer.body;
    positions.push(answer.position);
    if (page > 1 && !items.some((record) => isDeepStrictEqual(records.get(record.id), record))) {
      overlap *= 2; // Records before this page have gone. Others, not yet read, have taken their places.
      continue;
    }
    for (const record of items) records.set(record.id, record);
    [read, overlap] = [(page - 1) * size + items.length, OVERLAP];
    if (read >= total) return { records, position: Math.min(...positions) };
  }
}

/** Yields all listings, once for each round. After the walk, a round takes one request per thousand changes. */
async function* follow(client: Client, path: string, rounds: number, seconds: number) {
  let { records, position } = await walk(client, path);
  for (let round = 0; round < rounds; round++) {
    if (round > 0) await sleep(seconds * 1000);
    for (let more = true; more; ) {
      const answer = await client.ask<Changes>(`${path}/changes?after=${position}`);
      if (!answer) {
        ({ records, position } = await walk(client, path)); // No round came for weeks.
        continue;
      }
      for (const { listing, removed } of answer.body.changes) {
        if (listing) records.set(listing.id, listing);
        if (removed !== undefined) records.delete(removed);
      }
      ({ position, more } = answer.body);
    }
    yield records;
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
    const item = await catalog.ask<Item>(`/v1/public/items/${items[0]}?include=prices`);
    console.log(JSON.stringify({ priced: item?.body.variants.filter((one) => one.prices !== null).length }));
  }
  for await (const found of follow(listings, "/v1/public/listings", rounds, seconds)) {
    console.log(JSON.stringify({ listings: [...found.keys()].sort() }));
  }
}

await main(Number(process.argv[2]), Number(process.argv[3]));
