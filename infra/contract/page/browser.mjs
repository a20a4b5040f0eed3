// A browser, and pages of it that report what a reader would never see: errors, and requests to another host.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const { BASE_URL, CHROMIUM, SHOTS } = process.env;

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const DESKTOP = { width: 1280, height: 900 };
export const PHONE = { width: 390, height: 844 };

export async function open() {
  const profile = await mkdtemp(join(tmpdir(), "page-"));
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: [...FLAGS, `--disk-cache-dir=${profile}`] });
  return {
    /** Calls `use` with the docs page in a context of its own, then checks that nothing is left of its trouble. */
    async onPage(options, use) {
      const context = await browser.newContext({ viewport: DESKTOP, ...options });
      try {
        const page = await context.newPage();
        const trouble = watch(page);
        const response = await page.goto(`${BASE_URL}/docs`);
        await use(page, response, trouble);
        assert.deepEqual(trouble, []);
      } finally {
        await context.close();
      }
    },
    async close() {
      await browser.close();
      await rm(profile, { recursive: true, force: true });
    },
  };
}

export function shot(page, name, fullPage = false) {
  return page.screenshot({ path: join(SHOTS, `${name}.png`), fullPage });
}

/** Returns a list that gets a line for each error, and each request to another host. */
function watch(page) {
  const trouble = [];
  page.on("pageerror", (error) => trouble.push(`error: ${error}`));
  page.on("console", (message) => {
    // The browser itself reports each status above 399, and some checks ask for one.
    const isStatus = message.text().startsWith("Failed to load resource: the server responded with a status of 4");
    if (["error", "warning"].includes(message.type()) && !isStatus) trouble.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${BASE_URL}/`) && !url.startsWith("data:")) trouble.push(`request: ${url}`);
  });
  return trouble;
}
