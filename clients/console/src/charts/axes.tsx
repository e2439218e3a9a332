import styles from "../styles/charts.module.css";
import type { Frame, Scale } from "./scales.ts";

interface AxisProps {
  readonly frame: Frame;
  readonly scale: Scale;
  readonly ticks: readonly number[];
  readonly format: (value: number) => string;
  /** What the axis measures, with its unit. */
  readonly label: string;
}

/** The axis below a plot. */
export function BottomAxis({ frame, scale, ticks, format, label }: AxisProps) {
  const { left, right, bottom, height } = frame;
  return (
    <g className={styles.axis}>
      <line x1={left} x2={right} y1={bottom} y2={bottom} />
      {ticks.map((tick) => (
        <g key={tick} transform={`translate(${scale.toPosition(tick)} ${bottom})`}>
          <line y2={4} />
          <text y={16} textAnchor="middle">
            {format(tick)}
          </text>
        </g>
      ))}
      <text x={right} y={height - 4} textAnchor="end">
        {label}
      </text>
    </g>
  );
}

/** The axis on the left of a plot, with lines across it. */
export function LeftAxis({ frame, scale, ticks, format, label }: AxisProps) {
  const { left, right, top } = frame;
  return (
    <g className={styles.axis}>
      {ticks.map((tick) => (
        <g key={tick} transform={`translate(${left} ${scale.toPosition(tick)})`}>
          <line x2={right - left} className={styles.grid} />
          <text x={-6} y={4} textAnchor="end">
            {format(tick)}
          </text>
        </g>
      ))}
      <text x={left} y={top - 6}>
        {label}
      </text>
    </g>
  );
}
