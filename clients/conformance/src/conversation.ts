import { create, fromJson, type JsonObject, type Message, toJson } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { IdempotencyService } from "../../typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { Operation, ScriptedAnswer, ScriptedError } from "./case.ts";
import { decodePayloads, encodePayloads } from "./payloads.ts";
import { readValue } from "./typescript/values.ts";

/** A call that reached the service. */
export interface SeenCall {
  readonly on: Operation;
  /** As proto3 JSON; claim ids are "#1", "#2", … in the order in which they first came. */
  readonly request: JsonObject;
  /** On the clock of `performance.now()`. */
  readonly atMs: number;
}

const SCHEMAS = {
  claim: IdempotencyService.method.claim,
  complete: IdempotencyService.method.complete,
  release: IdempotencyService.method.release,
  extendLease: IdempotencyService.method.extendLease,
  lookup: IdempotencyService.method.lookup,
} as const;

/** What the script has for a call: a response, a refusal with details, or an error that ends the whole RPC. */
export type Reply =
  | { readonly kind: "response"; readonly message: Message }
  | { readonly kind: "refused"; readonly refusal: ScriptedError }
  | { readonly kind: "failed"; readonly error: ConnectError };

/** The trailer with the details of an error, as a `google.rpc.Status` in base64. */
const DETAILS = "grpc-status-details-bin";

/** Returns a response that is written as these bytes: a field that the message does not know, and whose bytes are not checked. */
function messageOf(on: Operation, hex: string): Message {
  const [tag = 0, ...data] = Buffer.from(hex, "hex");
  const $unknown = [{ no: tag >> 3, wireType: tag & 7, data: Uint8Array.from(data) }];
  return Object.assign(create(SCHEMAS[on].output), { $unknown });
}

/** What a script does to the connections of the client. */
export interface Network {
  readonly breakConnections: () => void;
  readonly silenceConnections: () => void;
}

/** The rest of a script, and the calls so far. */
export class Conversation {
  readonly calls: SeenCall[] = [];
  readonly #script: ScriptedAnswer[];
  readonly #network: Network;
  readonly #claimIds: string[] = [];
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(script: readonly ScriptedAnswer[], network: Network) {
    this.#script = [...script];
    this.#network = network;
  }

  /** Records a call, and answers it by the script. */
  async reply(on: Operation, request: Message): Promise<Reply> {
    this.calls.push({ on, request: this.#record(on, request), atMs: performance.now() });
    const next = this.#take(on);
    if (next === undefined)
      return {
        kind: "failed",
        error: new ConnectError(`the script has no answer to this ${on}`, Code.Internal),
      };
    if (next.delayMs !== undefined) await this.#pause(next.delayMs);
    if ("answer" in next)
      return { kind: "response", message: fromJson(SCHEMAS[on].output, encodePayloads(next.answer)) };
    if ("error" in next) return { kind: "refused", refusal: next.error };
    if ("bytes" in next) return { kind: "response", message: messageOf(on, next.bytes) };
    if ("status" in next) {
      const details = next.details === undefined ? {} : { [DETAILS]: `${readValue(next.details)}` };
      return { kind: "failed", error: new ConnectError("answered by a proxy", next.status, details) };
    }
    if ("lose" in next) this.#network.breakConnections();
    else this.#network.silenceConnections();
    return { kind: "failed", error: new ConnectError("the connection broke", Code.Unavailable) };
  }

  /** Ends the answers that are held back. */
  end(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #take(on: Operation): ScriptedAnswer | undefined {
    const index = this.#script.findIndex((answer) => answer.on === on);
    const next = this.#script[index];
    if (next !== undefined && next.times !== "any") this.#script.splice(index, 1);
    return next;
  }

  #record(on: Operation, request: Message): JsonObject {
    const seen = decodePayloads(toJson(SCHEMAS[on].input, request as never) as JsonObject) as JsonObject;
    const { claimId } = seen;
    if (typeof claimId !== "string") return seen;
    if (!this.#claimIds.includes(claimId)) this.#claimIds.push(claimId);
    return { ...seen, claimId: `#${this.#claimIds.indexOf(claimId) + 1}` };
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        resolve();
      }, delayMs);
      this.#timers.add(timer);
    });
  }
}
