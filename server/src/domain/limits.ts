import { type DescField, type DescMessage, getOption } from "@bufbuild/protobuf";
import { message } from "../gen/onceward/v1/facts_pb.ts";
import { BatchRequestSchema, ClaimRequestSchema } from "../gen/onceward/v1/idempotency_pb.ts";
import { RedirectTenantRequestSchema } from "../gen/onceward/v1/operator_pb.ts";
import { PolicySchema } from "../gen/onceward/v1/policy_pb.ts";
import { CheckpointSchema, RecordSchema, ResultSchema } from "../gen/onceward/v1/record_pb.ts";
import {
  ListAuditEventsRequestSchema,
  ResolveRecordRequestSchema,
} from "../gen/onceward/v1/tenant_admin_pb.ts";
import { ApiKeySchema } from "../gen/onceward/v1/tenant_pb.ts";
import { factsOf, patternOf } from "./fields.ts";

// The limits of the contract that no policy changes, read once. Each is checked before the database is reached.

/** @throws Error if the contract does not have the limit. */
function given(of: DescField | DescMessage, limit: bigint | undefined): number {
  if (!limit) throw new Error(`${of} lacks a limit in the contract`);
  return Number(limit);
}

const maxOf = (of: DescField) => given(of, factsOf(of).max);
const minOf = (of: DescField) => given(of, factsOf(of).min);

const namespace = factsOf(RecordSchema.field.namespace);
const METADATA = ResultSchema.field.metadata;
const metadata = factsOf(METADATA);

/** Enough for a URL or three UUIDs, and small enough to keep the index narrow. */
export const MAX_KEY_BYTES = maxOf(RecordSchema.field.key);
/** A namespace can be a DNS label and a metric label. */
export const NAMESPACE_PATTERN = patternOf(namespace);
/** {@link NAMESPACE_PATTERN} in words, for errors. */
export const NAMESPACE_RULE = namespace.rule;
export const FINGERPRINT_BYTES = maxOf(RecordSchema.field.fingerprint);
/** Enough for a UUID, a ULID or a composite with a trace id. */
export const MAX_CLAIM_ID_BYTES = maxOf(ClaimRequestSchema.field.claimId);
/** How far a key's time may be ahead of the database's clock: clocks of senders that are not synchronised. */
export const MAX_KEY_AHEAD_MS = maxOf(ClaimRequestSchema.field.keyCreatedAt);
/** Enough for a pod name and a worker. */
export const MAX_OWNER_BYTES = maxOf(RecordSchema.field.owner);
export const MAX_RELEASE_REASON_BYTES = maxOf(RecordSchema.field.releaseReason);
export const MAX_CHECKPOINT_NAME_BYTES = maxOf(CheckpointSchema.field.name);
/** The largest result of any policy. */
export const MAX_RESULT_BYTES = maxOf(ResultSchema.field.payload);
/** A checkpoint records progress; it is not meant for payloads. */
export const MAX_CHECKPOINT_STATE_BYTES = maxOf(CheckpointSchema.field.state);
export const MAX_CONTENT_TYPE_BYTES = maxOf(ResultSchema.field.contentType);
export const MAX_METADATA_ENTRIES = maxOf(METADATA);
export const MAX_METADATA_NAME_BYTES = given(METADATA, metadata.keys?.max);
export const MAX_METADATA_VALUE_BYTES = given(METADATA, metadata.values?.max);
/** All of a result's metadata as JSON: enough for the headers of a response, which servers limit to 8 or 16 KiB. */
export const MAX_METADATA_BYTES = given(METADATA, metadata.maxJsonBytes);
/** The reason that an administrator or an operator gives for a change. */
export const MAX_REASON_BYTES = maxOf(ResolveRecordRequestSchema.field.reason);
export const MAX_ADDRESS_BYTES = maxOf(RedirectTenantRequestSchema.field.address);
/** Longer than every RPC's name. */
export const MAX_AUDIT_ACTION_BYTES = maxOf(ListAuditEventsRequestSchema.field.action);
/** As long as the subject of a token. */
export const MAX_AUDIT_ACTOR_BYTES = maxOf(ListAuditEventsRequestSchema.field.actor);
/** Longer than every resource's name. */
export const MAX_AUDIT_TARGET_BYTES = maxOf(ListAuditEventsRequestSchema.field.target);
export const MAX_API_KEY_LABEL_BYTES = maxOf(ApiKeySchema.field.label);
/** A key for more namespaces should have no list. */
export const MAX_API_KEY_NAMESPACES = maxOf(ApiKeySchema.field.namespaces);
/** A shorter lease would expire during an ordinary network delay. */
export const MIN_LEASE_MS = minOf(PolicySchema.field.defaultLease);
/** The longest lease of any policy. */
export const MAX_LEASE_MS = maxOf(PolicySchema.field.defaultLease);
/** The shortest retention. No statement lasts as long: that keeps fencing tokens unique. */
export const MIN_RETENTION_S = minOf(PolicySchema.field.keyRetention) / 1000;
/** The longest wait of a call. To wait longer, repeat the call. */
export const MAX_WAIT_MS = maxOf(ClaimRequestSchema.field.wait);
export const MAX_BATCH_ITEMS = maxOf(BatchRequestSchema.field.items);
/** The largest request and the largest reply, on every transport. */
export const MAX_MESSAGE_BYTES = given(BatchRequestSchema, getOption(BatchRequestSchema, message).maxBytes);
/**
 * The end of the year 9999, which no reply can exceed. A number cannot hold nanoseconds of that time: the last ones would
 * round to the year 10000.
 */
export const MAX_TIMESTAMP_MS = 253_402_300_799_999;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Returns a duration as errors name a limit, in the largest unit that has a whole number of it: "400 days", "1 h", "15 min", "90 s". */
export function describeLimitMs(ms: number): string {
  if (ms === 0) return "0 s";
  if (ms % DAY_MS === 0) return ms === DAY_MS ? "1 day" : `${ms / DAY_MS} days`;
  if (ms % HOUR_MS === 0) return `${ms / HOUR_MS} h`;
  if (ms % MINUTE_MS === 0) return `${ms / MINUTE_MS} min`;
  return ms % 1000 === 0 ? `${ms / 1000} s` : `${ms} ms`;
}
