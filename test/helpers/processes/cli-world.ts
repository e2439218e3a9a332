import { vi } from "vitest";
import { type AdministeredTenant, type AdminWorld, createWorld } from "../calls/admin.ts";
import { createApiKey, type PolicyColumns } from "../servers/tenants.ts";
import { useServer } from "../servers/use-server.ts";
import { type Cli, cliFor } from "./cli.ts";

/** Every command is a process that loads the whole program; on a busy machine several of them take their time. */
const TEST_TIMEOUT_MS = 60_000;

/** A tenant with the command line of its administrator. */
export interface CliTenant extends AdministeredTenant {
  readonly cli: Cli;
}

/** What a test of the command line works with: one server and database for all tests of its file. */
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
