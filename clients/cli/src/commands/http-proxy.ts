import { once } from "node:events";
import { createReadStream } from "node:fs";
import { text } from "node:stream/consumers";
import type { RouteConfig } from "@onceward/http-proxy";
import { type Command, InvalidArgumentError } from "commander";
import { createOnceward } from "../clients.ts";
import { type GlobalOptions, resolveCredentials } from "../credentials.ts";
import { UsageError } from "../failure.ts";
import type { Host } from "../host.ts";
import { loadOptional } from "../optional-package.ts";
import { command } from "./group.ts";

/** Hundreds of certificates. */
const MAX_PEM_BYTES = 1024 * 1024;

interface Flags {
  readonly upstream: URL;
  readonly config: string;
  readonly listen: Address;
  readonly management: Address;
  readonly drain: number;
  readonly check?: true;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly clientCa?: string;
  readonly trustForwardedProto?: true;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/** A collector that is down does not hold up the end of the program for long. */
const EXPORT_LIMIT_MS = 2000;
/** An export without an answer would hold the process for as long as its own time-out. */
const EXIT_LIMIT_MS = 1000;
/** Not 8080, where a server of Onceward on the same machine has its HTTP port. */
const LISTEN: Address = { host: "127.0.0.1", port: 8090 };
const MANAGEMENT: Address = { host: "127.0.0.1", port: 9465 };

/** Returns `onceward http-proxy`, which the package `@onceward/http-proxy` carries out. */
export function httpProxyCommand(host: Host): Command {
  return command(
    "http-proxy",
    "Guards the routes of an unmodified HTTP service, and passes all other requests. Needs the package @onceward/http-proxy and an API key of the role CALLER.",
    "http-proxy --upstream http://127.0.0.1:3000 --config routes.yaml",
    "http-proxy --upstream http://127.0.0.1:3000 --config routes.yaml --listen 0.0.0.0:8090",
    "http-proxy --upstream http://127.0.0.1:3000 --config routes.yaml --check",
  )
    .requiredOption("--upstream <url>", "the service's address", parseUrl)
    .requiredOption("--config <file>", "the guarded routes, in YAML or JSON")
    .option("--listen <address>", "host and port", parseAddress, LISTEN)
    .option("--management <address>", "host and port of health and metrics", parseAddress, MANAGEMENT)
    .option("--tls-cert <file>", "the certificate for clients and its chain, in PEM; by default no TLS")
    .option("--tls-key <file>", "the certificate's private key, in PEM")
    .option("--client-ca <file>", "the authorities of clients' certificates, in PEM: every client needs one")
    .option(
      "--trust-forwarded-proto",
      "take the scheme of a request from X-Forwarded-Proto, which a gateway sets",
    )
    .option("--drain <seconds>", "how long requests may run after SIGTERM", parseSeconds, 30)
    .option(
      "--check",
      "check the configuration, Onceward, the service and the keys of issuers, as doctor does, and exit",
    )
    .action(async (flags: Flags, self: Command) => runHttpProxy(host, flags, self.optsWithGlobals()));
}

type Package = typeof import("@onceward/http-proxy");

async function runHttpProxy(host: Host, flags: Flags, globals: GlobalOptions): Promise<void> {
  const { parseConfig, ConfigError, MAX_CONFIG_BYTES, ...start } = await loadOptional(
    "@onceward/http-proxy",
    () => import("@onceward/http-proxy"),
  );
  const config = await readConfig(flags.config, MAX_CONFIG_BYTES);
  try {
    const routes = parseConfig(config, flags.config);
    if (flags.check) {
      const { checkHttpProxy } = await import("./http-proxy-check.ts");
      await checkHttpProxy(host, globals, { upstream: flags.upstream, routes });
    } else await guardUntilStopped(host, flags, globals, { routes, ...start });
  } catch (error) {
    if (error instanceof ConfigError || error instanceof TypeError) throw new UsageError(error.message);
    if (error instanceof Error && "port" in error && "address" in error)
      throw new UsageError(
        `The proxy can't listen on ${error.address}:${error.port} (${error.message}). Give another --listen or --management.`,
      );
    throw error;
  }
}

async function guardUntilStopped(
  host: Host,
  flags: Flags,
  globals: GlobalOptions,
  {
    routes,
    startProxy,
    openTracing,
  }: { readonly routes: readonly RouteConfig[] } & Pick<Package, "startProxy" | "openTracing">,
): Promise<void> {
  const { upstream, listen, management, trustForwardedProto } = flags;
  const warn = (line: string) => host.warn(`onceward: ${line}\n`);
  const credentials = await resolveCredentials(host, globals, "caller");
  const tracing = await openTracing(host.env, warn);
  const onceward = await createOnceward({ ...credentials, owner: "http-proxy", trace: tracing?.trace });
  try {
    const tls = await readTls(flags);
    const serving = { upstream, routes, listen, management, tls, trustForwardedProto };
    const proxy = await startProxy({ onceward, ...serving, warn, tracing });
    warn(
      `guarding ${routes.length === 1 ? "1 route" : `${routes.length} routes`} of ${upstream.origin} on ${listen.host}:${proxy.port}; health and metrics on ${management.host}:${proxy.managementPort}`,
    );
    await Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")]);
    await proxy.close(flags.drain * 1000);
  } finally {
    await onceward.close();
    await tracing?.close(EXPORT_LIMIT_MS);
  }
  // After a signal. Where nothing holds the process, it ends before.
  setTimeout(() => process.exit(), EXIT_LIMIT_MS).unref();
}

/** Reads the files of TLS; undefined: none are named. */
async function readTls({ tlsCert, tlsKey, clientCa }: Flags) {
  if (tlsCert === undefined && tlsKey === undefined && clientCa === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined)
    throw new UsageError("TLS needs both --tls-cert and --tls-key.");
  const read = async (file: string) => await readConfig(file, MAX_PEM_BYTES);
  return {
    cert: await read(tlsCert),
    key: await read(tlsKey),
    ...(clientCa !== undefined && { clientCa: await read(clientCa) }),
  };
}

/** Reads one byte more than allowed, which the parser refuses. */
async function readConfig(file: string, maxBytes: number): Promise<string> {
  return await text(createReadStream(file, { end: maxBytes })).catch((error: Error) => {
    throw new UsageError(`${file} can't be read: ${error.message}.`);
  });
}

function parseUrl(value: string): URL {
  const url = URL.parse(value);
  if (url?.protocol === "http:" || url?.protocol === "https:") return url;
  throw new InvalidArgumentError("It must be an http or https URL.");
}

function parseAddress(value: string): Address {
  const url = URL.parse(`http://${value}`);
  const [, port] = /:(\d+)$/.exec(value) ?? [];
  if (url === null || url.pathname !== "/" || port === undefined)
    throw new InvalidArgumentError("It must be a host and a port, such as 0.0.0.0:8090.");
  return { host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(port) };
}

function parseSeconds(value: string): number {
  if (/^\d{1,4}$/.test(value)) return Number(value);
  throw new InvalidArgumentError("It must be a whole number of seconds, 0-9999.");
}
