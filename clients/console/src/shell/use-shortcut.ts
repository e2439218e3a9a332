import { createContext, useContext, useEffect, useRef } from "react";

/** A key that does something on the screen that is shown. */
export interface Shortcut {
  /** One character, as `KeyboardEvent.key` names it. */
  readonly key: string;
  /** What it does, for the dialog. */
  readonly label: string;
  readonly run: () => void;
}

interface Registry {
  readonly shortcuts: Map<string, Shortcut>;
  readonly showDialog: () => void;
}

/** Holds the keys of the screen below ShortcutProvider. Apart from it, because the provider knows all screens. */
export const ShortcutContext = createContext<Registry | undefined>(undefined);

/** Gives a key to the screen while it is shown. */
export function useShortcut(key: string, label: string, run: () => void): void {
  const { shortcuts } = useRegistry();
  const latest = useRef(run);
  useEffect(() => {
    latest.current = run;
  });
  useEffect(() => {
    shortcuts.set(key, { key, label, run: () => latest.current() });
    return () => {
      shortcuts.delete(key);
    };
  }, [shortcuts, key, label]);
}

/** Returns the function that shows the dialog of shortcuts. */
export function useShortcutDialog(): () => void {
  return useRegistry().showDialog;
}

function useRegistry(): Registry {
  const registry = useContext(ShortcutContext);
  if (registry === undefined) throw new Error("shortcuts are used outside of ShortcutProvider");
  return registry;
}
