import type { Advice, Candidate } from "@onceward/words/retention-advice";
import type { Frame, Scale } from "../../charts/scales.ts";
import { formatDurationMs } from "../../format/duration.ts";
import styles from "../../styles/charts.module.css";
import type { SurvivalPoint } from "./survival.ts";

interface CurveProps {
  readonly frame: Frame;
  readonly x: Scale;
  readonly y: Scale;
  readonly points: readonly SurvivalPoint[];
  readonly advice: Advice;
}

/**
 * Draws the survival curve: solid for recognised duplicates up to today's retention, then dots with their intervals for
 * longer retentions, and the time that was not observed long enough.
 */
export function Curve({ frame, x, y, points, advice }: CurveProps) {
  const { retentionMs, candidates } = advice;
  const today = x.toPosition(retentionMs);
  const seen = points.filter(({ afterMs }) => afterMs < retentionMs);
  const upToToday = [...seen, { afterMs: retentionMs, perMonth: seen.at(-1)?.perMonth ?? 0 }];
  const longer = candidates.filter(
    (candidate) => candidate.retentionMs >= retentionMs && candidate.evidence.kind === "late",
  );
  const unknown = candidates.find(
    (candidate) => candidate.retentionMs > retentionMs && candidate.evidence.kind === "missing",
  );
  return (
    <g pointerEvents="none">
      {unknown !== undefined && <Unknown frame={frame} from={x.toPosition(unknown.retentionMs)} />}
      <path d={steps(upToToday, x, y)} className={styles.curve} />
      <path d={steps(longer.flatMap(pointOf), x, y)} className={styles.curve} data-kind="estimate" />
      {longer.map((candidate) => (
        <Dot key={candidate.retentionMs} candidate={candidate} x={x} y={y} />
      ))}
      <line x1={today} x2={today} y1={frame.top} y2={frame.bottom} className={styles.today} />
      <text x={today - 5} y={frame.top + 12} textAnchor="end" className={styles.label}>
        today {formatDurationMs(retentionMs)}
      </text>
    </g>
  );
}

function pointOf({ evidence, retentionMs }: Candidate): readonly SurvivalPoint[] {
  return evidence.kind === "late" ? [{ afterMs: retentionMs, perMonth: evidence.perMonth }] : [];
}

function Dot({ candidate, x, y }: { readonly candidate: Candidate; readonly x: Scale; readonly y: Scale }) {
  const { evidence, retentionMs } = candidate;
  if (evidence.kind !== "late") return undefined;
  const at = x.toPosition(retentionMs);
  return (
    <g className={styles.dot}>
      <line x1={at} x2={at} y1={y.toPosition(evidence.low)} y2={y.toPosition(evidence.high)} />
      <circle cx={at} cy={y.toPosition(evidence.perMonth)} r={3.5} />
    </g>
  );
}

/** The time that was not observed long enough; the legend names its colour. */
export function Unknown({ frame, from }: { readonly frame: Frame; readonly from: number }) {
  const size = { width: Math.max(0, frame.right - from), height: frame.bottom - frame.top };
  return <rect x={from} y={frame.top} {...size} className={styles.unknown} />;
}

/** Each point's height holds until the next point. */
function steps(points: readonly SurvivalPoint[], x: Scale, y: Scale): string {
  return points
    .map(({ afterMs, perMonth }, index) => {
      const at = x.toPosition(afterMs);
      const height = y.toPosition(perMonth);
      return index === 0 ? `M${at} ${height}` : `H${at}V${height}`;
    })
    .join("");
}
