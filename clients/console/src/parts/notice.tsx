import { createContext, type ReactNode, useCallback, useContext, useState } from "react";
import common from "../styles/common.module.css";
import styles from "../styles/parts.module.css";

/** How a notice looks, and how urgently a screen reader says it. */
export type NoticeKind = "success" | "failure";

interface Notice {
  readonly text: string;
  readonly kind: NoticeKind;
}

type Notify = (text: string, kind?: NoticeKind) => void;

const NoticeContext = createContext<Notify | undefined>(undefined);

/**
 * Holds the page's live regions and the last notice, which stays until it is closed or replaced: a person who reads
 * slowly loses nothing.
 */
export function NoticeProvider({ children }: { readonly children: ReactNode }) {
  const [notice, setNotice] = useState<Notice>();
  const notify = useCallback<Notify>((text, kind = "success") => setNotice({ text, kind }), []);
  return (
    <NoticeContext value={notify}>
      {children}
      <div className={styles.notice}>
        <div role="status">{notice?.kind === "success" && notice.text}</div>
        <div role="alert" className={common.problem}>
          {notice?.kind === "failure" && notice.text}
        </div>
        {notice !== undefined && (
          <button type="button" data-look="link" onClick={() => setNotice(undefined)}>
            Close
          </button>
        )}
      </div>
    </NoticeContext>
  );
}

/** Returns the function that shows a notice at the bottom of the page. */
export function useNotice(): Notify {
  const notify = useContext(NoticeContext);
  if (notify === undefined) throw new Error("useNotice is used outside of NoticeProvider");
  return notify;
}
