import type { RequestListener } from "node:http";
import { createOnceward } from "@onceward/client";
import { idempotency } from "@onceward/client/express";
import { type HttpProfile, OutcomeUnknownError } from "@onceward/client/http";
import express, { type RequestHandler } from "express";
import { expect, onTestFinished, test, vi } from "vitest";
import { setNamespacePolicy } from "../../support/servers/tenants.ts";
import { useServer } from "../../support/servers/use-server.ts";
import { send } from "../http/http-client.ts";
import { startWorld } from "./proxied-world.ts";

/** A service that guards its routes itself, behind a proxy: the proxy stores outcomes of the service, and none of its refusals. */

const world = useServer();
const headers = { authorization: "a-1", "idempotency-key": '"order-1"' };
const charged: RequestHandler = (_, res) => void res.status(201).json({ charge: 1 });

/** Starts a service of Express behind a proxy that guards the same route under the policy HOLD. The service runs again after a lease. */
async function startGuarded(effect: RequestHandler, profile: HttpProfile = "onceward") {
  const app = express().set("env", "test").use(express.json());
  const started = await startWorld(world, app as RequestListener);
  await setNamespacePolicy(world.database, started.tenant, "inner", { on_lease_expiry: "RECLAIM" });
  const onceward = createOnceward({
    address: started.environment.ONCEWARD_ADDRESS,
    apiKey: started.environment.ONCEWARD_API_KEY,
  });
  onTestFinished(() => onceward.close());
  const guard = idempotency(onceward, { namespace: "inner", profile, caller: () => "a-1" });
  app.post("/charges/:id", guard, effect);
  const { port } = started.upstream.address() as { port: number };
  return { ...started, direct: () => send(port, { headers }), post: () => started.charge({ headers }) };
}

test.each<HttpProfile>(["onceward", "stripe"])(
  "a refusal by the service's own guard of profile %s is not stored: a retry asks it again",
  async (profile) => {
    const [begun, broken] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const effect = vi.fn(charged).mockImplementationOnce(async (_, res) => {
      begun.resolve();
      await broken.promise;
      res.status(500).end();
    });
    const { direct, post } = await startGuarded(effect, profile);
    const held = direct();
    await begun.promise;
    for (const refused of [await post(), await post()]) {
      expect([refused.status, refused.headers["retry-after"]]).toEqual([409, expect.any(String)]);
      expect(refused.headers).not.toHaveProperty("idempotency-replayed");
    }
    broken.resolve();
    expect((await held).status).toBe(500);
    for (const replayed of [undefined, "true"]) {
      const outcome = await post();
      expect([outcome.status, outcome.headers["idempotency-replayed"]]).toEqual([201, replayed]);
    }
    expect(effect).toHaveBeenCalledTimes(2);
  },
);

test("an outcome unknown to the service's own guard is left to the namespace's policy", async () => {
  const effect = vi.fn(charged).mockImplementationOnce(() => {
    throw new OutcomeUnknownError("the bank timed out");
  });
  const { post, expireLeases } = await startGuarded(effect);
  for (let attempts = 0; attempts < 2; attempts++) {
    const { status, body } = await post();
    expect([status, body.toString()]).toEqual([
      409,
      expect.stringContaining("urn:onceward:problem:ambiguous"),
    ]);
    await expireLeases();
  }
  expect(effect).toHaveBeenCalledOnce();
});

test.each<[string, RequestHandler]>([
  ["a plain 409", (_, res) => void res.status(409).end("sold out")],
  [
    "a problem with a type of its own",
    (_, res) =>
      void res
        .status(409)
        .type("application/problem+json")
        .links({ type: "https://api.example/in-progress", describedby: "urn:onceward:problem:in-progress" })
        .send('{"type":"https://api.example/in-progress","status":409}'),
  ],
])("%s of a service with a guard is its outcome: it is stored", async (_, handler) => {
  const effect = vi.fn(handler);
  const { post, records } = await startGuarded(effect);
  const first = await post();
  expect(first.status).toBe(409);
  expect(await post()).toMatchObject({
    status: 409,
    body: first.body,
    headers: { "idempotency-replayed": "true" },
  });
  expect(effect).toHaveBeenCalledOnce();
  expect(await records()).toHaveLength(2);
});
