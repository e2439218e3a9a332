import type { DescMethod } from "@bufbuild/protobuf";
import { MAX_MESSAGE_BYTES } from "../../domain/limits.ts";
import { Refusal } from "../../domain/refusal.ts";
import type { Principal } from "../../domain/tenant.ts";
import { IdempotencyService } from "../../gen/onceward/v1/idempotency_pb.ts";
import { BUDGET_SHARE } from "./memory-limit.ts";

/**
 * The memory of a process for request messages that arrive in several pieces. A message that arrives in one
 * piece needs none of it.
 */
export type InboundBudget = ReturnType<typeof createInboundBudget>;

export type ConnectionInboundBudget = ReturnType<InboundBudget["ofConnection"]>;

/** Releases a reservation; further calls do nothing. */
export type Release = () => void;

const KIB = 1024;
const MIB = 1024 * KIB;
/** How soon a refused call may be retried. */
const RETRY_AFTER_MS = 500;
/**
 * Six of the largest messages; two of one connection and three of one tenant, so that others have room too.
 */
const INBOUND_LIMITS = {
  maxBytes: 24 * MIB,
  maxTenantBytes: 12 * MIB,
  maxConnectionBytes: 9 * MIB,
  /** How long a message waits for memory. */
  maxWaitMs: 5000,
};
/** Each waiting message leaves up to 64 KiB in its stream's HTTP/2 window or in its socket's buffer. */
const MAX_WAITING_MESSAGES = 128;
/** The key of operators' messages among those of tenants: operators share one tenant's part. */
const OPERATORS = -1;

/**
 * The largest replies that are in progress or not read yet, with 1 GiB of memory or more: 64 of a process, 32 of a
 * tenant, and 16 of a connection.
 */
const REPLY_LIMITS = {
  maxBytes: 64 * MAX_MESSAGE_BYTES * BUDGET_SHARE,
  maxTenantBytes: 32 * MAX_MESSAGE_BYTES * BUDGET_SHARE,
  maxConnectionBytes: 16 * MAX_MESSAGE_BYTES * BUDGET_SHARE,
  maxWaitMs: 5000,
};

/**
 * The memory of a process for replies that can be many times as large as their requests. A call reserves the
 * largest reply before it begins, and releases it when its peer has read the reply: peers that do not read
 * use up their own part, and others are served.
 */
export function createReplyBudget(limits = REPLY_LIMITS): InboundBudget {
  return createInboundBudget(limits);
}

/**
 * Reserves the largest reply of a call of Batch until its response closes. Other replies have about the size
 * of one result.
 *
 * @throws Refusal OVERLOADED as `reserve`.
 */
export async function reserveReply(
  budget: ConnectionInboundBudget,
  principal: Principal,
  method: DescMethod,
  response: Closing & { readonly closed: boolean; readonly destroyed: boolean },
): Promise<void> {
  if (method !== IdempotencyService.method.batch) return;
  const release = await budget.reserve(principal, MAX_MESSAGE_BYTES);
  if (response.closed || response.destroyed) release();
  else response.once("close", release);
}

interface Usage {
  bytes: number;
  readonly maxBytes: number;
}

interface Waiting {
  readonly usages: readonly Usage[];
  readonly bytes: number;
  readonly resolve: (release: Release) => void;
}

