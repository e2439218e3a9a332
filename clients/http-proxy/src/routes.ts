import { fingerprintOf, type Onceward } from "@onceward/client";
import { createGuard, type HttpOptions, type WholeResponse } from "@onceward/client/http";
import { type IdentifyCaller, identifyBy } from "./callers.ts";
import type { RouteConfig } from "./config.ts";
import { callUpstream, type GuardedCall, type UpstreamResponse } from "./guarded-call.ts";
import { asVariable, valuesOf } from "./headers.ts";
import type { Guarded } from "./router.ts";
import { type Runner, rememberUnknown } from "./unknown-outcomes.ts";
import type { Upstream } from "./upstream.ts";

/** A guarded request, its origin, path and query as the router has them, and who sends it. */
export interface RoutedCall extends GuardedCall {
  readonly origin: string;
  readonly path: string;
  readonly query: string;
  readonly caller: string;
}

/** The response to a guarded request: the upstream service's, or the guard's, which is a replay or a refusal. */
export type GuardedResponse = (
  | { readonly from: "upstream"; readonly response: UpstreamResponse }
  | { readonly from: "guard"; readonly response: WholeResponse }
) & {
  /** Headers to add, which replace those of the same name. */
  readonly added: Readonly<Record<string, string>>;
};

/** A guarded route. */
export interface GuardedRoute {
  readonly config: RouteConfig;
  readonly identify: IdentifyCaller;
  /** Answers a request. Rejects as `callUpstream`, and with OncewardErrors. */
  answer(call: RoutedCall): Promise<GuardedResponse>;
}

/** Returns the guarded routes of a configuration, with their methods. */
export function routesOf(
  routes: readonly RouteConfig[],
  onceward: Onceward,
  upstream: Upstream,
): readonly Guarded<GuardedRoute>[] {
  const remembering = rememberUnknown(onceward);
  return routes.map((config) => ({
    path: config.path,
    methods: config.methods ?? DEFAULT_METHODS[config.profile],
    route: routeOf(config, remembering, upstream),
  }));
}

/** As the profiles of `@onceward/client/http` have them. */
const DEFAULT_METHODS = {
  onceward: ["POST", "PATCH"],
  ietf: ["POST", "PATCH"],
  stripe: ["POST"],
  acp: ["POST"],
  ucp: ["POST", "PUT"],
} as const;

/** A client's disconnect does not end its call: the response is stored for the next attempt. */
const { signal: STAYS } = new AbortController();

function routeOf(config: RouteConfig, onceward: Runner, upstream: Upstream): GuardedRoute {
  const { namespace, profile, required, waitMs, leaseMs, ignore, methods, onError, marksBegin } = config;
  const { operation, keyHeader } = config;
  const options: HttpOptions<RoutedCall> = {
    ...{ namespace, profile, waitMs, onError, marksBegin, header: keyHeader },
    ...(operation !== undefined && { operation }),
    ...(methods !== undefined && { methods }),
    ...(required !== undefined && { required }),
    ...(leaseMs !== undefined && { leaseMs }),
    ...(ignore.length > 0 && {
      fingerprint: (call) => fingerprintWithout(ignore, call, endpointOf(config, call)),
    }),
    caller: ({ caller }) => caller,
  };
  const guard = createGuard(onceward, options);
  return {
    config,
    identify: identifyBy(config.caller),
    async answer(call) {
      const { incoming, body, query } = call;
      const endpoint = endpointOf(config, call);
      const added: Record<string, string> = {};
      const request = {
        native: call,
        method: incoming.method ?? "",
        route: endpoint,
        path: endpoint,
        query,
        header: (name: string) => headerOf(incoming, name),
        body: () => body,
        setHeader: (name: string, value: string) => {
          added[name.toLowerCase()] = value;
        },
      };
      const answer = await guard(request, (claim) => ({
        handled: callUpstream(upstream, call, claim),
        disconnected: STAYS,
        abandon() {},
      }));
      switch (answer.kind) {
        case "unguarded":
          return { from: "upstream", response: (await callUpstream(upstream, call, undefined)).sent, added };
        case "handled":
          return { from: "upstream", response: answer.sent, added };
        case "answered":
          return { from: "guard", response: answer.response, added };
        case "gone":
          throw new Error("a call of the upstream service is never abandoned");
      }
    },
  };
}

/** Returns the values that a service may take for this header, joined with commas. */
function headerOf({ rawHeaders }: RoutedCall["incoming"], name: string): string | undefined {
  const values = valuesOf(rawHeaders, asVariable(name));
  return values.length === 0 ? undefined : values.join(", ");
}

/**
 * Returns what an operation is done to, besides its name: without one, the origin and the path in their one spelling. Another path of
 * a named operation is another request.
 */
function endpointOf({ operation }: RouteConfig, { origin, path }: RoutedCall): string {
  return operation === undefined ? origin + path : path;
}

/** Returns what identifies a request but for these members of its JSON body; a body that is not JSON counts as text. */
function fingerprintWithout(
  omit: readonly string[],
  { incoming, query, body: bytes }: RoutedCall,
  path: string,
): unknown {
  let body: unknown = bytes.toString("latin1");
  try {
    const json: unknown = JSON.parse(bytes.toString());
    body = Buffer.from(fingerprintOf(json, { omit })).toString("base64url");
  } catch {
    // No JSON: it has no members.
  }
  return { method: incoming.method, path, query, body };
}
