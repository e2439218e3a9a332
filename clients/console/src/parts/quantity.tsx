import { formatCount } from "../format/quantity.ts";
import styles from "../styles/parts.module.css";

/** Shows a whole number, exactly. */
export function Quantity({ value }: { readonly value: number | bigint }) {
  return <span className={styles.number}>{formatCount(value)}</span>;
}
