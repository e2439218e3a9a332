import type { Context } from "@temporalio/activity";

/**
 * Sends Temporal's heartbeats until `end`, with the details of the last attempt's: otherwise an activity with a heartbeat
 * timeout fails while it waits for another worker. Once its function runs, an activity sends its own.
 */
export function startHeartbeats({ info, heartbeat }: Context): { end(): void } {
  const { heartbeatTimeoutMs, heartbeatDetails, isLocal } = info;
  if (!heartbeatTimeoutMs || isLocal) return { end() {} };
  const timer = setInterval(() => heartbeat(heartbeatDetails), heartbeatTimeoutMs / 3);
  return { end: () => clearInterval(timer) };
}
