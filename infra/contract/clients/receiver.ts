// Receives one delivery of a webhook.

import { createServer, type IncomingMessage } from "node:http";
import { Webhook } from "standardwebhooks";

/** Returns the body of the next delivery, once its signature is verified. */
export function receive<T>(): Promise<T> {
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
