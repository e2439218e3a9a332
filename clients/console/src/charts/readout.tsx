import type { KeyboardEvent, PointerEvent } from "react";
import styles from "../styles/charts.module.css";
import common from "../styles/common.module.css";
import type { Frame } from "./scales.ts";
import { stopAfterKey } from "./stops.ts";

/** A part of a picture that is read at once, such as a bar: where it is, in pixels, and what it says. */
export interface Mark {
  readonly from: number;
  readonly to: number;
  readonly label: string;
}

interface ReadoutProps {
  readonly frame: Frame;
  readonly marks: readonly Mark[];
  /** The mark that is read; undefined: none. */
  readonly index: number | undefined;
  readonly read: (index: number | undefined) => void;
}

/** Returns the mark at a position; undefined: none is there. */
export function markAt(marks: readonly Mark[], x: number): number | undefined {
  const index = marks.findIndex(({ from, to }) => from <= x && x < to);
  return index < 0 ? undefined : index;
}

/**
 * Marks the part of a picture that is read, from its last one on, and moves it by the keyboard as a slider. The pointer moves it by
 * `readAtPointer`.
 */
export function Readout({ frame, marks, index, read }: ReadoutProps) {
  const last = marks.length - 1;
  const mark = index === undefined ? undefined : marks[index];
  function press(event: KeyboardEvent): void {
    const next = stopAfterKey([...marks.keys()], index ?? last, event.key);
    if (next === undefined) return;
    event.preventDefault();
    read(next);
  }
  return (
    <g
      className={styles.readout}
      role="slider"
      tabIndex={0}
      aria-label="Read the chart"
      aria-valuemin={0}
      aria-valuemax={last}
      aria-valuenow={index ?? last}
      aria-valuetext={mark?.label}
      onFocus={() => read(index ?? last)}
      onBlur={() => read(undefined)}
      onKeyDown={press}
    >
      <rect
        x={mark?.from}
        width={mark === undefined ? 0 : Math.max(2, Math.min(mark.to, frame.right) - mark.from)}
        y={frame.top}
        height={frame.bottom - frame.top}
      />
    </g>
  );
}

/** Returns what an <svg> does when the pointer moves over it. */
export function readAtPointer(marks: readonly Mark[], read: ReadoutProps["read"]) {
  return {
    onPointerMove(event: PointerEvent<SVGSVGElement>) {
      read(markAt(marks, event.clientX - event.currentTarget.getBoundingClientRect().left));
    },
    onPointerLeave: () => read(undefined),
  };
}

/** What the mark says that is read. The line is there before it has a mark, so that nothing moves. */
export function ReadoutText({ mark }: { readonly mark: Mark | undefined }) {
  return (
    <p className={`${common.note} ${styles.legend}`} aria-hidden="true">
      {mark?.label ?? "Point at the picture, or use the arrow keys, to read its numbers."}
    </p>
  );
}
