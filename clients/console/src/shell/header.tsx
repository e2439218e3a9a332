import { useState } from "react";
import { forgetDrafts } from "../parts/kept-draft.ts";
import { useNotice } from "../parts/notice.tsx";
import { StateMark } from "../parts/state-mark.tsx";
import { TimeText } from "../parts/time.tsx";
import { useConnection } from "../session/connection.ts";
import { readFailure } from "../session/failure.ts";
import { useSession } from "../session/session.ts";
import { signOut } from "../session/session-api.ts";
import { endSession } from "../session/session-end.ts";
import styles from "./header.module.css";
import { useLive } from "./live.tsx";
import { useShortcutDialog } from "./use-shortcut.ts";

/** The top of the page: who is signed in, and the switches of the page. */
export function Header() {
  const { role, tenant, actor, kind, expiresAt, namespaces } = useSession();
  const showShortcuts = useShortcutDialog();
  return (
    <header className={styles.header}>
      <strong className={styles.product}>Onceward</strong>
      <span className={styles.tenant}>{role === "OPERATOR" ? "operator" : tenant}</span>
      <span className={styles.credential}>
        {kind} <code>{actor}</code>
        {namespaces.length > 0 && `, only ${namespaces.length} of the namespaces`}
        {expiresAt !== undefined && (
          <>
            , expires <TimeText at={expiresAt} />
          </>
        )}
      </span>
      <div className={styles.switches}>
        <LiveButton />
        <button type="button" onClick={showShortcuts}>
          Shortcuts
        </button>
        <SignOutButtons />
      </div>
    </header>
  );
}

/** Says whether the page shows the present, and pauses it. */
function LiveButton() {
  const { isLive, toggle } = useLive();
  const { connection } = useConnection();
  const state = connection === "answering" ? (isLive ? "live" : "paused") : connection;
  const { word, tone } = LIVE_STATES[state];
  return (
    <button
      type="button"
      aria-pressed={isLive}
      title={isLive ? "Pause" : "Refresh by itself"}
      onClick={toggle}
    >
      <StateMark tone={tone}>{word}</StateMark>
    </button>
  );
}

const LIVE_STATES = {
  live: { word: "Live", tone: "good" },
  paused: { word: "Paused", tone: "quiet" },
  unreachable: { word: "Offline, retrying", tone: "bad" },
  suspended: { word: "Suspended", tone: "attention" },
} as const;

function SignOutButtons() {
  const [waiting, setWaiting] = useState(false);
  const notify = useNotice();

  async function leave(which: "here" | "everywhere"): Promise<void> {
    setWaiting(true);
    try {
      await signOut(which);
      forgetDrafts();
      endSession(which === "here" ? "SIGNED_OUT" : "SIGNED_OUT_EVERYWHERE");
    } catch (error) {
      setWaiting(false);
      notify(`Not signed out: ${readFailure(error).message}`, "failure");
    }
  }

  return (
    <>
      <button type="button" disabled={waiting} onClick={() => void leave("here")}>
        Sign out
      </button>
      <button type="button" disabled={waiting} onClick={() => void leave("everywhere")}>
        Sign out everywhere
      </button>
    </>
  );
}
