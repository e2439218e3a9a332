import { expect, test, vi } from "vitest";
import type { HttpOptions } from "../../../clients/typescript/src/http.ts";
import { problemOf } from "./http-client.ts";
import type { Begin, Effect, Reply } from "./http-world.ts";

/** An address without a listener. */
const NOWHERE = "http://127.0.0.1:1";

const charged = { status: 201, body: Buffer.from("charged") };

/** Tests the refusals of every adapter and their status. */
export function refuses(begin: Begin): void {
  const problem = (status: number, type: string) => ({
    status,
    contentType: "application/problem+json",
    type: `urn:onceward:problem:${type}`,
  });

  test("a request without a key, unless keys are optional", async () => {
    const effect = vi.fn(() => charged);
    const world = await begin(effect);
    expect(problemOf(await world.send({ key: null }))).toEqual(problem(400, "key-missing"));
    expect(effect).not.toHaveBeenCalled();
    const lenient = await begin(effect, { options: { required: false } });
    expect((await lenient.send({ key: null })).status).toBe(201);
    expect((await lenient.send({ key: null })).status).toBe(201);
    expect(effect.mock.calls).toEqual([[undefined], [undefined]]);
  });

  test.each(['""', '"order-1', '"a", "b"', "a,b", `"${"k".repeat(256)}"`])(
    "a malformed key: %s",
    async (key) => {
      const effect = vi.fn(() => charged);
      const world = await begin(effect);
      expect(problemOf(await world.send({ key }))).toEqual(problem(400, "key-malformed"));
      expect(effect).not.toHaveBeenCalled();
    },
  );

  test("another request with the same key", async () => {
    const effect = vi.fn(() => charged);
    const world = await begin(effect);
    await world.send();
    for (const other of [{ body: '{"amount":200}' }, { path: "/charges/1?dry=1" }]) {
      const reused = await world.send(other);
      expect(problemOf(reused)).toEqual(problem(422, "key-reused"));
      // Onceward's log has the refused call under it.
      expect(reused.headers["onceward-request-id"]).toMatch(/^[\da-f-]{36}$/);
    }
    expect(effect).toHaveBeenCalledOnce();
  });

  test("while the first is in progress, and says when to retry", async () => {
    const handler = Promise.withResolvers<Reply>();
    const begun = Promise.withResolvers<void>();
    const effect = vi.fn(() => {
      begun.resolve();
      return handler.promise;
    });
    const world = await begin(effect);
    const first = world.send();
    await begun.promise;
    const others = await Promise.all(Array.from({ length: 9 }, () => world.send()));
    for (const other of others) {
      expect(problemOf(other)).toEqual(problem(409, "in-progress"));
      expect(Number(other.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    }
    handler.resolve(charged);
    expect((await first).status).toBe(201);
    expect((await world.send()).status).toBe(201);
    expect(effect).toHaveBeenCalledOnce();
  });

  test("every request while the service is unreachable, and nothing runs", async () => {
    const effect = vi.fn(() => charged);
    const world = await begin(effect, { address: NOWHERE, client: { timeoutMs: 100 } });
    const answer = await world.send();
    expect(problemOf(answer)).toEqual(problem(503, "unavailable"));
    expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(effect).not.toHaveBeenCalled();
  });

  test("no request while the service is unreachable if the route proceeds without it", async () => {
    const effect = vi.fn<Effect>(() => charged);
    const options = { onUnavailable: "proceed", timeoutMs: 100 } as const;
    const world = await begin(effect, { address: NOWHERE, options });
    expect((await world.send()).status).toBe(201);
    expect(effect.mock.calls).toMatchObject([[{ guarded: false }]]);
  });

  test("a repeat whose result has expired, without running it again", async () => {
    const effect = vi.fn(() => charged);
    const world = await begin(effect);
    await world.send();
    await world.updateRecords("result_expires_at = now() - interval '1 s'");
    expect(problemOf(await world.send())).toEqual(problem(410, "result-gone"));
    expect(effect).toHaveBeenCalledOnce();
  });
}

/** Tests the format of every adapter's refusals. */
export function writesRefusals(begin: Begin): void {
  test("as a problem with instructions for the client", async () => {
    const world = await begin(() => charged);
    const { status, body } = await world.send({ key: null });
    expect(JSON.parse(body.toString())).toEqual({
      type: "urn:onceward:problem:key-missing",
      title: "This operation requires an Idempotency-Key.",
      status,
      detail: "Send the header Idempotency-Key: new for each operation, the same for each of its attempts.",
    });
  });

  test("in the API's own format", async () => {
    const problemBody: HttpOptions<object>["problemBody"] = ({ type, detail }) => ({
      contentType: "application/vnd.api+json",
      body: JSON.stringify({ errors: [{ code: type, detail }] }),
    });
    const world = await begin(() => charged, { address: NOWHERE, options: { timeoutMs: 100, problemBody } });
    const answer = await world.send();
    expect(answer.status).toBe(503);
    expect(answer.headers["content-type"]).toBe("application/vnd.api+json");
    expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(JSON.parse(answer.body.toString())).toMatchObject({
      errors: [{ code: "urn:onceward:problem:unavailable" }],
    });
  });
}
