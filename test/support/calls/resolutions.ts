import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ResolveRecordRequestSchema,
  ResolveRecordResponse,
} from "../../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import type { TenantAdminClient } from "./admin.ts";
import { ORDER, success } from "./verbs.ts";

type Request = MessageInitShape<typeof ResolveRecordRequestSchema>;

/** An administrator's resolution of a record. */
export type Resolution = NonNullable<Request["resolution"]>;

export const FORGET: Resolution = { case: "forget", value: {} };
export const RELEASE: Resolution = { case: "release", value: {} };

/** Returns a resolution as completed with a text. */
export function completeWith(text: string): Resolution {
  return { case: "complete", value: { result: success(text) } };
}

/** Resolves ORDER, or the record that `request` names. */
export function resolve(
  admin: TenantAdminClient,
  resolution: Resolution,
  request: Request = {},
): Promise<ResolveRecordResponse> {
  return admin.resolveRecord({ ...ORDER, reason: "found out", resolution, ...request });
}
