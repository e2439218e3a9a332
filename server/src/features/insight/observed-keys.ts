import type { UsedNamespace } from "../../core/claims/after-operation.ts";
import type { ShapeCounts } from "./domain/key-quality.ts";
import { keyShape } from "./domain/key-shape.ts";
import { fingerprintDepth, type ObservedClaim } from "./first-claims.ts";
import type { ObservedNamespace } from "./store/key-samples.ts";
import { nameOf } from "./store/sample-limits.ts";

/** A claim of a sampled fingerprint that is not stored yet. */
export interface WaitingClaim extends ObservedClaim {
  readonly fingerprint: Uint8Array;
  readonly depth: number;
}

/** What was observed of a namespace and is not stored yet. */
export interface WaitingNamespace extends ObservedNamespace {
  shift: number;
  readonly shapes: { -readonly [Name in keyof ShapeCounts]: ShapeCounts[Name] };
  claims: WaitingClaim[];
}

/** Claims of one namespace: half a statement's. More of them halve the sample. */
const MAX_PER_NAMESPACE = 500;
/** Some 10 MiB. It is reached if statements fail for long in many namespaces. */
const MAX_CLAIMS = 50_000;
/** Some 10 MiB, as `MAX_CLAIMS`. */
const MAX_NAMESPACES = 50_000;

/**
 * Collects observed claims by namespace, in bounds: a namespace with very many gets a smaller sample before anything is
 * stored, and counts stay numbers.
 *
 * @param onDropped is called for each claim that is dropped because too much waits.
 */
export function createObservedKeys(onDropped: () => void) {
  const namespaces = new Map<string, WaitingNamespace>();
  let size = 0;

  function waitingOf({ tenantId, namespace }: UsedNamespace): WaitingNamespace | undefined {
    const name = nameOf({ tenantId, namespace });
    const known = namespaces.get(name);
    if (known !== undefined || namespaces.size >= MAX_NAMESPACES) return known;
    const shapes = {
      claims: 0,
      withoutFingerprint: 0,
      times: 0,
      attempts: 0,
      randomUuids: 0,
      promptUuids: 0,
    };
    const added = { tenantId, namespace, shift: 0, shapes, claims: [] };
    namespaces.set(name, added);
    return added;
  }

  function raiseShift(waiting: WaitingNamespace, shift: number): void {
    waiting.shift = Math.max(waiting.shift, shift);
    const kept = waiting.claims.filter(({ depth }) => depth >= waiting.shift);
    size -= waiting.claims.length - kept.length;
    waiting.claims = kept;
  }

  function addClaim(waiting: WaitingNamespace, claim: WaitingClaim): void {
    if (claim.depth < waiting.shift) return;
    if (size >= MAX_CLAIMS) {
      onDropped();
      return;
    }
    waiting.claims.push(claim);
    size++;
    // One fingerprint may have all claims: then no shift selects fewer.
    for (let left = 32; waiting.claims.length > MAX_PER_NAMESPACE && left > 0; left--)
      raiseShift(waiting, waiting.shift + 1);
  }

  return {
    /** Adds a claim whose fingerprint is sampled by at least `shift`. */
    add(claim: ObservedClaim, shift: number): void {
      const { id, fingerprint, atMs } = claim;
      const waiting = waitingOf(id);
      if (waiting === undefined) {
        onDropped();
        return;
      }
      if (shift > waiting.shift) raiseShift(waiting, shift);
      const { isTime, isAttempt, uuid } = keyShape(id.key, atMs);
      const { shapes } = waiting;
      shapes.claims++;
      if (isTime) shapes.times++;
      if (isAttempt) shapes.attempts++;
      if (uuid === "random") shapes.randomUuids++;
      if (uuid === "prompt") shapes.promptUuids++;
      if (fingerprint === undefined) shapes.withoutFingerprint++;
      else addClaim(waiting, { ...claim, fingerprint, depth: fingerprintDepth(fingerprint) });
    },
    /** Removes and returns namespaces with together about `maxClaims` claims, and at most as many namespaces. */
    take(maxClaims: number): readonly WaitingNamespace[] {
      const taken: WaitingNamespace[] = [];
      let claims = 0;
      for (const [name, waiting] of namespaces) {
        if (claims >= maxClaims || taken.length === maxClaims) break;
        taken.push(waiting);
        claims += waiting.claims.length;
        size -= waiting.claims.length;
        namespaces.delete(name);
      }
      return taken;
    },
    /** Adds what could not be stored. */
    putBack(returned: readonly WaitingNamespace[]): void {
      for (const { shift, shapes, claims, ...of } of returned) {
        const waiting = waitingOf(of);
        if (waiting === undefined) {
          onDropped();
          continue;
        }
        for (const name of Object.keys(shapes) as (keyof ShapeCounts)[]) waiting.shapes[name] += shapes[name];
        raiseShift(waiting, shift);
        for (const claim of claims) addClaim(waiting, claim);
      }
    },
  };
}
