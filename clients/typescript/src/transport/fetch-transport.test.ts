import { createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { errorFromCall, isAboutContent, isRetryable } from "../errors/mapping.ts";
import { IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";
import { credentialOf } from "./credentials.ts";
import { createFetchTransport } from "./fetch-transport.ts";

async function failure(status: number, contentType: string, body: string) {
  const fetch = async () => new Response(body, { status, headers: { "content-type": contentType } });
  const api = createClient(
    IdempotencyService,
    createFetchTransport("http://localhost", credentialOf({ apiKey: "ow_x_y" }), fetch),
  );
  return api.lookup({ namespace: "charges", key: "order-1" }).then(
    () => {
      throw new Error("the call did not fail");
    },
    (cause: unknown) => errorFromCall(cause),
  );
}

test.each([
  [503, "text/html"],
  [500, "text/plain"],
  [404, "text/html"],
  [401, "text/html"],
  [200, "text/html"],
  [404, "application/json"],
])("a call with a foreign answer, HTTP %i with %s, is retried", async (status, contentType) => {
  const error = await failure(status, contentType, "{}");
  expect(error).toMatchObject({ reason: "NO_ANSWER" });
  expect(isRetryable(error)).toBe(true);
});

test("a call with the answer that the request is too large is not retried", async () => {
  const error = await failure(413, "text/html", "<html>");
  expect([isRetryable(error), isAboutContent(error)]).toEqual([false, true]);
});

test("an error of the service is passed on", async () => {
  const error = await failure(400, "application/json", '{"code": "invalid_argument", "message": "key"}');
  expect(error.message).toContain("key");
  expect(isRetryable(error)).toBe(false);
});
