import { StateMark } from "../parts/state-mark.tsx";
import { useConnection } from "../session/connection.ts";
import { type Role, useSession } from "../session/session.ts";
import styles from "../styles/shell.module.css";
import { useLive } from "./live.tsx";
import { MENU_ID, Menu } from "./menu.tsx";
import { SearchBox } from "./search-box.tsx";
import { useShortcutDialog } from "./use-shortcut.ts";

const ROLES: Readonly<Record<Role, string>> = {
  CALLER: "Caller",
  TENANT_ADMIN: "Tenant admin",
  OPERATOR: "Operator",
};

/** The top of the page: whose page it is, whether it shows the present, and the menu. */
export function Header() {
  const { role, tenant, namespaces } = useSession();
  const showShortcuts = useShortcutDialog();
  const scope = namespaces.length > 0 ? `, only ${namespaces.length} of the namespaces` : "";
  return (
    <header className={styles.header}>
      <strong className={styles.product}>Onceward</strong>
      {tenant !== "" && (
        <span className={styles.tenant} title={tenant}>
          {tenant}
        </span>
      )}
      <span className={styles.role}>{`${ROLES[role]}${scope}`}</span>
      {role === "TENANT_ADMIN" && <SearchBox />}
      <div className={styles.switches}>
        <LiveButton />
        <button type="button" className={styles.wide} onClick={showShortcuts}>
          Shortcuts
        </button>
        <button type="button" popoverTarget={MENU_ID}>
          Menu
        </button>
      </div>
      <Menu />
    </header>
  );
}

/** Says whether the page shows the present, and pauses it. */
function LiveButton() {
  const { isLive, toggle } = useLive();
  const { connection } = useConnection();
  const state = connection === "answering" ? (isLive ? "live" : "paused") : connection;
  return (
    <button
      type="button"
      aria-pressed={isLive}
      title={isLive ? "Pause" : "Refresh by itself"}
      onClick={toggle}
    >
      <StateMark {...LIVE_STATES[state]} />
    </button>
  );
}

const LIVE_STATES = {
  live: { word: "Live", tone: "good" },
  paused: { word: "Paused", tone: "quiet" },
  unreachable: { word: "Offline, retrying", tone: "bad" },
  suspended: { word: "Suspended", tone: "attention" },
} as const;
