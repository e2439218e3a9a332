import { type Debugger, Session } from "node:inspector/promises";

/** A function that ran: the URL of its file, its name, and where it begins in the file. */
export interface RanFunction {
  readonly url: string;
  readonly name: string;
  readonly offset: number;
}

/** Notes which functions of this process run, and in which order. */
export interface Entries {
  /** Returns the functions, below a URL, that ran since this was last called. */
  takeFunctions(below: string): Promise<readonly RanFunction[]>;
  /** Notes each entry into these functions from now on. */
  follow(functions: readonly RanFunction[]): Promise<void>;
  /** Returns the followed functions that were entered since this was last called, in the order of their entries: `URL#name`. */
  takeEntries(): readonly string[];
  close(): void;
}

/** Where the conditions of breakpoints find the list of entries. */
const GLOBAL = "onWayOfAClaim";

/**
 * V8 counts the functions that run. To follow them, each gets a breakpoint at its first statement, whose condition notes the entry and
 * is false: nothing stops.
 */
export async function openEntries(): Promise<Entries> {
  const session = new Session();
  session.connect();
  const scripts = new Map<string, string>();
  session.on("Debugger.scriptParsed", ({ params }) => scripts.set(params.url, params.scriptId));
  await session.post("Debugger.enable");
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  const entries: string[] = [];
  Object.assign(globalThis, { [GLOBAL]: entries });

  async function firstStatement({ url, offset }: RanFunction): Promise<Debugger.Location> {
    const scriptId = scripts.get(url) as string;
    const { scriptSource } = await session.post("Debugger.getScriptSource", { scriptId });
    const before = scriptSource.slice(0, offset).split("\n");
    const start = { scriptId, lineNumber: before.length - 1, columnNumber: before.at(-1)?.length ?? 0 };
    const possible = await session.post("Debugger.getPossibleBreakpoints", {
      start,
      restrictToFunction: true,
    });
    const [first] = possible.locations;
    if (first === undefined) throw new Error(`${url} has no statement at ${offset}`);
    return first;
  }

  return {
    async takeFunctions(below) {
      const { result } = await session.post("Profiler.takePreciseCoverage");
      return result
        .filter(({ url }) => url.startsWith(below))
        .flatMap(({ url, functions }) =>
          functions
            .filter(({ ranges: [range] }) => range !== undefined && range.count > 0)
            .map(({ functionName, ranges: [range] }) => ({
              url,
              name: functionName,
              offset: range?.startOffset ?? 0,
            })),
        );
    },
    async follow(functions) {
      for (const each of functions) {
        const condition = `globalThis.${GLOBAL}.push(${JSON.stringify(`${each.url}#${each.name}`)}) === 0`;
        await session.post("Debugger.setBreakpoint", { location: await firstStatement(each), condition });
      }
    },
    takeEntries: () => entries.splice(0),
    close: () => session.disconnect(),
  };
}
