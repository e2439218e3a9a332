import { Counter, type Registry } from "prom-client";
import type { TenantLabels } from "./tenant-labels.ts";

interface TallyOptions<First extends string, Second extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly [First, Second];
  readonly registers: Registry[];
}

/**
 * Creates a counter for events of every operation. It counts in a map and passes the counts to prom-client
 * when the metrics are read, because a lookup of two labels in prom-client takes 0.25 µs and 200 bytes
 * (`server/decisions/0005-what-a-claim-costs.md`).
 *
 * @returns a function that adds one to the count of two label values.
 */
export function createTally<First extends string, Second extends string>({
  labelNames: [firstName, secondName],
  ...options
}: TallyOptions<First, Second>): (first: string, second: string) => void {
  const counts = new Map<string, Map<string, number>>();
  new Counter({
    ...options,
    labelNames: [firstName, secondName],
    collect() {
      for (const [first, seconds] of counts) {
        for (const [second, count] of seconds) {
          const labels = { [firstName]: first, [secondName]: second } as Record<First | Second, string>;
          this.inc(labels, count);
        }
      }
      counts.clear();
    },
  });
  return (first, second) => {
    let seconds = counts.get(first);
    if (seconds === undefined) {
      seconds = new Map();
      counts.set(first, seconds);
    }
    seconds.set(second, (seconds.get(second) ?? 0) + 1);
  };
}

interface TenantTallyOptions {
  readonly name: string;
  readonly help: string;
  /** The labels beside `tenant`. */
  readonly labelNames: readonly string[];
  readonly tenantLabels: TenantLabels;
  readonly registers: Registry[];
}

/**
 * Creates a counter for events of tenants, which counts as `createTally` does. A tenant's counts are exported
 * when its label is known.
 *
 * @returns a function that adds to the count of a tenant and of the other labels' values, separated by spaces.
 */
export function createTenantTally({
  labelNames,
  tenantLabels,
  ...options
}: TenantTallyOptions): (tenantId: number, values: string, count: number) => void {
  const counts = new Map<number, Map<string, number>>();
  new Counter({
    ...options,
    labelNames: ["tenant", ...labelNames],
    collect() {
      for (const [tenantId, ofTenant] of counts) {
        const tenant = tenantLabels.labelOf(tenantId);
        if (tenant === undefined) continue;
        for (const [values, count] of ofTenant) {
          const parts = values.split(" ");
          const labels = Object.fromEntries(labelNames.map((name, index) => [name, parts[index] ?? ""]));
          this.inc({ tenant, ...labels }, count);
        }
        counts.delete(tenantId);
      }
    },
  });
  return (tenantId, values, count) => {
    let ofTenant = counts.get(tenantId);
    if (ofTenant === undefined) {
      ofTenant = new Map();
      counts.set(tenantId, ofTenant);
    }
    ofTenant.set(values, (ofTenant.get(values) ?? 0) + count);
  };
}
