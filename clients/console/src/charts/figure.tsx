import { type ReactNode, useId, useLayoutEffect, useRef, useState } from "react";
import styles from "../styles/charts.module.css";
import common from "../styles/common.module.css";
import { type Mark, Readout, ReadoutText, readAtPointer } from "./readout.tsx";
import type { Frame } from "./scales.ts";

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
