import { create } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { databaseNowMs, isOutdated } from "../../../core/calls/authority.ts";
import type { Call } from "../../../core/calls/call.ts";
import { historyAfter } from "../../../core/domain/late-keys.ts";
import { isExpired } from "../../../core/domain/operation.ts";
import { type PolicyOverrides, resolvePolicy } from "../../../core/domain/policy.ts";
import { boundsInForce, policyViolations, WIDEST_BOUNDS } from "../../../core/domain/policy-bounds.ts";
import type { TenantResource } from "../../../core/domain/tenant.ts";
import { Violations } from "../../../core/messages/violations.ts";
import type { Runner } from "../../../core/store/pool.ts";
import type { Policy } from "../../../gen/onceward/v1/policy_pb.ts";
import { type RetentionEffect, RetentionEffectSchema } from "../../../gen/onceward/v1/tenant_pb.ts";
import { changeFor, type RetentionChanges } from "../../jobs/record-job.ts";
import { nextNamespace, previewPage } from "../../jobs/store/restamp-records.ts";
import { maskedFields } from "../field-messages.ts";
import { POLICY_MESSAGES, POLICY_PREFIX, parsePolicy } from "../policy-messages.ts";

/** The fields that an update changes, and their new values. */
export interface PolicyUpdate {
  readonly asked: PolicyOverrides;
  readonly masked: ReadonlySet<string>;
}

/** Parses an update. Adds a violation for everything that no tenant may set. */
export function parsePolicyUpdate(
  message: Policy | undefined,
  mask: FieldMask | undefined,
  violations: Violations,
): PolicyUpdate {
  const asked = parsePolicy(message, WIDEST_BOUNDS, violations);
  const fields = { paths: POLICY_MESSAGES.paths, set: POLICY_MESSAGES.pathsOf(message) };
  return { asked, masked: maskedFields(mask, fields, violations) };
}

/** The policy before an update, and the policies that it inherits from. */
export interface PolicyBefore {
  readonly was: PolicyOverrides;
  readonly inherits: readonly PolicyOverrides[];
}

/**
 * Returns the updated policy, with what the earlier policies leave behind.
 *
 * @throws Refusal INVALID_REQUEST if the update sets a field beyond what the operator lets this tenant set. A field that the
 *   update leaves alone may be beyond bounds that were set later.
 */
export function applyPolicyUpdate(
  { was, inherits }: PolicyBefore,
  { asked, masked }: PolicyUpdate,
  { bounds }: TenantResource,
  { principal }: Call,
): PolicyOverrides {
  const becomes = POLICY_MESSAGES.merge(was, asked, masked);
  const violations = new Violations();
  for (const { field, description } of policyViolations(becomes, boundsInForce(bounds), POLICY_PREFIX)) {
    if (masked.has(field)) violations.add(field, description);
  }
  violations.throwIfAny();
  const history = historyAfter(
    resolvePolicy(...inherits, was),
    resolvePolicy(...inherits, becomes),
    databaseNowMs(principal),
  );
  return { ...becomes, history };
}

/** Records that one statement examines, in some milliseconds; statements of other tenants may run in between. */
const PAGE_RECORDS = 1000;
/** The preview stops this long before the call's deadline, so that its answer arrives in time. */
const REPLY_MARGIN_MS = 1000;
/** A preview is for people, who wait no longer than this, even with a later deadline. */
const MAX_PREVIEW_MS = 20_000;

/** Returns one namespace, or all of the tenant's, one after another. */
async function* namespacesOf(
  runner: Runner,
  tenantId: number,
  only: string | undefined,
): AsyncIterable<string> {
  if (only !== undefined) {
    yield only;
    return;
  }
  for (
    let namespace = await nextNamespace(runner, tenantId, "");
    namespace !== undefined;
    namespace = await nextNamespace(runner, tenantId, namespace)
  )
    yield namespace;
}

/**
 * Returns what re-stamping would do to a tenant's records, or to one namespace's. Examines records page by page until the
 * call's time is up; `truncated` if that was too short.
 *
 * @throws Refusal as for a new call, if the call's principal has expired.
 */
export async function retentionEffect(
  runner: Runner,
  {
    tenantId,
    namespace,
    changes,
  }: { tenantId: number; namespace: string | undefined; changes: RetentionChanges },
  asked: Call,
): Promise<RetentionEffect> {
  let call = asked;
  const atMs = Math.min(call.atMs - REPLY_MARGIN_MS, performance.now() + MAX_PREVIEW_MS);
  const found = { recordsChanged: 0n, recordsForgotten: 0n, recordsExamined: 0n, truncated: false };
  for await (const name of namespacesOf(runner, tenantId, namespace)) {
    const change = changeFor(changes, name);
    let afterKey: string | undefined = change && "";
    while (change !== undefined && afterKey !== undefined) {
      if (isExpired({ atMs, cancelled: call.cancelled })) {
        return create(RetentionEffectSchema, { ...found, truncated: true });
      }
      if (isOutdated(call)) call = await call.again();
      const page = await previewPage(
        runner,
        { tenantId, namespace: name, afterKey, limit: PAGE_RECORDS },
        change,
      );
      found.recordsExamined += BigInt(page.examined);
      found.recordsChanged += BigInt(page.changed);
      found.recordsForgotten += BigInt(page.forgotten);
      afterKey = page.examined === PAGE_RECORDS ? page.lastKey : undefined;
    }
  }
  return create(RetentionEffectSchema, found);
}
