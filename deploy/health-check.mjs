// Exits with 0 if the replica of this container answers /livez with 200. Reads the same settings as the replica.
import http from "node:http";
import https from "node:https";

/** Shorter than the time-out of HEALTHCHECK, so that this process exits by itself. */
const TIMEOUT_MS = 2500;
/** A server that listens on all addresses is reached on loopback. */
const LOOPBACK = new Map([
  ["0.0.0.0", "127.0.0.1"],
  ["::", "::1"],
]);

const { env } = process;
const bound = env.ONCEWARD_MANAGEMENT_HOST || env.ONCEWARD_HOST || "127.0.0.1";
const client = env.ONCEWARD_TLS_CERT ? https : http;
const request = client.get({
  host: LOOPBACK.get(bound) ?? bound,
  port: env.ONCEWARD_MANAGEMENT_PORT || 9090,
  path: "/livez",
  timeout: TIMEOUT_MS,
  // The certificate names the service's host names, not this address.
  rejectUnauthorized: false,
});
request.on("response", ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1));
request.on("timeout", () => process.exit(1));
request.on("error", () => process.exit(1));
