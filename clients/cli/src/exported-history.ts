import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { create, fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { type GetKeyHistoryResponse, GetKeyHistoryResponseSchema } from "@onceward/client/proto";
import { EXIT, Outcome, UsageError } from "./failure.ts";
import { asJson, type Output } from "./output.ts";
import { describeHistory } from "./record-text.ts";
import { type Layout, renderTable } from "./table.ts";
import { visible } from "./terminal.ts";

/** Longer than the line of the largest result. */
const MAX_LINE_CHARACTERS = 4 * 1024 * 1024;

/** An exported CloudEvent, as deploy/export.md describes it. A line that was written again has the same id. */
interface ExportedEvent {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly time: string;
  readonly data: JsonObject;
}

/** What one tenant's lines say. After a move, and if a name is used again, lines have another source. */
class Story {
  tenant = "";
  /** The times of the first, the last and the line that was read last. */
  times = { from: "", to: "", last: "" };
  /** Calls are exported by the hash of their key, which only lines of its record tell. */
  readonly hashes = new Set<JsonValue | undefined>();
  readonly notes: string[] = [];
  readonly history = create(GetKeyHistoryResponseSchema);
  readonly found = new Map<string, ExportedEvent>();
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }

  /** The events of the key, by time. */
  get events(): readonly ExportedEvent[] {
    return [...this.found.values()].sort((a, b) => Date.parse(a.time) - Date.parse(b.time));
  }
}

/**
 * Prints what an export says of a key, without the service: of each tenant that has it, the last exported one last.
 *
 * @param path a file, or a directory of them.
 * @throws UsageError if it cannot be read; Outcome if no line has the key.
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
  const { stories, notes } = await findKey(files, namespace, key);
  const told = stories.filter(({ hashes }) => hashes.size > 0);
  if (told.length === 0) {
    const all = [...notes, ...stories.flatMap((story) => story.notes)].join(" ");
    throw new Outcome(EXIT.notFound, `No line has this key, so its repeated calls can't be matched. ${all}`);
  }
  for await (const { event } of readEvents(files)) {
    const story = told.find(({ source }) => source === event?.source);
    if (event === undefined || !story?.hashes.has(event.data.keyHash)) continue;
    if (event.type === "onceward.calls.declined") addCalls(story.history, event.data);
    else if (!story.found.has(event.id)) story.found.set(event.id, event);
  }
  for (const { source, tenant, hashes } of stories) {
    if (hashes.size === 0 && told.some((each) => each.tenant === tenant))
      notes.push(`No line of ${visible(source)} has this key, so its repeated calls there can't be matched.`);
  }
  const json = ({ tenant, source, history, events, notes }: Story) => {
    const calls = asJson(GetKeyHistoryResponseSchema, history) as JsonObject;
    return { tenant, source, ...calls, events, notes };
  };
  output.value({ tenants: told.map(json), notes }, () => {
    const texts = told.flatMap(({ tenant, source, history, events, notes }) => [
      visible(`Tenant ${tenant} of ${source}:`),
      describeHistory(history, output.layout),
      describeEvents(events, output.layout),
      ...notes,
      "",
    ]);
    return [...texts, ...notes.map((note) => `${note}\n`)].join("\n");
  });
}

async function listFiles(path: string): Promise<readonly string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const names = (await readdir(path, { recursive: true })).filter((name) => name.endsWith(".jsonl"));
  return names.sort().map((name) => join(path, name));
}

/** Returns what is exported of each tenant, the last one last, with the hashes of the key, and what is damaged. */
async function findKey(files: readonly string[], namespace: string, key: string) {
  const bySource = new Map<string, Story>();
  const notes: string[] = [];
  for await (const { event, place } of readEvents(files)) {
    if (event === undefined) {
      notes.push(`${place} is damaged, and skipped.`);
      continue;
    }
    const { source, type, time, data } = event;
    const story = bySource.get(source) ?? new Story(source);
    bySource.set(source, story);
    const { from, to, last } = story.times;
    if (type === "onceward.history.gap" && last !== "")
      story.notes.push(visible(`Events from ${last} to ${data.until} may be missing: the export was away.`));
    story.times = { from: from === "" || time < from ? time : from, to: time > to ? time : to, last: time };
    story.tenant = `${data.tenant}`;
    if (data.namespace === namespace && data.key === key) story.hashes.add(data.keyHash);
  }
  const stories = [...bySource.values()].sort((a, b) => Date.parse(a.times.to) - Date.parse(b.times.to));
  for (const { notes, tenant, times } of stories)
    notes.push(visible(`The export of ${tenant} reaches from ${times.from} to ${times.to}.`));
  if (stories.length === 0) notes.push("The export has no events.");
  return { stories, notes };
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
    const texts = [event.id, event.source, event.type, event.time, event.data.tenant];
    return texts.every((text) => typeof text === "string") ? event : undefined;
  } catch {
    return undefined;
  }
}
