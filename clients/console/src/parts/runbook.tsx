import { CopyButton } from "./copy-button.tsx";

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
