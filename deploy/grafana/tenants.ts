import { choice, dashboard, type Section } from "./dashboard.ts";
import { REPLICAS, rateBy } from "./queries.ts";

/** The replicas and tenants that the dashboard's variables select. */
const TENANTS = `${REPLICAS},tenant=~"$tenant"`;

/** Returns the dashboard of the tenants: what they do, and what is refused to them. */
export function tenantsDashboard() {
  return dashboard({
    uid: "onceward-tenants",
    title: "Onceward: tenants",
    description:
      "Claims, duplicates, quotas and ambiguous records by tenant. A replica labels its first 100 tenants; others are `other`.",
    variables: [choice("tenant", "Tenant", 'label_values(onceward_claims_total{job="$job"}, tenant)')],
    sections: [CLAIMS, LIMITS],
  });
}

const CLAIMS: Section = {
  title: "Claims",
  panels: [
    {
      title: "Claims by tenant",
      description: "Answered claims.",
      unit: "ops",
      queries: { "{{tenant}}": rateBy("tenant", "onceward_claims_total", TENANTS) },
    },
    {
      title: "Claims by outcome",
      description: "Answered claims of the selected tenants by outcome.",
      unit: "ops",
      queries: { "{{outcome}}": rateBy("outcome", "onceward_claims_total", TENANTS) },
    },
    {
      title: "Share of duplicates",
      description: "Claims that were not the first of their key, of all answered claims.",
      unit: "percentunit",
      queries: {
        "{{tenant}}": `1 - ${rateBy("tenant", "onceward_claims_total", `${TENANTS},outcome="claimed"`)} / ${rateBy("tenant", "onceward_claims_total", TENANTS)}`,
      },
    },
  ],
};

const LIMITS: Section = {
  title: "Limits and decisions",
  panels: [
    {
      title: "Ambiguous records by tenant",
      description: "Records that wait for an administrator's decision.",
      unit: "short",
      queries: { "{{tenant}}": `max by (tenant) (onceward_ambiguous_records{${TENANTS}}) or vector(0)` },
    },
    {
      title: "Refused by a quota",
      description: "Operations and calls beyond a quota, by tenant and cause.",
      unit: "ops",
      queries: {
        "{{tenant}} {{cause}}": `${rateBy("tenant, cause", "onceward_admission_refused_total", `${TENANTS},mode="enforced"`)} or vector(0)`,
      },
    },
    {
      title: "Quotas in a dry run",
      description: "Operations and calls that a quota would have refused.",
      unit: "ops",
      queries: {
        "{{tenant}} {{cause}}": `${rateBy("tenant, cause", "onceward_admission_refused_total", `${TENANTS},mode="dry_run"`)} or vector(0)`,
      },
    },
    {
      title: "Held back by the tenant's share",
      description:
        "Operations that waited because their tenant had its share in flight (ONCEWARD_TENANT_SHARE).",
      unit: "ops",
      queries: {
        "{{tenant}}": `${rateBy("tenant", "onceward_tenant_share_held_total", TENANTS)} or vector(0)`,
      },
    },
    {
      kind: "figure",
      title: "Ambiguous records",
      description: "Records that wait for an administrator's decision.",
      unit: "short",
      redFrom: 1,
      queries: { records: `sum(max by (tenant) (onceward_ambiguous_records{${TENANTS}})) or vector(0)` },
    },
  ],
};
