import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { CHILD_ENVIRONMENT } from "../processes/child-environment.ts";
import type { BystanderReport, BystanderTask } from "./bystander-worker.ts";
import type { Target } from "./hostility.ts";

/** A caller in a process of its own, whose calls are answered while a test floods the server. */
export interface Bystander {
  /** Resolves when `count` more of its calls are answered. */
  served(count: number): Promise<void>;
  /** Ends the process, and returns what it saw. */
  end(): Promise<BystanderReport>;
}

const WORKER = fileURLToPath(new URL("bystander-worker.ts", import.meta.url));
/** Floods come from 127.0.0.1: addresses have shares of their own. */
const OWN_ADDRESS = "127.0.0.2";

/** Starts a bystander that calls as the target's tenant. */
export function startBystander({ server, tenant }: Target): Bystander {
  const { grpcPort, httpPort } = server;
  const task: BystanderTask = { grpcPort, httpPort, apiKey: tenant.apiKey, localAddress: OWN_ADDRESS };
  const child = fork(WORKER, [JSON.stringify(task)], { env: CHILD_ENVIRONMENT });
  let answers = 0;
  child.on("message", (message) => {
    if (typeof message === "number") answers = message;
  });
  return {
    async served(count) {
      const until = answers + count;
      await expect.poll(() => answers, { timeout: 60_000, interval: 10 }).toBeGreaterThanOrEqual(until);
    },
    async end() {
      const reported = new Promise<BystanderReport>((resolve) =>
        child.on("message", (message) => {
          if (typeof message === "object") resolve(message as BystanderReport);
        }),
      );
      const exited = once(child, "exit");
      child.send("end");
      const report = await reported;
      await exited;
      return report;
    },
  };
}
