import { OncewardError, type SavedCheckpoint, type Violation } from "../errors/errors.ts";
import type { Checkpoint } from "../gen/onceward/v1/record_pb.ts";
import { decodeJson, encodeJson } from "./json-bytes.ts";
import { MAX_CHECKPOINT_NAME_BYTES, MAX_CHECKPOINT_STATE_BYTES } from "../wire/limits.ts";
import { checkText, throwIfAny } from "../errors/violations.ts";

/** A checkpoint's state is a JSON value, or nothing. @throws OncewardError INVALID_REQUEST, RESULT_NOT_JSON. */
export function writeCheckpoint(name: string, state: unknown): { name: string; state: Uint8Array } {
  const bytes = encodeJson(state);
  const violations: Violation[] = [];
  checkText(violations, "checkpoint.name", name, { minBytes: 1, maxBytes: MAX_CHECKPOINT_NAME_BYTES });
  if (bytes.byteLength > MAX_CHECKPOINT_STATE_BYTES) {
    const description = `must be at most ${MAX_CHECKPOINT_STATE_BYTES} bytes as JSON, is ${bytes.byteLength}`;
    violations.push({ field: "checkpoint.state", description });
  }
  throwIfAny(violations);
  return { name, state: bytes };
}

/** Somebody else may have saved what is no JSON; it is handed over as it is. */
export function readCheckpoint(checkpoint: Checkpoint | undefined): SavedCheckpoint | undefined {
  if (checkpoint === undefined) return undefined;
  const { name, state } = checkpoint;
  try {
    return { name, state: decodeJson(state) };
  } catch (error) {
    if (error instanceof OncewardError) return { name, state };
    throw error;
  }
}
