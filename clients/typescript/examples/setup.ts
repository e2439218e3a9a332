import { readFile } from "node:fs/promises";

/** An example that takes longer has failed. */
const TIMEOUT_MS = 40_000;

/** The service that an example calls. */
export interface Service {
  readonly address: string;
  /** For callers. */
  readonly apiKey: string;
  /** For the tenant's administrator. */
  readonly adminKey: string;
}

/** The one that `npm start` runs from this directory, unless the environment names another. From here on, time runs. */
export async function findService(): Promise<Service> {
  setTimeout(() => {
    console.error(`FAILED: not done after ${TIMEOUT_MS} ms`);
    process.exit(1);
  }, TIMEOUT_MS).unref();
  const {
    ONCEWARD_ADDRESS: address = "http://127.0.0.1:50051",
    ONCEWARD_API_KEY,
    ONCEWARD_ADMIN_KEY,
  } = process.env;
  if (ONCEWARD_API_KEY && ONCEWARD_ADMIN_KEY) {
    return { address, apiKey: ONCEWARD_API_KEY, adminKey: ONCEWARD_ADMIN_KEY };
  }
  try {
    const secrets = JSON.parse(await readFile(".onceward/dev-secrets.json", "utf8"));
    return { address, apiKey: secrets.callerKey, adminKey: secrets.adminKey };
  } catch {
    console.error("There is no service here yet: `npm start` runs one.");
    process.exit(1);
  }
}

/** Prints what was counted; an example in which it isn't what it has to be fails. */
export function prove(what: string, counted: number, expected: number): void {
  const holds = counted === expected;
  console.log(`${holds ? "proved" : "FAILED"}: ${counted} ${what}${holds ? "" : `, not ${expected}`}`);
  if (!holds) process.exitCode = 1;
}
