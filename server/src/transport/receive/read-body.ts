import type { Readable } from "node:stream";
import { Refusal } from "../../domain/refusal.ts";
import type { Principal } from "../../domain/tenant.ts";
import type { ConnectionInboundBudget, Release } from "../bounds/memory-budgets.ts";

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
  return new Refusal("CANCELLED", "The caller disconnected.");
}

/**
 * Joins the pieces of a message. It copies them: a piece keeps the whole buffer alive that was read from the
 * socket, and pieces of one byte each would take a hundred times their size.
 *
 * @param start Bytes before the first piece; they are neither copied nor changed.
 */
export function createByteCollector(start: Buffer = Buffer.alloc(0)) {
  let space = start;
  let byteLength = start.byteLength;
  return {
    get byteLength(): number {
      return byteLength;
    },
    push(piece: Uint8Array): void {
      const needed = byteLength + piece.byteLength;
      if (needed > space.byteLength) {
        // The exact size of the first piece, which is mostly the only one; then doubled, so that a byte is
        // copied once or twice.
        const grown = Buffer.allocUnsafeSlow(
          byteLength === 0 ? needed : Math.max(needed, 2 * space.byteLength),
        );
        space.copy(grown, 0, 0, byteLength);
        space = grown;
      }
      space.set(piece, byteLength);
      byteLength = needed;
    },
    /** Returns a view of the bytes so far; later pieces do not change it. */
    view: () => space.subarray(0, byteLength),
  };
}
