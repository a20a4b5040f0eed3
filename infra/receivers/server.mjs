// Receives webhooks with Node's own server, or with Express on it: server.mjs http|express PORT. What an application
// does after its answer holds up neither.

import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import express from "express";

const [kind, port] = process.argv.slice(2);

function note(request) {
  const delivery = request.headers["x-service-delivery-id"];
  appendFileSync(process.env.RECEIVED, `${delivery} ${request.socket.remotePort} ${Date.now() / 1000}\n`);
}

function receive(request, response) {
  request.resume().on("end", () => {
    note(request);
    response.end("ok");
  });
}

const app = express();
app.post("/", express.raw({ type: "application/json" }), (request, response) => {
  note(request);
  response.sendStatus(200);
});

createServer(kind === "express" ? app : receive).listen(Number(port), "127.0.0.1");
