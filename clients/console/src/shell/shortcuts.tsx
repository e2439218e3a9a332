import { type ReactNode, useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { Dialog } from "../parts/dialog.tsx";
import { usePreference } from "../parts/preferences.ts";
import { linksFor, type NavigationLink } from "../routes.ts";
import { useSession } from "../session/session.ts";
import common from "../styles/common.module.css";
import styles from "../styles/shell.module.css";
import { nextKeyState, type Shortcut, START, type Typed } from "./shortcut-keys.ts";
import { ShortcutContext } from "./use-shortcut.ts";

/** Listens for keys: `?`, `g` and a letter, and the keys that the screen names by `useShortcut`. */
export function ShortcutProvider({ children }: { readonly children: ReactNode }) {
  const { role } = useSession();
  const [, navigate] = useLocation();
  const [choice, choose] = usePreference("shortcuts");
  const isOn = choice === "on";
  const [isShown, setShown] = useState(false);
  const [registry] = useState(() => new Map<string, Shortcut>());
  const state = useRef(START);

  useEffect(() => {
    if (!isOn) return undefined;
    function act(typed: Typed): void {
      if (typed.kind === "help") setShown(true);
      if (typed.kind === "go") {
        const link = linksFor(role).find(({ letter }) => letter === typed.letter);
        if (link !== undefined) navigate(link.href);
      }
      if (typed.kind === "key") registry.get(typed.key)?.run();
    }
    function onKey(event: KeyboardEvent): void {
      if (event.defaultPrevented || isForPage(event)) return;
      const { state: next, typed } = nextKeyState(state.current, event.key, event.timeStamp);
      state.current = next;
      if (typed === undefined) return;
      if (typed.kind !== "key" || registry.has(typed.key)) event.preventDefault();
      act(typed);
    }
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [isOn, navigate, registry, role]);

  return (
    <ShortcutContext value={{ shortcuts: registry, showDialog: () => setShown(true) }}>
      {children}
      {isShown && (
        <ShortcutDialog
          links={linksFor(role)}
          shortcuts={[...registry.values()]}
          isOn={isOn}
          setOn={(next) => choose(next ? "on" : "off")}
          close={() => setShown(false)}
        />
      )}
    </ShortcutContext>
  );
}

/** Returns whether the key belongs to a field, a dialog or the browser itself. */
function isForPage(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return true;
  if (document.querySelector("dialog[open]") !== null) return true;
  const { target } = event;
  return (
    target instanceof Element &&
    target.closest("input:not([type=checkbox]), select, textarea, [role=slider]") !== null
  );
}

interface ShortcutDialogProps {
  readonly links: readonly NavigationLink[];
  readonly shortcuts: readonly Shortcut[];
  readonly isOn: boolean;
  readonly setOn: (next: boolean) => void;
  readonly close: () => void;
}

/** Shows the keys of the page and of the screen, and the switch that turns them off. */
function ShortcutDialog({ links, shortcuts, isOn, setOn, close }: ShortcutDialogProps) {
  return (
    <Dialog title="Shortcuts" close={close}>
      <table className={styles.keys}>
        <tbody>
          <Row keys={["?"]} label="This list" />
          {links.map(({ letter, label }) => (
            <Row key={letter} keys={["g", letter]} label={label} />
          ))}
          {shortcuts.map(({ key, label }) => (
            <Row key={key} keys={[key]} label={label} />
          ))}
        </tbody>
      </table>
      <p>
        <label>
          <input type="checkbox" checked={isOn} onChange={(event) => setOn(event.target.checked)} /> Use these
          keys
        </label>
      </p>
      <p className={common.quiet}>Everything can also be reached with Tab, Enter and the arrow keys.</p>
    </Dialog>
  );
}

function Row({ keys, label }: { readonly keys: readonly string[]; readonly label: string }) {
  return (
    <tr>
      <th scope="row">
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </th>
      <td>{label}</td>
    </tr>
  );
}
