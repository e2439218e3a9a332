import { type ReactNode, useId, useLayoutEffect, useRef, useState } from "react";
import styles from "../styles/charts.module.css";
import common from "../styles/common.module.css";

/** A place to draw in, in pixels. The chart is drawn again when its width changes, so that its text keeps its size. */
export interface Frame {
  readonly width: number;
  readonly height: number;
  /** Where axes end and the plot begins. */
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

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
  /** Whether the picture can be operated, such as by a line that moves; else a screen reader gets it as an image. */
  readonly use?: "look" | "operate";
}

const MARGIN = { left: 52, right: 12, top: 16, bottom: 36 };

/** A chart: title, picture, and its numbers as a table that opens below. */
export function Figure({ title, caption, legend, height, table, draw, use = "look" }: FigureProps) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
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
  return (
    <figure className={styles.figure}>
      <figcaption>
        <strong id={id}>{title}</strong>
        {caption !== undefined && <span className={common.quiet}> {caption}</span>}
      </figcaption>
      <div ref={box} className={styles.box}>
        {/* biome-ignore lint/a11y/noSvgWithoutTitle: the figure's title labels it; <title> would also be a tooltip. */}
        <svg
          width={width}
          height={height}
          role={use === "look" ? "img" : "group"}
          aria-labelledby={id}
          className={styles.svg}
        >
          {width > 0 && draw(frame)}
        </svg>
      </div>
      {legend !== undefined && <p className={`${common.note} ${styles.legend}`}>{legend}</p>}
      <details>
        <summary>The numbers as a table</summary>
        {table}
      </details>
    </figure>
  );
}
