import { type ReactNode, useId, useLayoutEffect, useRef } from "react";
import styles from "../styles/parts.module.css";

interface DialogProps {
  readonly title: string;
  /** Called when the dialog is closed by its button or Escape: the parent stops rendering it. */
  readonly close: () => void;
  readonly children: ReactNode;
}

/** A modal dialog: the browser keeps the focus inside, and returns it afterwards. Render it only while it is open. */
export function Dialog({ title, close, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const element = dialog.current;
    const focused = document.activeElement;
    element?.showModal();
    // A person fills it in, or acts: Escape closes it.
    const first =
      element?.querySelector<HTMLElement>("[data-first]") ??
      element?.querySelector<HTMLElement>("form :is(input, select, textarea)");
    first?.focus();
    return () => {
      element?.close();
      if (focused instanceof HTMLElement) focused.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={id} onCancel={close} onClose={close}>
      <div className={styles.dialogHead}>
        <h2 id={id}>{title}</h2>
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
      {children}
    </dialog>
  );
}
