import { spawnSync } from "node:child_process";
import { failUsage } from "../../../server/dev/command-line.ts";

/** `npm run generate [-- STEP…]`: writes what is generated, in this order: later steps read what earlier ones write. */
const STEPS: Readonly<Record<string, () => unknown>> = {
  messages() {
    buf();
    buf("--template", "server/src/transport/grpc/buf.gen.yaml");
  },
  limits: () => import("./write-limits.ts"),
  settings: () => import("./write-settings.ts"),
  grafana: () => import("../../../deploy/grafana/generate.ts"),
  schema: () => import("./write-schema.ts"),
  api: () => import("./write-api-report.ts"),
  chart: () => import("./write-chart.ts"),
  openapi: () => import("./openapi/write-openapi.ts"),
  errors: () => import("./errors/write-errors-guide.ts"),
  "go-reasons": () => import("./errors/write-go-reasons.ts"),
  profiles: () => import("./profiles/write-profiles-guide.ts"),
  "profiles-table": () => import("./profiles/write-profiles-table.ts"),
  "proxy-schema": () => import("./profiles/write-proxy-schema.ts"),
  probe: () => import("./probe/write-probe-guide.ts"),
};

function buf(...args: readonly string[]): void {
  const { status, error } = spawnSync("buf", ["generate", ...args], { stdio: "inherit" });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

const names = Object.keys(STEPS);
const chosen = process.argv.slice(2);
const unknown = chosen.find((name) => !names.includes(name));
if (unknown !== undefined)
  failUsage(`npm run generate -- [STEP…]: ${names.join(", ")}`, `no step ${unknown}`);
for (const [name, write] of Object.entries(STEPS))
  if (chosen.length === 0 || chosen.includes(name)) await write();