/** Creates an inbound budget. */
export function createInboundBudget(limits = INBOUND_LIMITS) {
  const { maxBytes, maxTenantBytes, maxConnectionBytes, maxWaitMs } = limits;
  const all: Usage = { bytes: 0, maxBytes };
  const tenants = new Map<number, Usage>();
  const waiting = new Set<Waiting>();

  function usageOf(principal: Principal): Usage {
    const id = principal.role === "OPERATOR" ? OPERATORS : principal.tenant.id;
    const usage = tenants.get(id) ?? { bytes: 0, maxBytes: maxTenantBytes };
    tenants.set(id, usage);
    return usage;
  }

  function tryReserve(usages: readonly Usage[], bytes: number): Release | undefined {
    if (usages.some((usage) => usage.bytes + bytes > usage.maxBytes)) return undefined;
    for (const usage of usages) usage.bytes += bytes;
    let released = false;
    return () => {
      if (released) return;
      released = true;
      for (const usage of usages) usage.bytes -= bytes;
      admitWaiting();
    };
  }

  /**
   * Admits waiting messages in the order of their arrival, except those of a tenant or connection at its
   * limit.
   */
  function admitWaiting(): void {
    for (const each of waiting) {
      const release = tryReserve(each.usages, each.bytes);
      if (release === undefined) continue;
      waiting.delete(each);
      each.resolve(release);
    }
    for (const [id, { bytes }] of tenants) if (bytes === 0 && waiting.size === 0) tenants.delete(id);
  }

  function waitForMemory(usages: readonly Usage[], bytes: number): Promise<Release> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.delete(entry);
        reject(overloaded());
      }, maxWaitMs);
      const entry: Waiting = {
        usages,
        bytes,
        resolve(release) {
          clearTimeout(timer);
          resolve(release);
        },
      };
      waiting.add(entry);
    });
  }

  return {
    /** Returns one connection's part of the budget. */
    ofConnection() {
      const connection: Usage = { bytes: 0, maxBytes: maxConnectionBytes };
      return {
        /**
         * Reserves memory for a whole message before more of it is read, so that each message that was begun can be
         * completed. Returns a function that releases the memory, or a promise of it while there is not enough: only then
         * does a reader pause its stream.
         *
         * @throws Refusal OVERLOADED after five seconds without enough memory, or at once if too many messages
         *   wait. The call had no effect.
         */
        reserve(principal: Principal, bytes: number): Release | Promise<Release> {
          const usages = [all, usageOf(principal), connection];
          const release = tryReserve(usages, bytes);
          if (release !== undefined) return release;
          if (waiting.size >= MAX_WAITING_MESSAGES) throw overloaded();
          return waitForMemory(usages, bytes);
        },
      };
    },
  };
}

function overloaded(): Refusal {
  const message = "This replica has more incomplete messages or unread replies than it accepts.";
  return new Refusal("OVERLOADED", message, { retryAfterMs: RETRY_AFTER_MS });
}

/**
 * The memory of a port for requests that are open: each takes some kilobytes, and its headers, from its arrival on. Without a
 * budget, connections that open as many as HTTP lets them would fill it with calls that wait for their turn.
 */
export type RequestBudget = ReturnType<typeof createRequestBudget>;

/** With 1 GiB of memory or more. Half of them may come from one address, such as a balancer's. */
const MAX_OPEN_REQUESTS = 32_768;
/** With 1 GiB of memory or more: 2 KiB for each request, which is four times those of a call with an API key. */
const MAX_OPEN_HEADER_BYTES = 64 * MIB;

/** Creates a budget of open requests and their headers. */
export function createRequestBudget(
  maxRequests = MAX_OPEN_REQUESTS * BUDGET_SHARE,
  maxHeaderBytes = MAX_OPEN_HEADER_BYTES * BUDGET_SHARE,
) {
  const addresses = new Map<string, { requests: number; headerBytes: number; connections: number }>();
  let requests = 0;
  let headerBytes = 0;
  const isFull = (open: number, bytes: number, share: number) =>
    open >= maxRequests * share || bytes > maxHeaderBytes * share;
  return {
    /** Returns the part of a connection from this address. */
    ofConnection(address: string) {
      const own = addresses.get(address) ?? { requests: 0, headerBytes: 0, connections: 0 };
      addresses.set(address, own);
      own.connections++;
      return {
        /** Counts a request as open until the returned function is called; counts nothing, and returns undefined, if there is no room. */
        open(bytes: number): (() => void) | undefined {
          if (
            isFull(requests, headerBytes + bytes, 1) ||
            isFull(own.requests, own.headerBytes + bytes, 1 / 2)
          )
            return undefined;
          const count = (sign: 1 | -1) => {
            requests += sign;
            headerBytes += sign * bytes;
            own.requests += sign;
            own.headerBytes += sign * bytes;
          };
          count(1);
          return () => count(-1);
        },
        /** To be called once, when the connection has ended. */
        end: () => {
          own.connections--;
          if (own.connections === 0) addresses.delete(address);
        },
      };
    },
  };
}

