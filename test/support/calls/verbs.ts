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

/** The record of most tests; each test has a new tenant. */
export const ORDER = { namespace: "charges", key: "order-1" };

/** Claims ORDER, or the record that `request` names, and returns the claim. @throws if it is not granted. */
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

/** Returns ORDER's record. @throws if there is none. */
export async function lookUp(client: IdempotencyClient): Promise<KnownRecord> {
  const { record } = await client.lookup(ORDER);
  if (record === undefined) throw new Error("there is no record");
  return record;
}

type ResultInit = MessageInitShape<typeof ResultSchema>;

/** Returns a successful result with a text. */
export function success(text: string): ResultInit {
  return { kind: Result_Kind.SUCCESS, payload: bytes(text) };
}

/** Returns a terminal failure with a text. */
export function failure(text: string): ResultInit {
  return { kind: Result_Kind.FAILURE, payload: bytes(text) };
}

/** Returns a text's UTF-8 bytes. */
export function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** Returns the SHA-256 of a request. */
export function fingerprintOf(request: string): Uint8Array {
  return new Uint8Array(createHash("sha256").update(request).digest());
}

/** Returns seconds as a google.protobuf.Duration. */
export function seconds(count: number): { readonly seconds: bigint; readonly nanos: number } {
  const whole = Math.floor(count);
  return { seconds: BigInt(whole), nanos: Math.round((count - whole) * 1e9) };
}
