import type { DescMethodUnary, DescService, MessageShape } from "@bufbuild/protobuf";
import type { Deadline } from "../domain/deadline.ts";
import type { Refusal } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";

/** A call as a handler sees it, whatever transport it came by. */
export interface Call extends Deadline {
  readonly principal: Principal;
  /**
   * Answers the same call as if it came now: authenticated and authorised by what holds at this moment.
   *
   * @throws Refusal as a call is refused that comes now.
   */
  again(): Promise<Call>;
  /** Under which the log and the audit have the call. */
  readonly requestId: string;
  /** Aborts when the caller has gone away. */
  readonly signal: AbortSignal;
  /**
   * What the caller is told of an error. One that should not have happened is in the log under the request id; a denial is
   * in the audit.
   */
  refusalOf(error: unknown): Refusal;
}

/** Who makes a change, as the audit has it. */
export type Actor = Pick<Call, "principal" | "requestId" | "again">;

/** Those RPCs of a service that take one message and answer with one. */
export type UnaryMethods<Service extends DescService> = {
  readonly [Method in keyof Service["method"] as Service["method"][Method] extends DescMethodUnary
    ? Method
    : never]: Service["method"][Method];
};

/**
 * The implementation of a service's unary RPCs: one function each, from its request to its response, which it answers at once
 * where nothing has to be waited for. Each throws Refusal, or rejects with it, and nothing else unless it is a bug.
 */
export type Handlers<Service extends DescService> = {
  readonly [Method in keyof UnaryMethods<Service>]: (
    request: MessageShape<Service["method"][Method]["input"]>,
    call: Call,
  ) => Answer<MessageShape<Service["method"][Method]["output"]>>;
};

/** What is there already, or comes: a promise costs more than most of what memory answers. */
export type Answer<Value> = Value | Promise<Value>;
