import type { Runner } from "../../database/pool.ts";
import type { Check, Observation } from "../findings.ts";

const ALL = ["select", "insert", "update", "delete"];

/** The privileges that the service uses on its tables. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  api_keys: ALL,
  audit_events: ["select", "insert"],
  console_sessions: ALL,
  encryption_pass: ALL,
  insight_hours: ALL,
  insight_key_days: ALL,
  insight_late_hours: ALL,
  insight_sample_shifts: ALL,
  insight_sampled_keys: ALL,
  key_histories: ALL,
  installation: ["select", "update"],
  namespaces: ALL,
  pepper_check: ["select", "insert", "update"],
  record_jobs: ALL,
  records: ALL,
  replicas: ALL,
  schema_migrations: ["select"],
  tenant_totals: ALL,
  tenants: ALL,
  usage_hours: ALL,
  usage_minutes: ALL,
  usage_now: ALL,
};

/** A table of a newer or an older schema that this database lacks is skipped. */
const readRolePrivileges = {
  name: "read_privileges",
  text: `
with needed as (
  select t.relation, t.privilege
    from unnest($1::text[], $2::text[]) t (relation, privilege)
), lacking as (
  select n.privilege || ' on ' || n.relation as missing
    from needed n
    join pg_class c on c.relname = n.relation and c.relnamespace = 'public'::regnamespace
   where not has_table_privilege(c.oid, n.privilege)
  union all
  select 'execute on function ' || p.proname
    from pg_proc p
   where p.proname = any ('{prune_audit_events,renew_installation,database_identity,raise_tenant_ids}')
     and p.pronamespace = 'public'::regnamespace
     and not has_function_privilege(p.oid, 'execute')
  union all
  select 'usage on schema public'
   where not has_schema_privilege('public', 'usage')
)
select current_user::text as role,
       (select coalesce(array_agg(missing order by missing), '{}') from lacking) as missing,
       exists (select from pg_class c
                where c.relname = 'audit_events'
                  and c.relnamespace = 'public'::regnamespace
                  and (pg_has_role(c.relowner, 'usage')
                       or has_table_privilege(c.oid, 'update, delete, truncate'))) as "canChangeAudit"`,
};

/** Reads the privileges of the connected role. */
export async function readPrivileges(runner: Runner) {
  const needed = Object.entries(NEEDED).flatMap(([table, privileges]) =>
    privileges.map((privilege) => ({ table, privilege })),
  );
  const [row] = await runner.run<{
    readonly role: string;
    /** Each privilege that the service needs and the role lacks, such as `insert on records`. */
    readonly missing: readonly string[];
    /** Whether the role can change audit events: it owns their table, or may update, delete or truncate it. */
    readonly canChangeAudit: boolean;
  }>(readRolePrivileges, [needed.map(({ table }) => table), needed.map(({ privilege }) => privilege)]);
  if (row === undefined) throw new Error("read_privileges returned no row");
  return row;
}

/** Compares the privileges of the service's role with those that the service uses. */
export const privilegesCheck: Check = {
  name: "privileges",
  async examine({ runner }) {
    const { role, missing, canChangeAudit } = await readPrivileges(runner);
    const observations: Observation[] = [];
    if (missing.length > 0) {
      observations.push({
        id: "privilege_missing",
        summary: `The role ${role} lacks ${missing.join(", ")}.`,
      });
    }
    if (canChangeAudit) {
      observations.push({
        id: "audit_changeable",
        summary: `The role ${role} owns audit events or may change them: its password suffices to forge the audit.`,
      });
    }
    return observations;
  },
};
