import { expect, test, vi } from "vitest";
import { OutcomeUnknownError } from "../../../clients/typescript/src/http.ts";
import { problemOf } from "./http-client.ts";
import type { Begin, Effect } from "./http-world.ts";

const charged = { status: 201, body: Buffer.from("charged") };

const unknown = new OutcomeUnknownError("the bank timed out");

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
