/** A key that does something on the screen that is shown. */
export interface Shortcut {
  /** One character, as `KeyboardEvent.key` names it. */
  readonly key: string;
  /** What it does, for the dialog. */
  readonly label: string;
  readonly run: () => void;
}

/** What has been typed so far. */
export type KeyState = { readonly kind: "start" } | { readonly kind: "after g"; readonly atMs: number };

/** What a key means. */
export type Typed =
  | { readonly kind: "help" }
  | { readonly kind: "go"; readonly letter: string }
  | { readonly kind: "key"; readonly key: string };

/** Nothing has been typed. */
export const START: KeyState = { kind: "start" };

/** Slow enough for a person who looks for the second key. */
const SEQUENCE_MS = 1_500;

/**
 * Returns the state after a key, and what the key means; `typed` is undefined when it means nothing yet. `atMs` is the
 * key's time on any clock that only goes forward.
 */
export function nextKeyState(
  state: KeyState,
  key: string,
  atMs: number,
): { readonly state: KeyState; readonly typed: Typed | undefined } {
  if (key.length !== 1) return { state, typed: undefined };
  if (state.kind === "after g" && atMs - state.atMs <= SEQUENCE_MS) {
    return { state: START, typed: { kind: "go", letter: key } };
  }
  if (key === "g") return { state: { kind: "after g", atMs }, typed: undefined };
  return { state: START, typed: key === "?" ? { kind: "help" } : { kind: "key", key } };
}
