import { expect, test, vi } from "vitest";
import { NoEffectError, OutcomeUnknownError } from "../../../clients/typescript/src/http.ts";
import { problemOf } from "./http-client.ts";
import type { Begin, CommonOptions, Effect } from "./http-world.ts";

const charged = { status: 201, body: Buffer.from("charged") };

const unknown = new OutcomeUnknownError("the bank timed out");

const unsure: Partial<CommonOptions> = {
  stores: ({ json }) => ((json as { readonly errors: object }).errors ? "unknown" : true),
};

/** Errors with which a handler says that it can't know whether it had its effect. */
const ERRORS: Readonly<Record<string, Effect>> = {
  "thrown at once": () => {
    throw unknown;
  },
  "thrown later": async () => {
    await new Promise(setImmediate);
    throw unknown;
  },
  "thrown as the cause of another error": async () => {
    throw Object.assign(new Error("no charge", { cause: new Error("no answer", { cause: unknown }) }), {
      status: 402,
      statusCode: 402,
    });
  },
};

/** Tests that every adapter leaves an operation whose outcome is unknown to the policy, although the framework answers the error. */
export function leavesToThePolicy(begin: Begin): void {
  const typeOf = (answer: Parameters<typeof problemOf>[0]) => {
    const { status, contentType, type } = problemOf(answer);
    expect([status, contentType]).toEqual([409, "application/problem+json"]);
    return type.replace("urn:onceward:problem:", "");
  };

  test.each(Object.entries(ERRORS))("an OutcomeUnknownError that is %s, under HOLD", async (_, fail) => {
    const effect = vi.fn<Effect>(() => charged).mockImplementationOnce(fail);
    const world = await begin(effect, { policy: { on_lease_expiry: "HOLD" } });
    const first = await world.send();
    expect(typeOf(first)).toBe("ambiguous");
    expect(Number(first.headers["content-length"])).toBe(first.body.byteLength);
    expect(typeOf(await world.send())).toBe("in-progress");
    await world.updateRecords("lease_expires_at = now() - interval '1 s'");
    expect(typeOf(await world.send())).toBe("ambiguous");
    expect(effect).toHaveBeenCalledOnce();
  });

  test.each<[what: string, effect: Effect, options?: Partial<CommonOptions>]>([
    ["a 502", () => ({ status: 502 })],
    ["a 503 without Retry-After", () => ({ status: 503 })],
    ["a 504", () => ({ status: 504, headers: { "retry-after": "1" } })],
    ["any 5xx under onError", () => ({ status: 500 }), { onError: "unknown" }],
    ["a timeout that the handler throws", () => Promise.reject(new DOMException("slow", "TimeoutError"))],
    ["any error under onError", () => Promise.reject(new Error("down")), { onError: "unknown" }],
    [
      "a body that `stores` calls unknown",
      () => ({ status: 200, body: Buffer.from('{"errors":[1]}') }),
      unsure,
    ],
    ["a failure of `stores`", () => ({ status: 200, body: Buffer.from("charged") }), unsure],
  ])("%s, which reaches its client", async (_, fail, options) => {
    const effect = vi.fn<Effect>(() => charged).mockImplementationOnce(fail);
    const world = await begin(effect, { policy: { on_lease_expiry: "HOLD" }, ...(options && { options }) });
    expect(await world.send()).not.toMatchObject({ status: 409 });
    expect(typeOf(await world.send())).toBe("in-progress");
    await world.updateRecords("lease_expires_at = now() - interval '1 s'");
    expect(typeOf(await world.send())).toBe("ambiguous");
    expect(effect).toHaveBeenCalledOnce();
  });

  test("a claim that its handler marks, although it answers", async () => {
    const effect = vi.fn<Effect>((claim) => {
      claim?.outcomeUnknown(new Error("the bank timed out"));
      return charged;
    });
    const world = await begin(effect, { policy: { on_lease_expiry: "HOLD" } });
    expect([typeOf(await world.send()), typeOf(await world.send())]).toEqual(["ambiguous", "in-progress"]);
    expect(effect).toHaveBeenCalledOnce();
  });

  test("no NoEffectError, under onError: the next attempt runs", async () => {
    const effect = vi.fn<Effect>(() => charged).mockRejectedValueOnce(new NoEffectError("too expensive"));
    const world = await begin(effect, { options: { onError: "unknown" } });
    expect([(await world.send()).status, (await world.send()).status]).toEqual([500, 201]);
  });

  test("an OutcomeUnknownError, under RECLAIM: it runs again, once the lease has expired", async () => {
    const effect = vi.fn<Effect>(() => charged).mockRejectedValueOnce(unknown);
    const world = await begin(effect);
    expect([typeOf(await world.send()), typeOf(await world.send())]).toEqual(["ambiguous", "in-progress"]);
    expect(effect).toHaveBeenCalledOnce();
    await world.updateRecords("lease_expires_at = now() - interval '1 s'");
    expect((await world.send()).status).toBe(201);
    expect(effect.mock.calls.map(([claim]) => claim?.attempt)).toEqual([1, 2]);
  });
}
