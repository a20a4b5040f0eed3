// Tries the docs page in a real browser, on the running service. `run` starts both, and says which service (BASE_URL),
// keys (API_KEY, LIMITED_KEY), browser (CHROMIUM) and folder for screenshots (SHOTS).

import assert from "node:assert/strict";
import { open } from "./browser.mjs";
import * as calls from "./calls.mjs";
import * as reading from "./reading.mjs";

const checks = { ...calls, ...reading };
const browser = await open();
let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check(browser);
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.error(`FAILED ${name}\n${error.stack ?? error}`);
  }
}
await browser.close();
assert.equal(failed, 0, `${failed} of ${Object.keys(checks).length} checks failed`);
