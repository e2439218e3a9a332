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

/** Returns a provider that charges each order of an example, and what counts the deliveries of the orders' messages. */
export function createShop(orders: number) {
  const charges: string[] = [];
  const settled: string[] = [];
  return {
    async charge(orderId: string): Promise<void> {
      charges.push(orderId);
    },
    onDelivery({ kind }: { readonly kind: string }): void {
      if (kind === "duplicate" || kind === "processed") settled.push(kind);
    },
    /** Resolves once so many messages are settled. */
    async untilSettled(messages: number): Promise<void> {
      while (settled.length < messages) await new Promise((resolve) => setTimeout(resolve, 10));
    },
    prove(): void {
      prove("charges were made", charges.length, orders);
      prove("different orders were charged", new Set(charges).size, orders);
      const duplicates = settled.filter((kind) => kind === "duplicate").length;
      console.log(`${duplicates} of the messages were recognized as duplicates.`);
    },
  };
}
