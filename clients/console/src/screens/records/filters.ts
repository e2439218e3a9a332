import type { MessageInitShape } from "@bufbuild/protobuf";
import { Record_State } from "@onceward/gen/onceward/v1/record_pb.ts";
import type { ListRecordsRequestSchema } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { commandLine } from "../../format/command.ts";
import { timestampOf } from "../../parts/filter-bar.tsx";
import { parseJobId } from "../jobs/job-words.ts";

/** The filters of the list, as the address names them. */
export const FILTERS = [
  ...["namespace", "state", "prefix", "owner", "fingerprint", "job", "after", "before"],
] as const;

/** The filters of the address; "" where there is none. */
export type Filters = Readonly<Record<(typeof FILTERS)[number], string>>;

/** The states by which records are listed, in the words of the command line and of people. */
export const STATES: ReadonlyMap<string, { readonly state: Record_State; readonly label: string }> = new Map([
  ["in_progress", { state: Record_State.IN_PROGRESS, label: "In progress" }],
  ["completed", { state: Record_State.COMPLETED, label: "Completed" }],
  ["released", { state: Record_State.RELEASED, label: "Released" }],
  ["ambiguous", { state: Record_State.AMBIGUOUS, label: "Ambiguous" }],
]);

/** Returns the request of a list's page. */
export function requestOf(filters: Filters): MessageInitShape<typeof ListRecordsRequestSchema> {
  const { namespace, state, prefix, owner } = filters;
  const fingerprint = parseFingerprint(filters.fingerprint);
  const recordJob = parseJobId(filters.job);
  const claimedAfter = timestampOf(filters.after);
  const claimedBefore = timestampOf(filters.before);
  return {
    ...{ namespace, owner, keyPrefix: prefix },
    state: STATES.get(state)?.state ?? Record_State.UNSPECIFIED,
    ...(fingerprint && { fingerprint }),
    ...(recordJob && { recordJob }),
    ...(claimedAfter && { claimedAfter }),
    ...(claimedBefore && { claimedBefore }),
  };
}

/** Returns why a fingerprint is invalid; undefined: it is valid, or empty. */
export function fingerprintProblem(hex: string): string | undefined {
  return hex === "" || parseFingerprint(hex) !== undefined ? undefined : "64 hexadecimal digits.";
}

/** Returns why a job's id is invalid; undefined: it is valid, or empty. */
export function jobProblem(id: string): string | undefined {
  return id === "" || parseJobId(id) !== undefined ? undefined : "The number of a job, such as 12.";
}

/** Returns the command that lists the same records. */
export function commandOf(filters: Filters): string {
  const { namespace, state, prefix, owner, fingerprint, job, after, before } = filters;
  return commandLine("onceward records list", {
    ...{ namespace, state, prefix, owner, fingerprint, job },
    ...{ "claimed-after": after, "claimed-before": before },
  });
}

function parseFingerprint(hex: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[0-9a-f]{64}$/i.test(hex)) return undefined;
  return Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}

const FINGERPRINT = /^\s*[0-9a-f]{64}\s*$/i;
/** A UUID, as the server names requests that have no id of their own. */
const REQUEST_ID = /^\s*[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\s*$/i;

/** Returns what the text of a search can be, beside a key: a key can be any text. */
export function looksLike(text: string): "fingerprint" | "request id" | "key" {
  if (FINGERPRINT.test(text)) return "fingerprint";
  return REQUEST_ID.test(text) ? "request id" : "key";
}
