import { createHash } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  Claimed,
  ClaimRequestSchema,
} from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import {
  type Record as KnownRecord,
  Result_Kind,
  type ResultSchema,
} from "../../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import type { IdempotencyClient } from "./clients.ts";
import { granted } from "./records.ts";

/** The record that most tests work on; each test has a tenant of its own. */
export const ORDER = { namespace: "charges", key: "order-1" };

/** Claims ORDER, or what `request` names, and answers the claim; the test fails if it isn't granted. */
export async function grant(
  client: IdempotencyClient,
  request: MessageInitShape<typeof ClaimRequestSchema> = {},
): Promise<Claimed> {
  return granted(await client.claim({ ...ORDER, ...request }));
}

/** Claims ORDER and completes it. */
export async function complete(client: IdempotencyClient, result = success("done")): Promise<Claimed> {
  const claim = await grant(client);
  await client.complete({ ...ORDER, fencingToken: claim.fencingToken, result });
  return claim;
}

/** ORDER's record; the test fails if there is none. */
export async function lookUp(client: IdempotencyClient): Promise<KnownRecord> {
  const { record } = await client.lookup(ORDER);
  if (record === undefined) throw new Error("there is no record");
  return record;
}

type ResultInit = MessageInitShape<typeof ResultSchema>;

/** A result that replays a text. */
export function success(text: string): ResultInit {
  return { kind: Result_Kind.SUCCESS, payload: bytes(text) };
}

/** A terminal failure that replays a text. */
export function failure(text: string): ResultInit {
  return { kind: Result_Kind.FAILURE, payload: bytes(text) };
}

/** A text's UTF-8. */
export function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** SHA-256 of a request. */
export function fingerprintOf(request: string): Uint8Array {
  return new Uint8Array(createHash("sha256").update(request).digest());
}

/** So many seconds, as a google.protobuf.Duration. */
export function seconds(count: number): { readonly seconds: bigint; readonly nanos: number } {
  const whole = Math.floor(count);
  return { seconds: BigInt(whole), nanos: Math.round((count - whole) * 1e9) };
}
