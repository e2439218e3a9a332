import type { IncomingMessage } from "node:http";
import createRouter from "find-my-way";
import { valuesOf } from "./headers.ts";
import { MAX_PATH_LENGTH, readingsOf, withoutEscapes } from "./readings.ts";

/** What the proxy does with a request. */
export type Routing<Route> =
  | { readonly kind: "pass" }
  | {
      readonly kind: "guard";
      readonly route: Route;
      /** The scheme and the host, such as `https://api.example`. */
      readonly origin: string;
      /** The path, which is the same in all spellings. */
      readonly path: string;
      /** The query with its question mark; empty: none. */
      readonly query: string;
    }
  | { readonly kind: "refuse"; readonly status: 400 | 414; readonly title: string };

/** A route, and the requests that it guards. */
export interface Guarded<Route> {
  /** Pattern of the path, as find-my-way has them. */
  readonly path: string;
  readonly methods: readonly string[];
  readonly route: Route;
}

/** A route that a path leads to, and the path in the spelling of the route's pattern. */
interface Found<Route> {
  readonly route: Route;
  readonly path: string;
}

/** As IncomingMessage of node:http has them. */
type RequestHead = Pick<IncomingMessage, "method" | "url" | "rawHeaders">;

/** How the router learns which scheme a client used. */
export interface SchemeSource {
  /** That of the proxy's listener. */
  readonly own: "http" | "https";
  /** Whether X-Forwarded-Proto, which a gateway sets and no client can forge, comes before it. */
  readonly isForwarded: boolean;
}

