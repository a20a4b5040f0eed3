// Checks the two signatures of one saved delivery: WEBHOOK_SECRET=… node verify.mjs HEADERS.json < BODY
//
// To install the library of Standard Webhooks: npm install standardwebhooks

// region: plain
import { createHmac, timingSafeEqual } from "node:crypto";
// endregion
import { readFileSync } from "node:fs";

import { Webhook, WebhookVerificationError } from "standardwebhooks";

// region: plain
/** `body` is a Buffer, `signature` the value of X-Service-Signature, or "" if there is none. */
function isGenuine(secret, body, signature) {
  const expected = Buffer.from("sha256=" + createHmac("sha256", secret).update(body).digest("hex"));
  const given = Buffer.from(signature);
  return given.length === expected.length && timingSafeEqual(given, expected);
}
// endregion

/** `body` is a Buffer, `headers` those of Node's request. */
function isGenuineAndRecent(secret, body, headers) {
  const verifier = new Webhook(secret);
  try {
    verifier.verify(body, headers);
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}

const secret = process.env.WEBHOOK_SECRET;
const given = JSON.parse(readFileSync(process.argv[2], "utf8"));
const headers = Object.fromEntries(Object.entries(given).map(([name, value]) => [name.toLowerCase(), value]));
const body = readFileSync(0);
const verdicts = {
  "X-Service-Signature": isGenuine(secret, body, headers["x-service-signature"] ?? ""),
  "webhook-signature": isGenuineAndRecent(secret, body, headers),
};
for (const [header, valid] of Object.entries(verdicts)) {
  console.log(`${header}: ${valid ? "valid" : "invalid"}`);
}
