import { writeFileSync } from "node:fs";
import { serviceDashboard } from "./service.ts";
import { tenantsDashboard } from "./tenants.ts";

/** Writes the dashboards beside this file; part of `npm run generate`. */
const DASHBOARDS = { "service.json": serviceDashboard(), "tenants.json": tenantsDashboard() };

for (const [file, dashboard] of Object.entries(DASHBOARDS)) {
  writeFileSync(new URL(file, import.meta.url), `${JSON.stringify(dashboard, null, 2)}\n`);
}
