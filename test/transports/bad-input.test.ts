import type { MessageInitShape } from "@bufbuild/protobuf";
import { beforeEach, describe, expect, test } from "vitest";
import type {
  BatchRequestItemSchema,
  ClaimRequestSchema,
} from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { connectClient, type IdempotencyClient, TRANSPORT_NAMES } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { ORDER, success } from "../support/calls/verbs.ts";
import { statementsDuring } from "../support/database/statements.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

type BadClaim = MessageInitShape<typeof ClaimRequestSchema>;

const MAX_INT64 = 2n ** 63n - 1n;

/** By the mistake in them: claims, and the fields that the refusal must name. */
const BAD_CLAIMS: Readonly<Record<string, { readonly claim: BadClaim; readonly fields: readonly string[] }>> =
  {
    "an empty key": { claim: { key: "" }, fields: ["key"] },
    "a key of 256 bytes": { claim: { key: "é".repeat(128) }, fields: ["key"] },
    "a key with a control character": { claim: { key: "a\u0085b" }, fields: ["key"] },
    "a key with NUL": { claim: { key: "a\0b" }, fields: ["key"] },
    "an empty namespace": { claim: { namespace: "" }, fields: ["namespace"] },
    "a namespace of 64 characters": { claim: { namespace: "n".repeat(64) }, fields: ["namespace"] },
    "a namespace with NUL": { claim: { namespace: "a\0" }, fields: ["namespace"] },
    "a namespace with a line's end": { claim: { namespace: "charges\n" }, fields: ["namespace"] },
    "a namespace with an upper-case letter": { claim: { namespace: "Charges" }, fields: ["namespace"] },
    "a fingerprint of 31 bytes": { claim: { fingerprint: new Uint8Array(31) }, fields: ["fingerprint"] },
    "a fingerprint of 33 bytes": { claim: { fingerprint: new Uint8Array(33) }, fields: ["fingerprint"] },
    "a claim id of 129 bytes": { claim: { claimId: "c".repeat(129) }, fields: ["claim_id"] },
    "an owner of 129 bytes": { claim: { owner: "o".repeat(129) }, fields: ["owner"] },
    "an owner with an escape sequence": { claim: { owner: "\u001b[2J" }, fields: ["owner"] },
    "a lease of less than a second": { claim: { lease: { nanos: 999_000_000 } }, fields: ["lease"] },
    "a negative lease": { claim: { lease: { seconds: -1n } }, fields: ["lease"] },
    "a lease over the policy's": { claim: { lease: { seconds: 901n } }, fields: ["lease"] },
    "a lease a nanosecond over the policy's": {
      claim: { lease: { seconds: 900n, nanos: 1 } },
      fields: ["lease"],
    },
    "a retention of less than a minute": { claim: { retention: { seconds: 59n } }, fields: ["retention"] },
    "a retention over the policy's": { claim: { retention: { seconds: 259_201n } }, fields: ["retention"] },
    "a negative wait": { claim: { wait: { seconds: -1n } }, fields: ["wait"] },
    "a wait of more than a minute": { claim: { wait: { seconds: 61n } }, fields: ["wait"] },
    "everything wrong at once": {
      claim: {
        namespace: "",
        key: "",
        fingerprint: new Uint8Array(1),
        claimId: "\0",
        owner: "\0",
        lease: { seconds: 0n },
        retention: { seconds: 0n },
        wait: { seconds: -1n },
      },
      fields: ["namespace", "key", "fingerprint", "claim_id", "owner", "lease", "retention", "wait"],
    },
  };

/** Durations that JSON can't express, because its durations have a grammar of their own. */
const BAD_BINARY_DURATIONS: Readonly<Record<string, BadClaim>> = {
  "an overflowing lease": { lease: { seconds: MAX_INT64 } },
  "a lease with a whole second of nanos": { lease: { seconds: 1n, nanos: 1_000_000_000 } },
  "a lease whose nanos have another sign": { lease: { seconds: 2n, nanos: -1 } },
  "a lease below any duration": { lease: { seconds: -MAX_INT64 - 1n, nanos: -999_999_999 } },
};

const { database, server } = useServer();

