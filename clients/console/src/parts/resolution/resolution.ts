import type { MessageInitShape } from "@bufbuild/protobuf";
import { MAX_CONTENT_TYPE_BYTES, MAX_RESULT_BYTES } from "@onceward/gen/limits.ts";
import { type Record, Record_State, Result_Kind } from "@onceward/gen/onceward/v1/record_pb.ts";
import type { ResolveRecordRequestSchema } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { bytesProblem } from "../field.tsx";

/** A decision about a record that its holder left unresolved. */
export type ResolutionKind = "complete" | "release" | "forget";

/** A result as a person types it. */
export interface ResultDraft {
  readonly outcome: "success" | "failure";
  readonly contentType: string;
  readonly text: string;
  /** With which an HTTP endpoint answers duplicates; empty: 410, and for records of other callers. */
  readonly httpStatus: string;
}

/** What a form begins with. */
export const EMPTY_RESULT: ResultDraft = {
  ...{ outcome: "success", contentType: "application/json", text: "", httpStatus: "" },
};

/** Returns whether a guard of HTTP endpoints made a key: it begins with the method and the route. */
export function isOfHttpGuard({ key }: Pick<Record, "key">): boolean {
  return /^[A-Z]+:\//.test(key);
}

/** Returns what is wrong with a result before it is sent, by field: JSON that cannot be parsed would be replayed to every duplicate of the key. */
export function checkResult({ outcome, text, contentType, httpStatus }: ResultDraft) {
  return {
    text: bytesProblem(text, MAX_RESULT_BYTES) ?? jsonProblem(text, contentType),
    contentType: bytesProblem(contentType, MAX_CONTENT_TYPE_BYTES),
    httpStatus:
      outcome === "failure" || /^([2-5]\d\d)?$/.test(httpStatus.trim())
        ? undefined
        : "A status of HTTP, 200 to 599.",
  };
}

/** Returns whether a resolution can be sent. */
export function isResolvable(kind: ResolutionKind, draft: ResultDraft): boolean {
  return kind !== "complete" || Object.values(checkResult(draft)).every((problem) => problem === undefined);
}

/** The decision in a request. */
export type ResolutionField = NonNullable<MessageInitShape<typeof ResolveRecordRequestSchema>["resolution"]>;

/** Returns the request's field. Of the kinds, only "complete" takes the result. */
export function resolutionMessage(
  kind: ResolutionKind,
  { outcome, contentType, text, httpStatus }: ResultDraft,
): ResolutionField {
  switch (kind) {
    case "forget":
    case "release":
      return { case: kind, value: {} };
    case "complete": {
      const result = {
        kind: outcome === "success" ? Result_Kind.SUCCESS : Result_Kind.FAILURE,
        payload: new TextEncoder().encode(text),
        contentType: contentType.trim(),
        ...(outcome === "success" &&
          httpStatus.trim() !== "" && { metadata: { "http-status": httpStatus.trim() } }),
      };
      return { case: kind, value: { result } };
    }
  }
}

/** Returns the resolutions that the server allows for a record: a completed claim can only be forgotten. */
export function resolutionsOf({ state }: Pick<Record, "state">): readonly ResolutionKind[] {
  switch (state) {
    case Record_State.IN_PROGRESS:
    case Record_State.AMBIGUOUS:
      return ["complete", "release", "forget"];
    case Record_State.RELEASED:
      return ["complete", "forget"];
    case Record_State.COMPLETED:
      return ["forget"];
    default:
      return [];
  }
}

/** What a person answers, and what that says about the effect. */
export const RESOLUTIONS = {
  complete: {
    answer: "It happened",
    meaning: "The effect happened, or failed permanently. Every duplicate gets the stored result.",
  },
  release: {
    answer: "It did not happen",
    meaning: "The effect did not happen. The next claim gets the key and performs the operation.",
  },
  forget: {
    answer: "Forget",
    meaning: "The record and its attempts go: the next claim runs as the first one. It can't be undone.",
  },
} satisfies Readonly<globalThis.Record<ResolutionKind, object>>;

function jsonProblem(text: string, contentType: string): string | undefined {
  const isJson = /^application\/(.+\+)?json\b/i.test(contentType.trim());
  if (!isJson || text.trim() === "") return undefined;
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    return "Not valid JSON: correct the result, or change its media type.";
  }
}
