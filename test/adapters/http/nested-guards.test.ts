import { createServer } from "node:http";
import express, { type RequestHandler } from "express";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { idempotency } from "../../../clients/typescript/src/express.ts";
import { idempotent } from "../../../clients/typescript/src/http.ts";
import { type Onceward, OutcomeUnknownError } from "../../../clients/typescript/src/index.ts";
import { joinKey } from "../../../clients/typescript/src/keys/keys.ts";
import { newTesting } from "../../support/calls/testing.ts";
import { send } from "./http-client.ts";
import { listen } from "./listen.ts";

/** A request with two guards of different namespaces: the outer one stores outcomes of the operation, and no refusal of the inner one. */

const OUTER = { namespace: "requests", caller: () => "a-1", fingerprint: () => 1 };
const INNER = { namespace: "charges", caller: () => "a-1", fingerprint: () => 1 };
const LEASE_MS = 30_000;
const headers = { "idempotency-key": "order-1" };

/** Makes a request with the same key each time; resolves to its status. */
type Call = () => Promise<number>;

const FRAMEWORKS: readonly [
  name: string,
  begin: (onceward: Onceward, effect: () => unknown) => Promise<Call>,
][] = [
  [
    "fetch",
    async (onceward, effect) => {
      const inner = idempotent(onceward, INNER, async () => Response.json(await effect()));
      const outer = idempotent(onceward, OUTER, (request) => inner(request));
      return async () =>
        (await outer(new Request("http://localhost/charges", { method: "POST", headers }))).status;
    },
  ],
  [
    "Express",
    async (onceward, effect) => {
      const charge: RequestHandler = async (_req, res) => void res.json(await effect());
      const app = express().set("env", "test").use(express.json());
      app.post("/charges", idempotency(onceward, OUTER), idempotency(onceward, INNER), charge);
      const listening = await listen(createServer(app));
      onTestFinished(() => listening.close());
      return async () => (await send(listening.port, { path: "/charges", headers })).status;
    },
  ],
];

function newOnceward() {
  const { onceward, clock } = newTesting({ policy: { onLeaseExpiry: "HOLD" } });
  return { onceward, expire: () => clock.advance(LEASE_MS) };
}

describe.each(FRAMEWORKS)("two guards of %s", (_, begin) => {
  test("store no refusal: the next attempt runs once the inner claim is free", async () => {
    const { onceward } = newOnceward();
    const charge = vi.fn(() => ({ id: "ch_1" }));
    // A program that guards charges alone holds the inner key.
    const [begun, busy] = [Promise.withResolvers<void>(), Promise.withResolvers<never>()];
    const other = idempotent(onceward, INNER, () => {
      begun.resolve();
      return busy.promise;
    });
    const held = other(new Request("http://localhost/charges", { method: "POST", headers }));
    await begun.promise;
    const call = await begin(onceward, charge);
    expect([await call(), await call()]).toEqual([409, 409]);
    busy.reject(new Error("the other program failed"));
    await expect(held).rejects.toThrow("the other program failed");
    expect([await call(), await call()]).toEqual([200, 200]);
    expect(charge).toHaveBeenCalledOnce();
  });

  test("leave both claims to the policy if the effect is unknown", async () => {
    const { onceward, expire } = newOnceward();
    const charge = vi.fn(() => {
      throw new OutcomeUnknownError("the bank timed out");
    });
    const call = await begin(onceward, charge);
    expect(await call()).toBe(409);
    expire();
    for (const { namespace } of [OUTER, INNER]) {
      const { state } = await onceward.lookup({
        namespace,
        key: joinKey("POST", "/charges", "a-1", "order-1"),
      });
      expect([namespace, state]).toEqual([namespace, "ambiguous"]);
    }
    expect(await call()).toBe(409);
    expect(charge).toHaveBeenCalledOnce();
  });
});
