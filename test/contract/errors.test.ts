import { ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { CATALOGUE } from "../../server/src/domain/refusal.ts";
import { runBatch } from "../support/calls/batches.ts";
import type { IdempotencyClient } from "../support/calls/clients.ts";
import { describeError, errorOf } from "../support/calls/errors.ts";
import { complete, fingerprintOf, grant, lookUp, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { lockRows, openConnection } from "../support/database/connections.ts";
import { type Caller, type Contract, describeContract } from "../support/servers/contract.ts";
import { describeSharedContract, type SharedCaller } from "../support/servers/shared-contract.ts";
import { createApiKey } from "../support/servers/tenants.ts";

/** A call that fails, and its error. */
interface Situation<Arguments extends readonly unknown[]> {
  readonly code: string;
  readonly reason: string;
  readonly fails: (...where: Arguments) => Promise<unknown>;
}

const result = success("done");

/** Claims ORDER twice, and returns the caller with the replaced token. */
async function superseded({
  client,
}: SharedCaller): Promise<{ client: IdempotencyClient; fencingToken: bigint }> {
  const { fencingToken } = await grant(client);
  await client.release({ ...ORDER, fencingToken });
  await grant(client);
  return { client, fencingToken };
}

const SITUATIONS: Readonly<Record<string, Situation<[SharedCaller]>>> = {
  "a lease that the policy does not allow": {
    code: "InvalidArgument",
    reason: "INVALID_REQUEST",
    fails: ({ client }) => client.claim({ ...ORDER, lease: seconds(3600) }),
  },
  "another fingerprint": {
    code: "FailedPrecondition",
    reason: "FINGERPRINT_MISMATCH",
    fails: async ({ client }) => {
      await grant(client, { fingerprint: fingerprintOf("one") });
      await client.claim({ ...ORDER, fingerprint: fingerprintOf("other") });
    },
  },
  "a superseded token": {
    code: "Aborted",
    reason: "CLAIM_SUPERSEDED",
    fails: async (caller) => {
      const { client, fencingToken } = await superseded(caller);
      await client.complete({ ...ORDER, fencingToken, result });
    },
  },
  "another result": {
    code: "FailedPrecondition",
    reason: "ALREADY_COMPLETED",
    fails: async ({ client }) => {
      const { fencingToken } = await complete(client);
      await client.complete({ ...ORDER, fencingToken, result: success("other") });
    },
  },
  "a released claim": {
    code: "FailedPrecondition",
    reason: "ALREADY_RELEASED",
    fails: async ({ client }) => {
      const { fencingToken } = await grant(client);
      await client.release({ ...ORDER, fencingToken });
      await client.extendLease({ ...ORDER, fencingToken });
    },
  },
  "an unknown key": {
    code: "NotFound",
    reason: "RECORD_NOT_FOUND",
    fails: ({ client }) => client.release({ ...ORDER, fencingToken: 1n }),
  },
  "too large a result": {
    code: "InvalidArgument",
    reason: "RESULT_TOO_LARGE",
    fails: async ({ client }) => {
      const { fencingToken } = await grant(client);
      const payload = new Uint8Array(64 * 1024 + 1);
      await client.complete({ ...ORDER, fencingToken, result: { ...result, payload } });
    },
  },
};

/** Errors that only a server has. */
const SERVER_SITUATIONS: Readonly<Record<string, Situation<[Caller, Contract]>>> = {
  "a deadline that had passed": {
    code: "DeadlineExceeded",
    reason: "DEADLINE_EXCEEDED",
    fails: ({ client, timeoutHeader }) => client.claim(ORDER, { headers: timeoutHeader(0) }),
  },
  "no credential": {
    code: "Unauthenticated",
    reason: "CREDENTIAL_MISSING",
    fails: (_, contract) => contract.connect(undefined).claim(ORDER),
  },
  "a bad credential": {
    code: "Unauthenticated",
    reason: "CREDENTIAL_INVALID",
    fails: (_, contract) => contract.connect("bad").claim(ORDER),
  },
  "another role": {
    code: "PermissionDenied",
    reason: "ROLE_DENIED",
    fails: async (_, contract) => {
      const apiKey = await createApiKey(contract.database, { role: "OPERATOR" });
      await contract.connect(apiKey).claim(ORDER);
    },
  },
  "another namespace": {
    code: "PermissionDenied",
    reason: "NAMESPACE_DENIED",
    fails: async ({ tenant }, contract) => {
      const limited = { tenantId: tenant.id, role: "CALLER", namespaces: ["mails"] } as const;
      await contract.connect(await createApiKey(contract.database, limited)).claim(ORDER);
    },
  },
  "a suspended tenant": {
    code: "PermissionDenied",
    reason: "TENANT_SUSPENDED",
    fails: async ({ client, tenant }, contract) => {
      await contract.database.query("update tenants set suspended_at = now() where id = $1", [tenant.id]);
      await client.claim(ORDER);
    },
  },
};

/** Fails unless the call fails with a complete error that is not retryable. */
async function isRefused(call: Promise<unknown>, { code, reason }: { code: string; reason: string }) {
  const error = await errorOf(call);
  expect(error).toMatchObject({ code, reason, domain: "onceward", retryable: false });
  expect(Object.keys(CATALOGUE)).toContain(error.reason);
  expect(error.message).not.toBe("");
}

describeSharedContract("An error has its code, its reason and the domain:", (contract) => {
  test.each(Object.entries(SITUATIONS))("%s", async (_, situation) => {
    await isRefused(situation.fails(await contract.newCaller()), situation);
  });
});

describeContract("A server's error has its code, its reason and the domain:", (contract) => {
  test.each(Object.entries(SERVER_SITUATIONS))("%s", async (_, situation) => {
    await isRefused(situation.fails(await contract.newCaller(), contract), situation);
  });

  test("a quota, with its delay also in Retry-After over HTTP, but not among the trailers of gRPC", async () => {
    const { client } = await contract.newCaller({ quota_operations_per_second: 1, quota_burst: 1 });
    // Settlements are never refused: the tenant owes ten seconds' operations.
    await runBatch(client, Array(50).fill({ case: "release", value: { ...ORDER, fencingToken: 1n } }));
    const error = await client.claim(ORDER).catch((thrown: unknown) => ConnectError.from(thrown));
    if (!(error instanceof ConnectError)) throw new Error("the call succeeded");
    expect(describeError(error)).toMatchObject({ reason: "QUOTA_RATE", retryable: true });
    const overHttp = contract.transport === "Connect with JSON" ? expect.stringMatching(/^[1-9]\d*$/) : null;
    expect(error.metadata.get("retry-after")).toEqual(overHttp);
  });

  test("a row that another transaction holds", async () => {
    const { client, tenant } = await contract.newCaller();
    const { fencingToken } = await grant(client);
    const before = await lookUp(client);
    const other = await openConnection(contract.database);
    await lockRows(other, tenant, [ORDER.key]);
    const contended = {
      code: "Unavailable",
      reason: "RECORD_CONTENDED",
      domain: "onceward",
      retryable: true,
    };
    expect(await errorOf(client.complete({ ...ORDER, fencingToken, result }))).toMatchObject(contended);
    await other.query("rollback");
    expect(await lookUp(client)).toEqual(before);
  });

  test("a bug, without any detail, but with the request id of its line in the log", async () => {
    const { client, tenant } = await contract.newCaller();
    await grant(client);
    await contract.database.query("update records set state = 2, result_digest = null where tenant_id = $1", [
      tenant.id,
    ]);
    const error = await errorOf(client.claim(ORDER, { headers: { "x-request-id": "req-17" } }));
    expect(error).toMatchObject({
      code: "Internal",
      reason: "INTERNAL",
      domain: "onceward",
      metadata: { request_id: "req-17" },
    });
    expect(error.message).not.toContain("records");
    expect(contract.server.log).toContainEqual(expect.objectContaining({ level: 50, requestId: "req-17" }));
  });
});
