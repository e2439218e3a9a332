import { readConfig } from "../../../server/src/config/config.ts";
import { type Diagnosis, diagnoseAlone } from "../../../server/src/doctor/diagnose.ts";
import { TEST_PEPPER } from "../servers/server.ts";

/** Examines a database as `onceward-server doctor` does. `env` overrides the configuration. */
export async function diagnoseDatabase(
  databaseUrl: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Diagnosis> {
  return await diagnoseAlone(
    readConfig({ DATABASE_URL: databaseUrl, ONCEWARD_API_KEY_PEPPER: TEST_PEPPER, ...env }),
  );
}

/** Returns the ids of findings, without those that say only that there is no standby, an owner's role and another minor version. */
export function idsOf({ findings }: Diagnosis): readonly string[] {
  const usual = ["standby_missing", "audit_changeable", "postgres_minor_outdated"];
  return findings.map(({ id }) => id).filter((id) => !usual.includes(id));
}
