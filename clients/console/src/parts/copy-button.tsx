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
