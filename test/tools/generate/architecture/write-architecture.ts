import { readFile, writeFile } from "node:fs/promises";

const SOURCE = new URL("architecture.txt", import.meta.url);
const TARGET = new URL("../../../../deploy/pictures/", import.meta.url);

/** The colours of a picture: on a page of that scheme, text has a contrast of at least 7 (WCAG 2.2, 1.4.6). */
const SCHEMES = {
  light: { box: "#f6f8fa", edge: "#57606a", text: "#1f2328" },
  dark: { box: "#161b22", edge: "#8b949e", text: "#e6edf3" },
} as const;

const BOX = { width: 200, height: 64 };
/** Between two boxes: room for an arrow's text. */
const GAP = { x: 150, y: 48 };
const MARGIN = 8;
const LINE_HEIGHT = 20;

interface Box {
  readonly column: number;
  readonly row: number;
  readonly lines: readonly string[];
}

interface Arrow {
  readonly from: string;
  readonly to: string;
  readonly dashed: boolean;
  readonly text: string;
}

interface Picture {
  readonly boxes: ReadonlyMap<string, Box>;
  readonly arrows: readonly Arrow[];
}

/** @throws Error that names a line without a meaning. */
function parse(source: string): Picture {
  const boxes = new Map<string, Box>();
  const arrows: Arrow[] = [];
  for (const line of source.split("\n").filter((each) => each !== "" && !each.startsWith("#"))) {
    const [, name, column, row, text] = /^box (\w+) (\d) (\d) (.+)$/.exec(line) ?? [];
    const [, from, kind, to, label] = /^(\w+) (->|\.\.>) (\w+) (.+)$/.exec(line) ?? [];
    if (name && text) boxes.set(name, { column: Number(column), row: Number(row), lines: text.split(" / ") });
    else if (from && to && label) arrows.push({ from, to, dashed: kind === "..>", text: label });
    else throw new Error(`architecture.txt has a line without a meaning: ${line}`);
  }
  return { boxes, arrows };
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

function cornerOf({ column, row }: Box) {
  return { x: MARGIN + column * (BOX.width + GAP.x), y: MARGIN + row * (BOX.height + GAP.y) };
}

function drawBox(box: Box): string {
  const { x, y } = cornerOf(box);
  const top = y + BOX.height / 2 - ((box.lines.length - 1) * LINE_HEIGHT) / 2;
  const lines = box.lines.map(
    (line, index) =>
      `<text x="${x + BOX.width / 2}" y="${top + index * LINE_HEIGHT}" class="${index === 0 ? "name" : "part"}">${escapeXml(line)}</text>`,
  );
  return `<rect x="${x}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="8"/>${lines.join("")}`;
}

/** Draws an arrow to a box in the next column: from the middle of one side to the other's, apart where it comes from below. */
function drawArrow({ from, to, dashed, text }: Arrow, boxes: ReadonlyMap<string, Box>): string {
  const [start, end] = [boxes.get(from), boxes.get(to)];
  if (start === undefined || end === undefined) throw new Error(`there is no box ${from} or ${to}`);
  const apart = (end.row - start.row) * (BOX.height / 4);
  const [a, b] = [cornerOf(start), cornerOf(end)];
  const line = {
    x1: a.x + BOX.width,
    y1: a.y + BOX.height / 2 + Math.max(0, apart),
    x2: b.x - MARGIN,
    y2: b.y + BOX.height / 2 - Math.min(0, apart),
  };
  const middle = { x: (line.x1 + line.x2) / 2, y: (line.y1 + line.y2) / 2 };
  // Above a level arrow, and to the right of one that rises or falls, on the side that it leaves free.
  const label =
    apart === 0
      ? `x="${middle.x}" y="${middle.y - 8}" class="label"`
      : `x="${middle.x + 12}" y="${middle.y + (apart < 0 ? LINE_HEIGHT : 0) - 4}" class="label beside"`;
  const stroke = dashed ? ' stroke-dasharray="6 5"' : "";
  return (
    `<line x1="${line.x1}" y1="${line.y1}" x2="${line.x2}" y2="${line.y2}" marker-end="url(#head)"${stroke}/>` +
    `<text ${label}>${escapeXml(text)}</text>`
  );
}

/** Returns the picture as SVG. `colours`: of one scheme. */
function draw({ boxes, arrows }: Picture, { box, edge, text }: (typeof SCHEMES)["light" | "dark"]): string {
  const all = [...boxes.values()];
  const corners = all.map(cornerOf);
  const width = Math.max(...corners.map(({ x }) => x)) + BOX.width + MARGIN;
  const height = Math.max(...corners.map(({ y }) => y)) + BOX.height + MARGIN;
  const style =
    `rect{fill:${box};stroke:${edge};stroke-width:1.5}line{stroke:${edge};stroke-width:1.5}path{fill:${edge}}` +
    `text{fill:${text};font:14px system-ui,sans-serif;text-anchor:middle;dominant-baseline:middle}` +
    ".name{font-weight:600}.part,.label{font-size:12px}.beside{text-anchor:start}";
  const head =
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">' +
    '<path d="M0 0 8 4 0 8z"/></marker></defs>';
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    "<title>How a service, Onceward, Postgres and Redis work together</title>",
    `<style>${style}</style>${head}`,
    ...arrows.map((arrow) => drawArrow(arrow, boxes)),
    ...all.map(drawBox),
    "</svg>",
  ].join("\n")}\n`;
}

const picture = parse(await readFile(SOURCE, "utf8"));
for (const scheme of ["light", "dark"] as const)
  await writeFile(new URL(`architecture-${scheme}.svg`, TARGET), draw(picture, SCHEMES[scheme]));
