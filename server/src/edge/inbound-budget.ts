import type { Readable } from "node:stream";
import { Refusal } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";

/**
 * The memory of a process for request messages that arrive in several pieces. A message that arrives in one
 * piece needs none of it.
 */
export interface InboundBudget {
  /** Returns one connection's part of the budget. */
  ofConnection(): ConnectionInboundBudget;
}

export interface ConnectionInboundBudget {
  /**
   * Reserves memory for a whole message before more of it is read, so that each message that was begun can be
   * completed. Returns a function that releases the memory, or a promise of it while there is not enough.
   *
   * @throws Refusal OVERLOADED after five seconds without enough memory, or at once if too many messages
   *   wait. The call had no effect.
   */
  reserve(principal: Principal, bytes: number): Release | Promise<Release>;
}

/** Releases a reservation; further calls do nothing. */
export type Release = () => void;

export interface InboundLimits {
  readonly maxBytes: number;
  readonly maxTenantBytes: number;
  readonly maxConnectionBytes: number;
  /** How long a message waits for memory. */
  readonly maxWaitMs: number;
}

const MIB = 1024 * 1024;
/**
 * Six of the largest messages; two of one connection and three of one tenant, so that others have room too.
 */
const LIMITS: InboundLimits = {
  maxBytes: 24 * MIB,
  maxTenantBytes: 12 * MIB,
  maxConnectionBytes: 9 * MIB,
  maxWaitMs: 5000,
};
/** Each waiting message leaves up to 64 KiB in its stream's HTTP/2 window or in its socket's buffer. */
const MAX_WAITING = 128;
const RETRY_AFTER_MS = 500;
/** The key of operators' messages among those of tenants: operators share one tenant's part. */
const OPERATORS = -1;

interface Usage {
  bytes: number;
}

interface Waiting {
  readonly connection: Usage;
  readonly tenant: Usage;
  readonly bytes: number;
  readonly resolve: (release: Release) => void;
}

/** @see InboundBudget */
export function createInboundBudget(limits = LIMITS): InboundBudget {
  const { maxBytes, maxTenantBytes, maxConnectionBytes, maxWaitMs } = limits;
  const all: Usage = { bytes: 0 };
  const tenants = new Map<number, Usage>();
  const waiting = new Set<Waiting>();

  function usageOf(principal: Principal): Usage {
    const id = principal.role === "OPERATOR" ? OPERATORS : principal.tenant.id;
    const usage = tenants.get(id) ?? { bytes: 0 };
    tenants.set(id, usage);
    return usage;
  }

  function tryReserve(connection: Usage, tenant: Usage, bytes: number): Release | undefined {
    const fits =
      all.bytes + bytes <= maxBytes &&
      tenant.bytes + bytes <= maxTenantBytes &&
      connection.bytes + bytes <= maxConnectionBytes;
    if (!fits) return undefined;
    for (const usage of [all, tenant, connection]) usage.bytes += bytes;
    let released = false;
    return () => {
      if (released) return;
      released = true;
      for (const usage of [all, tenant, connection]) usage.bytes -= bytes;
      admitWaiting();
    };
  }

  /**
   * Admits waiting messages in the order of their arrival, except those of a tenant or connection at its
   * limit.
   */
  function admitWaiting(): void {
    for (const each of waiting) {
      const release = tryReserve(each.connection, each.tenant, each.bytes);
      if (release === undefined) continue;
      waiting.delete(each);
      each.resolve(release);
    }
    for (const [id, { bytes }] of tenants) if (bytes === 0 && waiting.size === 0) tenants.delete(id);
  }

  function waitForMemory(connection: Usage, tenant: Usage, bytes: number): Promise<Release> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.delete(entry);
        reject(overloaded());
      }, maxWaitMs);
      const entry: Waiting = {
        connection,
        tenant,
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
    ofConnection() {
      const connection: Usage = { bytes: 0 };
      return {
        reserve(principal, bytes) {
          const tenant = usageOf(principal);
          const release = tryReserve(connection, tenant, bytes);
          if (release !== undefined) return release;
          if (waiting.size >= MAX_WAITING) throw overloaded();
          return waitForMemory(connection, tenant, bytes);
        },
      };
    },
  };
}

function overloaded(): Refusal {
  const message = "This replica has more incomplete messages than it accepts.";
  return new Refusal("OVERLOADED", message, { retryAfterMs: RETRY_AFTER_MS });
}

/** Assembles a message from the pieces of a request's body. */
export interface MessageAssembler {
  /** Adds a piece, or throws an error that refuses the message. */
  push(piece: Buffer): void;
  /**
   * The size of the whole message, at most; undefined if it is not known yet, or if the message is complete.
   */
  readonly incompleteBytes: number | undefined;
}

/**
 * Reads a request's body into an assembler; resolves at its end. Nothing of the body is read before this
 * call. A message that does not arrive in one piece waits for memory of the budget first, and so does its
 * sender.
 *
 * After a refusal, the rest of the body is read and dropped, so that its sender gets to the answer.
 *
 * @throws as the assembler; Refusal OVERLOADED as `reserve`; CANCELLED if the caller leaves first.
 */
export function readBody(
  body: Readable,
  assembler: MessageAssembler,
  budget: ConnectionInboundBudget,
  principal: Principal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    // The caller left while it was authenticated: the body has no event left.
    if (body.destroyed) {
      reject(callerLeft());
      return;
    }
    let ended = false;
    let reserved = false;
    let release: Release | undefined;

    function end(): void {
      ended = true;
      release?.();
    }

    function refuse(error: unknown): void {
      end();
      reject(error);
      body.resume();
    }

    function resume(given: Release): void {
      release = given;
      if (ended) given();
      else body.resume();
    }

    function reserve(bytes: number): void {
      reserved = true;
      const given = budget.reserve(principal, bytes);
      if (given instanceof Promise) {
        body.pause();
        given.then(resume, refuse);
      } else release = given;
    }

    body.on("data", (piece: Buffer) => {
      if (ended) return;
      try {
        assembler.push(piece);
        const { incompleteBytes } = assembler;
        if (incompleteBytes !== undefined && !reserved) reserve(incompleteBytes);
      } catch (error) {
        refuse(error);
      }
    });
    body.on("end", () => {
      end();
      resolve();
    });
    body.on("close", () => {
      if (ended) return;
      end();
      reject(callerLeft());
    });
  });
}

function callerLeft(): Refusal {
  return new Refusal("CANCELLED", "The caller went away.");
}
