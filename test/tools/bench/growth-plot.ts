/** Rates at several sizes of one quantity, smallest first. */
export interface Axis {
  readonly name: string;
  readonly unit: string;
  readonly points: readonly { readonly at: number; readonly perSecond: number }[];
}

const PANEL = { width: 300, height: 200, margin: 40 };

/**
 * Draws one panel per axis: sizes evenly spaced, as each is about ten times the one before; rates from zero.
 */
export function plotGrowth(axes: readonly Axis[]): string {
  const width = PANEL.width * axes.length;
  const panels = axes.map(
    (axis, index) => `<g transform="translate(${index * PANEL.width},0)">${panel(axis)}</g>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${PANEL.height}" font-family="sans-serif" font-size="10">`,
    "<title>Rates as something grows</title>",
    `<rect width="100%" height="100%" fill="white"/>`,
    ...panels,
    "</svg>",
    "",
  ].join("\n");
}

function panel({ name, unit, points }: Axis): string {
  const { width, height, margin } = PANEL;
  const highest = Math.max(...points.map(({ perSecond }) => perSecond));
  const x = (index: number) => margin + (index * (width - 2 * margin)) / Math.max(1, points.length - 1);
  const y = (perSecond: number) => height - margin - (perSecond / highest) * (height - 2 * margin);
  const line = points.map(({ perSecond }, index) => `${x(index).toFixed(1)},${y(perSecond).toFixed(1)}`);
  const marks = points.map(
    ({ at, perSecond }, index) =>
      `<circle cx="${x(index).toFixed(1)}" cy="${y(perSecond).toFixed(1)}" r="3" fill="#2563eb"/>` +
      text(x(index), y(perSecond) - 6, compact(perSecond)) +
      text(x(index), height - margin + 14, compact(at)),
  );
  return [
    `<path d="M${margin},${margin}V${height - margin}H${width - margin}" fill="none" stroke="#999"/>`,
    `<polyline points="${line.join(" ")}" fill="none" stroke="#2563eb" stroke-width="1.5"/>`,
    ...marks,
    text(width / 2, 18, `${unit} by ${name}`),
  ].join("");
}

function text(x: number, y: number, content: string): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="middle">${content}</text>`;
}

/** Formats a number as 12K or 10M. */
function compact(value: number): string {
  return value.toLocaleString("en-US", { notation: "compact" });
}
