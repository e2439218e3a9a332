import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../../../clients/typescript/src/gen/google/rpc/error_details_pb.ts";

/** An error as its caller sees it: every part that the contract defines. */
export interface SeenError {
  readonly code: string;
  readonly reason: string | undefined;
  readonly domain: string | undefined;
  readonly message: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** The fields of the BadRequest, in order. */
  readonly fields: readonly string[];
  readonly retryable: boolean;
}

/** Returns the error of a failed call. @throws if the call succeeds, or fails without a ConnectError. */
export async function errorOf(call: Promise<unknown>): Promise<SeenError> {
  try {
    await call;
  } catch (error) {
    return describeError(error);
  }
  throw new Error("the call succeeded");
}

/** @see SeenError */
export function describeError(error: unknown): SeenError {
  if (!(error instanceof ConnectError)) throw error;
  const [info] = error.findDetails(ErrorInfoSchema);
  const [badRequest] = error.findDetails(BadRequestSchema);
  const [retry] = error.findDetails(RetryInfoSchema);
  return {
    code: Code[error.code] ?? String(error.code),
    reason: info?.reason,
    domain: info?.domain,
    message: error.rawMessage,
    metadata: info?.metadata ?? {},
    fields: badRequest?.fieldViolations.map((violation) => violation.field) ?? [],
    retryable: retry !== undefined,
  };
}