describe.each(TRANSPORT_NAMES)("bad input over %s", (transport) => {
  let client: IdempotencyClient;

  beforeEach(async () => {
    client = connectClient(server, (await createTenant(database)).apiKey, transport);
    // Loads the credential: reading it is the only statement that a bad call may cost.
    await errorOf(client.lookup({}));
  });

  /** Bad input never costs a statement. */
  async function expectRefused(makeCall: () => Promise<unknown>, fields: readonly string[]): Promise<void> {
    const statements = await statementsDuring(server, async () => {
      const error = await errorOf(makeCall());
      expect(error).toMatchObject({ code: "InvalidArgument", reason: "INVALID_REQUEST", domain: "onceward" });
      expect([...new Set(error.fields)]).toEqual(fields);
    });
    expect(statements).toEqual({});
  }

  test.each(Object.keys(BAD_CLAIMS))("%s is refused", async (name) => {
    const { claim, fields } = BAD_CLAIMS[name] ?? { claim: {}, fields: [] };
    await expectRefused(() => client.claim({ ...ORDER, ...claim }), fields);
  });

  if (transport !== "Connect with JSON") {
    test.each(Object.keys(BAD_BINARY_DURATIONS))("%s is refused", async (name) => {
      await expectRefused(() => client.claim({ ...ORDER, ...BAD_BINARY_DURATIONS[name] }), ["lease"]);
    });
  }

  test("the refusal of a completion without any valid field names all fields", async () => {
    const metadata = { "": "no name", "a\nb": "control", big: "v".repeat(4097) };
    const result = { kind: 7 as never, contentType: "c".repeat(256), metadata };
    await expectRefused(
      () => client.complete({ ...ORDER, fencingToken: 0n, result, retention: { seconds: 1n } }),
      ["fencing_token", "result.kind", "result.content_type", "result.metadata", "retention"],
    );
  });

  test("a completion without a result, of unknown kind or with 65 metadata entries is refused", async () => {
    const metadata = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`name-${i}`, "v"]));
    await expectRefused(() => client.complete({ ...ORDER, fencingToken: 1n }), ["result"]);
    await expectRefused(() => client.complete({ ...ORDER, fencingToken: 1n, result: {} }), ["result.kind"]);
    await expectRefused(
      () => client.complete({ ...ORDER, fencingToken: 1n, result: { ...success("x"), metadata } }),
      ["result.metadata"],
    );
  });

  test("a bad release, extension and lookup are refused with every violation", async () => {
    await expectRefused(
      () => client.release({ ...ORDER, fencingToken: -1n, reason: "\0".repeat(1025) }),
      ["fencing_token", "reason"],
    );
    const checkpoint = { name: "", state: new Uint8Array(16 * 1024 + 1) };
    await expectRefused(
      () => client.extendLease({ ...ORDER, fencingToken: 0n, lease: { seconds: -1n }, checkpoint }),
      ["fencing_token", "lease", "checkpoint.name", "checkpoint.state"],
    );
    await expectRefused(() => client.lookup({ namespace: "-", key: "\u007f" }), ["namespace", "key"]);
  });

  test("an empty batch and a batch of 1,001 items are refused", async () => {
    await expectRefused(() => client.batch({ items: [] }), ["items"]);
    const item = { request: { case: "lookup", value: ORDER } } as const;
    await expectRefused(() => client.batch({ items: Array.from({ length: 1001 }, () => item) }), ["items"]);
  });

  test("a batch's bad items are refused one by one, without a statement", async () => {
    const items: MessageInitShape<typeof BatchRequestItemSchema>[] = [
      {},
      { request: { case: "claim", value: { ...ORDER, wait: { seconds: 1n } } } },
      { request: { case: "lookup", value: { namespace: "", key: "" } } },
    ];
    const statements = await statementsDuring(server, async () => {
      const reply = await client.batch({ items });
      const fields = reply.items.map(({ response }) =>
        response.case === "error" ? response.value.fieldViolations.map(({ field }) => field) : response.case,
      );
      expect(fields).toEqual([["request"], ["claim.wait"], ["namespace", "key"]]);
    });
    expect(statements).toEqual({});
  });
});
