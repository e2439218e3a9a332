import { setTimeout as sleep } from "node:timers/promises";
import type { TenantAdmin } from "@onceward/client/admin";
import { type Command, InvalidArgumentError } from "commander";
import { parseDurationMs } from "#words/durations";
import { createTenantAdmin } from "../clients.ts";
import { describeFailure, EXIT, exitCodeOf, failureJson } from "../failure.ts";
import type { Host } from "../host.ts";
import { requireNamespace } from "../known-names.ts";
import { asFailure, type Session, sessions } from "../session.ts";
import { describeSnapshot, readSnapshot, snapshotJson } from "../snapshot.ts";
import { command } from "./group.ts";

interface WatchOptions {
  /** In milliseconds. */
  readonly interval?: number;
  readonly once?: true;
}

/** Replicas store usage every few seconds. */
const DEFAULT_INTERVAL_MS = 5000;
const MIN_INTERVAL_MS = 1000;
/** The longest delay of a timer is 24 days; people watch for less. */
const MAX_INTERVAL_MS = 3_600_000;

/** Returns `onceward watch`. */
export function watchCommand(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return command(
    "watch [namespace]",
    "Shows the claims of this hour, ambiguous records and unfinished jobs of the tenant or a namespace, again and again until Ctrl-C. With --json: one object per line.",
    "watch",
    "watch charges --interval 10s",
    "watch --once --json",
  )
    .option("--interval <duration>", "time between two snapshots, 1s to 1h; default: 5s", parseInterval)
    .option("--once", "print one snapshot")
    .action(
      asAdmin(async (session, namespace: string | undefined, options: WatchOptions) => {
        const { interval = DEFAULT_INTERVAL_MS, once } = options;
        if (namespace !== undefined) await requireNamespace(session.client, session.call, namespace);
        for (;;) {
          await look(session, namespace ?? "", once === true);
          if (once) return;
          await sleep(interval);
        }
      }),
    );
}

/** Prints a snapshot. An unreachable service ends the command only if this is the only snapshot. */
async function look(session: Session<TenantAdmin>, namespace: string, isOnly: boolean): Promise<void> {
  const { host, output, requestId } = session;
  try {
    const snapshot = await readSnapshot(session, namespace);
    output.line(snapshotJson(snapshot), () => describeSnapshot(snapshot));
  } catch (error) {
    const failure = await asFailure(error, requestId);
    if (isOnly || exitCodeOf(failure) !== EXIT.unavailable) throw failure;
    host.warn(`${output.isJson ? failureJson(failure) : describeFailure(failure)}\n`);
  }
}

function parseInterval(text: string): number {
  const ms = parseDurationMs(text) ?? 0;
  if (ms >= MIN_INTERVAL_MS && ms <= MAX_INTERVAL_MS) return ms;
  throw new InvalidArgumentError("It must be a duration from 1s to 1h.");
}
