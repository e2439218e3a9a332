import { Figure, type Frame } from "../../charts/figure.tsx";
import { linearScale } from "../../charts/scales.ts";
import { formatCount } from "../../format/quantity.ts";
import { formatHour, formatZone } from "../../format/time.ts";
import { DataTable } from "../../parts/data-table.tsx";
import styles from "./home.module.css";
import { COUNTS, type Count, HOURS_SHOWN, type HourSum, totalOf } from "./hours.ts";

const ROW_HEIGHT = 54;
const LABEL_HEIGHT = 18;
const BAR_GAP = 0.2;
const AXIS_HEIGHT = 20;
/** The lines above and below the picture. */
const CAPTIONS_HEIGHT = 64;
/** Hours between two labels of the axis. */
const LABEL_EVERY = 6;

const NAMES: Readonly<Record<Count, string>> = {
  granted: "Claims that got their key",
  replayed: "Duplicates stopped",
  inProgress: "Waited for another worker",
  ambiguous: "Ambiguous",
  mismatches: "Refused: the key of another request",
  fenced: "Refused: a late worker",
};

/** What a person has to look at. */
const LOOK: ReadonlySet<Count> = new Set(["ambiguous", "mismatches", "fenced"]);

const HEIGHT = COUNTS.length * ROW_HEIGHT + AXIS_HEIGHT;

/** Keeps the room of the figure until its numbers arrive. */
export function OutcomesLoading() {
  return <svg height={HEIGHT + CAPTIONS_HEIGHT} width="1" role="img" aria-label="Loading" aria-busy="true" />;
}

/** The outcomes of the last 24 hours: a row of bars for each, with a scale of its own. */
export function Outcomes({ hours }: { readonly hours: readonly HourSum[] }) {
  return (
    <Figure
      title="Outcomes an hour, the last 24 hours"
      caption="Each row has a scale of its own. The last bar is the current hour."
      legend={`Hours are in ${formatZone(hours.at(-1)?.hour ?? new Date())}.`}
      height={HEIGHT}
      table={<OutcomeTable hours={hours} />}
      draw={(frame) => (
        <>
          {COUNTS.map((count, index) => (
            <OutcomeRow key={count} count={count} hours={hours} frame={frame} top={index * ROW_HEIGHT} />
          ))}
          <HourAxis hours={hours} frame={frame} />
        </>
      )}
    />
  );
}

interface OutcomeRowProps {
  readonly count: Count;
  readonly hours: readonly HourSum[];
  readonly frame: Frame;
  readonly top: number;
}

function OutcomeRow({ count, hours, frame, top }: OutcomeRowProps) {
  const most = Math.max(...hours.map((hour) => hour[count]));
  const bottom = top + ROW_HEIGHT - 6;
  const y = linearScale([0, Math.max(1, most)], [bottom, top + LABEL_HEIGHT]);
  const width = frame.width / HOURS_SHOWN;
  const total = totalOf(hours, count);
  return (
    <g>
      <text y={top + 12} className={styles.rowName}>
        {NAMES[count]}
        <tspan className={styles.rowTotal}>
          {"  "}
          {formatCount(total)}
          {most > 0 && `, busiest hour ${formatCount(most)}`}
        </tspan>
      </text>
      <line x2={frame.width} y1={bottom} y2={bottom} className={styles.base} />
      {hours.map(
        (hour, index) =>
          hour[count] > 0 && (
            <rect
              key={hour.hour.getTime()}
              x={index * width}
              width={width * (1 - BAR_GAP)}
              y={Math.min(y.toPosition(hour[count]), bottom - 1)}
              height={Math.max(1, bottom - y.toPosition(hour[count]))}
              className={LOOK.has(count) ? styles.lookBar : styles.bar}
            />
          ),
      )}
    </g>
  );
}

function HourAxis({ hours, frame }: { readonly hours: readonly HourSum[]; readonly frame: Frame }) {
  const width = frame.width / HOURS_SHOWN;
  return (
    <g className={styles.hours}>
      {hours.map(
        ({ hour }, index) =>
          index % LABEL_EVERY === 0 && (
            <text key={hour.getTime()} x={index * width} y={frame.height - 6}>
              {formatHour(hour)}
            </text>
          ),
      )}
    </g>
  );
}

function OutcomeTable({ hours }: { readonly hours: readonly HourSum[] }) {
  return (
    <DataTable
      caption="Outcomes of claims, and refusals, by hour"
      rows={hours.toReversed()}
      rowKey={({ hour }) => hour.toISOString()}
      columns={[
        {
          heading: `Hour, ${formatZone(hours.at(-1)?.hour ?? new Date())}`,
          cell: ({ hour }) => formatHour(hour),
        },
        ...COUNTS.map((count) => ({
          heading: NAMES[count],
          kind: "number" as const,
          cell: (hour: HourSum) => formatCount(hour[count]),
        })),
      ]}
    />
  );
}
