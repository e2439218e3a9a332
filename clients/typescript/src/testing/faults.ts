import { type RefusalReason, refusal } from "./refusal.ts";

/** A call of the service, alone or as an item of a batch. */
export type CallName = "claim" | "complete" | "release" | "extendLease" | "lookup";

interface Fault {
  readonly call: CallName;
  /** Undefined: the call takes effect, and its reply is lost. */
  readonly reason: RefusalReason | undefined;
  /** How many more calls it meets. */
  timesLeft: number;
}

/**
 * What is to go wrong. Several faults of the same call are used up in order. The client retries what is worth retrying,
 * as it does with a real service, so that a single one may pass unseen: then the code under test is safe from it.
 */
export class Faults {
  #pending: Fault[] = [];

  /**
   * The next calls of this kind, as many as `times` says (Infinity: until `clear`), have no effect and are refused. With
   * reason
   *
   * - `DATABASE_UNAVAILABLE`, `OVERLOADED`, `RECORD_CONTENDED`, `SHUTTING_DOWN`, `DEADLINE_EXCEEDED`: the client tries
   *   again, for as long as it has patience (`timeoutMs`).
   * - any other: it gives up at once. `failNext("complete", "INTERNAL")` leaves behind what a process does that dies
   *   between effect and Complete: a claim in progress until its lease runs out.
   */
  failNext(call: CallName, reason: RefusalReason, times = 1): void {
    this.#pending.push({ call, reason, timesLeft: times });
  }

  /** The next call of this kind takes effect, but its caller is told that the service is away, and asks again. */
  loseNextReply(call: CallName): void {
    this.#pending.push({ call, reason: undefined, timesLeft: 1 });
  }

  /** Nothing is to go wrong any more. */
  clear(): void {
    this.#pending = [];
  }

  /** Makes a call, or lets it go wrong. @throws OncewardError. */
  async around<T>(call: CallName, answer: () => T | Promise<T>): Promise<T> {
    const fault = this.#take(call);
    if (fault?.reason !== undefined) throw refusal(fault.reason, `The test lets this ${call} fail.`);
    const reply = await answer();
    if (fault === undefined) return reply;
    throw refusal("DATABASE_UNAVAILABLE", `The test lets the reply to this ${call} get lost.`);
  }

  #take(call: CallName): Fault | undefined {
    const fault = this.#pending.find((pending) => pending.call === call);
    if (fault === undefined) return undefined;
    fault.timesLeft--;
    if (fault.timesLeft <= 0) this.#pending = this.#pending.filter((pending) => pending !== fault);
    return fault;
  }
}
