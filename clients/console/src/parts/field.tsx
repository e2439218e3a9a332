import { type ComponentProps, type ReactNode, useId } from "react";
import common from "../styles/common.module.css";
import styles from "../styles/parts.module.css";

interface FieldProps {
  readonly label: string;
  /** A sentence below the field. */
  readonly help?: ReactNode;
  /** Why the value is refused; undefined: it is not. */
  readonly problem?: string | undefined;
}

/** A text field with its label, help and problem. Other properties are the <input>'s. */
export function TextField({ label, help, problem, ...input }: FieldProps & ComponentProps<"input">) {
  const id = useId();
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      <input
        autoComplete="off"
        spellCheck={false}
        {...input}
        id={id}
        aria-invalid={problem !== undefined}
        aria-describedby={`${id}-note`}
      />
      <FieldNote id={id} help={help} problem={problem} />
    </div>
  );
}

/** As TextField, of several lines. */
export function TextArea({ label, help, problem, ...input }: FieldProps & ComponentProps<"textarea">) {
  const id = useId();
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      <textarea
        rows={3}
        {...input}
        id={id}
        aria-invalid={problem !== undefined}
        aria-describedby={`${id}-note`}
      />
      <FieldNote id={id} help={help} problem={problem} />
    </div>
  );
}

/** A choice of few values. Its children are <option> elements. */
export function SelectField({ label, help, problem, ...select }: FieldProps & ComponentProps<"select">) {
  const id = useId();
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      <select {...select} id={id} aria-invalid={problem !== undefined} aria-describedby={`${id}-note`} />
      <FieldNote id={id} help={help} problem={problem} />
    </div>
  );
}

function FieldNote({ id, help, problem }: Pick<FieldProps, "help" | "problem"> & { readonly id: string }) {
  return (
    <div id={`${id}-note`} className={common.note} data-problem={problem !== undefined}>
      {problem ?? help}
    </div>
  );
}
