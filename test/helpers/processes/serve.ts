import type { Addresses } from "../../../server/src/server.ts";
import { TEST_PEPPER } from "../servers/server.ts";
import { type Command, FREE_PORTS, runCommand, startCommand, type Workplace } from "./command.ts";

/** What every command on a database needs. */
export function settingsFor(databaseUrl: string): Readonly<Record<string, string>> {
  return { ...FREE_PORTS, DATABASE_URL: databaseUrl, ONCEWARD_API_KEY_PEPPER: TEST_PEPPER };
}

/** `onceward-server serve`, serving. */
export interface Serve extends Command, Addresses {}

/** Brings the schema, starts `serve`, and waits until it says where it listens. */
export async function startServe(
  workplace: Workplace,
  settings: Readonly<Record<string, string>>,
): Promise<Serve> {
  await runCommand(["migrate"], workplace, settings);
  const command = startCommand(["serve"], workplace, { ONCEWARD_DRAIN_DELAY: "0s", ...settings });
  const [line] = await command.untilPrinted(/^.*"serving".*$/m);
  const { grpcPort, httpPort, managementPort } = JSON.parse(line);
  return { ...command, grpcPort, httpPort, managementPort };
}
