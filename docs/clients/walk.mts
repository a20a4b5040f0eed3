// Walks the catalog, and then keeps the active listings up to date: `walk.mts ROUNDS SECONDS`
//
// `BASE_URL` and `API_KEY` are in the environment. Prints a line of JSON for the catalog, for one item with its prices,
// and for each round.

import { setTimeout as sleep } from "node:timers/promises";

const PAGE_SIZE = Number(process.env.PAGE_SIZE ?? "100");

interface Page {
  items: { id: string }[];
  total: number;
}

interface Item {
  variants: { prices: unknown }[];
}

/** Asks the API within the budget of one scope. */
class Client {
  /** The tag and the body of each path. */
  private readonly copies = new Map<string, { tag: string; body: unknown }>();
  /** When the budget has a request left, in milliseconds. */
  private freeAt = 0;
  private readonly baseUrl: string;
  private readonly apiKey: string;

  constructor(baseUrl: string, apiKey: string) {
    this.baseUrl = baseUrl;
    this.apiKey = apiKey;
  }

  /** Returns the body of a path, and the position in the log of the state that it shows. */
  async get<T>(path: string): Promise<{ body: T; position: string | null }> {
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
        this.copies.set(path, { tag: headers.get("ETag") ?? "", body: JSON.parse(response.text) });
      }
      if (response?.status === 200 || response?.status === 304) {
        return { body: this.copies.get(path)?.body as T, position: headers.get("X-Log-Position") };
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

  private async send(path: string): Promise<{ status: number; headers: Headers; text: string } | undefined> {
    const headers = new Headers({ Authorization: `Bearer ${this.apiKey}` });
    const copy = this.copies.get(path);
    if (copy) headers.set("If-None-Match", copy.tag);
    try {
      const response = await fetch(this.baseUrl + path, { headers, signal: AbortSignal.timeout(10_000) });
      return { status: response.status, headers: response.headers, text: await response.text() };
    } catch {
      return undefined;
    }
  }
}

interface Walked {
  records: Map<string, unknown>;
  position: string | null;
}

/**
 * Returns all records of a list by their ids, and the position of the one state that they show. If the state changes
 * during the walk, it begins again. The third try goes on to the end, and has no position then.
 */
async function walk(client: Client, path: string): Promise<Walked> {
  let records = new Map<string, unknown>();
  for (const isLast of [false, false, true]) {
    records = new Map();
    const positions = new Set<string | null>();
    for (let page = 0, total = 1; page * PAGE_SIZE < total && (positions.size < 2 || isLast); ) {
      page += 1;
      const { body, position } = await client.get<Page>(`${path}?page=${page}&page_size=${PAGE_SIZE}`);
      for (const record of body.items) records.set(record.id, record);
      positions.add(position);
      total = body.total;
    }
    if (positions.size === 1) return { records, position: [...positions][0] ?? null };
  }
  return { records, position: null };
}

/** Yields all records of a list, once for each round. If nothing has changed, a round takes one request. */
async function* follow(client: Client, path: string, rounds: number, seconds: number) {
  let walked = await walk(client, path);
  yield walked.records;
  for (let round = 1; round < rounds; round++) {
    await sleep(seconds * 1000);
    const { position } = await client.get<Page>(`${path}?page=1&page_size=${PAGE_SIZE}`);
    if (position !== walked.position) walked = await walk(client, path);
    yield walked.records;
  }
}

async function main(rounds: number, seconds: number): Promise<void> {
  const [baseUrl, apiKey] = [process.env.BASE_URL ?? "", process.env.API_KEY ?? ""];
  const [catalog, listings] = [new Client(baseUrl, apiKey), new Client(baseUrl, apiKey)];
  const { records, position } = await walk(catalog, "/v1/public/catalog");
  const items = [...records.keys()].sort();
  console.log(JSON.stringify({ items, one_state: position !== null }));
  if (items.length > 0) {
    // All variants with their prices take one request.
    const { body } = await catalog.get<Item>(`/v1/public/items/${items[0]}?include=prices`);
    console.log(JSON.stringify({ priced: body.variants.filter((one) => one.prices !== null).length }));
  }
  for await (const found of follow(listings, "/v1/public/listings", rounds, seconds)) {
    console.log(JSON.stringify({ listings: [...found.keys()].sort() }));
  }
}

await main(Number(process.argv[2]), Number(process.argv[3]));
