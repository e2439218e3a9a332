import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import { ApiKey_Role, type WhoAmIResponse } from "@onceward/client/proto";
import type { Command } from "commander";
import { createIdentity, createOnceward, createOperator } from "../clients.ts";
import {
  type Check,
  checkConnection,
  checkTls,
  failedCall,
  judgeClock,
  judgeIdentity,
  STEP_TIMEOUT_MS,
} from "../connection-checks.ts";
import { type Credentials, type GlobalOptions, resolveKeys } from "../credentials.ts";
import { EXIT, type ExitCode, Outcome, UsageError } from "../failure.ts";
import type { Host } from "../host.ts";
import { layoutOf, Output } from "../output.ts";
import { renderTable } from "../table.ts";
import { VERSION } from "../version.ts";
import { command } from "./group.ts";

/** The calls of which the median latency is shown. */
const LATENCY_CALLS = 5;
const CALL: CallOptions = { timeoutMs: STEP_TIMEOUT_MS };

/** A key that the service accepts. */
interface Accepted {
  readonly credentials: Credentials;
  readonly identity: WhoAmIResponse;
}

/** Returns `onceward doctor`: whether this machine can use the service. */
export function doctorCommand(host: Host): Command {
  return command(
    "doctor",
    "Checks this machine's way to the service: the address, TLS, every API key of the profile, latency, clock and versions. Exits with 5 on warnings, 6 on errors, 3 if the service is unreachable. An operator checks the service itself with onceward operator doctor.",
    "doctor",
    "doctor --profile staging --json",
  ).action(async (_options: object, made: Command) => {
    const globals: GlobalOptions = made.optsWithGlobals();
    reportChecks(host, globals, await checkService(host, globals));
  });
}

/** What was found of the way to the service. */
export interface ServiceChecks {
  readonly checks: readonly Check[];
  readonly isReachable: boolean;
  /** Those whose keys the service accepts. */
  readonly identities: readonly WhoAmIResponse[];
}

/** Checks this machine's way to the service. @throws UsageError without an address or a key. */
export async function checkService(host: Host, globals: GlobalOptions): Promise<ServiceChecks> {
  const { address, keys } = await resolveKeys(host, globals);
  if (!URL.canParse(address)) throw new UsageError(`${address} is not a URL.`);
  const url = new URL(address);
  // The client says which socket's address is wrong.
  if (url.protocol === "unix:") (await createIdentity({ address, apiKey: keys[0]?.[1] ?? "" })).close();
  const checks: Check[] = [
    { check: "address", result: "ok", detail: url.protocol === "unix:" ? address : url.origin },
  ];
  checks.push(await checkConnection(url));
  if (!hasFailed(checks)) checks.push(await checkTls(url));
  if (hasFailed(checks)) return { checks, isReachable: false, identities: [] };
  const { found, accepted } = await checkKeys(address, keys);
  checks.push(...found, ...(await checkLatency(accepted)), await checkClock(accepted));
  checks.push(await checkVersions(accepted));
  return { checks, isReachable: true, identities: accepted.map(({ identity }) => identity) };
}

/** Prints checks. @throws Outcome with the exit code of `doctor`, unless all are ok. */
export function reportChecks(
  host: Host,
  globals: GlobalOptions,
  { checks, isReachable }: Pick<ServiceChecks, "checks" | "isReachable">,
): void {
  new Output(host, globals.json === true).value({ checks }, () =>
    renderTable(
      ["CHECK", "RESULT", "DETAIL"],
      checks.map(({ check, result, detail }) => [check, result, detail]),
      layoutOf(host),
      [undefined, undefined, "text"],
    ),
  );
  const exitCode = isReachable ? exitCodeOf(checks) : EXIT.unavailable;
  if (exitCode !== EXIT.ok) throw new Outcome(exitCode, "");
}

function hasFailed(checks: readonly Check[]): boolean {
  return checks.some(({ result }) => result === "error");
}

/** Returns the exit code that `operator doctor` has, too. */
function exitCodeOf(checks: readonly Check[]): ExitCode {
  if (hasFailed(checks)) return EXIT.errors;
  return checks.some(({ result }) => result === "warning") ? EXIT.warnings : EXIT.ok;
}

async function checkKeys(address: string, keys: Awaited<ReturnType<typeof resolveKeys>>["keys"]) {
  const found: Check[] = [];
  const accepted: Accepted[] = [];
  for (const [role, apiKey] of keys) {
    const credentials = { address, apiKey };
    try {
      const identity = await using(await createIdentity(credentials), (client) => client.whoAmI({}, CALL));
      found.push(judgeIdentity(role, identity));
      accepted.push({ credentials, identity });
    } catch (error) {
      found.push(await failedCall(`key: ${role}`, error));
    }
  }
  return { found, accepted };
}

async function checkLatency([first]: readonly Accepted[]): Promise<readonly Check[]> {
  if (first === undefined) return [];
  const check = "latency";
  try {
    const times = await using(await createIdentity(first.credentials), async (client) => {
      // The first call connects.
      await client.whoAmI({}, CALL);
      const durations: number[] = [];
      for (let call = 0; call < LATENCY_CALLS; call++) {
        const startedMs = performance.now();
        await client.whoAmI({}, CALL);
        durations.push(performance.now() - startedMs);
      }
      return durations.sort((a, b) => a - b);
    });
    const median = times[Math.floor(LATENCY_CALLS / 2)] ?? 0;
    return [{ check, result: "ok", detail: `median of ${LATENCY_CALLS} calls: ${median.toFixed(1)} ms` }];
  } catch (error) {
    return [await failedCall(check, error)];
  }
}

/** Compares clocks by a Lookup of a key that does not exist: only replies to callers carry the service's time. */
async function checkClock(accepted: readonly Accepted[]): Promise<Check> {
  const check = "clock";
  const caller = accepted.find(({ identity }) => identity.role === ApiKey_Role.CALLER);
  if (caller === undefined) return { check, result: "skipped", detail: "needs a caller's key" };
  const { namespaces } = caller.identity;
  const onceward = await createOnceward(caller.credentials);
  try {
    const request = { namespace: namespaces[0] ?? "doctor", key: "onceward-doctor" };
    const sentMs = Date.now();
    const { serverTime } = await onceward.api.lookup(request, CALL);
    const answeredMs = Date.now();
    if (serverTime === undefined)
      return { check, result: "skipped", detail: "the service does not send its time" };
    return judgeClock(timestampMs(serverTime), sentMs, answeredMs);
  } catch (error) {
    return await failedCall(check, error);
  } finally {
    await onceward.close();
  }
}

/** Shows this program's version, and the service's if there is an operator's key. */
async function checkVersions(accepted: readonly Accepted[]): Promise<Check> {
  const check = "version";
  const own = `onceward ${VERSION}`;
  const operator = accepted.find(({ identity }) => identity.role === ApiKey_Role.OPERATOR);
  if (operator === undefined)
    return { check, result: "ok", detail: `${own}; only operators see the service's` };
  try {
    const { version } = await using(await createOperator(operator.credentials), (client) =>
      client.getServerInfo({}, CALL),
    );
    return { check, result: "ok", detail: `${own}, service ${version}` };
  } catch (error) {
    return await failedCall(check, error);
  }
}

async function using<Client extends { close(): void }, Result>(
  client: Client,
  use: (client: Client) => Promise<Result>,
): Promise<Result> {
  try {
    return await use(client);
  } finally {
    client.close();
  }
}
