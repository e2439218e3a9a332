import type { FieldKind } from "@onceward/words/field-facts";
import type { ComponentProps } from "react";

interface TypedInputProps extends Pick<ComponentProps<"input">, "id" | "aria-invalid" | "aria-describedby"> {
  readonly kind: FieldKind;
  /** What an empty text means, which is a choice of its own. */
  readonly unset: string;
  readonly value: string;
  readonly type: (text: string) => void;
  readonly ref?: ((field: HTMLElement | null) => void) | undefined;
}

/** The <input> of a field of the contract, or its <select> if it has few values. */
export function TypedInput({ kind: { choices }, unset, type, ...shared }: TypedInputProps) {
  if (choices === undefined) {
    return (
      <input
        {...shared}
        autoComplete="off"
        spellCheck={false}
        placeholder={unset}
        onChange={(event) => type(event.target.value)}
      />
    );
  }
  return (
    <select {...shared} onChange={(event) => type(event.target.value)}>
      <option value="">{unset}</option>
      {choices
        .filter((choice) => choice !== unset)
        .map((choice) => (
          <option key={choice}>{choice}</option>
        ))}
    </select>
  );
}
