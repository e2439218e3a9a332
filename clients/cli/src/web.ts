import { type Command, CommanderError } from "commander";
import { recordHref } from "#words/record-address";
import {
  CONSOLE_ADDRESS,
  consoleOrigin,
  type GlobalOptions,
  resolveCredentials,
  storedConsole,
} from "./credentials.ts";
import { UsageError } from "./failure.ts";
import type { Host } from "./host.ts";

/** Returns an argument or an option of a command as text; undefined: it was not given. */
type Given = (name: string) => string | undefined;

/** The console's screens below `/console`, by the command that shows the same. */
const SCREENS: Readonly<Record<string, (given: Given) => string | Promise<string>>> = {
  "tenant show": () => "/settings",
  "namespaces list": () => "/namespaces",
  "namespaces show": namespaceScreen,
  advice: namespaceScreen,
  "records list": recordsScreen,
  "records count": () => "/records",
  "records show": recordScreen,
  "records history": recordScreen,
  "jobs list": () => "/jobs",
  "jobs show": (given) => `/jobs/${segment(given("job"))}`,
  "keys list": () => "/api-keys",
  "keys quality": () => "/key-quality",
  "audit list": () => "/audit",
  "usage show": () => "/",
  "usage now": () => "/",
  watch: () => "/",
  "operator tenants list": () => "/tenants",
  "operator tenants show": tenantScreen,
  "operator usage": tenantScreen,
  "operator audit": () => "/audit",
  "operator doctor": () => "/fleet",
  "operator info": () => "/fleet",
  "operator replicas": () => "/fleet",
};

/**
 * Gives each command that has a screen of the console the option `--web`: it prints the screen's address and, at a terminal, opens
 * it in a browser, instead of the command's own calls.
 */
export function addWeb(program: Command, host: Host): void {
  for (const [path, screen] of Object.entries(SCREENS)) {
    const found = path
      .split(" ")
      .reduce<Command | undefined>(
        (parent, name) => parent?.commands.find((one) => one.name() === name),
        program,
      );
    // Its group is not loaded.
    if (found === undefined) continue;
    found.option("--web", "open the console's screen of it instead, and print its address");
    found.hook("preAction", async (_, made) => {
      if (made.opts().web !== true) return;
      const origin = await findConsole(host, made.optsWithGlobals<GlobalOptions>());
      const { href } = new URL(`/console${await screen(givenTo(made))}`, origin);
      host.write(`${href}\n`);
      if (host.isTerminal) host.openBrowser(href);
      // Ends the command before its action.
      throw new CommanderError(0, "onceward.web", "");
    });
  }
}

/**
 * Returns the origin of the console: the stored one, else the one that the service names.
 *
 * @throws UsageError if there is none, or it is not an address of http or https; ServiceFailure if the service does not answer.
 */
async function findConsole(host: Host, options: GlobalOptions): Promise<string> {
  const stored = await storedConsole(host, options);
  const address = stored || (await askService(host, options));
  if (!address) {
    throw new UsageError(
      "The console's address is unknown: the service names none. Give it with onceward login --console URL, or ONCEWARD_CONSOLE_ORIGIN.",
    );
  }
  const origin = consoleOrigin(address);
  if (origin === undefined) throw new UsageError(`The console's address must be ${CONSOLE_ADDRESS}.`);
  return origin;
}

async function askService(host: Host, options: GlobalOptions): Promise<string> {
  const { whoAmI } = await import("./who-am-i.ts");
  return (await whoAmI(await resolveCredentials(host, options))).consoleOrigin;
}

function givenTo(made: Command): Given {
  return (name) => {
    const index = made.registeredArguments.findIndex((argument) => argument.name() === name);
    const value: unknown = index === -1 ? made.opts()[name] : made.processedArgs[index];
    return value === undefined ? undefined : `${value}`;
  };
}

function segment(text = ""): string {
  return encodeURIComponent(text);
}

function namespaceScreen(given: Given): string {
  const name = given("namespace");
  return name === undefined ? "/namespaces" : `/namespaces/${segment(name)}`;
}

function tenantScreen(given: Given): string {
  const name = given("tenant");
  return name === undefined ? "/tenants" : `/tenants/${segment(name)}`;
}

function recordScreen(given: Given): string {
  return recordHref(given("namespace") ?? "", given("key") ?? "");
}

async function recordsScreen(given: Given): Promise<string> {
  const [{ Record_State }, { enumName }] = await Promise.all([
    import("@onceward/client/proto"),
    import("./output.ts"),
  ]);
  const state = given("state");
  const isAmbiguous = state === `${Record_State.AMBIGUOUS}`;
  const filters = ["namespace", "owner", ...(isAmbiguous ? [] : ["prefix"])];
  const query = new URLSearchParams(
    filters.flatMap((name) => (given(name)?.length ? [[name, given(name) ?? ""]] : [])),
  );
  if (state !== undefined && !isAmbiguous) query.set("state", enumName(Record_State, Number(state)));
  return `${isAmbiguous ? "/ambiguous" : "/records"}${query.size > 0 ? `?${query}` : ""}`;
}
