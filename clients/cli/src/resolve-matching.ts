import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { TenantAdmin } from "@onceward/client/admin";
import {
  type ResolveAmbiguousRecordsRequestSchema,
  ResolveAmbiguousRecordsResponseSchema,
} from "@onceward/client/proto";
import { confirm, type YesOption } from "./confirm.ts";
import { type ResolutionOptions, readResolution, resolutionMessage } from "./resolution.ts";
import type { Session } from "./session.ts";

/** The options of `records resolve --all-matching`. */
export interface ResolveMatchingOptions extends ResolutionOptions, YesOption {
  readonly reason: string;
  readonly owner?: string;
  readonly leaseExpiredBefore?: Timestamp;
  readonly checkpoint?: string;
  readonly dryRun?: true;
  readonly expect?: number;
}

const VERBS = { forget: "Forget", release: "Release", complete: "Complete" };

/**
 * Resolves the ambiguous records that match. Without `--expect`, counts them and asks first; with
 * `--dry-run`, only counts them.
 */
export async function resolveMatching(
  session: Session<TenantAdmin>,
  namespace: string | undefined,
  options: ResolveMatchingOptions,
): Promise<void> {
  const { client, call, output } = session;
  const { reason, owner = "", checkpoint = "", leaseExpiredBefore, dryRun, expect } = options;
  const resolution = await readResolution(options);
  const request: MessageInitShape<typeof ResolveAmbiguousRecordsRequestSchema> = {
    namespace: namespace ?? "",
    owner,
    checkpoint,
    ...(leaseExpiredBefore && { leaseExpiredBefore }),
    resolution: resolutionMessage(resolution),
    reason,
  };
  const count = () => client.resolveAmbiguousRecords({ ...request, validateOnly: true }, call);
  const where = namespace === undefined ? "in all namespaces" : `in ${namespace}`;
  if (dryRun) {
    const counted = await count();
    const { matching, isLowerBound } = counted;
    return output.message(ResolveAmbiguousRecordsResponseSchema, counted, () => {
      const number = isLowerBound ? `At least ${matching}` : `${matching}`;
      return `${number} ambiguous records match ${where}. Nothing was changed.\n`;
    });
  }
  const expectedCount = expect === undefined ? (await count()).matching : BigInt(expect);
  const question = `${VERBS[resolution.case]} ${expectedCount} ambiguous records ${where}?`;
  const typed = resolution.case === "forget" ? `${expectedCount}` : undefined;
  await confirm(session, options, { question, typed });
  const reply = await client.resolveAmbiguousRecords({ ...request, expectedCount }, call);
  output.message(
    ResolveAmbiguousRecordsResponseSchema,
    reply,
    () =>
      `Job ${reply.job?.id} resolves ${reply.matching} records. To watch it: onceward jobs show ${reply.job?.id} --watch\n`,
  );
}
