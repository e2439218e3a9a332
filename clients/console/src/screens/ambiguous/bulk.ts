import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ResolveAmbiguousRecordsRequestSchema } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { commandLine, shellWord } from "../../format/command.ts";
import {
  EMPTY_RESULT,
  type ResolutionKind,
  type ResultDraft,
  resolutionMessage,
} from "../../parts/resolution/resolution.ts";
import { timestampOf } from "../../parts/time-field.tsx";

/** Which ambiguous records to resolve together, and how. Empty texts select any. */
export interface BulkDraft {
  readonly namespace: string;
  readonly owner: string;
  readonly checkpoint: string;
  /** In RFC 3339. */
  readonly before: string;
  readonly kind: ResolutionKind;
  readonly result: ResultDraft;
  readonly reason: string;
}

/** Returns the draft that the filters of the queue begin with. A release changes least. */
export function draftOf(filters: Pick<BulkDraft, "namespace" | "owner" | "before">): BulkDraft {
  return { ...filters, checkpoint: "", kind: "release", result: EMPTY_RESULT, reason: "" };
}

type Request = MessageInitShape<typeof ResolveAmbiguousRecordsRequestSchema>;

/** Returns the request that counts the records of a draft and changes nothing. */
export function countRequest(draft: BulkDraft): Request {
  const { namespace, owner, checkpoint, before, kind, result, reason } = draft;
  const leaseExpiredBefore = timestampOf(before);
  return {
    ...{ namespace, owner, checkpoint, reason, validateOnly: true },
    ...(leaseExpiredBefore && { leaseExpiredBefore }),
    resolution: resolutionMessage(kind, result),
  };
}

/** Returns the request that resolves the records of a draft if exactly `expectedCount` match. */
export function resolveRequest(draft: BulkDraft, expectedCount: bigint): Request {
  return { ...countRequest(draft), validateOnly: false, expectedCount };
}

/** Returns the command line that counts the same records. */
export function bulkCommand({
  namespace,
  owner,
  checkpoint,
  before,
  kind,
  result,
  reason,
}: BulkDraft): string {
  const options = { owner, checkpoint, "lease-expired-before": before, reason };
  const where = namespace === "" ? [] : [namespace];
  const resultOption = result.outcome === "success" ? "complete" : "failure";
  const resolution = kind === "complete" ? `--${resultOption} ${shellWord(result.text)}` : `--${kind}`;
  return `${commandLine(["onceward records resolve", ...where].join(" "), options)} --all-matching ${resolution} --dry-run`;
}
