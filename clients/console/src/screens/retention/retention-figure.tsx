import { BottomAxis, LeftAxis } from "../../charts/axes.tsx";
import { Figure, type Frame } from "../../charts/figure.tsx";
import { decadeTicks, durationTicks, logScale } from "../../charts/scales.ts";
import { ThresholdLine } from "../../charts/threshold-line.tsx";
import { formatDuration } from "../../format/duration.ts";
import { formatCount, formatEstimate, formatSize } from "../../format/quantity.ts";
import { DataTable } from "../../parts/data-table.tsx";
import type { Advice } from "./candidates.ts";
import { Curve } from "./curve.tsx";
import styles from "./retention.module.css";
import { daysCovered, SHORTEST_MS, survivalOf } from "./survival.ts";
import { useMonth } from "./use-month.ts";
import { describeMissing, formatLate } from "./words.ts";

const HEIGHT = 320;
/** Fewer than one a month are at the bottom of the axis, which is labelled 0. */
const LEAST_PER_MONTH = 0.5;
/** Room beyond the longest retention. */
const BEYOND = 1.3;
const TICKS_APART = 52;

interface RetentionFigureProps {
  readonly namespace: string;
  readonly advice: Advice;
  readonly proposedMs: number;
  readonly propose: (ms: number) => void;
}

/** The picture of a namespace's retention: how many duplicates come later than a time, and where retention cuts them off. */
export function RetentionFigure({ namespace, advice, proposedMs, propose }: RetentionFigureProps) {
  const { after, now, hours } = useMonth(namespace);
  const points = survivalOf(hours, daysCovered(after, advice.observedSince, now), advice);
  return (
    <Figure
      title="Duplicates a month that arrive later than…"
      caption="Right of the line, a duplicate takes effect a second time, or is refused as too old. Drag the line, or use the arrow keys."
      legend="Solid: recognised duplicates of 30 days. Dots: estimates for longer retentions, with their interval of 95 %. Grey: not observed long enough."
      height={HEIGHT}
      use="operate"
      table={<CandidateTable advice={advice} />}
      draw={(frame) => (
        <Picture frame={frame} advice={advice} proposedMs={proposedMs} propose={propose} points={points} />
      )}
    />
  );
}

interface PictureProps extends Omit<RetentionFigureProps, "namespace"> {
  readonly frame: Frame;
  readonly points: ReturnType<typeof survivalOf>;
}

function Picture({ frame, advice, proposedMs, propose, points }: PictureProps) {
  const retentions = advice.candidates.map(({ retentionMs }) => retentionMs);
  const domain = [SHORTEST_MS, Math.max(proposedMs, ...retentions) * BEYOND] as const;
  const x = logScale(domain, [frame.left, frame.right]);
  const most = Math.max(
    ...points.map(({ perMonth }) => perMonth),
    ...advice.candidates.map(({ evidence }) => (evidence.kind === "late" ? evidence.high : 0)),
  );
  const decades = decadeTicks(most);
  const y = logScale([LEAST_PER_MONTH, decades.at(-1) ?? 1], [frame.bottom, frame.top]);
  const cut = x.toPosition(proposedMs);
  return (
    <>
      <rect
        x={cut}
        y={frame.top}
        width={Math.max(0, frame.right - cut)}
        height={frame.bottom - frame.top}
        className={styles.beyond}
      />
      <LeftAxis
        frame={frame}
        scale={y}
        ticks={[LEAST_PER_MONTH, ...decades]}
        format={(value) => (value === LEAST_PER_MONTH ? "0" : formatCount(value))}
        label="duplicates a month"
      />
      <BottomAxis
        frame={frame}
        scale={x}
        ticks={durationTicks(domain, x, TICKS_APART)}
        format={formatDuration}
        label="time after the first claim"
      />
      <Curve frame={frame} x={x} y={y} points={points} advice={advice} />
      <ThresholdLine
        frame={frame}
        scale={x}
        stops={retentions}
        value={proposedMs}
        label="Proposed key retention"
        format={formatDuration}
        move={propose}
      />
    </>
  );
}

function CandidateTable({ advice: { candidates, retentionMs: inForceMs } }: { readonly advice: Advice }) {
  return (
    <DataTable
      caption="Retentions, and the duplicates that would come later, with intervals of 95 %"
      rows={candidates}
      rowKey={({ retentionMs }) => `${retentionMs}`}
      columns={[
        {
          heading: "Key retention",
          cell: ({ retentionMs }) =>
            `${formatDuration(retentionMs)}${retentionMs === inForceMs ? " (today)" : ""}`,
        },
        { heading: "Late a month", kind: "number", cell: ({ evidence }) => formatLate(evidence) },
        { heading: "Records", kind: "number", cell: ({ records }) => formatEstimate(Math.round(records)) },
        { heading: "Size", kind: "number", cell: ({ bytes }) => formatSize(bytes) },
        {
          heading: "Missing",
          cell: ({ evidence }) =>
            evidence.kind === "missing" ? describeMissing(evidence.days, evidence.claims) : "",
        },
      ]}
    />
  );
}
