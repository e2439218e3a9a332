import type { Addresses } from "../../../server/src/replica/server.ts";
import { TEST_PEPPER } from "../servers/server.ts";
import { type Command, FREE_PORTS, startCommand, type Workplace } from "./command.ts";

/** Returns the settings that every command needs for a database. */
export function settingsFor(databaseUrl: string): Readonly<Record<string, string>> {
  return { ...FREE_PORTS, DATABASE_URL: databaseUrl, ONCEWARD_API_KEY_PEPPER: TEST_PEPPER };
}

/** A running `onceward-server serve`, ready for calls. */
export interface Serve extends Command, Addresses {}

/** Starts `serve` on a migrated database, and waits until it logs its addresses. */
export async function startServe(
  workplace: Workplace,
  settings: Readonly<Record<string, string>>,
): Promise<Serve> {
  const command = startCommand(["serve"], workplace, { ONCEWARD_DRAIN_DELAY: "0s", ...settings });
  const [line] = await command.untilPrinted(/^.*"serving".*$/m);
  const { grpcPort, httpPort, managementPort } = JSON.parse(line);
  return { ...command, grpcPort, httpPort, managementPort };
}
