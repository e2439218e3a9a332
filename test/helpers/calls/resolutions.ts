import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ResolveRecordRequestSchema,
  ResolveRecordResponse,
} from "../../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import type { TenantAdminClient } from "./admin.ts";
import { ORDER, success } from "./verbs.ts";

type Request = MessageInitShape<typeof ResolveRecordRequestSchema>;

/** What an administrator says of a record. */
export type Resolution = NonNullable<Request["resolution"]>;

export const FORGET: Resolution = { case: "forget", value: {} };
export const RELEASE: Resolution = { case: "release", value: {} };

/** Completes with a result that replays a text. */
export function completeWith(text: string): Resolution {
  return { case: "complete", value: { result: success(text) } };
}

/** Resolves ORDER, or what `request` names. */
export function resolve(
  admin: TenantAdminClient,
  resolution: Resolution,
  request: Request = {},
): Promise<ResolveRecordResponse> {
  return admin.resolveRecord({ ...ORDER, reason: "found out", resolution, ...request });
}
