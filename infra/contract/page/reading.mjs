// The page as it is read: by eye, by keyboard, by a screen reader, without the script.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { DESKTOP, PHONE, shot } from "./browser.mjs";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const LANGUAGES = ["curl", "Python", "TypeScript", "Rust", "Go"];

export async function nothing_hinders_anybody(browser) {
  for (const [width, viewport] of Object.entries({ desktop: DESKTOP, phone: PHONE })) {
    for (const colorScheme of ["light", "dark"]) {
      await browser.onPage({ viewport, colorScheme }, async (page) => {
        await shot(page, `${width}-${colorScheme}`);
        await page.locator("#operation-searchListings").evaluate((section) => section.scrollIntoView());
        await shot(page, `operation-${width}-${colorScheme}`);
        for (const details of await page.locator("details").all()) await details.evaluate((it) => (it.open = true));
        await page.locator("#operation-getMe form").getByRole("button", { name: "Send" }).click();
        await page.getByText("401 Unauthorized").waitFor();
        if (viewport === PHONE) await page.getByRole("button", { name: "Contents" }).click();
        // The protocol runs it, so the page's policy does not refuse it.
        const { violations } = await page.evaluate(`${axe}\naxe.run()`);
        const found = violations.flatMap(({ id, nodes }) => nodes.map(({ target, html }) => `${id} ${target} ${html}`));
        assert.deepEqual(found, [], `${width} ${colorScheme}`);
        const [right, header, title] = await page.evaluate(() => {
          const cells = [document.documentElement, ...document.querySelectorAll("td, th, h1 ~ button")];
          const heading = document.querySelector("h1");
          return [
            Math.max(...cells.map((cell) => cell.getBoundingClientRect().right)) - innerWidth,
            document.querySelector("header").getBoundingClientRect().height,
            heading.scrollWidth - heading.clientWidth,
          ];
        });
        assert.ok(right <= 0, `${width} is ${right} pixels too wide`);
        assert.ok(header <= 64 && title <= 0, `the header needs ${header} pixels, and ${title} for its title`);
      });
    }
  }
}

export function tabs_follow_the_keyboard(browser) {
  return browser.onPage({}, async (page) => {
    const chosen = (id) => page.locator(`#${id} [role=tab][aria-selected=true]`).textContent();
    const visible = (id) => page.locator(`#${id} [role=tabpanel]:visible`).textContent();
    const id = "operation-searchCatalog";
    assert.deepEqual(await page.locator(`#${id} [role=tab]`).allTextContents(), LANGUAGES);
    await page.locator(`#${id} [role=tab][tabindex="0"]`).focus();
    const keys = { ArrowRight: "Python", End: "Go", ArrowLeft: "Rust", Home: "curl" };
    for (const [key, language] of Object.entries(keys)) {
      await page.keyboard.press(key);
      assert.equal(await chosen(id), language);
      assert.equal(await page.evaluate(() => document.activeElement.textContent), language);
      // All operations change together.
      assert.equal(await chosen("operation-getMe"), language);
    }
    await page.keyboard.press("ArrowLeft");
    assert.match(await visible(id), /^package main/);
    await page.reload();
    assert.equal(await chosen("operation-getMe"), "Go");
    await page.locator(`#${id} [role=tab][tabindex="0"]`).focus();
    // One stop of the tabulator, then the sample.
    await page.keyboard.press("Tab");
    assert.match(await page.evaluate(() => document.activeElement.textContent), /^package main/);
  });
}

export function the_search_finds(browser) {
  return browser.onPage({}, async (page) => {
    const links = () => page.locator("nav a:visible").allTextContents();
    const before = (await links()).length;
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.id), "search");
    const searches = { "wallet/balance": "Your balance", "Retry-After": "Rate limits", quota: "Rate limits", publiclisting: "PublicListing" };
    for (const [words, expected] of Object.entries(searches)) {
      await page.locator("#search").fill(words);
      const found = await links();
      assert.ok(found.includes(expected) && found.length < before, `${words}: ${found}`);
      assert.equal(await page.locator("#found").textContent(), `${found.length} found`);
      assert.ok(await page.evaluate(() => CSS.highlights.get("found").size), words);
    }
    await shot(page, "search-desktop");
    await page.keyboard.press("Enter");
    await page.waitForURL(/#record-publiclisting$/);
    await page.locator("#search").fill("no-such-thing");
    assert.equal(await page.locator("#found").textContent(), "Nothing found");
    await page.locator("#search").focus();
    await page.keyboard.press("Escape");
    assert.equal((await links()).length, before);
    // On a phone the links are behind a button.
    await page.setViewportSize(PHONE);
    assert.deepEqual(await links(), []);
    await page.getByRole("heading", { level: 1 }).click();
    await page.keyboard.press("/");
    await page.keyboard.type("balance");
    assert.ok((await links()).includes("Your balance"));
    await shot(page, "search-phone");
    await page.locator("nav").getByRole("link", { name: "Your balance", exact: true }).click();
    assert.deepEqual(await links(), []);
  });
}

