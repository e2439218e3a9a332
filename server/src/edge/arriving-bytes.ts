import { Refusal } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";

/** Room for messages of which a part has come; one that comes whole at once needs none. */
export interface ArrivingBytes {
  /** The same room, of which one connection has a part. */
  ofConnection(): ConnectionBytes;
}

export interface ConnectionBytes {
  /**
   * Sets room aside for a whole message before more of it is read, so that each that was begun can be finished. Returns what
   * gives the room back, or, while there is none, a promise of it.
   *
   * @throws Refusal OVERLOADED after five seconds without room, or at once if very many wait: nothing happened.
   */
  reserve(principal: Principal, bytes: number): GiveBack | Promise<GiveBack>;
}

export type GiveBack = () => void;

export interface ArrivingBytesLimits {
  readonly maxBytes: number;
  readonly maxTenantBytes: number;
  readonly maxConnectionBytes: number;
  /** How long a message waits for room. */
  readonly maxWaitMs: number;
}

/** Each leaves up to 64 KiB in the window of its stream, or in its socket's buffer. */
const MAX_WAITING = 128;
const RETRY_AFTER_MS = 500;

interface Waiting {
  readonly connection: Share;
  readonly tenant: Share;
  readonly bytes: number;
  readonly resolve: (giveBack: GiveBack) => void;
}

interface Share {
  bytes: number;
}

const MIB = 1024 * 1024;

/** Six of the largest messages; two of a connection, and three of a tenant, so that another one has its turn. */
const LIMITS: ArrivingBytesLimits = {
  maxBytes: 24 * MIB,
  maxTenantBytes: 12 * MIB,
  maxConnectionBytes: 9 * MIB,
  maxWaitMs: 5000,
};

/** @see ArrivingBytes */
export function createArrivingBytes(limits = LIMITS): ArrivingBytes {
  const { maxBytes, maxTenantBytes, maxConnectionBytes, maxWaitMs } = limits;
  const all: Share = { bytes: 0 };
  const tenants = new Map<number, Share>();
  const waiting = new Set<Waiting>();

  function tenantShare(principal: Principal): Share {
    // Operators are few, and known to each other.
    const id = principal.role === "OPERATOR" ? OPERATORS : principal.tenant.id;
    const share = tenants.get(id) ?? { bytes: 0 };
    tenants.set(id, share);
    return share;
  }

  function take(connection: Share, tenant: Share, bytes: number): GiveBack | undefined {
    const fits =
      all.bytes + bytes <= maxBytes &&
      tenant.bytes + bytes <= maxTenantBytes &&
      connection.bytes + bytes <= maxConnectionBytes;
    if (!fits) return undefined;
    for (const share of [all, tenant, connection]) share.bytes += bytes;
    let isGiven = true;
    return () => {
      if (!isGiven) return;
      isGiven = false;
      for (const share of [all, tenant, connection]) share.bytes -= bytes;
      letIn();
    };
  }

  /** In the order in which they came, but for those whose tenant or connection has enough. */
  function letIn(): void {
    for (const each of waiting) {
      const giveBack = take(each.connection, each.tenant, each.bytes);
      if (giveBack === undefined) continue;
      waiting.delete(each);
      each.resolve(giveBack);
    }
    for (const [id, { bytes }] of tenants) if (bytes === 0 && waiting.size === 0) tenants.delete(id);
  }

  return {
    ofConnection() {
      const connection: Share = { bytes: 0 };
      return {
        reserve(principal, bytes) {
          const tenant = tenantShare(principal);
          const giveBack = take(connection, tenant, bytes);
          if (giveBack !== undefined) return giveBack;
          if (waiting.size >= MAX_WAITING) throw noRoom();
          return new Promise((resolve, reject) => {
            const timer = setTimeout(() => {
              waiting.delete(entry);
              reject(noRoom());
            }, maxWaitMs);
            const entry: Waiting = {
              connection,
              tenant,
              bytes,
              resolve(given) {
                clearTimeout(timer);
                resolve(given);
              },
            };
            waiting.add(entry);
          });
        },
      };
    },
  };
}

const OPERATORS = -1;

function noRoom(): Refusal {
  const message = "This replica has more unfinished messages than it takes on.";
  return new Refusal("OVERLOADED", message, { retryAfterMs: RETRY_AFTER_MS });
}
