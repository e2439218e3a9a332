import { type KeyboardEvent, type MouseEvent, useRef } from "react";

/** The rows of a table that a person has chosen. */
export interface RowSelection<Row> {
  /** The keys of the chosen rows, as `rowKey` gives them. */
  readonly chosen: ReadonlySet<string>;
  readonly choose: (chosen: ReadonlySet<string>) => void;
  /** Names a row for screen readers. */
  readonly nameOf: (row: Row) => string;
}

/** Returns the check boxes of a table: one for all rows, and one for each. Shift chooses all rows from the last one. */
export function useRowBoxes(keys: readonly string[], { chosen, choose }: RowSelection<never>) {
  const last = useRef<string>(undefined);
  const isAll = keys.length > 0 && keys.every((key) => chosen.has(key));

  function toggle(key: string, event: MouseEvent<HTMLInputElement>): void {
    const from = event.shiftKey ? keys.indexOf(last.current ?? key) : -1;
    const to = keys.indexOf(key);
    const range = from < 0 ? [key] : keys.slice(Math.min(from, to), Math.max(from, to) + 1);
    const next = new Set(chosen);
    for (const each of range)
      if (event.currentTarget.checked) next.add(each);
      else next.delete(each);
    last.current = key;
    choose(next);
  }

  return {
    all: (
      <input
        type="checkbox"
        aria-label="Select all rows"
        checked={isAll}
        ref={(box) => {
          if (box !== null) box.indeterminate = !isAll && chosen.size > 0;
        }}
        onChange={() => choose(new Set(isAll ? [] : keys))}
      />
    ),
    of: (key: string, name: string) => (
      <input
        type="checkbox"
        aria-label={`Select ${name}`}
        checked={chosen.has(key)}
        onClick={(event) => toggle(key, event)}
        onKeyDown={moveBetweenRows}
        readOnly
      />
    ),
  };
}

/** The arrow keys lead to the boxes of the rows above and below. */
function moveBetweenRows(event: KeyboardEvent<HTMLInputElement>): void {
  const row = event.currentTarget.closest("tr");
  const next = { ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling }[event.key];
  if (!next) return;
  event.preventDefault();
  next.querySelector<HTMLElement>("input[type=checkbox]")?.focus();
}
