import { create } from "@bufbuild/protobuf";
import type { Admission } from "../access/admission.ts";
import { type Deadline, settlePending } from "../domain/operation.ts";
import { databaseNowMs, type Principal } from "../domain/tenant.ts";
import { timestamp } from "../domain/violations.ts";
import {
  type LookupRequest,
  type LookupResponse,
  LookupResponseSchema,
} from "../gen/onceward/v1/idempotency_pb.ts";
import type { FillResult } from "./engine/large-results.ts";
import type { Readings } from "./engine/read-records.ts";
import { answeredAtMs, type LiveRecord, type RecordId } from "./record.ts";
import { recordMessage } from "./record-messages.ts";
import { createReplyRoom } from "./reply-room.ts";
import { readRecordId } from "./request.ts";
import type { Steps } from "./steps.ts";

/** Parses the record that a request names. @throws Refusal as every parser (request.ts). */
export function parseLookup(
  request: Pick<LookupRequest, "namespace" | "key">,
  principal: Principal,
): RecordId {
  const { id, violations } = readRecordId(request, principal);
  violations.throwIfAny();
  return id;
}

/**
 * Returns a function that reads records with all results, batched over all its callers: each at the index of its id;
 * undefined if the key is unknown or forgotten.
 */
export function createReadRecords(readings: Readings, fillResult: FillResult) {
  return async (ids: readonly RecordId[], deadline: Deadline) => {
    const room = createReplyRoom();
    return await settlePending(
      await readings.submitAll(ids, deadline),
      (record) => record && fillResult(record, deadline, room),
    );
  };
}

/** Returns the steps of Lookup. */
export function lookupSteps({
  records,
  admission,
}: {
  readonly records: { readonly read: ReturnType<typeof createReadRecords> };
  readonly admission: Pick<Admission, "admitOperation">;
}): Steps<LookupRequest, RecordId, LiveRecord | undefined, LookupResponse> {
  return {
    kind: "lookup",
    outcomeOf: ({ record }) => (record === undefined ? "not_found" : "found"),
    admit: admission.admitOperation,
    parse: parseLookup,
    run: records.read,
    answer: (record, _, { principal }) => lookupResponse(record, databaseNowMs(principal)),
  };
}

/** Returns the response to a Lookup; `reckonedMs` is the computed time of the database's clock, for a missing record. */
export function lookupResponse(record: LiveRecord | undefined, reckonedMs: number): LookupResponse {
  return create(LookupResponseSchema, {
    ...(record && { record: recordMessage(record) }),
    serverTime: timestamp(record === undefined ? reckonedMs : answeredAtMs(record)),
  });
}
