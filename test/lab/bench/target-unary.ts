import { randomUUID } from "node:crypto";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  ClaimRequestSchema,
  ClaimResponseSchema,
  CompleteRequestSchema,
  Result_Kind,
} from "@onceward/client/proto";
import {
  callHeaders,
  openUnaryConnection,
  type UnaryConnection,
} from "../../support/network/unary-connection.ts";
import type { Station } from "./rig.ts";
import { FINGERPRINT, KEY_LENGTH, LEASE, shareOf, type Target } from "./target.ts";
import { countRecords, JSON_TYPE } from "./target-onceward.ts";

/** Enough that no connection reaches its window or its limit of streams. */
const CONNECTIONS = 8;

/** A target over plain unary gRPC: one RPC per call, no batches. */
export interface UnaryTarget extends Target<bigint>, AsyncDisposable {
  /** A claim that is held while the key is in progress; resolves with whether it was answered Completed. */
  claimWaiting(key: string, waitS: number): Promise<boolean>;
}

/** Opens connections to a station's server. A call's key decides which API key it carries. */
export async function openUnaryTarget(
  { server, database, tenant }: Station,
  apiKeys: readonly string[] = [tenant.apiKey],
): Promise<UnaryTarget> {
  const cleanUp = new AsyncDisposableStack();
  const next = await openConnections(cleanUp, server.grpcPort);
  const namespace = `ns-${randomUUID()}`;
  const claimHeaders = headersByKey("Claim", apiKeys);
  const completeHeaders = headersByKey("Complete", apiKeys);
  const encode = claimEncoder({ namespace, owner: "bench/1", lease: LEASE, fingerprint: FINGERPRINT });
  const ask = (key: string) => next().call(claimHeaders(key), encode(key));
  const replays = new Map<string, { readonly reply: Buffer; readonly payload: Uint8Array }>();

  return {
    name: "unary gRPC",
    async claim(key) {
      const reply = await ask(key);
      if (reply[0] !== OUTCOME_TAG.claimed) return undefined;
      // The token is read from the bytes: decoding the message would cost the client more.
      return tokenOf(reply);
    },
    async complete(key, fencingToken, payload) {
      const result = { kind: Result_Kind.SUCCESS, payload: new Uint8Array(payload), contentType: JSON_TYPE };
      const request = create(CompleteRequestSchema, { namespace, key, fencingToken, result });
      await next().call(completeHeaders(key), toBinary(CompleteRequestSchema, request));
    },
    /** Parsed once a key: a replay whose whole reply equals the one before has the same result. */
    async replay(key) {
      const reply = await ask(key);
      const known = replays.get(key);
      if (known?.reply.equals(reply)) return known.payload;
      const { outcome } = fromBinary(ClaimResponseSchema, reply);
      const payload = outcome.case === "completed" ? outcome.value.result?.payload : undefined;
      if (payload !== undefined) replays.set(key, { reply: Buffer.from(reply), payload });
      return payload;
    },
    async claimWaiting(key, waitS) {
      const wait = { seconds: BigInt(waitS) };
      const request = create(ClaimRequestSchema, { namespace, key, wait, fingerprint: FINGERPRINT });
      const reply = await next().call(claimHeaders(key), toBinary(ClaimRequestSchema, request));
      return reply[0] === OUTCOME_TAG.completed;
    },
    countKeys: () => countRecords(database, [namespace]),
    [Symbol.asyncDispose]: () => cleanUp.disposeAsync(),
  };
}

/** Opens connections to a server, which are closed with the stack; returns a function that returns each in turn. */
export async function openConnections(
  cleanUp: AsyncDisposableStack,
  port: number,
): Promise<() => UnaryConnection> {
  const opened = await Promise.all(Array.from({ length: CONNECTIONS }, () => openUnaryConnection(port)));
  cleanUp.defer(() => {
    for (const connection of opened) connection.close();
  });
  return roundRobin(opened);
}

/**
 * The first byte of a ClaimResponse, whose outcome comes first: a field's number, and that it is a message.
 */
const OUTCOME_TAG = { claimed: 0x0a, completed: 0x1a } as const;

/**
 * Reads the token of a granted claim. Protobuf: the outcome's tag and length, the token's tag, the token as a
 * varint.
 */
function tokenOf(reply: Buffer): bigint {
  let token = 0n;
  for (let at = 3, shift = 0n; ; at++, shift += 7n) {
    const byte = reply.readUInt8(at);
    token |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return token;
  }
}

/** Encodes claims that differ only in key and claim id: encodes one, and patches both into copies of it. */
function claimEncoder(request: MessageInitShape<typeof ClaimRequestSchema>): (key: string) => Uint8Array {
  const [key, claimId] = ["k".repeat(KEY_LENGTH), "c".repeat(KEY_LENGTH)];
  const template = Buffer.from(
    toBinary(ClaimRequestSchema, create(ClaimRequestSchema, { ...request, key, claimId })),
  );
  let calls = 0;
  const [keyAt, claimIdAt] = [template.indexOf(key), template.indexOf(claimId)];
  return (fresh) => {
    const message = Buffer.from(template);
    message.write(fresh, keyAt, "latin1");
    // A repeat of a key is a new claim, not a retry of the one that was granted.
    message.write(String(++calls).padStart(KEY_LENGTH, "0"), claimIdAt, "latin1");
    return message;
  };
}

function headersByKey(method: string, apiKeys: readonly string[]): (key: string) => Buffer {
  const headers = apiKeys.map((apiKey) => callHeaders(method, apiKey));
  return (key) => {
    const chosen = headers[shareOf(key, headers.length)];
    if (chosen === undefined) throw new Error("there is no API key");
    return chosen;
  };
}

function roundRobin(connections: readonly UnaryConnection[]): () => UnaryConnection {
  let turn = 0;
  return () => {
    const connection = connections[turn++ % connections.length];
    if (connection === undefined) throw new Error("there is no connection");
    return connection;
  };
}
