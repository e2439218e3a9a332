import common from "../styles/common.module.css";
import styles from "../styles/parts.module.css";
import { CopyButton } from "./copy-button.tsx";

/** Shows the command line that does the same as the screen. */
export function CliHint({ command }: { readonly command: string }) {
  return (
    <p className={`${common.quiet} ${styles.hint}`}>
      <span>On the command line:</span> <code>{command}</code>{" "}
      <CopyButton text={command} label="Copy the command" />
    </p>
  );
}
