/**
 * `npm run example -- webhooks`: a receiver of GitHub's webhooks. The sender has GitHub's own example payloads, signs
 * them as GitHub does, sends each twice at once, and again until the answer is 200.
 */

import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { serve } from "@hono/node-server";
import { Webhooks } from "@octokit/webhooks";
import definitions from "@octokit/webhooks-examples" with { type: "json" };
import { createOnceward } from "@onceward/client";
import { githubEvents, webhookOnce } from "@onceward/client/webhooks";
import { findService, prove } from "./setup.ts";

const EVENTS = 60;
const MAX_SENDS = 100;

const webhooks = new Webhooks({ secret: "example" });
const onceward = createOnceward(await findService());

const handled: string[] = [];
let crashes = 0;
const POST = webhookOnce(
  onceward,
  {
    namespace: "example-webhooks",
    source: githubEvents((body, signature) => webhooks.verify(body, signature)),
    // The defaults warn of problems, which this example causes on purpose.
    onDelivery: () => {},
    onRejected: () => {},
  },
  async (event, claim) => {
    // One in six fails at first: its claim is released, the answer is 500, and GitHub sends the event again.
    if (claim.attempt === 1 && crashes < EVENTS / 6) {
      crashes++;
      throw new Error("the database was unreachable");
    }
    handled.push(event.id);
  },
);
const server = serve({ fetch: POST, port: 0, hostname: "127.0.0.1" });
await once(server, "listening");
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

async function send(id: string, name: string, body: string, signature: string): Promise<Response> {
  const headers = { "x-github-delivery": id, "x-github-event": name, "x-hub-signature-256": signature };
  return await fetch(url, { method: "POST", headers, body });
}

/** Sends an event until the answer says that it is settled. */
async function deliver(name: string, body: string): Promise<Response> {
  const id = crypto.randomUUID();
  const signature = await webhooks.sign(body);
  for (let sent = 0; sent < MAX_SENDS; sent += 2) {
    const [first, second] = await Promise.all([
      send(id, name, body, signature),
      send(id, name, body, signature),
    ]);
    if (first.ok && second.ok) return first;
    await sleep(100);
  }
  throw new Error(`the event ${id} was sent ${MAX_SENDS} times, and is not settled`);
}

// The package's types are of its CommonJS form.
const definitionsByEvent = definitions as unknown as readonly {
  name: string;
  examples: readonly unknown[];
}[];
const payloads = definitionsByEvent.flatMap(({ name, examples }) =>
  examples.map((example) => ({ name, body: JSON.stringify(example) })),
);
const answers = await Promise.all(payloads.slice(0, EVENTS).map(({ name, body }) => deliver(name, body)));
const forged = await send(crypto.randomUUID(), "push", "{}", await webhooks.sign('{"forged":false}'));

prove("events were delivered", answers.length, EVENTS);
prove("events failed at first", crashes, EVENTS / 6);
prove("effects happened", handled.length, EVENTS);
prove("different events had an effect", new Set(handled).size, EVENTS);
prove("is the answer to a forged event", forged.status, 401);

server.close();
await onceward.close();
