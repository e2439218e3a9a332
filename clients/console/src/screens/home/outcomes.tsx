import { BottomAxis, LeftAxis } from "../../charts/axes.tsx";
import { Figure } from "../../charts/figure.tsx";
import { type Frame, linearScale, type Scale } from "../../charts/scales.ts";
import { formatCount, inSentence } from "../../format/quantity.ts";
import { formatHour, formatZone } from "../../format/time.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import styles from "../../styles/charts.module.css";
import { type Bar, COUNTS, type Count, lastOf, type Range, totalOf } from "./hours.ts";

const ROW_HEIGHT = 72;
/** The name of a row. */
const NAME_HEIGHT = 20;
const ROW_GAP = 8;
const AXIS_HEIGHT = 36;
const BAR_GAP = 0.2;
/** The lines above and below the picture. */
const CAPTIONS_HEIGHT = 64;
/** Labels of the axis are so far apart that they are readable. */
const LABEL_WIDTH = 90;

const NAMES: Readonly<Record<Count, string>> = {
  claims: "Claims",
  duplicates: "Duplicates stopped",
  ambiguous: "Ambiguous",
  mismatches: "Refused: the key of another request",
  fenced: "Refused: a late worker",
  refused: "Refused: a quota, or too old",
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
  const everyOf = ({ left, right }: Frame) => Math.ceil(bars.length / ((right - left) / LABEL_WIDTH));
  const placesOf = ({ left, right }: Frame) => linearScale([0, bars.length], [left, right]);
  return (
    <Figure
      title={`Claims and duplicates, ${lastOf(range)}`}
      caption="Each row has a scale of its own. The last bar is the present one."
      height={shown.length * ROW_HEIGHT + AXIS_HEIGHT}
      table={<OutcomeTable bars={bars} counts={shown} />}
      marks={(frame) =>
        bars.map((bar, index) => ({
          from: placesOf(frame).toPosition(index),
          to: placesOf(frame).toPosition(index + 1),
          label: `${formatHour(bar.from)}: ${shown.map((count) => `${formatCount(bar[count])} ${inSentence(NAMES[count])}`).join(", ")}`,
        }))
      }
      draw={(frame) => (
        <>
          {shown.map((count, row) => (
            <Row key={count} count={count} bars={bars} x={placesOf(frame)} frame={rowOf(frame, row)} />
          ))}
          <BottomAxis
            frame={frame}
            scale={placesOf(frame)}
            ticks={[...bars.keys()].filter((index) => index % everyOf(frame) === 0)}
            format={(index) => formatHour(bars[index]?.from ?? new Date())}
            label={`time, ${formatZone(bars.at(-1)?.from ?? new Date())}`}
          />
        </>
      )}
    />
  );
}

function rowOf(frame: Frame, row: number): Frame {
  const top = row * ROW_HEIGHT + NAME_HEIGHT;
  return { ...frame, top, bottom: (row + 1) * ROW_HEIGHT - ROW_GAP };
}

interface RowProps {
  readonly count: Count;
  readonly bars: readonly Bar[];
  readonly x: Scale;
  readonly frame: Frame;
}

function Row({ count, bars, x, frame }: RowProps) {
  const most = Math.max(1, ...bars.map((bar) => bar[count]));
  const y = linearScale([0, most], [frame.bottom, frame.top]);
  return (
    <g>
      <LeftAxis
        frame={frame}
        scale={y}
        ticks={[0, most]}
        format={formatCount}
        label={`${NAMES[count]}: ${formatCount(totalOf(bars, count))}`}
      />
      {bars.map((bar, index) => {
        const [from, to] = [x.toPosition(index), x.toPosition(index + 1)];
        const top = Math.min(y.toPosition(bar[count]), frame.bottom - 1);
        return (
          bar[count] > 0 && (
            <rect
              key={bar.from.getTime()}
              x={from}
              width={(to - from) * (1 - BAR_GAP)}
              y={top}
              height={frame.bottom - top}
              className={styles.bar}
              data-tone={LOOK.has(count) ? "attention" : undefined}
            />
          )
        );
      })}
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
        [`From, ${formatZone(bars.at(-1)?.from ?? new Date())}`, ({ from }) => formatHour(from)],
        ...counts.map((count): Column<Bar> => [NAMES[count], (bar) => formatCount(bar[count]), "number"]),
      ]}
    />
  );
}
