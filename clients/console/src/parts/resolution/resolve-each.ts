import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useEffect, useRef, useState } from "react";
import { formatNoun } from "../../format/quantity.ts";
import { readFailure } from "../../session/failure.ts";
import { useRefresh } from "../refresh.ts";
import type { ResolutionField } from "./resolution.ts";

/** A record, and the decision about it. */
export interface Decision {
  readonly record: Record;
  readonly resolution: ResolutionField;
}

/** Calls at a time: decisions must not use up the tenant's rate of calls. */
const PARALLEL = 4;

/**
 * Returns the function that resolves records one by one, for a reason that the audit keeps with each, and how many it has resolved.
 * A record that was claimed since it was shown is refused. The function throws what a dialog shows of records that were not resolved,
 * and gives these to `left` unless there is only one record. It stops when the dialog is closed.
 */
export function useResolveEach(left: (records: readonly Record[]) => void) {
  const client = createClient(TenantAdminService, useTransport());
  const refresh = useRefresh();
  const [done, setDone] = useState(0);
  const closed = useRef(new AbortController());
  useEffect(() => {
    const controller = new AbortController();
    closed.current = controller;
    return () => controller.abort();
  }, []);

  async function resolveEach(decisions: readonly Decision[], reason: string): Promise<void> {
    const { signal } = closed.current;
    const unresolved: { readonly record: Record; readonly error: unknown }[] = [];
    const waiting = decisions.values();
    setDone(0);
    async function work(): Promise<void> {
      for (const { record, resolution } of waiting) {
        if (signal.aborted) return;
        const { namespace, key, fencingToken } = record;
        try {
          await client.resolveRecord({ namespace, key, fencingToken, reason, resolution });
          setDone((before) => before + 1);
        } catch (error) {
          if (decisions.length === 1) throw error;
          unresolved.push({ record, error });
        }
      }
    }
    try {
      await Promise.all(Array.from({ length: PARALLEL }, work));
    } finally {
      // After a refusal, too: the record is no longer as it was shown.
      void refresh(TenantAdminService);
    }
    if (unresolved.length === 0) return;
    left(unresolved.map(({ record }) => record));
    const [first] = unresolved.map(({ record, error }) => `${record.key}: ${readFailure(error).message}`);
    throw new Error(`${formatNoun(unresolved.length, "record is", "records are")} not changed. ${first}`);
  }

  return { done, resolveEach };
}
