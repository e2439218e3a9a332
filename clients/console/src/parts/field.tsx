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
  return (
    <Field label={label} help={help} problem={problem}>
      {(shared) => <input autoComplete="off" spellCheck={false} {...input} {...shared} />}
    </Field>
  );
}

/** As TextField, of several lines. */
export function TextArea({ label, help, problem, ...input }: FieldProps & ComponentProps<"textarea">) {
  return (
    <Field label={label} help={help} problem={problem}>
      {(shared) => <textarea rows={3} {...input} {...shared} />}
    </Field>
  );
}

interface SelectFieldProps extends FieldProps, Omit<ComponentProps<"select">, "children"> {
  /** The words of each value, in the order of the list. */
  readonly options: Readonly<Record<string, string>>;
}

/** A choice of few values. */
export function SelectField({ label, help, problem, options, ...select }: SelectFieldProps) {
  return (
    <Field label={label} help={help} problem={problem}>
      {(shared) => (
        <select {...select} {...shared}>
          {Object.entries(options).map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** What an element needs to be named and described by its field. */
type Shared = Pick<ComponentProps<"input">, "id" | "aria-invalid" | "aria-describedby">;

interface FrameProps extends FieldProps {
  readonly children: (shared: Shared) => ReactNode;
}

/** The frame of a field: label, help or problem, and the control among the children. */
export function Field({ label, help, problem, children }: FrameProps) {
  const id = useId();
  const isRefused = problem !== undefined;
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-invalid": isRefused, "aria-describedby": `${id}-note` })}
      <div id={`${id}-note`} className={common.note} data-problem={isRefused}>
        {problem ?? help}
      </div>
    </div>
  );
}

/** Returns the problem of a text with more bytes of UTF-8 than a field may have; undefined: none. */
export function bytesProblem(text: string, limit: number): string | undefined {
  const bytes = new TextEncoder().encode(text).length;
  return bytes > limit ? `At most ${limit} bytes; this has ${bytes}.` : undefined;
}
