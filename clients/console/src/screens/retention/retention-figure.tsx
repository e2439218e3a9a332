import { describeInsufficientData } from "@onceward/words/insufficient-data";
import type { Advice } from "@onceward/words/retention-advice";
import { formatLate } from "@onceward/words/verdict-words";
import { BottomAxis, LeftAxis } from "../../charts/axes.tsx";
import { Figure } from "../../charts/figure.tsx";
import { decadeTicks, durationTicks, type Frame, logScale, type Scale } from "../../charts/scales.ts";
import { ThresholdLine } from "../../charts/threshold-line.tsx";
import { formatDurationMs } from "../../format/duration.ts";
import { formatCount, formatEstimate, formatSize } from "../../format/quantity.ts";
import { DataTable } from "../../parts/data-table.tsx";
import { useNow } from "../../parts/time.tsx";
import styles from "../../styles/charts.module.css";
import { proposalOf } from "./candidates.ts";
import { Curve, Unknown } from "./curve.tsx";
import { type Bar, histogramOf } from "./histogram.ts";
import { SHORTEST_MS, type SurvivalPoint, survivalOf } from "./survival.ts";

const HEIGHT = 280;
/** Fewer than one a month are at the bottom of the axis, which is labelled 0. */
const LEAST_PER_MONTH = 0.5;
/** Longer retentions than so many times today's are shown if a duplicate came as late. */
const ROOM = 4;
/** Room beyond the longest retention. */
const BEYOND = 1.3;
const TICKS_APART = 52;

interface RetentionFigureProps {
  readonly advice: Advice;
  readonly proposedMs: number;
  readonly propose: (ms: number) => void;
}

/** The picture of a namespace's retention: when duplicates come, and where retention cuts them off. The curve is folded. */
export function RetentionFigure({ advice: known, proposedMs, propose }: RetentionFigureProps) {
  const points = survivalOf(known, useNow());
  const { retentionMs: advisedMs = 0 } = known.advised ?? {};
  const longest = Math.max(proposedMs, advisedMs, known.retentionMs * ROOM, points.at(-1)?.afterMs ?? 0);
  const candidates = known.candidates.filter(({ retentionMs }) => retentionMs <= longest);
  const advice = { ...known, candidates };
  const isKnown = proposalOf(known, proposedMs)?.evidence?.kind === "late";
  const bars = histogramOf(points, proposedMs).map((bar) => {
    const tone = bar.toMs <= proposedMs ? undefined : isKnown ? "bad" : "quiet";
    const atLeast = `at least ${formatEstimate(Math.floor(bar.perMonth))}`;
    return { ...bar, tone, words: tone === "quiet" ? atLeast : perMonthOf(bar) };
  });
  const most = (of: Frame, top: number) => scalesOf(of, advice, proposedMs, top);
  return (
    <>
      <Figure
        title="When duplicates come"
        caption={`Right of the line, a duplicate takes effect a second time, or is refused as too old${isKnown ? "" : "; grey: how many come is not known yet"}. Drag the line.`}
        height={HEIGHT}
        table={<BarTable bars={bars} />}
        marks={(frame) => {
          const { x } = most(frame, 1);
          return bars.map((bar) => ({
            from: x.toPosition(bar.fromMs),
            to: Math.min(frame.right, x.toPosition(bar.toMs)),
            label: `${timeOf(bar)}: ${bar.words} a month`,
          }));
        }}
        draw={(frame) => {
          const { x, y, axes } = most(frame, Math.max(...bars.map(({ perMonth }) => perMonth)));
          return (
            <>
              {axes}
              {!isKnown && <Unknown frame={frame} from={x.toPosition(proposedMs)} />}
              {bars.map(({ fromMs, toMs, perMonth, ...bar }) => (
                <rect
                  key={fromMs}
                  x={x.toPosition(fromMs) + 1}
                  width={Math.max(1, Math.min(frame.right, x.toPosition(toMs)) - x.toPosition(fromMs) - 2)}
                  y={y.toPosition(Math.max(perMonth, LEAST_PER_MONTH))}
                  height={frame.bottom - y.toPosition(Math.max(perMonth, LEAST_PER_MONTH))}
                  className={styles.bar}
                  data-tone={bar.tone}
                />
              ))}
              <ThresholdLine
                frame={frame}
                scale={x}
                stops={candidates.map((candidate) => candidate.retentionMs)}
                value={proposedMs}
                label="Proposed key retention"
                format={formatDurationMs}
                move={propose}
              />
            </>
          );
        }}
      />
      <details>
        <summary>For experts: the curve, with intervals</summary>
        <Figure
          title="Duplicates a month that arrive later than…"
          legend="Solid: duplicates up to today's retention. Dots: estimates for longer ones, with their interval of 95 %. Grey: not observed long enough."
          height={HEIGHT}
          table={<CandidateTable advice={advice} />}
          marks={(frame) => {
            const { x } = most(frame, 1);
            return candidates.map(({ retentionMs: ms, evidence }, index) => ({
              from: x.toPosition(ms),
              to: x.toPosition(candidates[index + 1]?.retentionMs ?? Number.POSITIVE_INFINITY),
              label: `Later than ${formatDurationMs(ms)}: ${formatLate(evidence)} a month`,
            }));
          }}
          draw={(frame) => {
            const { x, y, axes } = most(frame, mostOf(points, advice));
            return (
              <>
                {axes}
                <Curve frame={frame} x={x} y={y} points={points} advice={advice} />
              </>
            );
          }}
        />
      </details>
    </>
  );
}

