import type { Ending, FromWorker, ToWorker } from "./messages.ts";
import type { CrashPoint, Operation } from "./operations.ts";
import { type Handler, handleUnguarded } from "./unguarded.ts";

/**
 * A consumer of webhooks, in its own process so that it can be killed. It handles one delivery at a time, and
 * waits to be killed at the point that it is told.
 */

let handle: Handler = async () => failed("delivered before it was configured");
let resumeEffect: (stopAt: CrashPoint | undefined) => void = () => {};

// Ctrl-C reaches every process of a terminal; the queue decides when this one ends.
process.on("SIGINT", () => {});
process.on("disconnect", () => process.exit());
process.on("message", (message: ToWorker) => {
  switch (message.kind) {
    case "configure":
      void configure(message);
      break;
    case "deliver":
      void deliver(message.operation);
      break;
    case "continue":
      resumeEffect(message.stopAt);
      break;
  }
});

async function configure({
  providerUrl,
  guard,
  name,
}: Extract<ToWorker, { kind: "configure" }>): Promise<void> {
  const charge = (operation: Operation, key: string | undefined) => callProvider(providerUrl, operation, key);
  if (guard === undefined) {
    handle = handleUnguarded(charge);
  } else {
    // Loaded only when it is used, so that unguarded workers start as fast as without it.
    const { handleGuarded } = await import("./guarded.ts");
    handle = handleGuarded(charge, guard, name);
  }
  tell({ kind: "ready" });
}

async function deliver(operation: Operation): Promise<void> {
  const ending = await handle(operation).catch((error: unknown) =>
    failed(error instanceof Error ? `${error.name}: ${error.message}` : String(error)),
  );
  tell({ kind: "ended", ending });
}

/** Calls the provider. At the point where this worker is to be killed, it reports that point and waits. */
async function callProvider(url: string, { id }: Operation, key: string | undefined): Promise<string> {
  const stopAt = await beginEffect();
  if (stopAt === "before the call") await death();
  const headers = key === undefined ? {} : { "idempotency-key": key };
  const call = fetch(url, { method: "POST", body: id, headers });
  if (stopAt === "during the call") {
    // The worker is killed before it could handle a failure.
    call.catch(() => {});
    await death();
  }
  const response = await call;
  if (!response.ok) throw new Error(`the provider answered ${response.status}`);
  const receipt = await response.text();
  if (stopAt === "after the call") await death();
  return receipt;
}

function beginEffect(): Promise<CrashPoint | undefined> {
  const { promise, resolve } = Promise.withResolvers<CrashPoint | undefined>();
  resumeEffect = resolve;
  tell({ kind: "begins effect" });
  return promise;
}

function death(): Promise<never> {
  tell({ kind: "reached point" });
  return new Promise(() => {});
}

function failed(message: string): Ending {
  return { kind: "failed", message };
}

function tell(message: FromWorker): void {
  process.send?.(message);
}
