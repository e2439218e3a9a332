import { randomBytes } from "node:crypto";
import { IdempotencyService } from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { IdentityService } from "../../../clients/typescript/src/gen/onceward/v1/identity_pb.ts";
import { OperatorService } from "../../../clients/typescript/src/gen/onceward/v1/operator_pb.ts";
import { Result_Kind } from "../../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { TenantAdminService } from "../../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import { unaryMethods } from "../../../server/src/core/transport/route.ts";
import type { Addresses } from "../../../server/src/server.ts";
import { connectAdmin } from "../calls/admin.ts";
import { connectClient, type TransportName } from "../calls/clients.ts";
import { completeWith, FORGET, RELEASE } from "../calls/resolutions.ts";
import { grant } from "../calls/verbs.ts";
import { repeatOften } from "../servers/fast-path.ts";
import { plant, planted } from "./plants.ts";
import { wholeAnswers } from "./whole-answers.ts";

const SERVICES = [IdempotencyService, TenantAdminService, OperatorService, IdentityService];

/** The namespace of all planted values. */
export const NAMESPACE = "charges";
/** A caller's values for an operation; Redis may keep those of a completed one. */
export const OPERATION = {
  key: plant("key"),
  payload: plant("payload"),
  contentType: plant("contenttype"),
  metadata: plant("metadata"),
  claimId: plant("claimid"),
  fingerprint: plant("print").slice(-32),
};
/** Values that only Postgres keeps. */
export const UNFINISHED = {
  checkpointName: plant("checkpointname"),
  checkpointState: plant("checkpointstate"),
  releaseReason: plant("releasereason"),
};
/** Values that the audit contains, too: the owner of the resolved claim, and the reason of the resolution. */
export const OWNER = plant("owner");
export const REASON = plant("reason");
/** The value of every field that a request does not need. */
export const FILLING = plant("filling");

/** The credentials of the calls about records. */
export interface Users {
  readonly caller: string;
  /** The credential of another caller of the same tenant. */
  readonly token: string;
  readonly admin: string;
}

/** Calls every RPC about records with valid requests and with a few invalid ones. */
export async function useRecords(server: Addresses, users: Users, transport: TransportName): Promise<void> {
  const caller = connectClient(server, users.caller, transport);
  const admin = connectAdmin(server, users.admin, transport);
  const fingerprint = Buffer.from(OPERATION.fingerprint);
  const { metadata, contentType, claimId } = OPERATION;
  const result = {
    kind: Result_Kind.SUCCESS,
    payload: Buffer.from(OPERATION.payload),
    contentType,
    metadata: { [metadata]: metadata },
  };
  const idOf = (what: string) => ({ namespace: NAMESPACE, key: `${OPERATION.key} ${transport} ${what}` });
  const claim = (what: string) => grant(caller, { ...idOf(what), claimId, owner: OWNER, fingerprint });

  const completed = idOf("completed");
  await repeatOften(caller, completed);
  const { fencingToken } = await claim("completed");
  await caller.complete({ ...completed, fencingToken, result });
  await connectClient(server, users.token, transport).claim({ ...completed, fingerprint });
  await caller.batch({ items: [{ request: { case: "lookup", value: completed } }] });
  await caller.claim({ ...completed, fingerprint: randomBytes(32) }).catch(() => {});
  await caller
    .complete({ ...completed, fencingToken, result: { kind: Result_Kind.FAILURE } })
    .catch(() => {});
  await caller.claim({ ...completed, fingerprint, wait: { seconds: 1n, nanos: 0 } });

  for (const [what, resolution] of Object.entries({ FORGET, RELEASE, complete: completeWith("x") })) {
    const held = await claim(what);
    const state = Buffer.from(UNFINISHED.checkpointState);
    const checkpoint = { name: UNFINISHED.checkpointName, state };
    await caller.extendLease({ ...idOf(what), fencingToken: held.fencingToken, checkpoint });
    await admin.resolveRecord({ ...idOf(what), reason: REASON, resolution });
  }
  const released = await claim("released");
  const reason = UNFINISHED.releaseReason;
  await caller.release({ ...idOf("released"), fencingToken: released.fencingToken, reason });
  const large = { ...result, payload: Buffer.alloc(100_000, OPERATION.payload) };
  const unfinished = await claim("unfinished");
  await caller
    .complete({ ...idOf("unfinished"), fencingToken: unfinished.fencingToken, result: large })
    .catch(() => {});

  await admin.listRecords({ pageSize: 1, keyPrefix: OPERATION.key });
  await admin.getRecord(completed);
  const page = await admin.listRecords({ pageSize: 1 });
  await admin.listRecords({ pageSize: 2, keyPrefix: "x", pageToken: page.nextPageToken }).catch(() => {});
}

/** Calls every unary RPC with every credential, and FILLING in every field. @returns the errors as sent. */
export async function fillAllFields(
  server: Addresses,
  credentials: readonly string[],
  transport: TransportName,
): Promise<string[]> {
  const errors: string[] = [];
  const texts = [FILLING, `${FILLING}\0`, FILLING.repeat(100)];
  // The audit may contain these.
  const names = { namespace: NAMESPACE, namespaces: NAMESPACE, name: NAMESPACE, tenant: NAMESPACE };
  const given = { ...names, label: "a label", reason: REASON };
  const answers = await wholeAnswers(server, transport);
  for (const method of SERVICES.flatMap(unaryMethods)) {
    for (const text of texts) {
      const request = planted(method.input, text, given);
      const asked = credentials.map((each) => answers.ask(method, request, each));
      for (const { message, sent } of await Promise.all(asked)) if (message === undefined) errors.push(sent);
    }
  }
  answers.close();
  return errors;
}
