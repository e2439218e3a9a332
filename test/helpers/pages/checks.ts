import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { fromJson } from "@bufbuild/protobuf";
import { IdempotencyService } from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { Typed } from "./commands.ts";
import { dockerProblem, type Made } from "./docker.ts";
import { oncewardProblem, serverProblem } from "./onceward.ts";
import { goProblem, npmProblem, npxProblem, pipProblem } from "./packages.ts";
import { commandsOf, type Words } from "./shell.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

interface Context extends Typed {
  readonly made: Made;
}

type Check = (words: Words, context: Context) => string | undefined | Promise<string | undefined>;

/** Programs that every machine, or Postgres, has: the commands' words are understood, and name no part of Onceward. */
const OF_THE_SYSTEM = ["chmod", "createdb", "cut", "export", "git", "grep", "printf", "psql", "sed"];

/** How each program's commands are checked if no test types them. */
const CHECKS: Readonly<Record<string, Check>> = {
  ...Object.fromEntries(OF_THE_SYSTEM.map((name) => [name, () => undefined])),
  curl: curlProblem,
  docker: (words, { made }) => dockerProblem(words, made),
  go: (words) => goProblem(words),
  // test/deploy/chart-page.test.ts compares names and labels with the chart's objects.
  helm: ([verb = ""]) =>
    ["upgrade", "rollback", "lint", "template"].includes(verb) ? undefined : `helm ${verb} is not checked`,
  kubectl: ([verb]) => (verb === "rollout" || verb === "logs" ? undefined : `kubectl ${verb} is not checked`),
  npm: (words) => npmProblem(words),
  npx: (words) => npxProblem(words),
  onceward: (words, { isInline }) => oncewardProblem(words, isInline),
  "onceward-server": (words) => serverProblem(words),
  pip: (words) => pipProblem(words),
  // In the checkout, the command line is run without its package.
  "node_modules/.bin/node": ([program = "", ...args]) => missing(program) ?? serverProblem(args),
  "../onceward/node_modules/.bin/node": ([, program = ""]) => missing(program.replace("../onceward/", "")),
  sh: ([program = ""]) => missing(program),
  ssh: ([, program, ...args]) =>
    program === "onceward-server" ? serverProblem(args) : `ssh runs ${program}`,
};

function missing(path: string): string | undefined {
  return existsSync(`${ROOT}${path}`) ? undefined : `${path} is missing`;
}

/** Checks a call of the service in JSON by its descriptor. Another URL is the reader's own service. */
function curlProblem(words: Words): string | undefined {
  const [, name] = words.flatMap((word) => [
    ...(/\/onceward\.v1\.IdempotencyService\/(\w+)$/.exec(word) ?? []),
  ]);
  if (name === undefined) return undefined;
  const method = IdempotencyService.methods.find((each) => each.name === name);
  if (method === undefined) return `the service has no call ${name}`;
  fromJson(method.input, JSON.parse(words[words.indexOf("-d") + 1] ?? ""));
  return undefined;
}

/** Returns what is wrong with the commands that a page tells to type, in their order. */
export async function problemsOf(typed: readonly Typed[]): Promise<readonly string[]> {
  const made: Made = { images: new Set(), networks: new Set(), containers: new Set() };
  const problems: string[] = [];
  for (const each of typed) {
    for (const words of commandsOf(each.text)) {
      const [program = "", ...args] = words;
      const check = CHECKS[program];
      const problem =
        check === undefined
          ? "no test types it, and its program has no check"
          : await Promise.resolve()
              .then(() => check(args, { ...each, made }))
              .catch((error: Error) => error.message);
      if (problem !== undefined) problems.push(`${words.join(" ")}: ${problem}`);
    }
  }
  return problems;
}
