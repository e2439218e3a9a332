import { Buffer } from "node:buffer";
import Fastify from "fastify";
import { expect, onTestFinished, test, vi } from "vitest";
import { idempotency } from "../fastify.ts";
import { createTestingOnceward } from "../testing.ts";

/**
 * Sends forms to a guarded route, under one key. Their parser adds what `@fastify/multipart` adds to a request, and
 * leaves this body.
 */
async function statusesOf(...bodies: readonly unknown[]) {
  const app = Fastify();
  onTestFinished(() => app.close());
  const method = () => undefined;
  app.decorateRequest("parts", method).decorateRequest("saveRequestFiles", method);
  app.decorateRequest("isMultipart", () => true);
  app.addContentTypeParser("multipart/form-data", (_request, _payload, done) => done(null));
  const left = [...bodies];
  app.addHook("preValidation", async (request) => {
    request.body = left.shift();
  });
  const { onceward } = createTestingOnceward();
  app.register(idempotency(onceward, { namespace: "uploads", caller: () => "a-1" }));
  const handler = vi.fn(() => "stored");
  app.after(() => app.post("/uploads", handler));
  const statuses: number[] = [];
  for (const _ of bodies) {
    const headers = { "content-type": "multipart/form-data; boundary=b", "idempotency-key": "k-1" };
    const { statusCode } = await app.inject({ method: "POST", url: "/uploads", headers, payload: "--b--" });
    statuses.push(statusCode);
  }
  return { statuses, effects: handler.mock.calls.length };
}

const form = () => ({ amount: "1", receipts: [Buffer.from("a"), Buffer.from("b")] });

test("a form whose files are in the body counts by its fields and files", async () => {
  const otherFile = { ...form(), receipts: [Buffer.from("a"), Buffer.from("c")] };
  const otherField = { ...form(), amount: "2" };
  const { statuses, effects } = await statusesOf(form(), form(), otherFile, otherField);
  expect({ statuses, effects }).toEqual({ statuses: [200, 200, 422, 422], effects: 1 });
});

test("a form without files counts by its fields", async () => {
  const { statuses } = await statusesOf({ amount: "1" }, { amount: "1" }, { amount: "2" });
  expect(statuses).toEqual([200, 200, 422]);
});

test.each([
  ["was kept elsewhere", { amount: "1", receipt: undefined }],
  ["is read later", { amount: { fieldname: "amount", value: "1" } }],
  ["is not in the body", undefined],
])("a form of which a part %s is an error, and nothing runs", async (_, body) => {
  expect(await statusesOf(body)).toEqual({ statuses: [500], effects: 0 });
});
