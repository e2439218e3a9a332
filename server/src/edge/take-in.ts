import type { Readable } from "node:stream";
import { Refusal } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";
import type { ConnectionBytes, GiveBack } from "./arriving-bytes.ts";

/** Puts a message together. */
export interface Intake {
  /** Takes a piece, or throws what refuses the message. */
  push(piece: Buffer): void;
  /** How large the whole is, at the most; undefined if that is not known yet, or the whole is there. */
  readonly wantedBytes: number | undefined;
}

/**
 * Gives every piece of a request to an intake, and resolves when the last one has come. Nothing is read before the call. A
 * message that doesn't come at once has to have room first; meanwhile its sender waits.
 *
 * After a refusal the rest is read and dropped, so that its sender gets to the answer.
 *
 * @throws what the intake does; Refusal OVERLOADED as `ConnectionBytes`; CANCELLED if the caller goes away first.
 */
export function takeIn(
  request: Readable,
  intake: Intake,
  room: ConnectionBytes,
  principal: Principal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    let giveBack: GiveBack | undefined;
    let hasAsked = false;

    function end(): void {
      isOver = true;
      giveBack?.();
    }

    function refuse(error: unknown): void {
      end();
      reject(error);
      request.resume();
    }

    function begin(given: GiveBack): void {
      giveBack = given;
      if (isOver) given();
      else request.resume();
    }

    function askForRoom(bytes: number): void {
      hasAsked = true;
      const given = room.reserve(principal, bytes);
      if (given instanceof Promise) {
        request.pause();
        given.then(begin, refuse);
      } else giveBack = given;
    }

    request.on("data", (piece: Buffer) => {
      if (isOver) return;
      try {
        intake.push(piece);
        const { wantedBytes } = intake;
        if (wantedBytes !== undefined && !hasAsked) askForRoom(wantedBytes);
      } catch (error) {
        refuse(error);
      }
    });
    request.on("end", () => {
      end();
      resolve();
    });
    request.on("close", () => {
      end();
      reject(new Refusal("CANCELLED", "The caller went away."));
    });
  });
}
