import { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { Pgoutput } from "pg-logical-replication";
import { sqlStateOf } from "../database/statement-errors.ts";
import type { Destination, Line } from "./destinations.ts";
import type { Change } from "./events.ts";

/** Lines wait until they have so many characters: at most twice as many are in memory, and a row. */
const MAX_BATCH_CHARACTERS = 1024 * 1024;
/** How often Postgres learns what is stored: a small part of the shortest `wal_sender_timeout`, also while a receiver hangs. */
const STATUS_MS = 1000;
/** Postgres answers each status. */
const MAX_SILENCE_MS = 60_000;
/** How long a stop waits for the last lines, and for the end of the connection. */
const STOP_MS = 5000;

/** The publication did not exist when a change was written, which Postgres leaves out. */
export class StaleSlotError extends Error {}
/** `object_not_in_prerequisite_state`: Postgres 18 warns of that. */
const SKIPPED = "55000";
/** `undefined_object`: earlier ones end the stream. */
const MISSING = "42704";

interface StreamOptions {
  readonly databaseUrl: string;
  readonly slot: string;
  readonly publication: string;
  /** What the slot has confirmed. */
  readonly from: string;
  readonly linesOf: (change: Change) => Promise<readonly Line[]>;
  readonly destination: Destination;
  readonly stop: AbortSignal;
}

/**
 * Writes the slot's changes to the destination until a stop is asked for, and confirms to Postgres what is stored, never earlier.
 *
 * The library is kept from confirming anything itself: it would confirm what it has received. It also adds 1 to each position, by
 * which Postgres would skip a transaction that begins to commit there.
 *
 * @throws StaleSlotError if a change was not published.
 * @throws Error if Postgres ends the stream or is silent, and the error of the destination. What is not confirmed comes again.
 */
export async function exportStream(options: StreamOptions): Promise<void> {
  const { databaseUrl, slot, publication, stop } = options;
  const { LogicalReplicationService, PgoutputPlugin } = await import("pg-logical-replication");
  const socket = new Socket();
  const client = {
    connectionString: databaseUrl,
    application_name: "onceward export-history",
    options: "-c client_min_messages=warning -c datestyle=ISO -c timezone=UTC -c bytea_output=hex",
    stream: () => socket,
  };
  const service = new LogicalReplicationService(client, {
    acknowledge: { auto: false, timeoutSeconds: 0 },
    flowControl: { enabled: true },
  });
  const { promise: failed, reject } = Promise.withResolvers<never>();
  const fail = (error: unknown) =>
    reject(
      sqlStateOf(error) === MISSING
        ? new StaleSlotError("The publication or the slot is missing.", { cause: error })
        : error,
    );
  const ending = new AbortController();
  const batch = createBatch(
    options,
    ending.signal,
    (stored) => void service.acknowledge(lsnOf(stored - 1n), true),
    fail,
  );
  let [received, handled, heardAtMs] = [0, 0, performance.now()];
  /** How many messages came before one was left out. */
  let complete = Number.POSITIVE_INFINITY;
  const plugin = new PgoutputPlugin({ protoVersion: 1, publicationNames: [publication] });
  const parse = plugin.parse.bind(plugin);
  plugin.parse = (buffer) => {
    const message = parse(buffer);
    received++;
    heardAtMs = performance.now();
    // Dates of JavaScript lack microseconds.
    if (message.tag === "relation") for (const column of message.columns) column.parser = (value) => value;
    return message;
  };
  const start = plugin.start.bind(plugin);
  plugin.start = (own, ...rest) => {
    own.on("notice", ({ code, message }) => {
      if (code !== SKIPPED) return;
      complete = Math.min(complete, received);
      fail(new StaleSlotError(message));
    });
    return start(own, ...rest);
  };
  service.on("data", async (lsn, message: Pgoutput.Message) => {
    try {
      if (handled >= complete) return;
      await batch.take(lsn, message);
      handled++;
    } catch (error) {
      fail(error);
      // The library would hand over the next message, as if this one were stored.
      await new Promise(() => {});
    }
  });
  service.on("heartbeat", (lsn) => {
    heardAtMs = performance.now();
    // Changes of other tables: all before them has been handled, so that Postgres may drop its log.
    if (received === handled && received < complete) batch.pass(lsn);
  });
  service.on("error", fail);
  const ticks = setInterval(() => {
    batch.tick();
    const silentMs = performance.now() - heardAtMs;
    if (received === handled && silentMs > MAX_SILENCE_MS) fail(new Error("Postgres is silent."));
  }, STATUS_MS);
  const { promise: stopped, resolve: end } = Promise.withResolvers<unknown>();
  stop.addEventListener("abort", end);
  try {
    service.subscribe(plugin, slot).then(() => fail(new Error("Postgres ended the stream.")), fail);
    if (!stop.aborted) await Promise.race([failed, stopped]);
    await Promise.race([batch.store(), pause(STOP_MS)]);
  } finally {
    clearInterval(ticks);
    stop.removeEventListener("abort", end);
    // A connection whose reading is paused does not end otherwise.
    await Promise.race([service.destroy().catch(() => {}), pause(STOP_MS)]);
    socket.destroy();
    // The next stream writes the same lines.
    ending.abort();
    await Promise.race([batch.idle(), pause(STOP_MS)]);
  }
}

/** Returns the lines that wait, and what of the stream is stored. `confirm` is called with that, `fail` once it can't be stored. */
function createBatch(
  { from, linesOf, destination }: StreamOptions,
  ending: AbortSignal,
  confirm: (stored: bigint) => void,
  fail: (error: unknown) => void,
) {
  let lines: Line[] = [];
  let characters = 0;
  /** Each event up to here is in `lines`, or is being stored, or is stored. */
  let read = positionOf(from);
  let [stored, storedAtMs] = [read, performance.now()];
  let storing: Promise<void> = Promise.resolve();
  let commit = { lsn: "", time: "" };

  /** Stores the lines that wait; fails if earlier ones could not be stored. */
  function store(): Promise<void> {
    storing = storing.then(async () => {
      const [batch, upTo] = [lines, read];
      [lines, characters] = [[], 0];
      if (batch.length > 0) await destination.write(batch, ending);
      [stored, storedAtMs] = [upTo, performance.now()];
      confirm(stored);
    });
    storing.catch(fail);
    return storing;
  }

  return {
    store,
    /** Resolves once nothing is being stored. */
    idle: () => storing.catch(() => {}),
    /** Adds the lines of a message, and waits if there are many. */
    async take(lsn: string, message: Pgoutput.Message): Promise<void> {
      const { tag } = message;
      if (tag === "begin") {
        const time = new Date(Number(message.commitTime) / 1000).toISOString();
        commit = { lsn: message.commitLsn ?? "", time };
      } else if (tag === "commit") {
        read = positionOf(message.commitEndLsn ?? "");
      } else if (tag === "insert" || tag === "update" || tag === "delete") {
        const row = (tag === "delete" ? message.key : message.new) ?? {};
        const change = { table: message.relation.name, kind: tag, row, lsn: paddedLsn(lsn), commit };
        for (const line of await linesOf(change)) {
          lines.push(line);
          characters += line.text.length;
        }
        if (characters >= MAX_BATCH_CHARACTERS) await store();
      }
    },
    /** There is nothing more up to this position. */
    pass(lsn: string): void {
      const position = positionOf(lsn);
      if (position > read) read = position;
    },
    tick(): void {
      confirm(stored);
      if (performance.now() - storedAtMs >= destination.batchMs) void store();
    },
  };
}

/** A position in Postgres' log, of its text such as 0/16B3748. */
function positionOf(lsn: string): bigint {
  const [high, low] = lsn.split("/");
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}

function lsnOf(position: bigint): string {
  const half = (part: bigint) => part.toString(16).toUpperCase().padStart(8, "0");
  return `${half(position >> 32n)}/${half(position & 0xffffffffn)}`;
}

/** Returns a position with all its digits, so that texts sort as positions do. */
export const paddedLsn = (lsn: string) => lsnOf(positionOf(lsn));
