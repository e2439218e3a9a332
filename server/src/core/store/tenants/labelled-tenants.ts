import type { LabelledTenant } from "../../telemetry/tenant-labels.ts";
import type { Runner } from "../pool.ts";

const readLabelledTenants = {
  name: "read_labelled_tenants",
  text: "select id, name from tenants order by id limit $1::int",
};

/** Reads the tenants that were created first and still exist, in the order of their creation. */
export function findLabelledTenants(runner: Runner, count: number): Promise<LabelledTenant[]> {
  return runner.run<{ id: number; name: string }>(readLabelledTenants, [count]);
}
