/** The address and the credentials of Redis, parsed from `REDIS_URL`. */
export type RedisTarget = {
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly tls: boolean;
} & (
  | { readonly kind: "server"; readonly node: RedisNode; readonly database: number }
  | { readonly kind: "socket"; readonly path: string }
  | { readonly kind: "sentinel"; readonly sentinels: readonly RedisNode[]; readonly master: string }
  | { readonly kind: "cluster"; readonly nodes: readonly RedisNode[] }
);

export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

const FORMAT =
  /^(?<tls>rediss?)(?:\+(?<kind>sentinel|cluster|unix))?:\/\/(?:(?<user>[^:@/]*):(?<password>[^:@/]*)@)?(?<hosts>[^/?#@]*)(?:\/(?<path>[^?#]*))?$/;
const REDIS_PORT = 6379;
const SENTINEL_PORT = 26379;

/**
 * Parses a URL of Redis:
 *
 * - `redis://[user:password@]host[:port][/database]`: one server;
 * - `redis+sentinel://[user:password@]host[:port],host[:port]/master`: the current master of sentinels;
 * - `redis+cluster://[user:password@]host[:port],host[:port]`: a cluster;
 * - `redis+unix://[user:password@]/path/to.sock`: one server, by its socket.
 *
 * `rediss` selects TLS. User, password and path are percent-encoded. Returns undefined if the text is
 * malformed.
 *
 * The parser of ioredis does not replace it: it knows neither sentinels nor clusters, and takes any text for
 * a socket's path.
 */
export function parseRedisUrl(text: string): RedisTarget | undefined {
  const { tls, kind, user, password, hosts = "", path = "" } = FORMAT.exec(text)?.groups ?? {};
  if (tls === undefined) return undefined;
  try {
    const common = {
      username: decodeURIComponent(user ?? "") || undefined,
      password: decodeURIComponent(password ?? "") || undefined,
      tls: tls === "rediss",
    };
    return parseKind(common, kind, hosts, decodeURIComponent(path));
  } catch {
    // A malformed host or malformed percent-encoding.
    return undefined;
  }
}

function parseKind(
  common: Pick<RedisTarget, "username" | "password" | "tls">,
  kind: string | undefined,
  hosts: string,
  path: string,
): RedisTarget | undefined {
  switch (kind) {
    case "unix":
      if (hosts !== "" || path === "" || common.tls) return undefined;
      return { ...common, kind: "socket", path: `/${path}` };
    case "sentinel":
      return path === ""
        ? undefined
        : { ...common, kind, sentinels: parseNodes(hosts, SENTINEL_PORT), master: path };
    case "cluster":
      return path === "" ? { ...common, kind, nodes: parseNodes(hosts, REDIS_PORT) } : undefined;
    default: {
      const [node, ...others] = parseNodes(hosts, REDIS_PORT);
      if (node === undefined || others.length > 0 || !/^\d{0,4}$/.test(path)) return undefined;
      return { ...common, kind: "server", node, database: Number(path) };
    }
  }
}

/** @throws Error if an element is not a host with an optional port. */
function parseNodes(hosts: string, defaultPort: number): readonly RedisNode[] {
  return hosts.split(",").map((text) => {
    const { hostname, port } = new URL(`tcp://${text}`);
    if (hostname === "") throw new Error("a host is missing");
    return { host: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? defaultPort : Number(port) };
  });
}
