import { vi } from "vitest";
import { type AdministeredTenant, type AdminWorld, createWorld } from "../calls/admin.ts";
import { createApiKey, type PolicyColumns } from "../servers/tenants.ts";
import { useServer } from "../servers/use-server.ts";
import { type Cli, cliFor } from "./cli.ts";

/** Every command is a process that loads the whole program; several of them take long on a busy machine. */
const TEST_TIMEOUT_MS = 120_000;

/** A tenant with its administrator's command line. */
export interface CliTenant extends AdministeredTenant {
  readonly cli: Cli;
}

/** The environment of a test of the command line: one server and database for all tests of its file. */
export interface CliWorld extends AdminWorld {
  tenantWithCli(policy?: PolicyColumns): Promise<CliTenant>;
  operatorCli(): Promise<Cli>;
}

export function useCliWorld(env: Readonly<Record<string, string>> = {}): () => CliWorld {
  vi.setConfig({ testTimeout: TEST_TIMEOUT_MS });
  const { database, server } = useServer(env);
  return () => {
    const world = createWorld(database, server);
    return {
      ...world,
      async tenantWithCli(policy) {
        const tenant = await world.administeredTenant(policy);
        return { ...tenant, cli: cliFor(server, tenant.adminKey) };
      },
      async operatorCli() {
        return cliFor(server, await createApiKey(database, { role: "OPERATOR" }));
      },
    };
  };
}
