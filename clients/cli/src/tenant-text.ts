import { type Tenant, Tenant_State, type TenantUsage } from "@onceward/client/proto";
import { beyondBounds, effectOfQuotas } from "#words/limit-effect";
import { boundText, limitRows, quotaRows } from "./limit-fields.ts";
import { enumName } from "./output.ts";
import { policyRows } from "./policy-fields.ts";
import { renderFacts, renderTable } from "./table.ts";
import { formatMoment } from "./times.ts";

/** Returns a tenant, its policy, its bounds and its quotas as text. */
export function describeTenant({
  name,
  state,
  createdAt,
  movedTo,
  policy,
  effectivePolicy,
  policyBounds,
  quotas,
}: Tenant): string {
  const own = new Map(policyRows(policy));
  return [
    renderFacts([
      ["tenant", name],
      ["state", movedTo === "" ? stateName(state) : `${stateName(state)}, to ${movedTo}`],
      ["created", formatMoment(createdAt)],
    ]),
    renderTable(
      ["policy", "in force", "set", "bounds"],
      policyRows(effectivePolicy).map(([label, value]) => [
        label,
        value,
        own.get(label) ?? "-",
        boundText(policyBounds, label),
      ]),
    ),
    renderFacts(quotaRows(quotas)),
  ].join("\n");
}

/** What new limits change, as text, and whether they refuse what the tenant uses now. */
interface LimitChange {
  readonly text: string;
  readonly refuses: boolean;
}

/** Returns what new limits change, what they do to the present use of a tenant, and which values of its policy are beyond them. */
export function describeLimitChange(
  usage: TenantUsage | undefined,
  before: Tenant,
  after: Tenant,
): LimitChange {
  const now = new Map(limitRows(before));
  const changed = limitRows(after).filter(([label, becomes]) => now.get(label) !== becomes);
  const effects = usage === undefined ? [] : effectOfQuotas(usage, after.quotas ?? {});
  const stays = beyondBounds(before.policy, after.policyBounds);
  const text = [
    renderTable(
      [`tenant ${before.name}`, "now", "becomes"],
      changed.map(([label, becomes]) => [label, now.get(label) ?? "-", `→ ${becomes}`]),
    ),
    "\n",
    renderTable(
      ["USE", "NOW", "NEW LIMIT", "EFFECT"],
      effects.map(({ label, used, limit, consequence }) => [label, used, limit, consequence]),
      undefined,
      [undefined, undefined, undefined, "text"],
    ),
    ...stays.map((sentence) => `${sentence} It stays in force until it is next updated.\n`),
  ].join("");
  return { text, refuses: effects.some(({ fullness }) => fullness === "beyond") };
}

/** Returns a state's name, such as "active". */
export function stateName(state: Tenant_State): string {
  return enumName(Tenant_State, state);
}
