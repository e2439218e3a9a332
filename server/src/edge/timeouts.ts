import type { IncomingHttpHeaders } from "node:http";
import { Refusal } from "../domain/refusal.ts";

/** The header in which a timeout passes connect-node unseen. */
export const TIMEOUT_HEADER = "onceward-timeout";

/**
 * Renames a protocol's timeout header, so that the pipeline enforces all deadlines: connect-node lets calls
 * that have already expired reach their handlers (decisions/0002).
 *
 * `grpc-timeout` is 1-8 digits and a unit (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md),
 * `connect-timeout-ms` 1-10 digits (https://connectrpc.com/docs/protocol).
 */
export function takeTimeoutHeader(headers: IncomingHttpHeaders): void {
  const grpc = headers["grpc-timeout"];
  const connect = headers["connect-timeout-ms"];
  delete headers["grpc-timeout"];
  delete headers["connect-timeout-ms"];
  if (typeof grpc === "string") headers[TIMEOUT_HEADER] = grpc;
  else if (typeof connect === "string") headers[TIMEOUT_HEADER] = `${connect}m`;
}

const FORMAT = /^(\d{1,10})([HMSmun])$/;
const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};
/** Longer than any call takes; a timer of Node is limited to 24 days. */
export const MAX_TIMEOUT_MS = 10 * 60_000;

/**
 * Parses the caller's timeout, in milliseconds, clamped to ten minutes; returns undefined if there is none.
 *
 * @throws Refusal INVALID_REQUEST if the header is malformed.
 */
export function parseTimeoutMs(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const [, digits, unit = ""] = FORMAT.exec(header) ?? [];
  const unitMs = UNIT_MS[unit];
  if (digits === undefined || unitMs === undefined) {
    const violation = {
      field: "timeout",
      description: "must be digits and, for gRPC, a unit of H, M, S, m, u or n",
    };
    throw new Refusal("INVALID_REQUEST", `${violation.field} ${violation.description}`, {
      violations: [violation],
    });
  }
  return Math.min(Number(digits) * unitMs, MAX_TIMEOUT_MS);
}
