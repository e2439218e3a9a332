import type { ReactNode } from "react";
import styles from "../styles/shell.module.css";

const LOGO = new URL("../styles/icon.svg", import.meta.url).href;

/** The logo and the name. */
export function Brand() {
  return (
    <strong className={styles.product}>
      <img src={LOGO} alt="" width="24" height="24" /> Onceward
    </strong>
  );
}

/** The page's frame until the server has said who is signed in, or why it does not. */
export function EmptyFrame({ children }: { readonly children: ReactNode }) {
  return (
    <>
      <header className={styles.header}>
        <Brand />
      </header>
      <div className={styles.body}>
        <nav className={styles.navigation} aria-label="Screens" />
        <main className={styles.content}>{children}</main>
      </div>
    </>
  );
}
