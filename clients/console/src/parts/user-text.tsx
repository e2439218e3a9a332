import styles from "./user-text.module.css";

/**
 * Shows text that callers or administrators chose: keys, owners, reasons, labels. It is never markup; it breaks
 * anywhere, and direction marks in it change nothing outside of it.
 */
export function UserText({ children }: { readonly children: string }) {
  return <bdi className={styles.text}>{children}</bdi>;
}
