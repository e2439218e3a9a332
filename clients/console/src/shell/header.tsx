import { MAX_KEY_BYTES } from "@onceward/gen/limits.ts";
import { type FormEvent, useRef, useState } from "react";
import { useLocation } from "wouter";
import { ConfirmDialog } from "../parts/confirm-dialog.tsx";
import { SelectField } from "../parts/field.tsx";
import { forgetDrafts } from "../parts/kept-draft.ts";
import { useNotice } from "../parts/notice.tsx";
import { usePreference } from "../parts/preferences.ts";
import { StateMark } from "../parts/state-mark.tsx";
import { TimeText } from "../parts/time.tsx";
import { useConnection } from "../session/connection.ts";
import { readFailure } from "../session/failure.ts";
import { ROLE_WORDS, useSession } from "../session/session.ts";
import { signOut } from "../session/session-api.ts";
import { endSession } from "../session/session-end.ts";
import common from "../styles/common.module.css";
import styles from "../styles/shell.module.css";
import { Brand } from "./frame.tsx";
import { useLive } from "./live.ts";
import { shortcutDialog, useShortcut } from "./use-shortcut.ts";

/** The top of the page: whose page it is, whether it shows the present, and the menu. */
export function Header() {
  const { role, tenant, namespaces } = useSession();
  const scope = namespaces.length > 0 ? `, only ${namespaces.length} of the namespaces` : "";
  return (
    <header className={styles.header}>
      <Brand />
      {tenant !== "" && (
        <span className={styles.tenant} title={tenant}>
          {tenant}
        </span>
      )}
      <span className={styles.role}>{`${ROLE_WORDS[role]}${scope}`}</span>
      {role !== "CALLER" && <SearchBox />}
      <div className={styles.switches}>
        {role !== "CALLER" && <LiveButton />}
        <button type="button" className={styles.wide} onClick={() => shortcutDialog.set(true)}>
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
      title={isLive ? "Pause" : "Refresh automatically"}
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

/**
 * Finds from every screen: for a tenant what is known of a key, of keys that begin with a text, of an owner, a fingerprint or a
 * request; for an operator tenants.
 */
function SearchBox() {
  const ofTenants = useSession().role === "OPERATOR";
  const [, navigate] = useLocation();
  const field = useRef<HTMLInputElement>(null);
  useShortcut("/", "Search", () => field.current?.focus());

  function submit(event: FormEvent<HTMLFormElement>): void {
    event.preventDefault();
    // A key is taken as it is: spaces belong to it.
    const text = field.current?.value ?? "";
    if (text.trim() === "") return;
    event.currentTarget.reset();
    // The keys of the page work again.
    field.current?.blur();
    navigate(`${ofTenants ? "/tenants?search=" : "/records?q="}${encodeURIComponent(text)}`);
  }

  return (
    <search className={styles.search}>
      <form onSubmit={submit} data-key="/">
        <input
          ref={field}
          type="search"
          aria-label={ofTenants ? "Search tenants" : "Search records"}
          placeholder={ofTenants ? "Tenant" : "Key, owner, fingerprint or request id"}
          maxLength={MAX_KEY_BYTES}
          autoComplete="off"
          spellCheck={false}
        />
      </form>
    </search>
  );
}

/** The `popoverTarget` of the button that opens the menu. */
const MENU_ID = "menu";

/** Who is signed in, what this browser prefers, and the ways out. */
function Menu() {
  const { actor, kind, expiresAt, tenant } = useSession();
  const [theme, setTheme] = usePreference("theme");
  const [times, setTimes] = usePreference("times");
  const [isAsking, setAsking] = useState(false);
  const signOut = useSignOut();
  return (
    <>
      <div id={MENU_ID} popover="auto" className={styles.menu}>
        <p>
          {tenant && <b>{tenant}: </b>}
          {kind === "key" ? "API key" : "Token of"} <code>{actor}</code>
          {expiresAt !== undefined && (
            <>
              , expires <TimeText at={expiresAt} />
            </>
          )}
        </p>
        <SelectField
          label="Colours"
          value={theme}
          options={{ system: "As the system", light: "Light", dark: "Dark" }}
          onChange={({ target }) => setTheme(target.value as typeof theme)}
        />
        <SelectField
          label="Times"
          value={times}
          options={{ relative: "How long ago", exact: "Date and time, too" }}
          onChange={({ target }) => setTimes(target.value as typeof times)}
        />
        <div className={common.row}>
          <button type="button" onClick={signOut}>
            Sign out
          </button>
          <button type="button" onClick={() => setAsking(true)}>
            Sign out everywhere…
          </button>
        </div>
      </div>
      {/* Beside the menu, which closes when a dialog opens. */}
      {isAsking && (
        <ConfirmDialog
          title="Sign out everywhere"
          action="Sign out everywhere"
          act={() => leave("everywhere")}
          close={() => setAsking(false)}
        >
          <p>All sessions of this key or person end at once, also those in other browsers.</p>
        </ConfirmDialog>
      )}
    </>
  );
}

async function leave(which: "here" | "everywhere"): Promise<void> {
  await signOut(which);
  forgetDrafts();
  endSession(which === "here" ? "SIGNED_OUT" : "SIGNED_OUT_EVERYWHERE");
}

/** Returns the function that ends this browser's session, and says so if that fails. */
export function useSignOut(): () => void {
  const notify = useNotice();
  return () => {
    leave("here").catch((error: unknown) => {
      notify(`Not signed out: ${readFailure(error).message}`, "failure");
    });
  };
}
