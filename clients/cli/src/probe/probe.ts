import { BoundReached, type Bounds, Budget, DEFAULT_BOUNDS } from "./budget.ts";
import type { Check } from "./check.ts";
import { BODIES } from "./checks/bodies.ts";
import { ERRORS } from "./checks/errors.ts";
import { KEYS } from "./checks/keys.ts";
import { LOST } from "./checks/lost.ts";
import { OTHER_REQUEST } from "./checks/other-request.ts";
import { REPLAYS } from "./checks/replays.ts";
import { SAME_KEY } from "./checks/same-key.ts";
import { TWINS } from "./checks/twins.ts";
import { curlOf } from "./curl.ts";
import { type Effects, effectsOf } from "./effects.ts";
import { type Endpoint, requestOf } from "./endpoint.ts";
import { type Environment, exchange, exchangeAndCut, NoAnswerError } from "./exchange.ts";
import { runRestart, Scene, type Sender } from "./scene.ts";
import { brief, failed, isSuccess, nothing, sameBody, skipped, type Verdict } from "./verdict.ts";

const NOT_COUNTED: Effects = { how: "not counted", count: async () => undefined, infer: () => undefined };

/** All checks, in the order in which they run. The guide's list is derived from this table. */
export const CHECKS: readonly Check[] = [
  ...SAME_KEY,
  ...TWINS,
  ...OTHER_REQUEST,
  ...KEYS,
  ...LOST,
  ...ERRORS,
  ...BODIES,
  ...REPLAYS,
];

/** How a check ended, with its requests as shell commands. */
export interface Finding {
  readonly check: Pick<Check, "id" | "fact">;
  readonly verdict: Verdict;
  readonly commands: readonly string[];
}

/** What a probe found out about an endpoint. */
export interface Report {
  readonly url: string;
  /** Where a tool has its key. */
  readonly key?: string;
  /** How the effects were counted. */
  readonly effects: string;
  readonly findings: readonly Finding[];
  readonly requests: number;
}

export interface ProbeOptions {
  readonly env: Environment;
  readonly bounds?: Bounds;
  /** Only these checks, by id or family. Default: all. */
  readonly only?: readonly string[];
  /** If given, nothing is sent: it gets each request as a shell command, and every answer is made up. */
  readonly dryRun?: (command: string) => void;
}

/** The endpoint does not answer the plain request with success: no check means anything. */
export class NotProbedError extends Error {
  override readonly name = "NotProbedError";
}

/**
 * Runs the checks against an endpoint, one after another, each with operations of its own.
 *
 * @throws NotProbedError if its plain request does not succeed. NoAnswerError if it gets no answer. Error if effects can't be
 *   counted.
 */
export async function probe(endpoint: Endpoint, options: ProbeOptions): Promise<Report> {
  const budget = new Budget(options.bounds ?? DEFAULT_BOUNDS);
  const http = senderOf(endpoint, budget, options.env);
  const sender = options.dryRun ? showing(http, options.dryRun) : http;
  return await runChecks(CHECKS, endpoint, { budget, sender, ...options });
}

/** Runs checks as `probe` does. */
export async function runChecks(
  checks: readonly Check[],
  endpoint: Endpoint,
  options: ProbeOptions & { readonly budget: Budget; readonly sender: Sender },
): Promise<Report> {
  const { budget, sender, dryRun } = options;
  const before = budget.requests;
  const areDistinct = dryRun === undefined && (await answersDiffer(budget, sender));
  const effects = dryRun ? NOT_COUNTED : effectsOf(endpoint, areDistinct);
  const findings: Finding[] = [];
  for (const check of selected(checks, options))
    findings.push(await runCheck(check, new Scene(endpoint, budget, sender, effects), areDistinct));
  return { url: endpoint.url, effects: effects.how, findings, requests: budget.requests - before };
}

/** Returns the checks that the user has chosen. */
export function selected<One extends Pick<Check, "id">>(
  checks: readonly One[],
  { only }: ProbeOptions,
): readonly One[] {
  return checks.filter(({ id }) => only === undefined || isNamed(id, only));
}

/** Whether a list of checks and families has the check. */
export function isNamed(id: string, names: readonly string[]): boolean {
  return names.includes(id) || names.includes(id.split(".")[0] ?? "");
}

async function runCheck(check: Check, scene: Scene, areDistinct: boolean): Promise<Finding> {
  const verdict = await verdictOf(check, scene);
  const provesNothing = verdict.kind === "passed" && check.compares && !areDistinct;
  return {
    check,
    verdict: provesNothing ? nothing("the answers of two operations are alike, too") : verdict,
    commands: scene.commands,
  };
}

async function verdictOf(check: Check, scene: Scene): Promise<Verdict> {
  const { needs, id } = check;
  if (isNamed(id, scene.endpoint.unclaimed)) return skipped("not claimed");
  if (needs !== undefined && scene.endpoint[needs] === undefined) return skipped(`needs ${needs}`);
  try {
    await scene.begin();
    return await check.run(scene);
  } catch (error) {
    if (error instanceof NoAnswerError) return failed(`no answer: ${error.message}`);
    if (error instanceof BoundReached) return { kind: "unfinished", detail: error.message };
    throw error;
  }
}

/** Sends two operations. Returns whether a client can tell their answers apart. */
async function answersDiffer(budget: Budget, sender: Sender): Promise<boolean> {
  const requests = [sender.request(), sender.request()] as const;
  await budget.request(2);
  const first = await sender.send(requests[0]);
  const second = await sender.send(requests[1]);
  const odd = [first, second].find((answer) => !isSuccess(answer));
  if (odd !== undefined)
    throw new NotProbedError(
      `The plain request is answered with ${brief(odd)}. Correct it:\n${sender.show(requests[0])}`,
    );
  return !sameBody(first, second);
}

function senderOf(endpoint: Endpoint, budget: Budget, env: Environment): Sender {
  return {
    request: (changes) => requestOf(endpoint, changes),
    show: curlOf,
    send: (request) => exchange(request, budget, env),
    cut: (request, cut) => exchangeAndCut(request, cut, budget, env),
    restart: () => runRestart(endpoint.restartCommand),
  };
}

/** Returns a sender that shows each request, and answers as a service does that runs it. */
function showing(sender: Sender, show: (command: string) => void): Sender {
  return {
    ...sender,
    async send(request) {
      show(sender.show(request));
      return { status: 201, headers: {}, body: Buffer.from("{}") };
    },
    cut: async (request, cut) => show(sender.show(request, cut)),
    restart: async () => show("(restart of the service)"),
  };
}
