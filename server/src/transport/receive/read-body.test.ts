import { once } from "node:events";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import type { Principal } from "../../domain/tenant.ts";
import { createInboundBudget } from "../bounds/memory-budgets.ts";
import { createMessageReader } from "../grpc/protocol.ts";
import { readBody } from "./read-body.ts";

const OPERATOR: Principal = { role: "OPERATOR", actor: "a key", goodUntilMs: Number.POSITIVE_INFINITY };

test("a body whose sender has left before it is read is CANCELLED", async () => {
  const body = new Readable({ read() {} }).destroy();
  await once(body, "close");
  const reading = readBody(body, createMessageReader(1), createInboundBudget().ofConnection(), OPERATOR);
  await expect(reading).rejects.toMatchObject({ reason: "CANCELLED" });
});
