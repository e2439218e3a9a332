import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { RetentionChange } from "../../history/operation.ts";
import type { ClientProcess } from "../faults/fault.ts";
import type { ClientPlan, FromClient, ToClient } from "./messages.ts";
import type { Provider } from "./provider.ts";
import type { Look } from "./watch.ts";

const CLIENT = fileURLToPath(new URL("client.ts", import.meta.url));
/** Longer than any call of a client and the rest of its session. */
const STOP_TIMEOUT_MS = 60_000;

/** Client processes under load. */
export interface Fleet extends AsyncDisposable {
  /** The running processes. */
  readonly clients: readonly ClientProcess[];
  /** Waits for every worker to end its session; rejects if a client ended unexpectedly. */
  stop(): Promise<FleetOutcome>;
}

/** The results of a load. */
export interface FleetOutcome {
  readonly journalPaths: readonly string[];
  readonly retentionChanges: readonly RetentionChange[];
  /** Whether replicas served clients, several times a second. */
  readonly looks: readonly Look[];
}

export interface FleetOptions {
  /** The program of a client; undefined: the usual load. */
  readonly program?: string;
  readonly size: number;
  /** The directory for journals. */
  readonly dir: string;
  readonly provider: Provider;
  readonly planFor: (number: number, journalPath: string) => ClientPlan;
}

/** Starts the clients; resolves once all are running. */
export async function startFleet({ program = CLIENT, ...options }: FleetOptions): Promise<Fleet> {
  const { size, dir, provider, planFor } = options;
  const journalPaths: string[] = [];
  const retentionChanges: RetentionChange[] = [];
  const looks: Look[] = [];
  const processes: ClientProcess[] = [];
  const clients = Array.from({ length: size }, () =>
    fork(program, { serialization: "advanced", stdio: ["ignore", "ignore", "inherit", "ipc"] }),
  );
  const kill = async () => {
    const running = clients.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
    for (const client of running) client.kill("SIGKILL");
    await Promise.all(running.map((client) => once(client, "exit")));
  };
  try {
    await Promise.all(clients.map((client) => untilHeard(client, "ready", STOP_TIMEOUT_MS)));
  } catch (error) {
    await kill();
    throw error;
  }
  clients.forEach((client, number) => {
    client.on("message", (message: FromClient) => {
      if (message.kind === "retention") retentionChanges.push(...message.changes);
      if (message.kind === "looks") looks.push(...message.looks);
      if (message.kind !== "question") return;
      const { id } = message.question;
      send(client, { kind: "answer", id, answer: provider.answer(message.question) });
    });
    const path = join(dir, `client-${number + 1}-${process.hrtime.bigint()}.jsonl`);
    journalPaths.push(path);
    const plan = planFor(number + 1, path);
    if (client.pid !== undefined) processes.push({ name: plan.client, pid: client.pid });
    send(client, { kind: "start", plan });
  });
  return {
    clients: processes,
    async stop() {
      const done = clients.map((client) => untilHeard(client, "done", STOP_TIMEOUT_MS));
      for (const client of clients) send(client, { kind: "stop" });
      await Promise.all(done);
      await kill();
      return { journalPaths, retentionChanges, looks };
    },
    [Symbol.asyncDispose]: kill,
  };
}

function send(client: ChildProcess, message: ToClient): void {
  // A client that has just died is reported by its exit event.
  if (client.connected) client.send(message, () => {});
}

function untilHeard(client: ChildProcess, kind: FromClient["kind"], timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`a client was not ${kind} in time`)), timeoutMs);
    client.once("exit", (code, signal) => {
      clearTimeout(timer);
      reject(new Error(`a client ended unexpectedly: ${signal ?? code}`));
    });
    client.on("message", (message: FromClient) => {
      if (message.kind !== kind) return;
      clearTimeout(timer);
      resolve();
    });
  });
}
