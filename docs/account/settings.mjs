// Makes a key and a webhook endpoint for a user: node settings.mjs FUNCTION USER_ID URL

import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";

// One attempt, because a command that is sent again may be done twice.
const client = new LambdaClient({ maxAttempts: 1 });

/** The command was not done. `code` says why. */
class Refused extends Error {
  constructor({ code, message }) {
    super(`${code}: ${message}`);
    this.code = code;
  }
}

/** Returns the result of a command. After any error but Refused, nobody knows whether it was done. */
async function settings(functionName, userId, command, parameters) {
  const request = { version: 1, user_id: userId, command, parameters };
  const payload = JSON.stringify(request);
  const reply = await client.send(new InvokeCommand({ FunctionName: functionName, Payload: payload }));
  const answer = JSON.parse(reply.Payload.transformToString());
  if (reply.FunctionError) throw new Error(`no answer to ${command}`);
  if (answer.error) throw new Refused(answer.error);
  return answer.result;
}

const [functionName, userId, url] = process.argv.slice(2);
const key = await settings(functionName, userId, "keys.create", { name: "My program", scopes: ["orders:read"] });
// Show key.api_key to the user, this one time. Never log it.
const endpoint = await settings(functionName, userId, "endpoints.add", { url, events: ["order.completed"] });
// The same is true of endpoint.secret.
const listed = await settings(functionName, userId, "deliveries.list", { endpoint_id: endpoint.id });
console.log(`key ${key.key_id}, endpoint ${endpoint.id}, deliveries: ${listed.deliveries.length}`);
