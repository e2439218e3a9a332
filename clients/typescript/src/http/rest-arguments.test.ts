import { expect, expectTypeOf, test, vi } from "vitest";
import { newTesting } from "../../../../test/support/calls/testing.ts";
import { idempotent } from "../http.ts";

test("a platform's arguments after the request reach the handler, guarded or not", async () => {
  const { onceward } = newTesting();
  const handler = vi.fn(async (_request: Request, _claim: unknown, env: { name: string }, ctx: symbol) =>
    Response.json([env.name, typeof ctx]),
  );
  const fetch = idempotent(onceward, { namespace: "charges", caller: () => "account-1" }, handler);
  expectTypeOf(fetch).parameters.toEqualTypeOf<[Request, { name: string }, symbol]>();
  const ctx = Symbol("ctx");
  for (const method of ["POST", "GET"]) {
    const request = new Request("http://localhost/charges", {
      method,
      headers: { "idempotency-key": '"order-1"' },
    });
    const response = await fetch(request, { name: "production" }, ctx);
    expect(await response.json()).toEqual(["production", "symbol"]);
    expect(handler.mock.lastCall?.slice(2)).toEqual([{ name: "production" }, ctx]);
  }
  expect(handler).toHaveBeenCalledTimes(2);
});
