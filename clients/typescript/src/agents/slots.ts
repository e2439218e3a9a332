import type { Record as RecordMessage } from "../gen/onceward/v1/record_pb.ts";
import { joinKey } from "../keys/keys.ts";
import { base64Url } from "../wire/bytes.ts";

/** Returns a key's record; undefined if there is none. @throws OncewardError. */
type RecordLookup = (key: string) => Promise<RecordMessage | undefined>;

/** A model calls one tool less often in one step. Repeating the step takes one lookup for each call. */
export const MAX_CALLS_PER_STEP = 256;
/** A call remembers this many of the model responses that have made it: only those that run now are asked for. */
const MAX_RESPONSES = 64;

/** One call of a tool in a step. */
export interface Slot {
  readonly key: string;
  /** The base64url of the arguments' fingerprint. */
  readonly fingerprint: string;
  /** The framework's newest id of the call. */
  callId: string | undefined;
  /** The number of its calls that run in this process. */
  running: number;
  /** The last model responses of this process that have made the call: objects or names. */
  readonly responses: Set<object | string>;
}

/** Which call of the model a tool call is. */
export interface CallOrigin {
  /** The framework's id of the call: only to recognise the same call, never part of the key. */
  readonly callId?: string | undefined;
  /**
   * Any object or name that the calls of one model response share, and that no other response has, such as the id of its
   * message. Default: calls that run at the same time are of one response.
   */
  readonly response?: object | string | undefined;
}

/** Stands for the model response of calls that name none. */
const NO_RESPONSE = {};

/** The calls of one tool in one step, each with its key and its arguments. */
export class StepSlots {
  readonly #lookUp: RecordLookup;
  readonly #parts: readonly (string | number)[];
  readonly #slots: Slot[] = [];
  #found: Promise<void> | undefined;

  /** @param parts name the run, the step and the tool. A key is made of them and, from the second call on, an index. */
  constructor(lookUp: RecordLookup, parts: readonly (string | number)[]) {
    this.#lookUp = lookUp;
    this.#parts = parts;
  }

  /**
   * Returns the slot of a call, marked as running:
   *
   * 1. the slot of the same call, if the framework repeats one;
   * 2. else a slot with the same arguments that the model response has not used;
   * 3. else "changed", if an earlier attempt of the step made a call that this attempt has not made: this call may be its
   *    repetition with other arguments;
   * 4. else a new slot, or "full".
   *
   * @throws OncewardError if the service can't be asked for the calls of earlier attempts.
   */
  async take(fingerprint: string, origin: CallOrigin): Promise<Slot | "changed" | "full"> {
    await this.#findEarlier();
    const { callId, response = NO_RESPONSE } = origin;
    const same = this.#slots.filter((slot) => slot.fingerprint === fingerprint);
    const isFree = (slot: Slot) =>
      origin.response === undefined ? slot.running === 0 : !slot.responses.has(response);
    const repeated = same.find((slot) => callId !== undefined && slot.callId === callId);
    let slot = repeated ?? same.find(isFree);
    if (slot === undefined) {
      if (this.#slots.some(({ responses }) => !responses.has(response))) return "changed";
      if (this.#slots.length >= MAX_CALLS_PER_STEP) return "full";
      slot = this.#add(fingerprint);
    }
    slot.callId = callId;
    slot.running++;
    slot.responses.add(response);
    const [oldest] = slot.responses;
    if (slot.responses.size > MAX_RESPONSES && oldest !== undefined) slot.responses.delete(oldest);
    return slot;
  }

  /** Asks the service, once, for the calls of earlier attempts in any process. */
  async #findEarlier(): Promise<void> {
    this.#found ??= this.#find();
    try {
      await this.#found;
    } catch (error) {
      this.#found = undefined;
      throw error;
    }
  }

  async #find(): Promise<void> {
    while (this.#slots.length < MAX_CALLS_PER_STEP) {
      const record = await this.#lookUp(this.#nextKey());
      if (record === undefined) return;
      this.#add(base64Url(record.fingerprint));
    }
  }

  #add(fingerprint: string): Slot {
    const slot: Slot = {
      key: this.#nextKey(),
      fingerprint,
      callId: undefined,
      running: 0,
      responses: new Set(),
    };
    this.#slots.push(slot);
    return slot;
  }

  #nextKey(): string {
    const index = this.#slots.length;
    return index === 0 ? joinKey(...this.#parts) : joinKey(...this.#parts, index);
  }
}
