import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { useQuery, useTransport } from "@connectrpc/connect-query";
import { OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { PolicyBoundsSchema, QuotasSchema } from "@onceward/gen/onceward/v1/policy_pb.ts";
import type { Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";
import { useKeptDraft } from "../../parts/kept-draft.ts";
import { useNotice } from "../../parts/notice.tsx";
import { useRefresh } from "../../parts/refresh.ts";
import { type Failure, readFailure } from "../../session/failure.ts";
import {
  changedPaths,
  followLimits,
  type LimitSavedByOther,
  type LimitTexts,
  limitTexts,
  parseLimits,
} from "./limit-fields.ts";

interface Draft {
  readonly etag: string;
  readonly saved: LimitTexts;
  readonly typed: LimitTexts;
  /** What others changed since the form began. */
  readonly savedByOthers: readonly LimitSavedByOther[];
}

function startDraft(tenant: Tenant): Draft {
  const saved = limitTexts(tenant);
  return { etag: tenant.etag, saved, typed: saved, savedByOthers: [] };
}

/** Returns the form over a newer state of the tenant. */
function follow(draft: Draft, tenant: Tenant): Draft {
  if (tenant.etag === draft.etag) return draft;
  const saved = limitTexts(tenant);
  if (changedPaths(draft.saved, draft.typed).length === 0) return startDraft(tenant);
  return { etag: tenant.etag, saved, ...followLimits(draft.saved, draft.typed, saved) };
}

/** Holds the form of a tenant's limits: what is typed, why it is refused, and what it would be. */
export function useLimitForm(tenant: Tenant) {
  const client = createClient(OperatorService, useTransport());
  const reread = useQuery(OperatorService.method.getTenant, { name: tenant.name }, { enabled: false });
  const refresh = useRefresh();
  const notify = useNotice();
  const [state, setDraft] = useKeptDraft(
    `limits of ${tenant.name}`,
    () => startDraft(tenant),
    ({ saved, typed }) => changedPaths(saved, typed).length > 0,
  );
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({});
  const [failure, setFailure] = useState<Failure>();
  const [isWaiting, setWaiting] = useState(false);
  /** The tenant as it would be, while the change is confirmed. */
  const [after, setAfter] = useState<Tenant>();
  // A newer state can arrive with any answer; followed here, no frame shows the older one.
  const draft = follow(state, tenant);
  if (draft !== state) setDraft(draft);
  const changed = changedPaths(draft.saved, draft.typed);

  async function request(validateOnly: boolean): Promise<Tenant | undefined> {
    const { policyBounds, quotas } = parseLimits(draft.typed, changed);
    try {
      const answer = await client.updateTenantLimits({
        ...{ name: tenant.name, etag: draft.etag, validateOnly, updateMask: { paths: [...changed] } },
        policyBounds: create(PolicyBoundsSchema, policyBounds),
        quotas: create(QuotasSchema, quotas),
      });
      return answer.tenant;
    } catch (error) {
      if (readFailure(error).reason !== "ETAG_MISMATCH") throw error;
      await reread.refetch();
      return undefined;
    }
  }

  async function review(): Promise<void> {
    const { problems: unread } = parseLimits(draft.typed, changed);
    setProblems(unread);
    setFailure(undefined);
    if (Object.keys(unread).length > 0) return;
    setWaiting(true);
    try {
      setAfter(await request(true));
    } catch (error) {
      const refused = readFailure(error);
      const known = refused.violations.filter(({ field }) => field in draft.typed);
      setProblems(Object.fromEntries(known.map(({ field, description }) => [field, `It ${description}.`])));
      if (known.length === 0 || known.length < refused.violations.length) setFailure(refused);
    } finally {
      setWaiting(false);
    }
  }

  async function save(): Promise<void> {
    if ((await request(false)) === undefined) return;
    const { getTenant, listTenantUsage, listAuditEvents } = OperatorService.method;
    await refresh(getTenant, listTenantUsage, listAuditEvents);
    notify(`Saved the limits of ${tenant.name}. Every replica follows within 10 s.`);
  }

  return {
    ...{
      texts: draft.typed,
      savedByOthers: draft.savedByOthers,
      changed,
      problems,
      failure,
      isWaiting,
      after,
      review,
      save,
    },
    type: (path: string, text: string) => setDraft({ ...draft, typed: { ...draft.typed, [path]: text } }),
    undo: () => setDraft({ ...draft, typed: draft.saved, savedByOthers: [] }),
    hideSavedByOthers: () => setDraft({ ...draft, savedByOthers: [] }),
    closeReview: () => setAfter(undefined),
  };
}
