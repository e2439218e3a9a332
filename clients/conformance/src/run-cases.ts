import { Adapter, type AdapterCommand } from "./adapter.ts";
import type { Case, ExpectedCall } from "./case.ts";
import { differences } from "./compare.ts";
import type { SeenCall } from "./conversation.ts";
import { startService } from "./service.ts";

/** A case as one client performed it. */
export interface Verdict {
  readonly case: Case;
  /** What was seen otherwise than expected; none if the case passed. */
  readonly differences: readonly string[];
}

/** Returns the cases that failed, each with what was seen otherwise than expected. */
export function failuresOf(verdicts: readonly Verdict[]): readonly (readonly string[])[] {
  return verdicts
    .filter(({ differences }) => differences.length > 0)
    .map(({ case: { name }, differences }) => [name, ...differences]);
}

/** Cases that wait for a delay or a lease leave the processor to others. */
const ADAPTERS_AT_ONCE = 4;

/** A timer that ends so much too late has seen the machine stall: the delays of a case prove nothing then, and it is repeated. */
const STALL_MS = 200;
const WATCH_INTERVAL_MS = 50;
const MAX_REPEATS = 5;

/** A timer may end so much too early by another clock. */
const CLOCK_TOLERANCE_MS = 2;

/** Returns the reason for which a language's client does not perform a case; undefined: it does. */
export function lackOf({ lacks }: Case, language: string): string | undefined {
  return lacks?.[language.split("-")[0] ?? ""];
}

/** Has a client perform the cases that its language has, some at a time. Returns the verdicts in the order of the cases. */
export async function runCases(command: AdapterCommand, all: readonly Case[]): Promise<readonly Verdict[]> {
  const cases = all.filter((each) => lackOf(each, command.language) === undefined);
  // Its input ends at once, and so does the adapter.
  if (command.compiles === true) await new Adapter(command)[Symbol.asyncDispose]();
  const verdicts: Verdict[] = [];
  // The last ones, of silent connections, wait longest: the others run meanwhile.
  const entries = [...cases.entries()].reverse().values();
  const work = async () => {
    let adapter = new Adapter(command);
    // The workers share the iterator: each takes the next case.
    for (const [index, each] of entries) {
      try {
        verdicts[index] = { case: each, ...(await runUndisturbed(adapter, each)) };
      } catch (error) {
        verdicts[index] = { case: each, differences: [error instanceof Error ? error.message : `${error}`] };
        await adapter[Symbol.asyncDispose]();
        adapter = new Adapter(command);
      }
    }
    await adapter[Symbol.asyncDispose]();
  };
  await Promise.all(Array.from({ length: Math.min(ADAPTERS_AT_ONCE, cases.length) }, work));
  return verdicts;
}

async function runUndisturbed(adapter: Adapter, each: Case): Promise<Omit<Verdict, "case">> {
  for (let repeats = 0; ; repeats++) {
    using stalls = watchStalls();
    const verdict = await runCase(adapter, each);
    if (verdict.differences.length === 0 || !stalls.seen() || repeats === MAX_REPEATS) return verdict;
  }
}

/** Watches, by a timer of this process, whether the machine stalls. */
function watchStalls(): { seen(): boolean } & Disposable {
  let lastMs = performance.now();
  let longestMs = 0;
  const look = () => {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - lastMs - WATCH_INTERVAL_MS);
    lastMs = nowMs;
    return longestMs >= STALL_MS;
  };
  const timer = setInterval(look, WATCH_INTERVAL_MS);
  return { seen: look, [Symbol.dispose]: () => clearInterval(timer) };
}

async function runCase(adapter: Adapter, each: Case): Promise<Omit<Verdict, "case">> {
  if (each.service === undefined) return judge(await adapter.perform(each, undefined), each, []);
  await using service = await startService(each.service);
  return judge(await adapter.perform(each, service.address), each, service.calls);
}

function judge(
  reported: unknown,
  { expect: { outcome, calls } }: Case,
  seen: readonly SeenCall[],
): Omit<Verdict, "case"> {
  const found = [
    ...differences(outcome, reported),
    ...(calls === undefined ? [] : differentCalls(calls, seen)),
  ];
  return { differences: found.length === 0 ? [] : [...found, `reported: ${JSON.stringify(reported)}`] };
}

function differentCalls(expected: readonly ExpectedCall[], seen: readonly SeenCall[]): readonly string[] {
  const groups = groupCalls(expected, seen);
  if (groups === undefined) {
    const wanted = expected.map(({ on, times }) => (times === "some" ? `${on}+` : on));
    return [`the service saw [${seen.map(({ on }) => on).join(", ")}], not [${wanted.join(", ")}]`];
  }
  return expected.flatMap(({ request = {}, afterMs = 0 }, group) =>
    (groups[group] ?? []).flatMap((index) => {
      const { on, request: actual = {}, atMs = 0 } = seen[index] ?? {};
      const sinceMs = atMs - (seen[index - 1]?.atMs ?? Number.NEGATIVE_INFINITY);
      const isEarly = sinceMs < afterMs - CLOCK_TOLERANCE_MS;
      return [
        ...differences(request, actual, `call ${index + 1} (${on})`),
        ...(isEarly
          ? [`call ${index + 1} (${on}) came ${Math.round(sinceMs)} ms after the one before, not ${afterMs}`]
          : []),
      ];
    }),
  );
}

/** Returns for each expected call the positions of the seen calls that it stands for; undefined if they don't fit. */
function groupCalls(
  expected: readonly ExpectedCall[],
  seen: readonly SeenCall[],
): readonly (readonly number[])[] | undefined {
  let next = 0;
  const groups = expected.map(({ on, times }) => {
    const first = next;
    if (seen[next]?.on === on) next++;
    while (times === "some" && seen[next]?.on === on) next++;
    return Array.from({ length: next - first }, (_, offset) => first + offset);
  });
  return next === seen.length && groups.every((group) => group.length > 0) ? groups : undefined;
}
