import { type ReactNode, useLayoutEffect, useRef } from "react";
import { Link, useLocation } from "wouter";
import { useSession } from "../session/session.ts";
import common from "../styles/common.module.css";
import styles from "../styles/shell.module.css";

/** The first screen of a visit leaves the focus where the browser puts it: at the top. */
let shownBefore = false;

/** A key may have 255 characters: the answer below its title stays on the first page of a telephone. */
const LONG_TITLE = 60;

interface ScreenProps {
  readonly title: string;
  /** The heading, where it is more than the title's text. */
  readonly heading?: ReactNode;
  /** The address and the name of the list that it is of: a link above the heading. */
  readonly parent?: readonly [string, string] | undefined;
  /** The sentence that answers the screen's question: what happens now. */
  readonly answer?: ReactNode;
  /** A sentence that says what the screen answers. */
  readonly lead?: ReactNode;
  /** Buttons beside the heading. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/**
 * Frames a screen: its heading, and the document's title. A navigation moves the focus to the heading, so that a
 * screen reader says where it leads.
 */
export function Screen({
  title,
  heading: shown = title,
  parent,
  answer,
  lead,
  actions,
  children,
}: ScreenProps) {
  const { tenant } = useSession();
  const [location] = useLocation();
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    document.title = [title, tenant, "Onceward"].filter((part) => part !== "").join(" · ");
  }, [title, tenant]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each navigation moves the focus, also within a screen.
  useLayoutEffect(() => {
    if (shownBefore) heading.current?.focus();
    shownBefore = true;
  }, [location]);
  return (
    <>
      {parent !== undefined && <Link href={parent[0]}>{parent[1]}</Link>}
      <div className={styles.screenHead}>
        <h1 ref={heading} tabIndex={-1} data-long={title.length > LONG_TITLE}>
          {shown}
        </h1>
        {actions !== undefined && <div className={common.row}>{actions}</div>}
      </div>
      {answer !== undefined && <p className={common.answer}>{answer}</p>}
      {lead !== undefined && <p className={common.quiet}>{lead}</p>}
      {children}
    </>
  );
}
