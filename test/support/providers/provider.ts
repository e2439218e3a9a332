import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

/**
 * How a provider lets a caller find out whether it was charged: a second call with the key answers as the first, or with the latest
 * status; a key can be cancelled; a search by metadata finds a charge some time after it was made; or not at all.
 */
export type ProviderKind = "stored-answer" | "latest-status" | "cancel" | "search" | "no-key";

/** What `POST /charges` asks for. */
export interface ChargeRequest {
  /** What is to be charged once; the provider only counts by it. */
  readonly operation: string;
  /** The idempotency key; only metadata where a provider knows no keys. */
  readonly key: string;
  readonly attempt: number;
  readonly fencingToken: number;
}

/** A charge, as it is answered. */
export interface Charge extends ChargeRequest {
  /** Unique; 0 until it was made. */
  id: number;
  status: "running" | "succeeded" | "cancelled" | "refused";
  /** When it was made, by the provider's clock. */
  atMs: number;
}

export interface ProviderOptions {
  /** How long a search does not find a charge that was made. Default: 0. */
  readonly lagMs?: number;
  /** The provider's clock. Default: `performance.now`. */
  readonly nowMs?: () => number;
  /**
   * Called before a charge is made, and once it is made, before the answer: for as long as it takes, that lasts. Its fault refuses the
   * charge (503), or breaks the connection; before a charge is made, either keeps it from being made.
   */
  readonly on?: (
    moment: "asked" | "charged",
    request: ChargeRequest,
  ) => Promise<"refuse" | "break" | undefined>;
}

type Answer = readonly [status: number, body?: unknown];

/** A payment provider over loopback HTTP, which counts the charges of each operation. */
export class FakeProvider implements AsyncDisposable {
  readonly kind: ProviderKind;
  readonly #options: Required<ProviderOptions>;
  readonly #byKey = new Map<string, Charge[]>();
  readonly #byOperation = new Map<string, Charge[]>();
  #lastId = 0;
  readonly #server = createServer(async (request, response) => {
    const answer = await this.#answer(request);
    if (answer === undefined) request.socket.destroy();
    else response.writeHead(answer[0]).end(JSON.stringify(answer[1]));
  });

  constructor(
    kind: ProviderKind,
    { lagMs = 0, nowMs = () => performance.now(), on = async () => undefined }: ProviderOptions = {},
  ) {
    this.kind = kind;
    this.#options = { lagMs, nowMs, on };
  }

  /** Starts to listen on loopback. Returns the URL. */
  async listen(): Promise<string> {
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Returns the charges of an operation that were made and not cancelled, in their order. */
  chargesOf(operation: string): readonly Charge[] {
    return succeeded(this.#byOperation.get(operation)).sort((one, two) => one.id - two.id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }

  async #answer(request: IncomingMessage): Promise<Answer | undefined> {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://provider");
    const key = pathname.slice("/charges/".length);
    const known = this.#known(key);
    switch (`${request.method} ${this.kind}`) {
      case `POST ${this.kind}`:
        // A caller that dies within its request has asked for nothing.
        return await json(request).then(
          (asked) => this.#charge(asked as ChargeRequest),
          () => undefined,
        );
      case "GET latest-status":
        return known === undefined ? [404] : [200, known];
      case "GET search":
        return [200, this.#find(searchParams.get("key") ?? "")];
      case "DELETE cancel": {
        // A key that is not known is cancelled, too: a request that comes late is refused.
        const charge = known ?? this.#add({ operation: "", key, attempt: 0, fencingToken: 0 });
        charge.status = "cancelled";
        return [200, charge];
      }
      default:
        return [405];
    }
  }

  async #charge(request: ChargeRequest): Promise<Answer | undefined> {
    const known = this.kind === "search" || this.kind === "no-key" ? undefined : this.#known(request.key);
    if (known?.status === "cancelled") return [410, known];
    if (known?.status === "running" && this.kind !== "latest-status") return [409, known];
    if (known !== undefined) return [200, known];
    const charge = this.#add(request);
    const fault = await this.#options.on("asked", request);
    if (this.#isCancelled(charge)) return [410, charge];
    if (fault !== undefined) {
      charge.status = "refused";
      return fault === "refuse" ? [503] : undefined;
    }
    Object.assign(charge, { id: ++this.#lastId, status: "succeeded", atMs: this.#options.nowMs() });
    return (await this.#options.on("charged", request)) === undefined ? [200, charge] : undefined;
  }

  #isCancelled({ status }: Charge): boolean {
    return status === "cancelled";
  }

  #known(key: string): Charge | undefined {
    return this.#byKey.get(key)?.find(({ status }) => status !== "refused");
  }

  #find(key: string): readonly Charge[] {
    const { nowMs, lagMs } = this.#options;
    return succeeded(this.#byKey.get(key)).filter(({ atMs }) => atMs + lagMs <= nowMs());
  }

  #add(request: ChargeRequest): Charge {
    const charge: Charge = { ...request, id: 0, status: "running", atMs: 0 };
    for (const [charges, name] of [
      [this.#byKey, request.key],
      [this.#byOperation, request.operation],
    ] as const)
      charges.set(name, [...(charges.get(name) ?? []), charge]);
    return charge;
  }
}

function succeeded(charges: readonly Charge[] = []): Charge[] {
  return charges.filter(({ status }) => status === "succeeded");
}
