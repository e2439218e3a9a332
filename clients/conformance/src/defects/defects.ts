/** A defect of a client, as a replacement of the TypeScript client's source. It is applied to a copy. */
export interface Defect {
  /** The wrong behaviour. */
  readonly name: string;
  /** Below `clients/typescript/src`. */
  readonly file: string;
  /** Must occur exactly once; otherwise the defect is out of date. */
  readonly from: string;
  readonly to: string;
  /** The name of a case that has to fail. */
  readonly caughtBy: string;
}

/** Defects that home-made clients have, each of which a case has to catch. */
export const DEFECTS: readonly Defect[] = [
  {
    name: "counts a lease from its answer",
    file: "run/acquire.ts",
    from: "const answer = { claimed: outcome.value, sentAtMs };",
    to: "const answer = { claimed: outcome.value, sentAtMs: leaseNowMs() };",
    caughtBy: "a lease counts from when its call was sent, not from its answer",
  },
  {
    name: "begins a function after its lease",
    file: "run/renew.ts",
    from: "return leaseNowMs() >= leaseEndsAtMs(sentAtMs, remainingMs);",
    to: "return leaseNowMs() < sentAtMs && remainingMs < 0;",
    caughtBy: "an answer that comes after the lease that it grants is renewed before the function runs",
  },
  {
    name: "repeats a claim under a new id",
    file: "run/acquire.ts",
    from: "claims.sent(calls.claim(request))",
    to: "claims.sent(calls.claim({ ...request, claimId: crypto.randomUUID() }))",
    caughtBy: "after a lost reply of a claim, the same claim id gets the same claim",
  },
  {
    name: "gives up where the service asks for a retry",
    file: "errors/mapping.ts",
    from: "return error.retryDelayMs !== undefined || isUnavailable(error);",
    to: "return isUnavailable(error);",
    caughtBy: "a claim that is refused with QUOTA_RATE is repeated after the delay that the service asks for",
  },
  {
    name: "retries sooner than the service asks for",
    file: "run/retry.ts",
    from: "return atLeastMs + delayMs * (0.5 + Math.random() / 2);",
    to: "return (atLeastMs > 0 ? 0 : delayMs) * (0.5 + Math.random() / 2);",
    caughtBy: "a completion that is refused for now is repeated with the same token",
  },
  {
    name: "hashes members in the order in which they were added",
    file: "keys/fingerprint.ts",
    from: 'if (bodies.length === 0) return canonicalize(json) ?? "";',
    to: 'if (bodies.length === 0) return JSON.stringify(json) ?? "";',
    caughtBy: "members within members are sorted, and elements are not",
  },
  {
    name: "stores the message of an error as the reason of a release",
    file: "run/describe-error.ts",
    from: "const name = `",
    to: "const name = error.message || `",
    caughtBy: "an error of the function releases the claim, and reaches the caller unchanged",
  },
  {
    name: "releases the claim after an OutcomeUnknownError",
    file: "run/judgement.ts",
    from: 'return word instanceof OutcomeUnknownError ? unclear : "release";',
    to: 'return "release";',
    caughtBy: "an OutcomeUnknownError reaches the caller unchanged, and leaves the claim to the policy",
  },
  {
    name: "takes an interruption for proof that nothing happened",
    file: "run/judgement.ts",
    from: 'return signal.aborted || isInterruption(error) || onError === "unknown" ? unclear : "release";',
    to: "return onError;",
    caughtBy: "an error after the client closed leaves the claim to the policy",
  },
  {
    name: "stores the value of a claim that was marked unknown",
    file: "run/run.ts",
    from: "if (marked === undefined && effect.status ===",
    to: "if (effect.status ===",
    caughtBy: "a claim that is marked unknown stores no value",
  },
  {
    name: "sends a completion once",
    file: "run/claim.ts",
    from: "return await retryingHeld(() => this.#calls.complete({ ...this.#ref(), result }), giveUpAtMs);",
    to: "return await this.#calls.complete({ ...this.#ref(), result });",
    caughtBy: "after a lost reply of a completion, the same completion is sent again",
  },
  {
    name: "takes over ambiguous records",
    file: "run/run.ts",
    from: "    acceptAmbiguous,\n",
    to: "    acceptAmbiguous: acceptAmbiguous || true,\n",
    caughtBy: "a first delivery claims, runs and completes",
  },
  {
    name: "takes a refusal for an outage",
    file: "errors/mapping.ts",
    from: 'return isUnavailable(error) && error.reason !== "RECORD_CONTENDED";',
    to: 'return isUnavailable(error) || error.reason !== "RECORD_CONTENDED";',
    caughtBy: "with onUnavailable proceed, a refusal still runs nothing",
  },
  {
    name: "keeps a claim whose caller has left",
    file: "run/acquire.ts",
    from: "if (claims.mayBeHeld && ",
    to: "if (claims.mayBeHeld && options.waitMs < 0 && ",
    caughtBy: "a refusal after a lost reply gives back the claim that may have been granted",
  },
  {
    name: "does not keep the namespace and the key apart in a derived key",
    file: "keys/keys.ts",
    from: "const parts = [DERIVED_KEY_SCHEME, namespace, key, label];",
    to: 'const parts = [DERIVED_KEY_SCHEME, namespace + key, "", label];',
    caughtBy: "a derived key whose parts divide the same text otherwise",
  },
  {
    name: "leaves an operation unfinished whose value is refused",
    file: "run/complete-effect.ts",
    from: 'error.reason === "RESULT_TOO_LARGE" ||',
    to: "",
    caughtBy: "a value that the policy refuses is stored as done without its value",
  },
  {
    name: "keeps to a connection that has gone silent",
    file: "transport/session-manager.ts",
    from: "const PING_INTERVAL_MS = 3000;",
    to: "const PING_INTERVAL_MS = 3_000_000;",
    caughtBy: "a claim whose connection goes silent is repeated on a new connection",
  },
  {
    name: "takes a stored result of an unknown kind for a success",
    file: "run/result-codec.ts",
    from: "if (result.kind !== Result_Kind.SUCCESS) {",
    to: "if (result.kind === undefined) {",
    caughtBy: "a stored result of an unknown kind is not a value, and nothing runs",
  },
  {
    name: "reads texts that are not UTF-8",
    file: "wire/bytes.ts",
    from: "fatal: true",
    to: "fatal: false",
    caughtBy: "a stored text that is not UTF-8 is an error, and nothing runs",
  },
  {
    name: "takes numbers that may have been rounded",
    file: "keys/plain-value.ts",
    from: "if (mayBeRounded(value)) throw",
    to: "if (mayBeRounded(value) && value === 0) throw",
    caughtBy: "2^53 + 1 in JSON is refused in a fingerprint, and not taken for 2^53",
  },
  {
    name: "rounds the numbers of stored results",
    file: "run/codec.ts",
    from: "jsonValue(JSON.parse(utf8Text(bytes)), notJson)",
    to: "JSON.parse(utf8Text(bytes))",
    caughtBy: "2^53 + 1 within a stored result is unavailable, and not rounded",
  },
  {
    name: "drops releases when it closes",
    file: "run/client.ts",
    from: "await endedWithin(this.#ended(), CLOSING_GRACE_MS);",
    to: "await endedWithin(Promise.allSettled(this.#runs), CLOSING_GRACE_MS);",
    caughtBy: "a client that closes with a timeout before the answer of a claim still releases it",
  },
  {
    name: "keeps to a token that is refused",
    file: "transport/credentials.ts",
    from: 'return reason === "CREDENTIAL_INVALID" ||',
    to: 'return reason === "" ||',
    caughtBy: "a claim whose token is refused is repeated once with the next token",
  },
  {
    name: "sends a key with a request that changes nothing",
    file: "http/outgoing.ts",
    from: 'new Set(["GET", ',
    to: "new Set([",
    caughtBy: "a request to another service has the key of its method, host and path",
  },
  {
    name: "takes a mark whose answer is lost for one that was not made",
    file: "run/claim.ts",
    from: "mayHaveBegun || this.#isMarked || mayHaveHappened(errorFromCall(cause));",
    to: "mayHaveBegun;",
    caughtBy: "a mark whose reply is lost may be stored, and leaves the claim to the policy",
  },
];
