import { useState } from "react";
import { ConfirmDialog } from "../parts/confirm-dialog.tsx";
import { SelectField } from "../parts/field.tsx";
import { forgetDrafts } from "../parts/kept-draft.ts";
import { useNotice } from "../parts/notice.tsx";
import { usePreference } from "../parts/preferences.ts";
import { TimeText } from "../parts/time.tsx";
import { readFailure } from "../session/failure.ts";
import { useSession } from "../session/session.ts";
import { signOut } from "../session/session-api.ts";
import { endSession } from "../session/session-end.ts";
import common from "../styles/common.module.css";
import styles from "../styles/shell.module.css";

/** The `popoverTarget` of the button that opens the menu. */
export const MENU_ID = "menu";

/** Who is signed in, what this browser prefers, and the ways out. */
export function Menu() {
  const { actor, kind, expiresAt } = useSession();
  const [theme, setTheme] = usePreference("theme");
  const [times, setTimes] = usePreference("times");
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <div id={MENU_ID} popover="auto" className={styles.menu}>
        <p>
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
        <SignOutButtons askEverywhere={() => setAsking(true)} />
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

function SignOutButtons({ askEverywhere }: { readonly askEverywhere: () => void }) {
  const notify = useNotice();
  function leaveHere(): void {
    leave("here").catch((error: unknown) => {
      notify(`Not signed out: ${readFailure(error).message}`, "failure");
    });
  }
  return (
    <div className={common.row}>
      <button type="button" onClick={leaveHere}>
        Sign out
      </button>
      <button type="button" onClick={askEverywhere}>
        Sign out everywhere…
      </button>
    </div>
  );
}
