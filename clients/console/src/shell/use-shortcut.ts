import { useLayoutEffect, useRef } from "react";
import { createStore } from "../session/store.ts";

/** A key that does something on the screen that is shown. */
interface Shortcut {
  /** One character, as `KeyboardEvent.key` names it. */
  readonly key: string;
  /** What it does, for the dialog. */
  readonly label: string;
  readonly run: () => void;
}

/** The keys of the screen that is shown. */
export const shortcuts = new Map<string, Shortcut>();

/** Whether the dialog of shortcuts is shown. Apart from it, because it knows all screens. */
export const shortcutDialog = createStore(false);

/** Gives a key to the screen while it is shown: from the moment on that a person sees it, and with what it shows. */
export function useShortcut(key: string, label: string, run: () => void): void {
  const latest = useRef(run);
  useLayoutEffect(() => {
    latest.current = run;
  });
  useLayoutEffect(() => {
    shortcuts.set(key, { key, label, run: () => latest.current() });
    return () => {
      shortcuts.delete(key);
    };
  }, [key, label]);
}
