import { MAX_REASON_BYTES } from "@onceward/gen/limits.ts";
import { type FormEvent, type PropsWithChildren, type ReactNode, useState } from "react";
import common from "../styles/common.module.css";
import { Dialog } from "./dialog.tsx";
import { bytesProblem, TextArea, TextField } from "./field.tsx";
import { ActionError } from "./list-states.tsx";

interface ConfirmDialogProps {
  readonly title: string;
  /** What will happen, with numbers. */
  readonly children: ReactNode;
  /** The button that acts, such as "Forget 12 records". */
  readonly action: string;
  /** What has to be typed, such as a name or a count; undefined: nothing. */
  readonly typed?: string;
  /** Ask for a reason, kept in the audit event. Default: "none". */
  readonly reason?: "required" | "none";
  readonly look?: "plain" | "danger";
  /** False while a field among the children has a problem: the button waits. Default: true. */
  readonly isValid?: boolean;
  /** Acts; `reason` is empty if none was asked for. What it throws is shown, and the dialog stays. */
  readonly act: (reason: string) => Promise<unknown>;
  /** Called when the dialog is left, and after `act`. */
  readonly close: () => void;
}

/** A dialog before a change: says what happens, asks to type it, and for a reason. */
export function ConfirmDialog({
  title,
  children,
  action,
  typed,
  reason = "none",
  look = "plain",
  isValid = true,
  act,
  close,
}: ConfirmDialogProps) {
  const [typedText, setTypedText] = useState("");
  const [reasonText, setReasonText] = useState("");
  const { error, waiting, run } = useAction();
  const isTyped = typed === undefined || typedText.trim() === typed;
  const problem = bytesProblem(reasonText, MAX_REASON_BYTES);
  const hasReason = reason === "none" || (reasonText.trim() !== "" && problem === undefined);
  const isReady = isValid && isTyped && hasReason && !waiting;

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (isReady) void run(() => act(reasonText.trim()).then(close));
  }

  return (
    <Dialog title={title} close={close}>
      <form className={common.stack} onSubmit={submit}>
        <div>{children}</div>
        {reason === "required" && (
          <TextArea
            label="Reason"
            data-first
            help="Required. Kept in the audit event."
            problem={problem}
            value={reasonText}
            onChange={(event) => setReasonText(event.target.value)}
          />
        )}
        {typed !== undefined && (
          <TextField
            label={`Type ${typed} to confirm`}
            value={typedText}
            onChange={(event) => setTypedText(event.target.value)}
          />
        )}
        <ActionError error={error} />
        <div className={common.row}>
          <button type="submit" data-look={look === "plain" ? "primary" : look} disabled={!isReady}>
            {waiting ? "Working" : action}
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface DialogButtonProps {
  /** The button, such as "Delete the tenant". */
  readonly action: string;
  readonly look?: "plain" | "primary" | "rare" | "danger";
  /** The dialog, until it calls `close`. */
  readonly dialog: (close: () => void) => ReactNode;
}

/** A button that opens a dialog. */
export function DialogButton({ action, look, dialog }: DialogButtonProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" data-look={look} onClick={() => setOpen(true)}>
        {action}
      </button>
      {isOpen && dialog(() => setOpen(false))}
    </>
  );
}

/** The last part of a screen: deletes what the screen shows. The children say what is removed. */
export function DeletePart({ children, ...button }: PropsWithChildren<DialogButtonProps>) {
  return (
    <section>
      <h2>Delete</h2>
      <p>{children}</p>
      <DialogButton look="danger" {...button} />
    </section>
  );
}

/** Returns the function that runs an action, whether one runs, and why the last one failed. */
export function useAction() {
  const [error, setError] = useState<unknown>();
  const [waiting, setWaiting] = useState(false);
  async function run(act: () => Promise<unknown>): Promise<void> {
    setWaiting(true);
    setError(undefined);
    try {
      await act();
    } catch (thrown) {
      setError(thrown);
    } finally {
      setWaiting(false);
    }
  }
  return { error, waiting, run };
}
