import { codePointName, partsOf } from "../format/invisible.ts";
import styles from "../styles/parts.module.css";

/**
 * Shows text that callers or administrators chose: keys, owners, reasons, labels. It is never markup; it breaks
 * anywhere, direction marks in it change nothing outside of it, and invisible characters are named.
 */
export function UserText({ children }: { readonly children: string }) {
  return (
    <bdi className={styles.userText}>
      {partsOf(children).map(({ text, isInvisible }, index) =>
        isInvisible ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text stay in place.
          <span key={index} className={styles.invisible} title="A character that is not visible">
            {codePointName(text)}
          </span>
        ) : (
          text
        ),
      )}
    </bdi>
  );
}
