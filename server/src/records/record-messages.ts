import { create } from "@bufbuild/protobuf";
import { timestamp } from "../domain/violations.ts";
import {
  Attempt_Ending,
  type Attempt as AttemptMessage,
  AttemptSchema,
  type Checkpoint as CheckpointMessage,
  CheckpointSchema,
  Record_State,
  type Record as RecordMessage,
  RecordSchema,
  Result_Kind,
  type Result as ResultMessage,
} from "../gen/onceward/v1/record_pb.ts";
import type { Attempt } from "./attempt.ts";
import type { Checkpoint, LiveRecord, Phase, Result } from "./record.ts";
import { decodeMetadata } from "./result-bytes.ts";

/** Returns a record with every field of the contract. */
export function recordMessage(record: LiveRecord): RecordMessage {
  const { id, fencingToken, attempt, owner, fingerprint, checkpoint } = record;
  return create(RecordSchema, {
    namespace: id.namespace,
    key: id.key,
    fencingToken,
    attempt,
    owner,
    ...(fingerprint && { fingerprint }),
    ...(checkpoint && { checkpoint: checkpointMessage(checkpoint) }),
    firstClaimedAt: timestamp(record.firstClaimedAtMs),
    claimedAt: timestamp(record.claimedAtMs),
    leaseExpiresAt: timestamp(record.leaseExpiresAtMs),
    expiresAt: timestamp(record.expiresAtMs),
    ...phaseFields(record.phase),
  });
}

function phaseFields(phase: Phase) {
  switch (phase.kind) {
    case "inProgress":
    case "lapsed":
      return { state: Record_State.IN_PROGRESS };
    case "ambiguous":
      return { state: Record_State.AMBIGUOUS };
    case "released":
      return {
        state: Record_State.RELEASED,
        releasedAt: timestamp(phase.releasedAtMs),
        releaseReason: phase.reason,
      };
    case "completed":
      return {
        state: Record_State.COMPLETED,
        completedAt: timestamp(phase.completedAtMs),
        resultExpiresAt: timestamp(phase.resultExpiresAtMs),
        resultExpired: phase.result === undefined,
        ...(phase.result && { result: resultMessage(phase.result) }),
      };
  }
}

export function resultMessage({ kind, payload, contentType, metadataJson }: Result): ResultMessage {
  return {
    $typeName: "onceward.v1.Result",
    kind: kind === "failure" ? Result_Kind.FAILURE : Result_Kind.SUCCESS,
    payload,
    contentType,
    metadata: decodeMetadata(metadataJson),
  };
}

export function checkpointMessage({ name, state }: Checkpoint): CheckpointMessage {
  return create(CheckpointSchema, { name, state });
}

const ENDINGS: Readonly<Record<Attempt["ending"], Attempt_Ending>> = {
  held: Attempt_Ending.HELD,
  superseded: Attempt_Ending.SUPERSEDED,
  released: Attempt_Ending.RELEASED,
  completed: Attempt_Ending.COMPLETED,
  settled: Attempt_Ending.SETTLED,
  resolved: Attempt_Ending.RESOLVED,
  "given back": Attempt_Ending.GIVEN_BACK,
};

/** Returns an attempt with every field of the contract. */
export function attemptMessage(attempt: Attempt): AttemptMessage {
  const { number, owner, fencingToken, claimedAtMs, endedAtMs, ending, reason, checkpoint, recordJob } =
    attempt;
  return create(AttemptSchema, {
    number,
    owner,
    fencingToken,
    claimedAt: timestamp(claimedAtMs),
    ...(endedAtMs !== undefined && { endedAt: timestamp(endedAtMs) }),
    ending: ENDINGS[ending],
    reason,
    checkpoint,
    recordJob: recordJob ?? 0n,
  });
}
