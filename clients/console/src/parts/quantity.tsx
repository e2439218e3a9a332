import { formatCount, formatSize } from "../format/quantity.ts";
import styles from "../styles/parts.module.css";

/** Shows a whole number, exactly, with its unit if it has one. */
export function Quantity({ value, unit = "" }: { readonly value: number | bigint; readonly unit?: string }) {
  return (
    <span className={styles.number}>
      {formatCount(value)}
      {unit && ` ${unit}`}
    </span>
  );
}

/** Shows a size in binary units; its title is the exact number. */
export function Bytes({ value }: { readonly value: number | bigint }) {
  return (
    <span className={styles.number} title={`${formatCount(value)} bytes`}>
      {formatSize(value)}
    </span>
  );
}