function mostOf(points: readonly SurvivalPoint[], { candidates }: Advice): number {
  return Math.max(
    ...points.map(({ perMonth }) => perMonth),
    ...candidates.map(({ evidence }) => (evidence.kind === "late" ? evidence.high : 0)),
  );
}

function scalesOf(frame: Frame, { candidates }: Advice, proposedMs: number, most: number) {
  const longest = Math.max(proposedMs, ...candidates.map(({ retentionMs }) => retentionMs));
  const domain = [SHORTEST_MS, longest * BEYOND] as const;
  const x: Scale = logScale(domain, [frame.left, frame.right]);
  const decades = decadeTicks(Math.max(1, most));
  const y = logScale([LEAST_PER_MONTH, decades.at(-1) ?? 1], [frame.bottom, frame.top]);
  const axes = (
    <>
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
        format={formatDurationMs}
        label="time after the first claim"
      />
    </>
  );
  return { x, y, axes };
}

function BarTable({ bars }: { readonly bars: readonly (Bar & { readonly words: string })[] }) {
  return (
    <DataTable
      caption="Duplicates a month by the time after the first claim"
      rows={bars}
      rowKey={({ fromMs }) => `${fromMs}`}
      columns={[
        ["Time", timeOf],
        ["Duplicates a month", ({ words }) => words, "number"],
      ]}
    />
  );
}

function timeOf({ fromMs, toMs }: Bar): string {
  return Number.isFinite(toMs)
    ? `${formatDurationMs(fromMs)} – ${formatDurationMs(toMs)}`
    : `later than ${formatDurationMs(fromMs)}`;
}

function perMonthOf({ perMonth }: Bar): string {
  return perMonth < 1 ? "fewer than 1" : formatEstimate(Math.round(perMonth));
}

function CandidateTable({ advice: { candidates, retentionMs: inForceMs } }: { readonly advice: Advice }) {
  return (
    <DataTable
      caption="Retentions, and the duplicates that would come later, with intervals of 95 %"
      rows={candidates}
      rowKey={({ retentionMs }) => `${retentionMs}`}
      columns={[
        [
          "Key retention",
          ({ retentionMs }) =>
            `${formatDurationMs(retentionMs)}${retentionMs === inForceMs ? " (today)" : ""}`,
        ],
        ["Late a month", ({ evidence }) => formatLate(evidence), "number"],
        ["Records", ({ records }) => formatEstimate(Math.round(records)), "number"],
        ["Size", ({ bytes }) => formatSize(bytes), "number"],
        [
          "Missing",
          ({ evidence }) =>
            evidence.kind === "missing"
              ? describeInsufficientData({ missingDays: evidence.days, missingClaims: evidence.claims })
              : "",
        ],
      ]}
    />
  );
}
