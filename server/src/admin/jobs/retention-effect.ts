import { create } from "@bufbuild/protobuf";
import { isOutdated } from "../../access/authority.ts";
import type { Call } from "../../access/call.ts";
import type { Runner } from "../../database/pool.ts";
import { isExpired } from "../../domain/operation.ts";
import { type RetentionEffect, RetentionEffectSchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { nextNamespace } from "../records/record-page.ts";
import { changeFor, type RetentionChanges } from "./record-job.ts";
import { previewPage } from "./restamp-records.ts";

/** Records that one statement examines, in some milliseconds; statements of other tenants may run in between. */
const PAGE_RECORDS = 1000;
/** The preview stops this long before the call's deadline, so that its answer arrives in time. */
const REPLY_MARGIN_MS = 1000;
/** A preview is for people, who wait no longer than this, even with a later deadline. */
const MAX_PREVIEW_MS = 20_000;

/**
 * Returns what re-stamping would do to a tenant's records, or to one namespace's. Examines records page by page until the
 * call's time is up; `truncated` if that was too short.
 *
 * @throws Refusal as for a new call, if the call's principal has expired.
 */
export async function retentionEffect(
  runner: Runner,
  tenantId: number,
  namespace: string | undefined,
  changes: RetentionChanges,
  asked: Call,
): Promise<RetentionEffect> {
  let call = asked;
  const atMs = Math.min(call.atMs - REPLY_MARGIN_MS, performance.now() + MAX_PREVIEW_MS);
  const counts = { recordsChanged: 0n, recordsForgotten: 0n, ambiguousForgotten: 0n, recordsExamined: 0n };
  const found = { ...counts, truncated: false };
  for await (const name of namespacesOf(runner, tenantId, namespace)) {
    const change = changeFor(changes, name);
    let afterKey: string | undefined = change && "";
    while (change !== undefined && afterKey !== undefined) {
      if (isExpired({ atMs, cancelled: call.cancelled })) {
        return create(RetentionEffectSchema, { ...found, truncated: true });
      }
      if (isOutdated(call)) call = await call.again();
      const range = { tenantId, namespace: name, afterKey, limit: PAGE_RECORDS };
      const page = await previewPage(runner, range, change);
      found.recordsExamined += BigInt(page.examined);
      found.recordsChanged += BigInt(page.changed);
      found.recordsForgotten += BigInt(page.forgotten);
      found.ambiguousForgotten += BigInt(page.ambiguousForgotten);
      afterKey = page.examined === PAGE_RECORDS ? page.lastKey : undefined;
    }
  }
  return create(RetentionEffectSchema, found);
}

/** Returns one namespace, or all of the tenant's, one after another. */
async function* namespacesOf(
  runner: Runner,
  tenantId: number,
  only: string | undefined,
): AsyncIterable<string> {
  let name = only ?? (await nextNamespace(runner, tenantId, ""));
  while (name !== undefined) {
    yield name;
    name = only === undefined ? await nextNamespace(runner, tenantId, name) : undefined;
  }
}
