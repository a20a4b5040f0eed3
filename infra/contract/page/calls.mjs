// Calls that are made from the page, and the samples that it shows.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { PHONE, shot } from "./browser.mjs";

const { API_KEY, BASE_URL, LIMITED_KEY, PYTHON } = process.env;
const run = promisify(execFile);

function form(page, operation) {
  return page.locator(`#operation-${operation} form.call`);
}

/** Clicks the button of a form, and returns the response once the page shows it. */
async function send(form) {
  const status = form.locator("> [role=status]");
  const [response] = await Promise.all([
    form.page().waitForResponse((response) => response.request().method() === "GET"),
    form.getByRole("button", { name: "Send" }).click(),
  ]);
  await form.page().waitForFunction(
    ([element, code]) => element.textContent.startsWith(code),
    [await status.elementHandle(), String(response.status())],
  );
  return { response, status: await status.textContent(), answer: await form.locator(".answer").innerText() };
}

export function a_call_is_made_and_shown(browser) {
  return browser.onPage({}, async (page) => {
    const listings = form(page, "searchListings");
    await listings.getByLabel("API key").fill(API_KEY);
    assert.equal(await listings.getByLabel("sort").inputValue(), "newest");
    await listings.getByLabel("max_price").fill("20.00");
    await listings.getByLabel("sort").selectOption("price_desc");
    const { response, status, answer } = await send(listings);
    assert.match(status, /^200 OK · \d+ of \d+ requests left in this minute$/);
    const address = `${BASE_URL}/v1/public/listings?max_price=20.00&sort=price_desc`;
    assert.equal(response.url(), address);
    const lines = ["curl --compressed", '-H "Authorization: Bearer $API_KEY"', `'${address}'`];
    assert.ok(answer.includes(lines.join(" \\\n  ")), answer);
    assert.match(answer, /"items": \[\n {4}\{\n {6}"/);
    await listings.getByText("Headers").click();
    assert.match(await listings.locator(".answer").innerText(), /x-request-id: \S+/);
    await listings.evaluate((form) => form.scrollIntoView());
    await shot(page, "answer-desktop");
    await page.setViewportSize(PHONE);
    await listings.getByRole("button", { name: "Send" }).evaluate((button) => button.scrollIntoView());
    await shot(page, "answer-phone");
  });
}

export function every_operation_answers(browser) {
  return browser.onPage({}, async (page) => {
    const forms = page.locator("form.call");
    await page.locator(".key").first().fill(API_KEY);
    const count = await forms.count();
    assert.equal(count, await page.locator("p.route").count());
    for (let at = 0; at < count; at += 1) {
      const { status } = await send(forms.nth(at));
      // The examples of the description need not be in this market.
      assert.match(status, /^(200|404) /, await forms.nth(at).getAttribute("data-path"));
    }
  });
}

export function a_wrong_key_is_401(browser) {
  return browser.onPage({}, async (page) => {
    const me = form(page, "getMe");
    await me.getByLabel("API key").fill("sk_wrong");
    const { status, answer } = await send(me);
    assert.equal(status, "401 Unauthorized");
    assert.match(answer, /^The API key is malformed, unknown, revoked or expired\.\s+Command/);
    assert.match(await me.locator(".answer").textContent(), /"code": "api_keys.invalid"/);
    assert.ok(!answer.includes("sk_wrong"));
    await me.getByLabel("API key").fill("");
    assert.match((await send(me)).answer, /^The request has no header Authorization: Bearer\./);
    // What no request can carry is said, too.
    await me.getByLabel("API key").fill("sk_…");
    await me.getByRole("button", { name: "Send" }).click();
    await me.getByText("No response.").waitFor();
  });
}

export function a_bad_parameter_is_told_what_to_write(browser) {
  return browser.onPage({}, async (page) => {
    const listings = form(page, "searchListings");
    await listings.getByLabel("API key").fill(API_KEY);
    await listings.getByLabel("max_price").fill("1,50");
    await listings.getByLabel("page_size").fill("0");
    const { answer } = await send(listings);
    assert.match(answer, /max_price It must be a decimal number with at most two decimals, such as 12\.50\./);
    assert.match(answer, /page_size It must be from 1 to 100\./);
    await listings.evaluate((form) => form.scrollIntoView());
    await shot(page, "refused-desktop");
  });
}

export function an_empty_budget_is_429_with_its_wait(browser) {
  return browser.onPage({}, async (page) => {
    const me = form(page, "getMe");
    await me.getByLabel("API key").fill(LIMITED_KEY);
    // The key may make one request per minute. A minute may begin between two of them, but not between each two.
    let last = await send(me);
    for (let tries = 0; tries !== 3 && last.response.status() === 200; tries += 1) last = await send(me);
    assert.match(last.status, /^429 Too Many Requests · wait \d+ seconds? · 0 of 1 requests left in this minute$/);
    assert.match(last.answer, /^The budget of 1 requests per minute for me is used up\. .* in \d+ seconds\./);
    await me.scrollIntoViewIfNeeded();
    await shot(page, "limited-desktop");
  });
}

export function the_key_is_kept_nowhere(browser) {
  return browser.onPage({}, async (page) => {
    const me = form(page, "getMe");
    await me.getByLabel("API key").fill(API_KEY);
    await send(me);
    // All forms have the key, and no other place.
    assert.equal(await form(page, "listOrders").locator(".key").inputValue(), API_KEY);
    const kept = await page.evaluate(async () => ({
      stored: localStorage.length + sessionStorage.length + (await indexedDB.databases()).length,
      cookie: document.cookie,
      url: location.href,
      text: document.documentElement.outerHTML,
    }));
    assert.equal(kept.stored, 0);
    assert.equal(kept.cookie, "");
    assert.equal(kept.url, `${BASE_URL}/docs`);
    assert.ok(!kept.text.includes(API_KEY));
    await page.reload();
    assert.equal(await form(page, "getMe").locator(".key").inputValue(), "");
  });
}

/** Copies a block of code, and returns what the clipboard has then. */
async function copied(block) {
  await block.getByRole("button", { name: "Copy", exact: true }).click();
  await block.getByRole("button", { name: "Copied" }).waitFor();
  const said = block.page().locator(".unseen[role=status]");
  assert.equal(await said.textContent(), "Copied");
  return block.page().evaluate(() => navigator.clipboard.readText());
}

/** If the browser forbids copying, the block is selected, so that the reader's own command copies it. */
export function what_cannot_be_copied_is_selected(browser) {
  return browser.onPage({}, async (page) => {
    await page.evaluate(() => (navigator.clipboard.writeText = () => Promise.reject(new Error("forbidden"))));
    const sample = page.locator("#authentication .block").first();
    await sample.getByRole("button", { name: "Copy" }).press("Enter");
    await sample.getByRole("button", { name: "Selected" }).waitFor();
    const selected = await page.evaluate(() => getSelection().toString());
    assert.equal(selected.trim(), (await sample.locator("pre").textContent()).trim());
  });
}

/** Copies and runs the samples of the languages that every machine with this check has, and those of the guide. */
export function samples_run_as_they_are_copied(browser) {
  return browser.onPage({ permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
    const env = { ...process.env, API_KEY };
    const programs = {
      curl: (text) => run("bash", ["-c", text.replace("curl ", "curl --silent --show-error ")], { env }),
      Python: (text) => run(PYTHON, ["-c", text], { env }),
      TypeScript: (text) => run("node", ["--input-type=module", "--eval", text], { env }),
    };
    for (const operation of ["getMe", "searchCatalog", "searchListings", "getDescription"]) {
      for (const [language, program] of Object.entries(programs)) {
        const samples = page.locator(`#operation-${operation} .samples`);
        await samples.getByRole("tab", { name: language }).click();
        const { stdout } = await program(await copied(samples.getByRole("tabpanel")));
        assert.match(stdout, /scopes|items|openapi/, `${operation} in ${language}`);
      }
    }
    for (const sample of await page.locator("#quick-start .block").filter({ hasText: "curl" }).all()) {
      const text = (await copied(sample)).replace(/^export .*/, "");
      assert.match((await programs.curl(text)).stdout, /scopes|items/, text);
    }
    assert.ok(!(await page.content()).includes("api.example.com"));
  });
}
