import { useLayoutEffect, useRef } from "react";
import { useLocation } from "wouter";
import { Dialog } from "../parts/dialog.tsx";
import { usePreference } from "../parts/preferences.ts";
import { linksFor, type NavigationLink } from "../routes.ts";
import { useSession } from "../session/session.ts";
import common from "../styles/common.module.css";
import styles from "../styles/shell.module.css";
import { shortcutDialog, shortcuts } from "./use-shortcut.ts";

/** Slow enough for a person who looks for the second key. */
const SEQUENCE_MS = 1_500;

/** Listens for keys: `?`, `g` and a letter, and the keys that the screen names by `useShortcut`; and shows their dialog. */
export function Shortcuts() {
  const { role } = useSession();
  const [, navigate] = useLocation();
  const [choice] = usePreference("shortcuts");
  /** The time of a `g` whose letter is awaited, on the clock of events. */
  const goAtMs = useRef(Number.NEGATIVE_INFINITY);

  useLayoutEffect(() => {
    if (choice === "off") return undefined;
    function onKey(event: KeyboardEvent): void {
      const { key, timeStamp } = event;
      if (event.defaultPrevented || isForPage(event) || key.length !== 1) return;
      const isGoing = timeStamp - goAtMs.current <= SEQUENCE_MS;
      goAtMs.current = key === "g" && !isGoing ? timeStamp : Number.NEGATIVE_INFINITY;
      const link = linksFor(role).find(({ letter }) => letter === key);
      if (isGoing && link !== undefined) navigate(link.href);
      if (!isGoing && key === "?") shortcutDialog.set(true);
      if (!isGoing) shortcuts.get(key)?.run();
      if (isGoing || key === "g" || key === "?" || shortcuts.has(key)) event.preventDefault();
    }
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [choice, navigate, role]);

  return shortcutDialog.use() && <ShortcutDialog links={linksFor(role)} />;
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

/** Shows the keys of the page and of the screen, and the switch that turns them off. */
function ShortcutDialog({ links }: { readonly links: readonly NavigationLink[] }) {
  const [choice, choose] = usePreference("shortcuts");
  return (
    <Dialog title="Shortcuts" close={() => shortcutDialog.set(false)}>
      <table className={styles.keys}>
        <tbody>
          <Row keys={["?"]} label="This list" />
          {links.map(({ letter, label }) => (
            <Row key={letter} keys={["g", letter]} label={label} />
          ))}
          {[...shortcuts.values()].map(({ key, label }) => (
            <Row key={key} keys={[key]} label={label} />
          ))}
        </tbody>
      </table>
      <p>
        <label>
          <input
            type="checkbox"
            checked={choice === "on"}
            onChange={(event) => choose(event.target.checked ? "on" : "off")}
          />{" "}
          Use these keys
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
