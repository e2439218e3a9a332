import { expect, test, vi } from "vitest";
import { idempotent, storesGraphql } from "../http.ts";
import { createTestingOnceward } from "../testing.ts";

const failed = [{ message: "the bank is down", path: ["charge"] }];

test.each<[what: string, answer: object | string, repeat: number, calls: number]>([
  ["data", { data: { charge: "ch_1" } }, 200, 1],
  ["data and an empty list of errors", { data: { charge: null }, errors: [] }, 200, 1],
  ["errors alone", { errors: failed }, 200, 2],
  ["errors and data that is null", { data: { charge: null }, errors: failed }, 200, 2],
  ["errors, after a part has happened", { data: { charge: "ch_1", mail: null }, errors: failed }, 409, 1],
  ["a text that is not JSON", "charged", 409, 1],
])("a response of GraphQL with %s", async (_, answer, repeat, calls) => {
  await using testing = createTestingOnceward();
  const options = { namespace: "charges", caller: () => "a-1", stores: storesGraphql };
  const execute = vi.fn(() => (typeof answer === "string" ? new Response(answer) : Response.json(answer)));
  const handle = idempotent(testing.onceward, options, execute);
  const send = () =>
    handle(
      new Request("http://localhost/graphql", { method: "POST", headers: { "idempotency-key": "k-1" } }),
    );
  expect([(await send()).status, (await send()).status]).toEqual([200, repeat]);
  expect(execute).toHaveBeenCalledTimes(calls);
});
