import type { Injection } from "./injector.ts";
import type { Look } from "./load/watch.ts";
import { mayHit } from "./recovery.ts";

/** What the watch's claims of new keys met while a fault lasted. */
export interface FaultEffect {
  readonly fault: string;
  /** Claims that the fault may have hit, and that were not granted before it healed. */
  readonly refused: number;
  /** Claims that the fault may have hit, and that were granted before it healed. */
  readonly granted: number;
  /** Granted claims of keys that the fault does not hit. */
  readonly grantedOthers: number;
}

/** Returns what clients met during each fault, from the claims that they asked for while it lasted. */
export function effectsOf(looks: readonly Look[], injections: readonly Injection[]): FaultEffect[] {
  return injections.map((injection) => {
    const { fault, startedAtMs, healedAtMs, keys, movedKeys } = injection;
    const during = looks.filter(
      (look) => look.askedAtMs >= startedAtMs && look.askedAtMs < healedAtMs && mayHit(injection, look),
    );
    const isGranted = ({ grantedAtMs }: Look) => grantedAtMs !== undefined && grantedAtMs < healedAtMs;
    const own = during.filter(({ key }) => (keys ?? movedKeys)?.(key) ?? true);
    const granted = own.filter(isGranted).length;
    return {
      fault,
      refused: own.length - granted,
      granted,
      grantedOthers: during.filter(isGranted).length - granted,
    };
  });
}
