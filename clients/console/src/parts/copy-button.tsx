import common from "../styles/common.module.css";
import styles from "../styles/parts.module.css";
import { useNotice } from "./notice.tsx";

/** Copies `text`. `label` says what is copied, such as "Copy the command". */
export function CopyButton({ text, label }: { readonly text: string; readonly label: string }) {
  const notify = useNotice();
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      notify("Copied.");
    } catch {
      notify("The browser does not allow copying here: select the text.", "failure");
    }
  }
  return (
    <button type="button" data-look="link" aria-label={label} onClick={() => void copy()}>
      Copy
    </button>
  );
}

/** Shows the command line that does the same as the screen. */
export function CliHint({ command }: { readonly command: string }) {
  return (
    <p className={`${common.quiet} ${styles.hint}`}>
      <span>On the command line:</span> <code>{command}</code>{" "}
      <CopyButton text={command} label="Copy the command" />
    </p>
  );
}

/**
 * Names a section of the repository's runbook, such as "deploy/runbook.md#redis_evicts_nothing". It is not a link: the server
 * does not know where the repository is, and the page opens no other origin.
 */
export function Runbook({ section }: { readonly section: string }) {
  return (
    <span>
      Runbook: <code>{section}</code>{" "}
      <CopyButton text={section} label={`Copy the runbook's section ${section}`} />
    </span>
  );
}