/** Only the path and the query of a target count: a client must not name another host. */
const ORIGIN = "http://upstream";
const ABSOLUTE = /^https?:\/\/[^/?#\\]+/i;
/** Headers by which frameworks take a request for one with another method, such as Rack, Symfony and ASP.NET. */
const METHOD_HEADERS = ["x-http-method-override", "x-http-method", "x-method-override"];
/** Headers by which frameworks take a request for one with another target, such as IIS and Zend. */
const TARGET_HEADERS = ["x-original-url", "x-rewrite-url"];

/**
 * Returns a function that decides what to do with a request. It passes or guards a request only if every service would take it for
 * one of that route, or of none: otherwise it refuses the request, because the service could run a guarded operation unguarded.
 *
 * @throws Error for routes that contradict each other.
 */
export function routerOf<Route>(
  guarded: readonly Guarded<Route>[],
  source: SchemeSource,
): (head: RequestHead) => Routing<Route> {
  const find = finderOf(guarded);
  const judged = new Set(guarded.flatMap(({ methods }) => methods));
  return (head) => {
    const methods = methodsOf(head);
    if (!methods.some((method) => judged.has(method))) return { kind: "pass" };
    const target = originForm(head.url ?? "");
    const url = target === undefined ? null : URL.parse(ORIGIN + target);
    if (target === undefined || url === null) return refused("The target of the request is not a path.");
    const readings: string[] = [];
    for (const path of [target, ...targetsOf(head)].map((of) => of.split("?", 1)[0] ?? "")) {
      if (path.length > MAX_PATH_LENGTH)
        return { kind: "refuse", status: 414, title: `The path has more than ${MAX_PATH_LENGTH} bytes.` };
      if (!isDecodable(path)) return refused("The path has an escape that is not one of UTF-8.");
      const read = readingsOf(path);
      if (read === undefined) return refused(AMBIGUOUS);
      readings.push(...read);
    }
    const found = find(head.method ?? "", decodeURI(url.pathname));
    const others = methods.flatMap((method) => readings.map((path) => find(method, path)));
    if (others.some((other) => other !== undefined && !isSame(other, found))) return refused(AMBIGUOUS);
    if (found === undefined) return { kind: "pass" };
    if (methods.length > 1) return refused(AMBIGUOUS);
    const host = hostOf(head);
    if (host === undefined) return refused("The request names several hosts.");
    const scheme = schemeOf(head, source);
    if (scheme === undefined) return refused("X-Forwarded-Proto must be http or https.");
    const origin = `${scheme}://${host}`;
    return { kind: "guard", route: found.route, origin, path: found.path, query: url.search };
  };
}

function isSame<Route>(one: Found<Route>, other: Found<Route> | undefined): boolean {
  return one.route === other?.route && one.path === other.path;
}

const AMBIGUOUS = "The service may take this request for another one, which is guarded in another way.";

function refused(title: string): { kind: "refuse"; status: 400; title: string } {
  return { kind: "refuse", status: 400, title };
}

/** Returns a function that finds the route of a method and a decoded path. */
function finderOf<Route>(
  guarded: readonly Guarded<Route>[],
): (method: string, path: string) => Found<Route> | undefined {
  const router = createRouter({
    caseSensitive: false,
    ignoreDuplicateSlashes: true,
    ignoreTrailingSlash: true,
    maxParamLength: MAX_PATH_LENGTH,
  });
  const on = (method: string, path: string, route: Route) =>
    router.on(method as "POST", decodeURI(path), () => {}, { route, pattern: path });
  const each = guarded.flatMap(({ methods, ...one }) => methods.map((method) => ({ method, ...one })));
  for (const { method, path, route } of each) on(method, path, route);
  // `/files/*` of most services also matches `/files/` or `/files`.
  for (const { method, path, route } of each) {
    const folder = path.endsWith("/*") ? path.slice(0, -2) : "";
    if (folder !== "" && !router.hasRoute(method as "POST", decodeURI(folder))) on(method, folder, route);
  }
  return (method, path) => {
    const found = router.find(method as "POST", path.replace(/[%?#]/g, encodeURIComponent));
    if (found === null) return undefined;
    const { route, pattern } = found.store as { route: Route; pattern: string };
    return { route, path: pathOf(pattern, found.params) };
  };
}

/** Returns a pattern with these parameters. Their case counts, because an id may have capital letters. */
function pathOf(pattern: string, params: Readonly<Record<string, string | undefined>>): string {
  return pattern.replace(/::|:(\w+)|\*/g, (part, name: string = part) =>
    part === "::"
      ? ":"
      : withoutEscapes(params[name] ?? "").replace(/%[\da-f]{2}/gi, (hex) => hex.toUpperCase()),
  );
}

/**
 * Returns the host of a request, in lower case and without a default port, and the one that a proxy before names to frameworks;
 * undefined if the service may take one of several.
 */
function hostOf({ url = "", rawHeaders }: RequestHead): string | undefined {
  const named = ABSOLUTE.exec(url)?.[0].replace(/^[^/]*\/\//, "");
  const hosts = new Set(
    [...valuesOf(rawHeaders, "host"), ...(named === undefined ? [] : [named])].map((host) =>
      host.toLowerCase().replace(/:(?:80|443)?$/, ""),
    ),
  );
  const forwarded = valuesOf(rawHeaders, "x-forwarded-host").map((host) => host.toLowerCase());
  return hosts.size > 1 ? undefined : [...hosts, ...forwarded].join(",");
}

/** Returns the scheme that the client used; undefined if the service may take one of several, or another one. */
function schemeOf({ rawHeaders }: RequestHead, { own, isForwarded }: SchemeSource): string | undefined {
  const forwarded = isForwarded ? valuesOf(rawHeaders, "x-forwarded-proto").join(",") : "";
  const [scheme, ...others] = new Set((forwarded || own).split(",").map((each) => each.trim().toLowerCase()));
  return others.length === 0 && (scheme === "http" || scheme === "https") ? scheme : undefined;
}

/** Returns the method of a request, and those that it names to frameworks, which take it for one of them. */
function methodsOf({ method = "", url = "", rawHeaders }: RequestHead): readonly string[] {
  const named = METHOD_HEADERS.flatMap((name) => valuesOf(rawHeaders, name)).flatMap((value) =>
    value.split(","),
  );
  const query = url.includes("?") ? url.slice(url.indexOf("?") + 1) : "";
  if (/method|%/i.test(query)) named.push(...methodsInQuery(query));
  return [...new Set([method, ...named.map((other) => other.trim().toUpperCase())])];
}

/** Returns the values of `_method`, as Symfony, Laravel, Rack and Express' method-override have them. */
function methodsInQuery(query: string): readonly string[] {
  // Rack and Python have separated by semicolons, too; PHP makes `_` of some characters.
  const parameters = [...new URLSearchParams(query.replaceAll(";", "&"))];
  return parameters.flatMap(([name, value]) =>
    name.trimStart().replaceAll(/[.[ ]/g, "_") === "_method" ? [value] : [],
  );
}

/** Returns the targets that a request names to frameworks in place of its own. */
function targetsOf({ rawHeaders }: RequestHead): readonly string[] {
  const named = TARGET_HEADERS.flatMap((name) => valuesOf(rawHeaders, name));
  return named.map((target) => originForm(target) ?? `/${target}`);
}

/** Returns the path and the query of a target; undefined for one without a path, such as `*`. */
function originForm(target: string): string | undefined {
  if (target.startsWith("/")) return target;
  const [authority] = ABSOLUTE.exec(target) ?? [];
  if (authority === undefined) return undefined;
  const rest = target.slice(authority.length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
