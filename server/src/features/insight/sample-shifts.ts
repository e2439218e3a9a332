import type { Runner } from "../../core/store/pool.ts";
import type { NamespaceSample } from "./store/sample-limits.ts";
import { listChangedSamples } from "./store/tombstones.ts";

/** Some 10 MiB. Late repeats of further namespaces are not seen on this replica. */
const MAX_NAMESPACES = 100_000;
/** Samples per statement: some milliseconds. */
const PAGE = 1000;
/** A statement that is this old has ended: what it changed is visible. */
const OVERLAP_MS = 15_000;

/** Holds the samples of namespaces as this replica knows them: at most as old as the last refresh. */
export function createSampleShifts() {
  const tenants = new Map<number, Map<string, number>>();
  let size = 0;
  let newestMs = 0;

  function set({
    tenantId,
    namespace,
    shift,
  }: Pick<NamespaceSample, "tenantId" | "namespace" | "shift">): void {
    let namespaces = tenants.get(tenantId);
    if (namespaces?.has(namespace) !== true) {
      if (size >= MAX_NAMESPACES) return;
      size++;
    }
    if (namespaces === undefined) {
      namespaces = new Map();
      tenants.set(tenantId, namespaces);
    }
    namespaces.set(namespace, shift);
  }

  return {
    /** Returns a namespace's shift; undefined if no tombstone of it is known. */
    of: (tenantId: number, namespace: string): number | undefined => tenants.get(tenantId)?.get(namespace),
    set,
    /** Reads the samples that other replicas have changed since the last time. */
    async refresh(runner: Runner): Promise<void> {
      let after = { changedAtMs: newestMs - OVERLAP_MS, tenantId: 0, namespace: "" };
      for (let isLast = false; !isLast; ) {
        const page = await listChangedSamples(runner, after, PAGE);
        for (const sample of page) set(sample);
        after = page.at(-1) ?? after;
        isLast = page.length < PAGE;
      }
      newestMs = Math.max(newestMs, after.changedAtMs);
    },
  };
}
