import type { Answer } from "./exchange.ts";

/** How a check ended. */
export type Verdict =
  | { readonly kind: "passed" }
  | { readonly kind: "failed"; readonly detail: string }
  | { readonly kind: "skipped"; readonly detail: string }
  /** The fact holds, and would hold without a guard, too: the pass proves nothing. */
  | { readonly kind: "nothing"; readonly detail: string }
  /** A bound of the probe was reached first. */
  | { readonly kind: "unfinished"; readonly detail: string };

export const PASSED: Verdict = { kind: "passed" };

export function failed(detail: string): Verdict {
  return { kind: "failed", detail };
}

export function skipped(detail: string): Verdict {
  return { kind: "skipped", detail };
}

export function nothing(detail: string): Verdict {
  return { kind: "nothing", detail };
}

/** Returns PASSED if the fact holds. */
export function holds(fact: boolean, otherwise: string): Verdict {
  return fact ? PASSED : failed(otherwise);
}

export function isSuccess({ status }: Answer): boolean {
  return status >= 200 && status < 300;
}

/** Whether the answer refuses the request as the client's mistake. */
export function isRefusal({ status }: Answer): boolean {
  return status >= 400 && status < 500;
}

/** Whether the answer asks the client to come back later. */
export function isLater({ status }: Answer): boolean {
  return status === 409 || status === 423 || status === 425 || status === 429 || status === 503;
}

export function sameBody(one: Answer, other: Answer): boolean {
  return one.body.equals(other.body);
}

/** Whether the answers are the same as far as a client acts on them. */
export function sameAnswer(one: Answer, other: Answer): boolean {
  return one.status === other.status && sameBody(one, other);
}

/** Returns an answer in a few words. */
export function brief({ status, body }: Answer): string {
  const text = body.toString().slice(0, 80).replaceAll(/\s+/g, " ").trim();
  return text === "" ? `${status}` : `${status} ${text}`;
}
