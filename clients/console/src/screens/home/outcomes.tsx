import { BottomAxis, LeftAxis } from "../../charts/axes.tsx";
import { Figure } from "../../charts/figure.tsx";
import { type Frame, linearScale, roundTicks } from "../../charts/scales.ts";
import { formatCount, inSentence } from "../../format/quantity.ts";
import { formatHour, formatZone } from "../../format/time.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import styles from "../../styles/charts.module.css";
import { type Bar, COUNTS, type Count, lastOf, type Range, totalOf } from "./hours.ts";

const HEIGHT = 220;
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

/** The layers of a bar, from the axis up. Their sum is the number of claims that came, answered or refused. */
const LAYERS = [
  { name: "Granted", tone: "first", of: (bar: Bar) => Math.max(0, bar.claims - stopped(bar)) },
  { name: "Duplicates stopped", tone: "stopped", of: (bar: Bar) => bar.duplicates },
  { name: "Ambiguous", tone: "attention", of: (bar: Bar) => bar.ambiguous },
  { name: "Refused", tone: "bad", of: (bar: Bar) => bar.mismatches + bar.refused },
] as const;

function stopped({ duplicates, ambiguous, mismatches }: Bar): number {
  return duplicates + ambiguous + mismatches;
}

/** Keeps the room of the figure until its numbers arrive. */
export function OutcomesLoading() {
  return <svg height={HEIGHT + CAPTIONS_HEIGHT} width="1" role="img" aria-label="Loading" aria-busy="true" />;
}

interface OutcomesProps {
  readonly bars: readonly Bar[];
  readonly range: Range;
}

/** Claims of a range and what became of them: a bar for each time, in layers on one scale. */
export function Outcomes({ bars, range }: OutcomesProps) {
  const counts = COUNTS.filter((count, index) => index < 2 || totalOf(bars, count) > 0);
  const layers = LAYERS.filter(({ of }, index) => index < 2 || bars.some((bar) => of(bar) > 0));
  const ticks = roundTicks(Math.max(...bars.map(({ claims, refused }) => claims + refused)));
  const everyOf = ({ left, right }: Frame) => Math.ceil(bars.length / ((right - left) / LABEL_WIDTH));
  const xOf = ({ left, right }: Frame) => linearScale([0, bars.length], [left, right]);
  const yOf = ({ top, bottom }: Frame) => linearScale([0, ticks.at(-1) ?? 1], [bottom, top]);
  return (
    <Figure
      title={`Claims and duplicates, ${lastOf(range)}`}
      caption="The last bar is not over."
      legend={layers.map(({ name, tone, of }) => (
        <span key={name} className={styles.layer} data-tone={tone}>
          {name}: {formatCount(bars.reduce((sum, bar) => sum + of(bar), 0))}
        </span>
      ))}
      height={HEIGHT}
      table={<OutcomeTable bars={bars} counts={counts} />}
      marks={(frame) =>
        bars.map((bar, index) => ({
          from: xOf(frame).toPosition(index),
          to: xOf(frame).toPosition(index + 1),
          label: `${formatHour(bar.from)}: ${counts.map((count) => `${formatCount(bar[count])} ${inSentence(NAMES[count])}`).join(", ")}`,
        }))
      }
      draw={(frame) => (
        <>
          <LeftAxis frame={frame} scale={yOf(frame)} ticks={ticks} format={formatCount} label="Claims" />
          {bars.map((bar, index) => (
            <Layers
              key={bar.from.getTime()}
              counts={layers.map(({ tone, of }) => [tone, of(bar)] as const)}
              from={xOf(frame).toPosition(index)}
              to={xOf(frame).toPosition(index + 1 - BAR_GAP)}
              y={yOf(frame).toPosition}
            />
          ))}
          <BottomAxis
            frame={frame}
            scale={xOf(frame)}
            ticks={[...bars.keys()].filter((index) => index % everyOf(frame) === 0)}
            format={(index) => formatHour(bars[index]?.from ?? new Date())}
            label={`time, ${formatZone(bars.at(-1)?.from ?? new Date())}`}
          />
        </>
      )}
    />
  );
}

interface LayersProps {
  /** From the axis up. */
  readonly counts: readonly (readonly [tone: string, count: number])[];
  readonly from: number;
  readonly to: number;
  readonly y: (count: number) => number;
}

/** A bar. A layer that is not empty is seen, however small it is beside the others. */
function Layers({ counts, from, to, y }: LayersProps) {
  let top = y(0);
  return counts.map(([tone, count]) => {
    const height = count === 0 ? 0 : Math.max(1.5, y(0) - y(count));
    top -= height;
    return (
      <rect
        key={tone}
        className={styles.bar}
        data-tone={tone}
        {...{ x: from, width: to - from, y: top, height }}
      />
    );
  });
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
