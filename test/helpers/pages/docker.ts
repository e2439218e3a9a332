import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { serverProblem } from "./onceward.ts";
import type { Words } from "./shell.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const DOCKERFILE = readFileSync(`${ROOT}deploy/Dockerfile`, "utf8");
const [, EXPOSED = ""] = /^EXPOSE (.*)$/m.exec(DOCKERFILE) ?? [];

/** What the commands of a page have made so far. */
export interface Made {
  readonly images: Set<string>;
  readonly networks: Set<string>;
  readonly containers: Set<string>;
}

/** Options of `docker` that the pages use: whether each takes a value. https://docs.docker.com/reference/cli/docker/ */
const OPTIONS: Readonly<Record<string, Readonly<Record<string, boolean>>>> = {
  build: { file: true, tag: true, target: true },
  push: {},
  rm: { force: false },
  "network create": {},
  "network rm": {},
  run: {
    ...{ detach: false, rm: false, "read-only": false },
    ...{ name: true, network: true, env: true, "env-file": true, publish: true },
  },
  "compose up": { build: false, detach: false, "no-deps": false, "force-recreate": false },
  "compose exec": {},
  "compose run": { rm: false },
  "compose build": {},
  "compose down": { volumes: false },
  "compose ps": {},
};

interface Taken {
  readonly options: Readonly<Record<string, readonly string[]>>;
  readonly rest: Words;
}

/** Takes the options before the first argument. @throws Error at one that is not known. */
function take(words: Words, known: Readonly<Record<string, boolean>>): Taken {
  const options: Record<string, string[]> = {};
  let at = 0;
  for (; words[at]?.startsWith("--"); at++) {
    const name = words[at]?.slice(2) ?? "";
    if (!(name in known)) throw new Error(`--${name} is not an option here`);
    options[name] ??= [];
    options[name].push(known[name] ? (words[++at] ?? "") : "");
  }
  return { options, rest: words.slice(at) };
}

/** Returns what is wrong with a command of `docker`, by the repository's files and the page's commands before it. */
export function dockerProblem(words: Words, made: Made): string | undefined {
  if (words[0] === "compose") return composeProblem(words.slice(1));
  const name = words[0] === "network" ? words.slice(0, 2).join(" ") : (words[0] ?? "");
  const known = OPTIONS[name];
  if (known === undefined) return `docker ${name} is not checked`;
  const { options, rest } = take(words.slice(name.split(" ").length), known);
  const [first = ""] = rest;
  if (name === "build") return buildProblem(options, rest, made);
  if (name === "run") return runProblem(options, rest, made);
  if (name === "network create") made.networks.add(first);
  const all = { push: made.images, rm: made.containers, "network rm": made.networks }[name];
  return rest.find((each) => all !== undefined && !all.has(each)) && `${rest} was not made on the page`;
}

function buildProblem(options: Taken["options"], rest: Words, { images }: Made): string | undefined {
  for (const tag of options.tag ?? []) images.add(tag);
  const [file = ""] = options.file ?? [];
  if (!existsSync(`${ROOT}${file}`)) return `${file} is missing`;
  // A sentence may skip the folder.
  if (rest.some((folder) => folder !== ".")) return `the image's folder is not ${rest}`;
  const target = options.target?.find((name) => !new RegExp(`^FROM .* AS ${name}$`, "m").test(DOCKERFILE));
  return target && `the Dockerfile has no target ${target}`;
}

function runProblem(options: Taken["options"], [image = "", ...args]: Words, made: Made): string | undefined {
  for (const name of options.name ?? []) made.containers.add(name);
  const network = options.network?.find((name) => !made.networks.has(name));
  if (network !== undefined) return `the network ${network} is not created before`;
  const { services } = composeOf(["docker-compose.yml"]);
  if (Object.values(services).some((service) => service.image === image)) return undefined;
  if (!made.images.has(image)) return `the image ${image} is neither built before nor one of Compose`;
  const ports = (options.publish ?? []).map((port) => port.split(":").at(-1) ?? "");
  const closed = ports.find((port) => !EXPOSED.split(" ").includes(port));
  if (closed !== undefined) return `the image has no port ${closed}`;
  return args.length === 0 ? undefined : serverProblem(args);
}

interface Compose {
  readonly services: Readonly<Record<string, { readonly image?: string }>>;
}

/** Returns the services of files of Compose together. */
function composeOf(files: readonly string[]): Compose {
  const all = files.map((file) => parse(readFileSync(`${ROOT}${file}`, "utf8"), { merge: true }) as Compose);
  return { services: Object.assign({}, ...all.map(({ services }) => services)) };
}

function composeProblem(words: Words): string | undefined {
  const { options, rest } = take(words, { file: true });
  const [name = "", ...others] = rest;
  const known = OPTIONS[`compose ${name}`];
  if (known === undefined) return `docker compose ${name} is not checked`;
  const { services } = composeOf(options.file ?? ["docker-compose.yml"]);
  const { rest: named } = take(others, known);
  const isOne = name === "exec" || name === "run";
  const missing = (isOne ? named.slice(0, 1) : named).find((service) => !(service in services));
  if (missing !== undefined) return `Compose has no service ${missing}`;
  const [node, program, ...args] = isOne ? named.slice(1) : [];
  if (node === undefined) return undefined;
  const entry = [node, program].join(" ");
  return entry === "node server/dist/main.js" ? serverProblem(args) : `the image does not run ${entry}`;
}
