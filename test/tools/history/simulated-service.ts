import type { Random } from "../../helpers/random.ts";
import type { Defect } from "./defects.ts";
import type {
  Answer,
  ClaimRequest,
  NamespacePolicy,
  Operation,
  Request,
  SettlingRequest,
} from "./operation.ts";

interface Row {
  token: number;
  phase: "held" | "released" | "completed";
  fingerprint: string | undefined;
  claimId: string;
  attempt: number;
  leaseMs: number;
  leaseEndsAtMs: number;
  keyEndsAtMs: number;
  resultEndsAtMs: number;
  hash: string;
}

interface ForgottenCopy {
  readonly row: Row;
  readonly untilMs: number;
  readonly forgottenAtMs: number;
}

const REFUSED = (reason: string): Answer => ({ kind: "refused", reason });
const COPIES_LAST_MS = 5000;
/** Beyond the published bound. */
const LONG_AGO_MS = 10_500;
/** The probability that a defect strikes when it has an occasion. */
const STRIKES = 0.3;

/**
 * An implementation of the contract that executes one operation at a time, at one known instant. It was
 * written independently of the checker's model, so that each tests the other.
 */
export class SimulatedService {
  /** How often the defect changed the service's behaviour. */
  struck = 0;
  readonly #random: Random;
  readonly #defect: Defect | undefined;
  readonly #policy: NamespacePolicy;
  readonly #rows = new Map<string, Row>();
  readonly #copies = new Map<string, ForgottenCopy[]>();
  #lastToken = 0;

  constructor(random: Random, policy: NamespacePolicy, defect: Defect | undefined) {
    this.#random = random;
    this.#policy = policy;
    this.#defect = defect;
  }

  /** Executes a request at that moment, and returns the answer. */
  apply(key: string, request: Request, nowMs: number): Answer {
    if (this.#random.next() < 0.03) {
      if (this.#defect === "executes what it refuses") this.#executeAnyway(key, request, nowMs);
      return REFUSED("INVALID_REQUEST");
    }
    return this.#execute(key, request, nowMs);
  }

  /** Returns whether this defect is set and strikes now. */
  strikes(defect: Defect): boolean {
    if (this.#defect !== defect || this.#random.next() >= STRIKES) return false;
    this.struck++;
    return true;
  }

  /** Returns the tenants whose marks an answer shows. */
  marksOf({ tenant }: Pick<Operation, "tenant">, answer: Answer): readonly string[] {
    if (answer.kind !== "completed" || answer.hash === undefined) return [];
    return [this.strikes("shows another tenant's payload") ? "another" : tenant];
  }

  #executeAnyway(key: string, request: Request, nowMs: number): void {
    const before = JSON.stringify(this.#rows.get(key));
    this.#execute(key, request, nowMs);
    if (JSON.stringify(this.#rows.get(key)) !== before) this.struck++;
  }

  #execute(key: string, request: Request, nowMs: number): Answer {
    const row = this.#find(key, nowMs);
    switch (request.kind) {
      case "claim":
        return this.#claim(key, row, request, nowMs);
      case "lookup":
        return this.#lookup(row, nowMs);
      case "forget":
        return this.#forget(key, row, nowMs);
      case "complete":
      case "release":
      case "extendLease":
        return this.#settle(row, request, nowMs);
      default:
        throw new Error(`${request.kind} is not simulated`);
    }
  }

  #find(key: string, nowMs: number): Row | undefined {
    const row = this.#rows.get(key);
    if (row === undefined || row.keyEndsAtMs <= nowMs) return undefined;
    if (row.phase === "completed" && this.strikes("forgets before retention ends")) return this.#drop(key);
    return row;
  }

  #drop(key: string): undefined {
    this.#rows.delete(key);
    return undefined;
  }

  #claim(key: string, row: Row | undefined, request: ClaimRequest, nowMs: number): Answer {
    const copy = this.#copyFor(key, nowMs);
    const met = copy ?? row;
    const mismatch =
      met?.fingerprint !== undefined &&
      request.fingerprint !== undefined &&
      met.fingerprint !== request.fingerprint;
    if (mismatch && !this.strikes("compares no fingerprints")) return REFUSED("FINGERPRINT_MISMATCH");
    if (copy !== undefined) return { kind: "completed", hash: copy.hash };
    if (row === undefined || row.phase === "released") return this.#grant(key, row, request, nowMs);
    if (row.phase === "completed") return this.#replay(key, row, request, nowMs);
    if (row.leaseEndsAtMs > nowMs) {
      if (request.claimId === row.claimId && !this.strikes("grants a repeated claim id again")) {
        return { kind: "claimed", token: row.token, attempt: row.attempt };
      }
      const grants = request.claimId === row.claimId || this.strikes("grants while a lease runs");
      return grants ? this.#grant(key, row, request, nowMs) : { kind: "inProgress" };
    }
    if (this.#policy.onLeaseExpiry === "HOLD" && !request.acceptAmbiguous) {
      return this.strikes("takes over what policy holds")
        ? this.#grant(key, row, request, nowMs)
        : { kind: "ambiguous" };
    }
    if (this.strikes("keeps a lease after its end")) return { kind: "inProgress" };
    return this.#grant(key, row, request, nowMs);
  }

