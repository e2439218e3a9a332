import { type Tenant, Tenant_State, type TenantUsage } from "@onceward/client/proto";
import { beyondBounds, effectOfQuotas } from "#words/limit-effect";
import { boundText, quotaRows } from "./limit-fields.ts";
import { enumName } from "./output.ts";
import { policyRows } from "./policy-fields.ts";
import { renderFacts, renderTable } from "./table.ts";
import { formatMoment } from "./times.ts";

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
        boundText(policyBounds, label),
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
      undefined,
      [undefined, undefined, undefined, "text"],
    ),
    ...stays.map((sentence) => `${sentence} It stays in force until it is next updated.\n`),
  ].join("");
}

/** Returns a state's name, such as "active". */
export function stateName(state: Tenant_State): string {
  return enumName(Tenant_State, state);
}
