import { OncewardError, type SavedCheckpoint, type Violation } from "../errors/errors.ts";
import { checkText, throwIfAny } from "../errors/violations.ts";
import type { Checkpoint } from "../gen/onceward/v1/record_pb.ts";
import { MAX_CHECKPOINT_NAME_BYTES, MAX_CHECKPOINT_STATE_BYTES } from "../wire/limits.ts";
import { decodeJson, encodeJson } from "./codec.ts";

/**
 * Returns a checkpoint with its state as JSON; undefined becomes no bytes. @throws OncewardError INVALID_REQUEST,
 * RESULT_NOT_JSON.
 */
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

/**
 * Returns a saved checkpoint with its state parsed. Other clients may save bytes that are not JSON: these stay bytes.
 */
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
