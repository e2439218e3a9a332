import type { DescMethodUnary, DescService, MessageShape } from "@bufbuild/protobuf";
import type { Deadline, Settled } from "../domain/operation.ts";
import type { Refusal } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";

/** A call as a handler sees it, on every transport. */
export interface Call extends Deadline {
  readonly principal: Principal;
  /**
   * Authenticates and authorizes the call again, and returns the same call with its current principal.
   *
   * @throws Refusal as for a new call.
   */
  again(): Promise<Call>;
  /** When the call's message had arrived, in milliseconds of `performance.now()`. */
  readonly receivedAtMs: number;
  /** Identifies the call in the log and in audit events. */
  readonly requestId: string;
  /** Aborts when the caller cancels the call or disconnects. */
  readonly signal: AbortSignal;
  /**
   * Returns the refusal that the caller gets for an error. An unexpected error is logged under the request id; a denial is
   * audited.
   */
  refusalOf(error: unknown): Refusal;
}

/** The author of a change, for its audit event. */
export type Actor = Pick<Call, "principal" | "requestId" | "again">;

/** The RPCs of a service that take one message and return one. */
export type UnaryMethods<Service extends DescService> = {
  readonly [Method in keyof Service["method"] as Service["method"][Method] extends DescMethodUnary
    ? Method
    : never]: Service["method"][Method];
};

/**
 * The implementation of a service's unary RPCs: one function each, from its request to its response. A function throws
 * Refusal, or rejects with it; any other error is a bug.
 */
export type Handlers<Service extends DescService> = {
  readonly [Method in keyof UnaryMethods<Service>]: (
    request: MessageShape<Service["method"][Method]["input"]>,
    call: Call,
  ) => Answer<MessageShape<Service["method"][Method]["output"]>>;
};

/**
 * A value, or a promise where something has to be awaited. Only the pipeline, the reading of its message, and the first step of a
 * single claim return it, so that a replay from memory needs no promise and no timer, which would cost a tenth of its processor
 * time (decisions/0010).
 */
export type Answer<Value> = Value | Promise<Value>;

/** Handles many requests of one RPC at once. Each settles on its own, at the index of its request. */
export type BatchHandler<Request, Response> = (
  requests: readonly Settled<Request>[],
  call: Call,
) => Promise<readonly Settled<Response>[]>;
