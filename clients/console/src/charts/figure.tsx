import {
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import styles from "../styles/charts.module.css";
import common from "../styles/common.module.css";
import { type Frame, makeReachable, stopAfterKey } from "./scales.ts";

interface FigureProps {
  readonly title: ReactNode;
  /** What the picture says, in a sentence. */
  readonly caption?: ReactNode;
  /** What lines, dots and colours mean. */
  readonly legend?: ReactNode;
  readonly height: number;
  /** The same numbers as a table. */
  readonly table: ReactNode;
  /** Draws the contents of the <svg>. */
  readonly draw: (frame: Frame) => ReactNode;
  /** What the pointer and the arrow keys read of the picture, from left to right. */
  readonly marks: (frame: Frame) => readonly Mark[];
}

const MARGIN = { left: 52, right: 12, top: 16, bottom: 36 };

/** A chart: title, picture, what is read of it by pointer or keyboard, and its numbers as a table that opens below. */
export function Figure({ title, caption, legend, height, table, draw, marks }: FigureProps) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [read, setRead] = useState<number>();
  const id = useId();
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    setWidth(element.clientWidth);
    return () => observer.disconnect();
  }, []);
  const frame = {
    width,
    height,
    left: MARGIN.left,
    right: width - MARGIN.right,
    top: MARGIN.top,
    bottom: height - MARGIN.bottom,
  };
  const shown = width > 0 ? marks(frame) : [];
  return (
    <figure className={styles.figure}>
      <figcaption>
        <strong id={id}>{title}</strong>
        {caption !== undefined && <span className={common.quiet}> {caption}</span>}
      </figcaption>
      <div ref={box} className={styles.box}>
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be the picture that holds the parts. */}
        <svg
          width={width}
          height={height}
          role="group"
          aria-labelledby={id}
          className={styles.svg}
          {...readAtPointer(shown, setRead)}
        >
          {shown.length > 0 && <Readout frame={frame} marks={shown} index={read} read={setRead} />}
          {width > 0 && draw(frame)}
        </svg>
      </div>
      <ReadoutText mark={read === undefined ? undefined : shown[read]} />
      {legend !== undefined && <p className={`${common.note} ${styles.legend}`}>{legend}</p>}
      <details>
        <summary>The numbers as a table</summary>
        {table}
      </details>
    </figure>
  );
}

/** A part of a picture that is read at once, such as a bar: where it is, in pixels, and what it says. */
interface Mark {
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
function Readout({ frame, marks, index, read }: ReadoutProps) {
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
      ref={makeReachable}
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
function readAtPointer(marks: readonly Mark[], read: ReadoutProps["read"]) {
  return {
    onPointerMove(event: PointerEvent<SVGSVGElement>) {
      read(markAt(marks, event.clientX - event.currentTarget.getBoundingClientRect().left));
    },
    onPointerLeave: () => read(undefined),
  };
}

/** What the mark says that is read. The line is there before it has a mark, so that nothing moves. */
function ReadoutText({ mark }: { readonly mark: Mark | undefined }) {
  return (
    <p className={`${common.note} ${styles.legend}`} aria-hidden="true">
      {mark?.label ?? (
        <>
          Point at the picture<span className={common.keys}>, or use the arrow keys,</span> to read its
          numbers.
        </>
      )}
    </p>
  );
}
