import type { Check } from "../check.ts";
import { type Privileges, readPrivileges } from "../facts/privileges.ts";
import type { Observation } from "../findings.ts";

/** Compares the privileges of the service's role with those that the service uses. */
export const privilegesCheck: Check = {
  name: "privileges",
  needsPostgres: true,
  examine: async ({ runner }) => judgePrivileges(await readPrivileges(runner)),
};

/** Returns what the role lacks, and whether it may do too much. */
export function judgePrivileges({ role, missing, canChangeAudit }: Privileges): readonly Observation[] {
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
}
