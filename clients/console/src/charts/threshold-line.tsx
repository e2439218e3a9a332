import { type KeyboardEvent, type PointerEvent, useRef } from "react";
import styles from "../styles/charts.module.css";
import { type Frame, makeReachable, nearestStop, type Scale, stopAfterKey } from "./scales.ts";

interface ThresholdLineProps {
  readonly frame: Frame;
  readonly scale: Scale;
  /** The possible values of the line, the smallest first; above 0. */
  readonly stops: readonly number[];
  readonly value: number;
  /** What the line is, such as "Proposed key retention". */
  readonly label: string;
  readonly format: (value: number) => string;
  readonly move: (value: number) => void;
}

const HANDLE_WIDTH = 12;
const HANDLE_HEIGHT = 28;

/**
 * A vertical line that is moved by dragging anywhere in the plot, and as a slider by the keyboard: arrows to the next
 * stop, Page Up and Page Down further, Home and End. (ARIA Authoring Practices, slider pattern.)
 */
export function ThresholdLine({ frame, scale, stops, value, label, format, move }: ThresholdLineProps) {
  const area = useRef<SVGRectElement>(null);
  const x = scale.toPosition(value);
  const { left, right, top, bottom } = frame;

  function follow(event: PointerEvent<SVGElement>): void {
    const box = area.current?.getBoundingClientRect();
    if (box !== undefined) move(nearestStop(stops, scale.toValue(left + event.clientX - box.left)));
  }
  function grab(event: PointerEvent<SVGElement>): void {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    follow(event);
  }
  function drag(event: PointerEvent<SVGElement>): void {
    if (event.currentTarget.hasPointerCapture(event.pointerId)) follow(event);
  }
  function press(event: KeyboardEvent): void {
    const next = stopAfterKey(stops, value, event.key);
    if (next === undefined) return;
    event.preventDefault();
    move(next);
  }

  return (
    <g className={styles.threshold} onPointerDown={grab} onPointerMove={drag}>
      <rect
        ref={area}
        x={left}
        y={top}
        width={Math.max(0, right - left)}
        height={bottom - top}
        fill="transparent"
      />
      <g
        ref={makeReachable}
        role="slider"
        tabIndex={0}
        aria-label={label}
        aria-orientation="horizontal"
        aria-valuemin={stops[0]}
        aria-valuemax={stops.at(-1)}
        aria-valuenow={value}
        aria-valuetext={format(value)}
        transform={`translate(${x} 0)`}
        onKeyDown={press}
      >
        <line y1={top} y2={bottom} />
        <rect
          x={-HANDLE_WIDTH / 2}
          y={(top + bottom - HANDLE_HEIGHT) / 2}
          width={HANDLE_WIDTH}
          height={HANDLE_HEIGHT}
          rx={3}
        />
      </g>
    </g>
  );
}
