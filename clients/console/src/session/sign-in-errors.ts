import { formatDuration } from "../format/duration.ts";
import { readFailure } from "./failure.ts";

/** The reasons that `/console/sign-in?error=` names, in words. */
const REASONS: Readonly<Record<string, string>> = {
  SESSION_ENDED:
    "Your session has ended: it expired, its key was revoked, or it was signed out elsewhere. Sign in again.",
  SIGNED_OUT: "You are signed out.",
  SIGNED_OUT_EVERYWHERE: "You are signed out in every browser.",
  ISSUER_UNAVAILABLE: "The sign-in issuer does not answer. Try again in a moment, or use an API key.",
  CREDENTIAL_INVALID:
    "The issuer's answer was not accepted. Ask who runs Onceward for you which claims it needs.",
  TENANT_SUSPENDED: "The operator has suspended this tenant.",
  SIGN_IN_EXPIRED: "The sign-in took too long or was started in another browser. Start it again.",
};

/** Returns why a person is back at the sign-in page; undefined: for no reason. An unknown reason is shown as it is. */
export function describeSignInError(reason: string | null): string | undefined {
  if (reason === null || reason === "") return undefined;
  if (Object.hasOwn(REASONS, reason)) return REASONS[reason];
  const isName = /^[A-Za-z_]{1,64}$/.test(reason);
  return isName ? `The sign-in failed (${reason.toUpperCase()}).` : "The sign-in failed.";
}

/** Returns why an API key was refused. */
export function describeRefusal(error: unknown): string {
  const { reason, message, retryDelayMs, requestId } = readFailure(error);
  if (reason === "CREDENTIAL_INVALID") return "This key is unknown, expired or revoked.";
  if (reason === "TENANT_SUSPENDED") return REASONS.TENANT_SUSPENDED ?? message;
  if (retryDelayMs !== undefined) return `${message} Try again in ${formatDuration(retryDelayMs)}.`;
  return requestId === undefined ? message : `${message} (request ${requestId})`;
}
