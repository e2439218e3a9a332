import { fingerprintOf, type Onceward } from "@onceward/client";
import { type FetchHandler, idempotent } from "@onceward/client/http";
import createRouter from "find-my-way";
import { type IdentifyCaller, identifyBy } from "./callers.ts";
import type { RouteConfig } from "./config.ts";
import { callUpstream, type GuardedCall } from "./guarded-call.ts";
import type { Upstream } from "./upstream.ts";

/** A guarded route. */
export interface GuardedRoute {
  readonly config: RouteConfig;
  readonly identify: IdentifyCaller;
  /** Answers a request with the guard's or the upstream service's response. Rejects as `callUpstream`, and with OncewardErrors. */
  answer(call: GuardedCall & { readonly url: URL; readonly caller: string }): Promise<Response>;
}

/** Returns a function that finds the route of a request; undefined: it passes. @throws Error for routes that contradict each other. */
export function routesOf(
  routes: readonly RouteConfig[],
  onceward: Onceward,
  upstream: Upstream,
): (method: string, url: URL) => GuardedRoute | undefined {
  // A service may serve these spellings of a path alike, and then each must be guarded.
  const router = createRouter({
    caseSensitive: false,
    ignoreDuplicateSlashes: true,
    ignoreTrailingSlash: true,
  });
  for (const config of routes) {
    const route = routeOf(config, onceward, upstream);
    for (const method of config.methods ?? DEFAULT_METHODS[config.profile])
      router.on(method, config.path, () => {}, route);
  }
  return (method, url) => router.find(method as "POST", url.pathname)?.store as GuardedRoute | undefined;
}

/** As the profiles of `@onceward/client/http` have them. */
const DEFAULT_METHODS = {
  onceward: ["POST", "PATCH"],
  ietf: ["POST", "PATCH"],
  stripe: ["POST"],
  acp: ["POST"],
  ucp: ["POST", "PUT"],
} as const;

function routeOf(config: RouteConfig, onceward: Onceward, upstream: Upstream): GuardedRoute {
  const { namespace, profile, required, waitMs, leaseMs, ignore, methods } = config;
  const calls = new WeakMap<Request, GuardedCall & { readonly caller: string }>();
  const handler: FetchHandler<[GuardedCall]> = (_, claim, call) => callUpstream(upstream, call, claim);
  const options = {
    ...{ namespace, profile, waitMs },
    ...(methods !== undefined && { methods }),
    ...(required !== undefined && { required }),
    ...(leaseMs !== undefined && { leaseMs }),
    ...(ignore.length > 0 && {
      fingerprint: (request: Request) => fingerprintWithout(ignore, request, calls.get(request)),
    }),
    caller: (request: Request) => calls.get(request)?.caller ?? "",
  };
  const guarded = idempotent(onceward, options, handler);
  return {
    config,
    identify: identifyBy(config.caller),
    answer(call) {
      const { incoming, body, url } = call;
      const headers = new Headers();
      for (const name of ["idempotency-key", "accept-encoding"]) {
        const value = incoming.headers[name];
        if (value !== undefined) headers.set(name, String(value));
      }
      const request = new Request(url, { method: incoming.method ?? "POST", headers, body });
      calls.set(request, call);
      return guarded(request, call);
    },
  };
}

/** Returns what identifies a request but for these members of its JSON body; a body that is not JSON counts as text. */
function fingerprintWithout(
  omit: readonly string[],
  request: Request,
  call: GuardedCall | undefined,
): unknown {
  const { pathname, search } = new URL(request.url);
  const text = call?.body.toString("latin1") ?? "";
  let body: unknown = text;
  try {
    const json: unknown = JSON.parse(call?.body.toString() ?? "");
    body = Buffer.from(fingerprintOf(json, { omit })).toString("base64url");
  } catch {
    // No JSON: it has no members.
  }
  return { method: request.method, path: pathname, query: search, body };
}
