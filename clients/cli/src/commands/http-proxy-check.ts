import type { WhoAmIResponse } from "@onceward/client/proto";
import type { RouteConfig } from "@onceward/http-proxy";
import { type Check, checkConnection, STEP_TIMEOUT_MS } from "../connection-checks.ts";
import type { GlobalOptions } from "../credentials.ts";
import { messageOf } from "../failure.ts";
import type { Host } from "../host.ts";
import { checkService, reportChecks } from "./connection-doctor.ts";

/**
 * Checks what `http-proxy` needs, and prints it as `doctor` does: the way to Onceward, the service behind the proxy, the key's
 * namespaces, and the keys of issuers.
 *
 * @throws Outcome with the exit code of `doctor`; UsageError without an address or a key.
 */
export async function checkHttpProxy(
  host: Host,
  globals: GlobalOptions,
  { upstream, routes }: { readonly upstream: URL; readonly routes: readonly RouteConfig[] },
): Promise<void> {
  const { checks, isReachable, identities } = await checkService(host, globals);
  const issuers = new Set(
    routes.flatMap(({ caller }) => ("jwt" in caller && "jwksUrl" in caller.jwt ? [caller.jwt.jwksUrl] : [])),
  );
  const found = await Promise.all([checkConnection(upstream, "upstream"), ...[...issuers].map(checkIssuer)]);
  const all = [...checks, ...identities.map((identity) => checkNamespaces(routes, identity)), ...found];
  reportChecks(host, globals, { checks: all, isReachable });
}

/** Checks that the key may be used for the routes' namespaces. */
function checkNamespaces(routes: readonly RouteConfig[], { namespaces }: WhoAmIResponse): Check {
  const check = "namespaces";
  const used = [...new Set(routes.map(({ namespace }) => namespace))];
  const refused = used.filter((namespace) => namespaces.length > 0 && !namespaces.includes(namespace));
  if (refused.length === 0) return { check, result: "ok", detail: used.join(", ") };
  return { check, result: "error", detail: `the key is not for ${refused.join(", ")}` };
}

async function checkIssuer(url: string): Promise<Check> {
  const check = `keys of ${new URL(url).host}`;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(STEP_TIMEOUT_MS) });
    await response.body?.cancel();
    return { check, result: response.ok ? "ok" : "error", detail: `status ${response.status}` };
  } catch (error) {
    return { check, result: "error", detail: messageOf(error) };
  }
}
