import { readFile } from "node:fs/promises";

/** An example that takes longer fails. */
const TIMEOUT_MS = 120_000;

/** The service that an example calls. */
export interface Service {
  readonly address: string;
  readonly apiKey: string;
}

/**
 * Returns the service of the environment, or else the one that `npm start` runs from this directory. Starts the
 * timeout.
 */
export async function findService(): Promise<Service> {
  setTimeout(() => {
    console.error(`FAILED: not done after ${TIMEOUT_MS} ms`);
    process.exit(1);
  }, TIMEOUT_MS).unref();
  const { ONCEWARD_ADDRESS: address = "http://127.0.0.1:50051", ONCEWARD_API_KEY } = process.env;
  if (ONCEWARD_API_KEY) return { address, apiKey: ONCEWARD_API_KEY };
  try {
    const secrets = JSON.parse(await readFile(".onceward/dev-secrets.json", "utf8"));
    return { address, apiKey: secrets.callerKey };
  } catch {
    console.error("No service is running: start one with `npm start`.");
    process.exit(1);
  }
}

/** Prints a count, and fails the example if it is not the expected one. */
export function prove(description: string, counted: number, expected: number): void {
  const holds = counted === expected;
  console.log(`${holds ? "proved" : "FAILED"}: ${counted} ${description}${holds ? "" : `, not ${expected}`}`);
  if (!holds) process.exitCode = 1;
}
