import type { DescMethod } from "@bufbuild/protobuf";
import { MAX_MESSAGE_BYTES } from "../domain/limits.ts";
import { IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";
import { TenantAdminService } from "../gen/onceward/v1/tenant_admin_pb.ts";
import { MAX_FIELDS_IN_ALL } from "./scan-binary.ts";

/** The largest decompressed message of a method. Reading one takes less than 50 ms of the event loop. */
export interface MessageLimits {
  readonly binary: { readonly maxBytes: number; readonly maxFields: number };
  /** JSON takes several times as long to read as binary. */
  readonly json: { readonly maxBytes: number; readonly maxValues: number };
}

const KIB = 1024;
const MIB = 1024 * KIB;

/** More than twice the size of all fields at their longest, in JSON with each character escaped. */
const SMALL: MessageLimits = {
  binary: { maxBytes: 64 * KIB, maxFields: MAX_FIELDS_IN_ALL },
  json: { maxBytes: 64 * KIB, maxValues: 4096 },
};

/** For a result of 1 MiB, in base64 in JSON, and 64 entries of metadata, which take up to 270 KiB. */
const WITH_RESULT: MessageLimits = {
  binary: { maxBytes: 2 * MIB, maxFields: MAX_FIELDS_IN_ALL },
  json: { maxBytes: 2 * MIB, maxValues: 4096 },
};

/**
 * 1,000 items with 64 entries of metadata each have 210,000 fields; in JSON, 1,000 items may have 16 values
 * each.
 */
const BATCH: MessageLimits = {
  binary: { maxBytes: MAX_MESSAGE_BYTES, maxFields: 256 * KIB },
  json: { maxBytes: 2 * MIB, maxValues: 16 * KIB },
};

const OTHERS: ReadonlyMap<DescMethod, MessageLimits> = new Map<DescMethod, MessageLimits>([
  [IdempotencyService.method.batch, BATCH],
  [IdempotencyService.method.complete, WITH_RESULT],
  [TenantAdminService.method.resolveRecord, WITH_RESULT],
]);

/** Returns the limits of a method's request. */
export function messageLimits(method: DescMethod): MessageLimits {
  return OTHERS.get(method) ?? SMALL;
}