/**
 * The memory of one connection for reply bytes that are not flushed to it yet, because its peer does not read
 * them.
 */
export type OutboundBudget = ReturnType<typeof createOutboundBudget>;

interface Closing {
  once(event: "close", listener: () => void): unknown;
}

/** The unflushed reply bytes of all connections of a process. */
export type OutboundTotal = Usage;

/** With 1 GiB of memory or more (memory-limit.ts), as the next two. One gRPC connection may use two thirds of it. */
const MAX_OUTBOUND_BYTES = 384 * MIB;
/** A slow client that asks for 200 results of 1 MiB at once stays below it. */
const MAX_GRPC_CONNECTION_BYTES = 256 * MIB;
/** A connection has one request in progress. */
const MAX_HTTP_CONNECTION_BYTES = 32 * MIB;
/** A connection that reads is not refused because others don't. */
const RESERVED_BYTES = 256 * KIB;

/** Returns the total that the budgets of all connections share. */
export function createOutboundTotal(maxBytes = MAX_OUTBOUND_BYTES * BUDGET_SHARE): OutboundTotal {
  return { bytes: 0, maxBytes };
}

/** Returns the budget of a gRPC connection. */
export function outboundOfGrpcConnection(total: OutboundTotal): OutboundBudget {
  return createOutboundBudget(MAX_GRPC_CONNECTION_BYTES * BUDGET_SHARE, total);
}

/** Returns the budget of an HTTP/1.1 connection. */
export function outboundOfHttpConnection(total: OutboundTotal): OutboundBudget {
  return createOutboundBudget(MAX_HTTP_CONNECTION_BYTES * BUDGET_SHARE, total);
}

/**
 * HTTP limits the bytes that a peer may send, not those that it leaves unread: without a budget, a peer that
 * opens its windows and reads nothing would have all its replies kept in memory, of up to 4 MiB each and for
 * thousands of streams.
 *
 * @param maxBytes The limit of the connection. The reply that reaches it may exceed it.
 * @param reservedBytes Bytes that the connection may use even when the total is exhausted.
 */
export function createOutboundBudget(maxBytes: number, total: OutboundTotal, reservedBytes = RESERVED_BYTES) {
  let unflushedBytes = 0;
  const isExhausted = () =>
    unflushedBytes >= maxBytes || (total.bytes >= total.maxBytes && unflushedBytes >= reservedBytes);

  /** Returns a function that ends the count. */
  function count(bytes: number): () => void {
    unflushedBytes += bytes;
    total.bytes += bytes;
    return () => {
      unflushedBytes -= bytes;
      total.bytes -= bytes;
    };
  }

  return {
    /** Whether no further reply may be written. */
    isExhausted,
    /**
     * Refuses a call before it has an effect, if the budget is exhausted.
     *
     * @throws Refusal OVERLOADED.
     */
    admit(): void {
      if (!isExhausted()) return;
      const message = "There are too many replies that were not read.";
      throw new Refusal("OVERLOADED", message, { retryAfterMs: RETRY_AFTER_MS });
    },
    /**
     * Counts a reply until its HTTP/2 stream or HTTP/1.1 response closes: then the operating system has all of
     * it.
     */
    countUntilClosed: (stream: Closing, bytes: number) => void stream.once("close", count(bytes)),
    /**
     * Writes one of a stream's many replies, and counts it until the operating system has it or the stream
     * ends.
     */
    write: (stream: { write(reply: Buffer, written: () => void): unknown }, reply: Buffer) =>
      void stream.write(reply, count(reply.byteLength)),
  };
}
