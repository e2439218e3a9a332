import { Dialog } from "../parts/dialog.tsx";
import type { NavigationLink } from "../routes.ts";
import common from "../styles/common.module.css";
import styles from "../styles/shell.module.css";
import type { Shortcut } from "./shortcut-keys.ts";

interface ShortcutDialogProps {
  readonly links: readonly NavigationLink[];
  readonly shortcuts: readonly Shortcut[];
  readonly isOn: boolean;
  readonly setOn: (next: boolean) => void;
  readonly close: () => void;
}

/** Shows the keys of the page and of the screen, and the switch that turns them off. */
export function ShortcutDialog({ links, shortcuts, isOn, setOn, close }: ShortcutDialogProps) {
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
