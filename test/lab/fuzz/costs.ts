import type { DescMethod } from "@bufbuild/protobuf";
import { RPCS, roleOf } from "../../support/attacks/hostile-calls.ts";
import { connectHttp2 } from "../../support/network/raw-grpc.ts";
import type { ServerProcess } from "../../support/servers/server-process.ts";
import { type LongestStall, longestStall } from "../../support/servers/stalls.ts";
import { COSTLY_TRANSPORTS, type CostlyTransport } from "./costly-calls.ts";
import { type CostlyRequest, costlyRequests } from "./costly-requests.ts";

/**
 * A server that runs `withStallProbe`, and the API key of each role; undefined to call without a credential.
 */
export interface CostlyVictim {
  readonly server: ServerProcess;
  readonly apiKeyOf: (role: ReturnType<typeof roleOf>) => string | undefined;
}

/** A request, the longest time that it blocked the server's event loop, and the code of its answer. */
export interface Cost {
  readonly what: string;
  readonly ms: number;
  readonly code: string;
}

export interface CostsOptions {
  readonly by: keyof LongestStall;
  /** A request that took longer is sent again: only the shortest of its times is its own cost. */
  readonly suspectMs: number;
  /** The RPCs to call; all of them by default. */
  readonly isMeasured?: (method: DescMethod) => boolean;
}

const ATTEMPTS = 5;

/**
 * Sends every costly request to every RPC by every transport, in sequence. The requests of an RPC and a
 * transport are measured together first, and one by one only if they take long.
 */
export async function measureCosts(victim: CostlyVictim, options: CostsOptions): Promise<readonly Cost[]> {
  const { server, apiKeyOf } = victim;
  const { by, suspectMs, isMeasured = () => true } = options;
  const session = await connectHttp2(server.grpcPort);
  const costs: Cost[] = [];

  async function measure(method: DescMethod, transport: CostlyTransport, requests: readonly CostlyRequest[]) {
    const target = { server, session, apiKey: apiKeyOf(roleOf(method)) };
    const codes: string[] = [];
    await longestStall(server);
    for (const request of requests) codes.push(await transport.send(target, method, request));
    const { [by]: togetherMs } = await longestStall(server);
    for (const [i, request] of requests.entries()) {
      let ms = togetherMs;
      for (let attempt = 0; attempt < ATTEMPTS && ms > suspectMs; attempt++) {
        await longestStall(server);
        await transport.send(target, method, request);
        ms = Math.min(ms, (await longestStall(server))[by]);
      }
      const what = `${method.parent.name}.${method.name} by ${transport.name}: ${request.name}`;
      costs.push({ what, ms, code: codes[i] ?? "" });
    }
  }

  try {
    for (const [, method] of RPCS.filter(([, each]) => isMeasured(each))) {
      const requests = costlyRequests(method);
      for (const transport of COSTLY_TRANSPORTS) {
        await measure(
          method,
          transport,
          requests.filter((request) => transport.takes(request, method)),
        );
      }
    }
  } finally {
    session.destroy();
  }
  return costs;
}
