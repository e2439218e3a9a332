import styles from "./cli-hint.module.css";
import { CopyButton } from "./copy-button.tsx";

/** Shows the command line that does the same as the screen. */
export function CliHint({ command }: { readonly command: string }) {
  return (
    <p className={styles.hint}>
      <span>On the command line:</span> <code>{command}</code>{" "}
      <CopyButton text={command} label="Copy the command" />
    </p>
  );
}
