import { once } from "node:events";
import { connect as connectPlain, isIP } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { WhoAmIResponse } from "@onceward/client/proto";
import { loadClients } from "./clients.ts";
import { messageOf } from "./failure.ts";
import { roleName } from "./new-key.ts";
import type { KeyRole } from "./profiles.ts";
import { formatMoment } from "./times.ts";

/** The outcome of one check of `onceward doctor`. */
export interface Check {
  readonly check: string;
  readonly result: "ok" | "warning" | "error" | "skipped";
  readonly detail: string;
}

/** The longest time of one step: long enough for a lost packet, short enough to wait for. */
export const STEP_TIMEOUT_MS = 5000;
/** Time enough to replace a certificate or a key. */
const SOON_MS = 14 * 86_400_000;
/** Clocks of machines with a time service agree better than this. */
const MAX_SKEW_MS = 2000;

/** Checks that the address accepts connections. @param check the name of the check. */
export async function checkConnection(address: URL, check = "connection"): Promise<Check> {
  const startedMs = performance.now();
  const socket = connectPlain(
    address.protocol === "unix:" ? { path: decodeURIComponent(address.pathname) } : endpointOf(address),
  );
  try {
    await once(socket, "connect", { signal: AbortSignal.timeout(STEP_TIMEOUT_MS) });
    return { check, result: "ok", detail: `accepted after ${since(startedMs)}` };
  } catch (error) {
    return { check, result: "error", detail: `${address.host || address.pathname}: ${reasonOf(error)}` };
  } finally {
    socket.destroy();
  }
}

/** Checks the certificate of an https address; warns of plain text to another machine. */
export async function checkTls(address: URL): Promise<Check> {
  const check = "TLS";
  if (address.protocol === "unix:") return { check, result: "ok", detail: "none: a socket of this machine" };
  if (address.protocol === "http:") {
    const detail = "none: API keys and results are sent in plain text";
    return { check, result: isLoopback(address) ? "ok" : "warning", detail };
  }
  const endpoint = endpointOf(address);
  const servername = isIP(endpoint.host) === 0 ? endpoint.host : "";
  const socket = connectTls({ ...endpoint, servername, ALPNProtocols: ["h2"] });
  try {
    await once(socket, "secureConnect", { signal: AbortSignal.timeout(STEP_TIMEOUT_MS) });
    return judgeCertificate(socket);
  } catch (error) {
    return { check, result: "error", detail: reasonOf(error) };
  } finally {
    socket.destroy();
  }
}

function judgeCertificate(socket: TLSSocket): Check {
  const check = "TLS";
  if (socket.alpnProtocol !== "h2")
    return { check, result: "error", detail: "the address does not offer HTTP/2" };
  const endsAt = new Date(socket.getPeerCertificate().valid_to);
  const detail = `${socket.getProtocol()}, certificate valid until ${endsAt.toISOString().slice(0, 10)}`;
  return { check, result: endsAt.getTime() - Date.now() < SOON_MS ? "warning" : "ok", detail };
}

/** Judges the service's answer to WhoAmI. @param role the role under which the profile keeps the key. */
export function judgeIdentity(role: KeyRole | "any", identity: WhoAmIResponse): Check {
  const { tenant, namespaces, expiresAt } = identity;
  const actual = roleName(identity.role);
  const limits = namespaces.length === 0 ? "" : `, only namespaces ${namespaces.join(", ")}`;
  const ends = expiresAt === undefined ? "" : `, expires ${formatMoment(expiresAt)}`;
  const detail = `${actual}${tenant && ` of tenant ${tenant}`}, ${identity.actor || "anonymous"}${limits}${ends}`;
  const check = `key: ${role}`;
  if (role !== "any" && role !== actual) {
    return { check, result: "error", detail: `its role is ${actual}: store it with --role ${actual}` };
  }
  const endsSoon = expiresAt !== undefined && timestampMs(expiresAt) - Date.now() < SOON_MS;
  return { check, result: endsSoon ? "warning" : "ok", detail };
}

/** Compares this machine's clock with the service's. @param serverMs the service's time when it answered. */
export function judgeClock(serverMs: number, sentMs: number, answeredMs: number): Check {
  // The service read its clock at some time during the call.
  const aheadMs = sentMs > serverMs ? sentMs - serverMs : Math.min(0, answeredMs - serverMs);
  const check = "clock";
  if (Math.abs(aheadMs) <= MAX_SKEW_MS)
    return { check, result: "ok", detail: "agrees with the service's within 2 s" };
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1);
  const detail = `this machine's is ${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} the service's`;
  return { check, result: "warning", detail };
}

/** Returns a failed check of a call. */
export async function failedCall(check: string, error: unknown): Promise<Check> {
  const { errorFromCall } = await loadClients();
  const { reason, message } = errorFromCall(error);
  return { check, result: "error", detail: `${reason}: ${message}` };
}

/** Returns the time since `performance.now()` was `startedMs`, such as "3 ms". */
function since(startedMs: number): string {
  return `${Math.round(performance.now() - startedMs)} ms`;
}

function endpointOf({ hostname, port, protocol }: URL) {
  const host = hostname.replace(/^\[|\]$/g, "");
  return { host, port: port === "" ? (protocol === "https:" ? 443 : 80) : Number(port) };
}

function isLoopback({ hostname }: URL): boolean {
  return (
    hostname === "localhost" || hostname === "[::1]" || (hostname.startsWith("127.") && isIP(hostname) === 4)
  );
}

function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === "AbortError")
    return `no answer within ${STEP_TIMEOUT_MS / 1000} s`;
  // A name with several addresses fails with one error for each.
  return error instanceof AggregateError ? error.errors.map(messageOf).join("; ") : messageOf(error);
}
