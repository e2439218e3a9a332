import { type RefusalReason, refusal } from "./refusal.ts";

/** A call of the service, alone or as an item of a batch. */
export type CallName = "claim" | "complete" | "release" | "extendLease" | "lookup";

interface Fault {
  readonly call: CallName;
  /** Undefined: the call takes effect, and its reply is lost. */
  readonly reason: RefusalReason | undefined;
  /** The number of further calls that it affects. */
  timesLeft: number;
}

/**
 * The faults to inject. Several faults of the same call are used up in order. The client retries as with a real
 * service, so a single fault may have no visible effect: then the code under test is safe from it.
 */
export class Faults {
  #pending: Fault[] = [];

  /**
   * Refuses the next `times` calls of this kind (Infinity: until `clear`), which then have no effect. If the reason's code is
   * UNAVAILABLE or DEADLINE_EXCEEDED, the client retries for up to `timeoutMs`; otherwise it gives up at once.
   * `failNext("complete", "INTERNAL")` has the result of a process that dies between effect and Complete: a claim in progress
   * until its lease expires.
   */
  failNext(call: CallName, reason: RefusalReason, times = 1): void {
    this.#pending.push({ call, reason, timesLeft: times });
  }

  /**
   * Lets the next call of this kind take effect, but loses its reply: the client receives DATABASE_UNAVAILABLE, and
   * retries.
   */
  loseNextReply(call: CallName): void {
    this.#pending.push({ call, reason: undefined, timesLeft: 1 });
  }

  /** Removes all faults. */
  clear(): void {
    this.#pending = [];
  }

  /** Makes a call, or injects a fault. @throws ConnectError. */
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
