import { Figure, type Frame } from "../../charts/figure.tsx";
import { linearScale } from "../../charts/scales.ts";
import { formatCount } from "../../format/quantity.ts";
import { formatHour, formatZone } from "../../format/time.ts";
import { DataTable } from "../../parts/data-table.tsx";
import styles from "../../styles/charts.module.css";
import { type Bar, COUNTS, type Count, RANGES, type Range, totalOf } from "./hours.ts";

const ROW_HEIGHT = 54;
const LABEL_HEIGHT = 18;
const BAR_GAP = 0.2;
const AXIS_HEIGHT = 20;
/** The lines above and below the picture. */
const CAPTIONS_HEIGHT = 64;
/** Labels of the axis, which are readable at 320 px. */
const LABELS = 4;

const NAMES: Readonly<Record<Count, string>> = {
  claims: "Claims",
  duplicates: "Duplicates stopped",
  ambiguous: "Ambiguous",
  mismatches: "Refused: the key of another request",
  fenced: "Refused: a late worker",
  refused: "Refused: a quota, or a key that is too old",
};

/** What a person has to look at. */
const LOOK: ReadonlySet<Count> = new Set(["ambiguous", "mismatches", "fenced", "refused"]);

/** Until the numbers arrive: claims and duplicates. */
const HEIGHT = 2 * ROW_HEIGHT + AXIS_HEIGHT;

/** Keeps the room of the figure until its numbers arrive. */
export function OutcomesLoading() {
  return <svg height={HEIGHT + CAPTIONS_HEIGHT} width="1" role="img" aria-label="Loading" aria-busy="true" />;
}

interface OutcomesProps {
  readonly bars: readonly Bar[];
  readonly range: Range;
}

/** Claims of a range and what became of them: a row of bars for each count that is not zero, with a scale of its own. */
export function Outcomes({ bars, range }: OutcomesProps) {
  const shown = COUNTS.filter((count, index) => index < 2 || totalOf(bars, count) > 0);
  return (
    <Figure
      title={`Claims and duplicates, the last ${RANGES[range].label}`}
      caption="Each row has a scale of its own. The last bar is the present one."
      legend={`Times are in ${formatZone(bars.at(-1)?.from ?? new Date())}.`}
      height={shown.length * ROW_HEIGHT + AXIS_HEIGHT}
      table={<OutcomeTable bars={bars} counts={shown} />}
      draw={(frame) => (
        <>
          {shown.map((count, index) => (
            <OutcomeRow key={count} count={count} bars={bars} frame={frame} top={index * ROW_HEIGHT} />
          ))}
          <TimeAxis bars={bars} frame={frame} />
        </>
      )}
    />
  );
}

interface OutcomeRowProps {
  readonly count: Count;
  readonly bars: readonly Bar[];
  readonly frame: Frame;
  readonly top: number;
}

function OutcomeRow({ count, bars, frame, top }: OutcomeRowProps) {
  const most = Math.max(...bars.map((bar) => bar[count]));
  const bottom = top + ROW_HEIGHT - 6;
  const y = linearScale([0, Math.max(1, most)], [bottom, top + LABEL_HEIGHT]);
  const width = frame.width / bars.length;
  return (
    <g>
      <text y={top + 12} className={styles.name}>
        {NAMES[count]}
        <tspan className={styles.label}>
          {"  "}
          {formatCount(totalOf(bars, count))}
          {most > 0 && `, at most ${formatCount(most)} a bar`}
        </tspan>
      </text>
      <line x2={frame.width} y1={bottom} y2={bottom} className={styles.base} />
      {bars.map(
        (bar, index) =>
          bar[count] > 0 && (
            <rect
              key={bar.from.getTime()}
              x={index * width}
              width={width * (1 - BAR_GAP)}
              y={Math.min(y.toPosition(bar[count]), bottom - 1)}
              height={Math.max(1, bottom - y.toPosition(bar[count]))}
              className={styles.bar}
              data-tone={LOOK.has(count) ? "attention" : undefined}
            />
          ),
      )}
    </g>
  );
}

function TimeAxis({ bars, frame }: Pick<OutcomesProps, "bars"> & { readonly frame: Frame }) {
  const width = frame.width / bars.length;
  const every = Math.ceil(bars.length / LABELS);
  return (
    <g className={styles.label}>
      {bars.map(
        ({ from }, index) =>
          index % every === 0 && (
            <text key={from.getTime()} x={index * width} y={frame.height - 6}>
              {formatHour(from)}
            </text>
          ),
      )}
    </g>
  );
}

function OutcomeTable({ bars, counts }: Pick<OutcomesProps, "bars"> & { readonly counts: readonly Count[] }) {
  return (
    <DataTable
      caption="Claims, duplicates and refusals by time"
      rows={bars.toReversed()}
      rowKey={({ from }) => from.toISOString()}
      columns={[
        {
          heading: `From, ${formatZone(bars.at(-1)?.from ?? new Date())}`,
          cell: ({ from }) => formatHour(from),
        },
        ...counts.map((count) => ({
          heading: NAMES[count],
          kind: "number" as const,
          cell: (bar: Bar) => formatCount(bar[count]),
        })),
      ]}
    />
  );
}