  #copyFor(key: string, nowMs: number): Row | undefined {
    const copy = this.#copies.get(key)?.find(({ untilMs }) => untilMs > nowMs);
    if (copy !== undefined) return this.#random.next() < 0.3 ? copy.row : undefined;
    const [old] = this.#copies.get(key) ?? [];
    if (old === undefined || nowMs < old.forgottenAtMs + LONG_AGO_MS) return undefined;
    return this.strikes("replays what was forgotten long ago") ? old.row : undefined;
  }

  #replay(key: string, row: Row, request: ClaimRequest, nowMs: number): Answer {
    if (this.strikes("grants although completed")) return this.#grant(key, row, request, nowMs);
    if (this.strikes("answers in progress after completion")) return { kind: "inProgress" };
    if (row.resultEndsAtMs <= nowMs) return { kind: "completed" };
    return { kind: "completed", hash: this.strikes("replays another result") ? "another" : row.hash };
  }

  #grant(key: string, before: Row | undefined, request: ClaimRequest, nowMs: number): Answer {
    const leaseMs = request.leaseMs ?? this.#policy.defaultLeaseMs;
    const startsOver =
      before === undefined && this.#lastToken > 0 && this.strikes("starts tokens over after forgetting");
    const token = startsOver ? 1 : ++this.#lastToken;
    const attempt = (before?.attempt ?? 0) + 1;
    this.#rows.set(key, {
      token,
      phase: "held",
      fingerprint: before?.fingerprint ?? request.fingerprint,
      claimId: request.claimId ?? "",
      attempt,
      leaseMs,
      leaseEndsAtMs: nowMs + leaseMs,
      keyEndsAtMs: nowMs + Math.max(leaseMs, this.#policy.keyRetentionMs),
      resultEndsAtMs: 0,
      hash: "",
    });
    return { kind: "claimed", token, attempt };
  }

  #settle(row: Row | undefined, request: SettlingRequest, nowMs: number): Answer {
    if (row === undefined) return REFUSED("RECORD_NOT_FOUND");
    const accepts =
      row.token === request.token ||
      (request.kind === "complete" && this.strikes("completes with a superseded token")) ||
      (request.kind === "release" && this.strikes("releases with a superseded token"));
    if (!accepts) return REFUSED("CLAIM_SUPERSEDED");
    if (row.phase === "completed") {
      const repeats = request.kind === "complete" && request.result.hash === row.hash;
      return repeats ? { kind: "stored", alreadyCompleted: true } : REFUSED("ALREADY_COMPLETED");
    }
    if (row.phase === "released")
      return request.kind === "release" ? { kind: "ok" } : REFUSED("ALREADY_RELEASED");
    return this.#settleHeld(row, request, nowMs);
  }

  #settleHeld(row: Row, request: SettlingRequest, nowMs: number): Answer {
    switch (request.kind) {
      case "complete":
        if (this.strikes("loses a completion")) return { kind: "stored", alreadyCompleted: false };
        row.phase = "completed";
        row.hash = request.result.hash;
        row.keyEndsAtMs = nowMs + this.#policy.keyRetentionMs;
        row.resultEndsAtMs = nowMs + this.#policy.resultRetentionMs;
        return { kind: "stored", alreadyCompleted: false };
      case "release":
        if (!this.strikes("loses a release")) row.phase = "released";
        return { kind: "ok" };
      case "extendLease": {
        const extendedToMs = nowMs + (request.leaseMs ?? row.leaseMs);
        if (!this.strikes("loses an extension")) {
          row.leaseEndsAtMs = Math.max(row.leaseEndsAtMs, extendedToMs);
          row.keyEndsAtMs = Math.max(row.keyEndsAtMs, extendedToMs);
        }
        return { kind: "ok" };
      }
    }
  }

  #lookup(row: Row | undefined, nowMs: number): Answer {
    if (row === undefined) return { kind: "absent" };
    const { token, fingerprint, phase, hash } = row;
    const lapsed = row.leaseEndsAtMs <= nowMs && this.#policy.onLeaseExpiry === "HOLD";
    const state = phase === "held" ? (lapsed ? "ambiguous" : "inProgress") : phase;
    const isShown = phase === "completed" && row.resultEndsAtMs > nowMs;
    return { kind: "record", state, token, ...(fingerprint && { fingerprint }), ...(isShown && { hash }) };
  }

  #forget(key: string, row: Row | undefined, nowMs: number): Answer {
    if (row === undefined) return REFUSED("RECORD_NOT_FOUND");
    if (row.phase === "completed" && row.resultEndsAtMs > nowMs) {
      const untilMs = Math.min(nowMs + COPIES_LAST_MS, row.resultEndsAtMs);
      this.#copies.set(key, [
        ...(this.#copies.get(key) ?? []),
        { row: { ...row }, untilMs, forgottenAtMs: nowMs },
      ]);
    }
    this.#rows.delete(key);
    return { kind: "ok" };
  }
}
