import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { create, fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { type GetKeyHistoryResponse, GetKeyHistoryResponseSchema } from "@onceward/client/proto";
import { UsageError } from "./failure.ts";
import { asJson, type Output } from "./output.ts";
import { describeHistory } from "./record-text.ts";
import { type Layout, renderTable } from "./table.ts";

/** Longer than the line of the largest result. */
const MAX_LINE_CHARACTERS = 4 * 1024 * 1024;

/** An exported CloudEvent, as deploy/export.md describes it. A line that was written again has the same id. */
interface ExportedEvent {
  readonly id: string;
  readonly type: string;
  readonly time: string;
  readonly data: JsonObject;
}

/**
 * Prints what an export says of a key, without the service.
 *
 * @param path a file, or a directory of them.
 * @throws UsageError if it cannot be read, or has the key of several tenants.
 */
export async function showExported(
  path: string,
  namespace: string,
  key: string,
  output: Output,
): Promise<void> {
  const files = await listFiles(path).catch((cause: Error) => {
    throw new UsageError(cause.message);
  });
  const { hash, notes } = await findKey(files, namespace, key);
  const found = new Map<string, ExportedEvent>();
  const history = create(GetKeyHistoryResponseSchema);
  for await (const { event } of hash === undefined ? [] : readEvents(files)) {
    if (event === undefined || event.data.keyHash !== hash) continue;
    if (event.type === "onceward.calls.declined") addCalls(history, event.data);
    else if (!found.has(event.id)) found.set(event.id, event);
  }
  const events = [...found.values()].sort((a, b) => Date.parse(a.time) - Date.parse(b.time));
  const json = asJson(GetKeyHistoryResponseSchema, history) as JsonObject;
  output.value({ ...json, events, notes }, () =>
    [describeHistory(history, output.layout), describeEvents(events, output.layout), ...notes, ""].join("\n"),
  );
}

async function listFiles(path: string): Promise<readonly string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const names = (await readdir(path, { recursive: true })).filter((name) => name.endsWith(".jsonl"));
  return names.sort().map((name) => join(path, name));
}

/** Returns the hash by which calls are exported, if a line tells it, and what the files lack. */
async function findKey(files: readonly string[], namespace: string, key: string) {
  const hashes = new Set<JsonValue | undefined>();
  const notes: string[] = [];
  let [from, to] = ["", ""];
  for await (const { event, place } of readEvents(files)) {
    if (event === undefined) {
      notes.push(`${place} is damaged, and skipped.`);
      continue;
    }
    const { type, time, data } = event;
    if (type === "onceward.history.gap" && to !== "")
      notes.push(`Events from ${data.since ?? to} to ${data.until} may be missing: the export was away.`);
    if (from === "" || time < from) from = time;
    if (time > to) to = time;
    if (data.namespace === namespace && data.key === key) hashes.add(data.keyHash);
  }
  if (hashes.size > 1) throw new UsageError("Several tenants have this key: give the directory of one.");
  notes.push(from === "" ? "The export has no events." : `The export reaches from ${from} to ${to}.`);
  return { hash: [...hashes][0], notes };
}

function describeEvents(events: readonly ExportedEvent[], layout: Layout): string {
  const rows = events.map(({ type, time, data }) => {
    const { attempt, owner, fencingToken, releaseReason } = data;
    const { kind = "" } = (data.result ?? {}) as Record<string, string>;
    const { reason } = (data.resolved ?? {}) as Record<string, string>;
    const detail = [
      releaseReason ?? kind.replace("KIND_", "").toLowerCase(),
      reason && `resolved: ${reason}`,
    ];
    const cells = [
      time,
      type.split(".").at(-1),
      attempt,
      fencingToken,
      owner,
      detail.filter(Boolean).join(", "),
    ];
    return cells.map((cell) => `${cell || "-"}`);
  });
  const headings = ["AT", "EVENT", "ATTEMPT", "TOKEN", "OWNER", "DETAIL"];
  return renderTable(headings, rows, layout, [undefined, undefined, undefined, "wide", "text", "text"]);
}

/** Adds what a line says of calls: counts are lower bounds, and each line has the last calls. */
function addCalls(history: GetKeyHistoryResponse, data: JsonObject): void {
  const line = fromJson(GetKeyHistoryResponseSchema, data, { ignoreUnknownFields: true });
  for (const { localName: name } of GetKeyHistoryResponseSchema.fields) {
    const [was, is] = [history, line].map((each) => each[name as keyof GetKeyHistoryResponse]);
    if (typeof was === "bigint" && typeof is === "bigint" && is > was) Object.assign(history, { [name]: is });
  }
  history.firstAt ??= line.firstAt;
  history.lastAt = line.lastAt;
  const known = new Set(history.calls.map(({ requestId }) => requestId));
  history.calls.push(...line.calls.filter(({ requestId }) => !known.has(requestId)));
}

/** Reads events by line; undefined: the line has no event, or is too long. */
async function* readEvents(files: readonly string[]) {
  for (const file of files) {
    let [rest, number, isLong] = ["", 0, false];
    for await (const chunk of createReadStream(file, "utf8")) {
      const lines = `${rest}${chunk}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        yield { event: isLong ? undefined : parseEvent(line), place: `${file}:${++number}` };
        isLong = false;
      }
      if (rest.length > MAX_LINE_CHARACTERS) [rest, isLong] = ["", true];
    }
    if (rest !== "" || isLong) yield { event: parseEvent(rest), place: `${file}:${++number}` };
  }
}

function parseEvent(line: string): ExportedEvent | undefined {
  try {
    const event = JSON.parse(line);
    const texts = [event.id, event.type, event.time, event.data.tenant];
    return texts.every((text) => typeof text === "string") ? event : undefined;
  } catch {
    return undefined;
  }
}