/** The contents of a phone are behind a button, with the script and without, and by keyboard. */
export async function the_contents_open_and_close(browser) {
  for (const javaScriptEnabled of [true, false]) {
    await browser.onPage({ viewport: PHONE, javaScriptEnabled }, async (page) => {
      const links = page.locator("nav a:visible");
      assert.equal(await links.count(), 0);
      await page.getByRole("button", { name: "Contents" }).press("Enter");
      await page.locator("nav").getByRole("link", { name: "Your orders", exact: true }).press("Enter");
      await page.waitForURL(/#operation-listOrders$/);
      if (javaScriptEnabled) {
        assert.equal(await links.count(), 0);
        await page.getByRole("button", { name: "Contents" }).press("Enter");
      }
      assert.ok((await links.count()) !== 0);
      await page.keyboard.press("Escape");
      assert.equal(await links.count(), 0);
    });
  }
}

/** A link to a record unfolds it, with the script and without. Its own heading has one, too. */
export async function a_link_unfolds_its_record(browser) {
  for (const javaScriptEnabled of [true, false]) {
    await browser.onPage({ javaScriptEnabled }, async (page) => {
      assert.equal(await page.locator(".record table:visible").count(), 0);
      await page.locator("#operation-listOrders").getByRole("link", { name: "PagedPublicOrder" }).click();
      await page.getByText("The records of this page.").filter({ visible: true }).waitFor();
      assert.equal(await page.locator(".record table:visible").count(), 1);
      await page.getByRole("link", { name: "Link to PublicMe", exact: true }).press("Enter");
      await page.waitForURL(/#record-publicme$/);
      assert.equal(await page.locator(".record table:visible").count(), 2);
    });
  }
}

export function the_contents_show_where_one_is(browser) {
  return browser.onPage({}, async (page) => {
    for (const [id, name] of [["operation-listOrders", "Your orders"], ["retries", "Retries"], ["errors", "Errors"]]) {
      await page.locator(`#${id}`).evaluate((section) => section.scrollIntoView());
      await page.locator("nav [aria-current=true]").getByText(name, { exact: true }).waitFor();
      assert.equal(await page.locator("nav [aria-current]").count(), 1);
    }
  });
}

export function it_prints(browser) {
  return browser.onPage({}, async (page) => {
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator("nav:visible, button:visible, form:visible").count(), 0);
    await shot(page, "print");
  });
}

export function dark_and_light(browser) {
  return browser.onPage({ colorScheme: "dark" }, async (page) => {
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const [dark, light] = ["rgb(20, 24, 29)", "rgb(255, 255, 255)"];
    const button = page.getByRole("button", { name: "Switch to" });
    assert.deepEqual([await ground(), await button.textContent()], [dark, "Switch to light"]);
    await button.click();
    assert.deepEqual([await ground(), await button.textContent()], [light, "Switch to dark"]);
    await page.reload();
    assert.equal(await ground(), dark);
    await page.emulateMedia({ colorScheme: "light" });
    assert.deepEqual([await ground(), await button.textContent()], [light, "Switch to dark"]);
    await button.click();
    assert.equal(await ground(), dark);
  });
}

export async function without_the_script_everything_is_there(browser) {
  const parts = ".chapter, .record, .operation > table, .operation > details";
  const texts = (page) => page.locator(parts).evaluateAll((parts) => parts.map((part) => {
    for (const button of part.querySelectorAll("button")) button.remove();
    return part.textContent;
  }));
  let shown;
  await browser.onPage({ javaScriptEnabled: false }, async (page) => {
    assert.equal(await page.locator("form.call:visible, .search:visible, main button:visible").count(), 0);
    const operations = await page.locator("p.route").count();
    for (const language of LANGUAGES) {
      const summaries = page.locator(".samples summary").filter({ hasText: new RegExp(`^${language}$`) });
      assert.equal(await summaries.filter({ visible: true }).count(), operations, language);
    }
    shown = await texts(page);
    await page.locator("#operation-searchListings").scrollIntoViewIfNeeded();
    await shot(page, "without-script-desktop");
  });
  await browser.onPage({}, async (page) => assert.deepEqual(await texts(page), shown));
}

export function the_policy_refuses_another_script(browser) {
  return browser.onPage({}, async (page, response, trouble) => {
    const headers = response.headers();
    assert.equal(headers["x-content-type-options"], "nosniff");
    assert.equal(headers["referrer-policy"], "no-referrer");
    const policy = headers["content-security-policy"];
    for (const part of ["default-src", "base-uri", "form-action", "frame-ancestors"].map((name) => `${name} 'none'`)) {
      assert.ok(policy.includes(part), part);
    }
    assert.ok(!policy.includes("unsafe"), policy);
    const hasRun = await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "window.hasRun = true";
      document.body.append(script);
      return window.hasRun;
    });
    assert.equal(hasRun, undefined);
    const refused = await page.evaluate(() => fetch("https://example.com/").then(() => false, () => true));
    assert.ok(refused);
    const reports = trouble.splice(0);
    assert.ok(reports.length !== 0);
    for (const report of reports) assert.match(report, /Content Security Policy/);
  });
}
