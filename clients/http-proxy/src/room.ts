/** The part of a room that one request holds. */
export interface HeldRoom {
  /** Returns whether there was room; the bytes are held in any case. */
  add(bytes: number): boolean;
  free(): void;
}

/**
 * Memory that requests share. A caller may hold a half of what the others leave: however much one sends, there is room for another.
 */
export class SharedRoom {
  readonly #bytes: number;
  readonly #byCaller = new Map<string, number>();
  #held = 0;

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  /** Returns the room of one request. It must be freed once the request has ended. */
  of(caller: string): HeldRoom {
    let held = 0;
    return {
      add: (bytes) => {
        held += bytes;
        return this.#add(caller, bytes);
      },
      free: () => {
        this.#add(caller, -held);
        held = 0;
      },
    };
  }

  #add(caller: string, bytes: number): boolean {
    this.#held += bytes;
    const own = (this.#byCaller.get(caller) ?? 0) + bytes;
    if (own === 0) this.#byCaller.delete(caller);
    else this.#byCaller.set(caller, own);
    return own <= this.#bytes - this.#held;
  }
}
