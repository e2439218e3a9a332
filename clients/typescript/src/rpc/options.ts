import { Code } from "@connectrpc/connect";
import type { AdapterRunOptions } from "../run/guarded-run.ts";

/** How calls are guarded. `Call` is what the library knows of a call. */
export interface RpcOptions<Call> extends AdapterRunOptions {
  /**
   * Who calls, as the server authenticated them: an account's id, never a secret. A key is one caller's own: without
   * this, one could be answered with another's response. Where everybody may see everything, a constant. Must not be empty.
   */
  readonly caller: (call: Call) => string;
  /**
   * Where a call's key is found: 1-255 printable ASCII characters. Default: the `idempotency-key` header, quoted as a
   * structured-field string or bare.
   */
  readonly key?: (call: Call) => string | undefined;
  /** Whether a call without a key is refused with INVALID_ARGUMENT; else it passes, unguarded. Default: true. */
  readonly required?: boolean;
  /** How long a call waits for another one with its key before it is answered with ABORTED. Default: 0. */
  readonly waitMs?: number;
  /**
   * What the key stands for, any value that `fingerprintWithFiles` takes; a call with any other, such as undefined, is
   * refused with INVALID_ARGUMENT. Default: the request message.
   */
  readonly fingerprint?: (call: Call) => unknown;
  /**
   * Whether an error with this code is the operation's outcome, to be replayed; else the claim is released, and the next
   * attempt runs. Default: INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, FAILED_PRECONDITION and
   * OUT_OF_RANGE, which say that the request is refused as it is.
   */
  readonly stores?: (code: number) => boolean;
}

const OUTCOMES: ReadonlySet<number> = new Set([
  Code.InvalidArgument,
  Code.NotFound,
  Code.AlreadyExists,
  Code.PermissionDenied,
  Code.FailedPrecondition,
  Code.OutOfRange,
]);

/** The default of `stores`. */
export function isOutcome(code: number): boolean {
  return OUTCOMES.has(code);
}
