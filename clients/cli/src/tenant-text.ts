import { type PolicyBounds, type Quotas, type Tenant, Tenant_State, type TenantUsage } from "@onceward/client/admin";
import { beyondBounds, effectOfQuotas } from "#words/limit-effect";
import { enumName } from "./output.ts";
import { policyRows } from "./policy-fields.ts";
import { renderFacts, renderTable } from "./table.ts";
import { formatDuration, formatMoment } from "./times.ts";

/** Returns a tenant, its policy, its bounds and its quotas as text. */
export function describeTenant({
  name,
  state,
  createdAt,
  policy,
  effectivePolicy,
  policyBounds,
  quotas,
}: Tenant): string {
  const own = new Map(policyRows(policy));
  const bounds = new Map(boundRows(policyBounds));
  return [
    renderFacts([
      ["tenant", name],
      ["state", stateName(state)],
      ["created", formatMoment(createdAt)],
    ]),
    renderTable(
      ["policy", "in force", "set", "bounds"],
      policyRows(effectivePolicy).map(([label, value]) => [
        label,
        value,
        own.get(label) ?? "-",
        bounds.get(label) ?? "",
      ]),
    ),
    renderFacts(quotaRows(quotas)),
  ].join("\n");
}

/** Returns what new limits do to the present use of a tenant, and which values of its policy are beyond them. */
export function describeLimitEffects(usage: TenantUsage, before: Tenant, after: Tenant): string {
  const effects = effectOfQuotas(usage, after.quotas ?? {});
  const stays = beyondBounds(before.policy, after.policyBounds);
  return [
    "\n",
    renderTable(
      ["USE", "NOW", "NEW LIMIT", "EFFECT"],
      effects.map(({ label, used, limit, consequence }) => [label, used, limit, consequence]),
    ),
    ...stays.map((sentence) => `${sentence} It stays in force until it is next updated.\n`),
  ].join("");
}

/** Returns a state's name, such as "active". */
export function stateName(state: Tenant_State): string {
  return enumName(Tenant_State, state);
}

function boundRows(bounds: PolicyBounds | undefined): readonly (readonly [string, string])[] {
  const { minKeyRetention, maxKeyRetention, maxLease, maxResultBytes } = bounds ?? {};
  const range = [
    minKeyRetention && `≥ ${formatDuration(minKeyRetention)}`,
    atMost(maxKeyRetention && formatDuration(maxKeyRetention)),
  ];
  return [
    ["key retention", range.filter(Boolean).join(", ")],
    ["max lease", atMost(maxLease && formatDuration(maxLease))],
    ["max result bytes", atMost(maxResultBytes)],
  ];
}

function atMost(limit: string | number | undefined): string {
  return limit === undefined ? "" : `≤ ${limit}`;
}

function quotaRows(quotas: Quotas | undefined): readonly (readonly [string, string])[] {
  const limit = (value: number | bigint | undefined) => (value === undefined ? "unlimited" : `${value}`);
  return [
    ["operations per second", limit(quotas?.operationsPerSecond)],
    ["burst", quotas?.burst === undefined ? "a second's worth" : `${quotas.burst}`],
    ["concurrent calls", limit(quotas?.concurrentCalls)],
    ["live records", limit(quotas?.liveRecords)],
    ["stored bytes", limit(quotas?.storedBytes)],
    ["declared namespaces", `${quotas?.declaredNamespaces ?? 1000}`],
    ["weight", `${quotas?.weight ?? 1}`],
    ["quotas are", quotas?.dryRun ? "only counted" : "enforced"],
  ];
}
