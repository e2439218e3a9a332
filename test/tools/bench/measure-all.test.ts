import { expect, test } from "vitest";
import type { Bench } from "./figure.ts";
import type { FigureId, Finding } from "./finding.ts";
import { type Measurement, measureAll } from "./measure-all.ts";

const only = new Set<FigureId>(["P1", "P2", "P3"]);
const benchWith = (signal: AbortSignal) => ({ options: { only }, signal }) as unknown as Bench;

function measurementOf(id: FigureId, measure = () => {}): Measurement {
  return {
    of: [id],
    figure: async () => {
      measure();
      return [{ figure: id } as Finding];
    },
  };
}

test("a figure that cannot be measured costs no other", async () => {
  const failing = measurementOf("P2", () => {
    throw new Error("rows fell due");
  });
  const all = [measurementOf("P3"), failing, measurementOf("P1"), measurementOf("P4")];
  const { findings, failures } = await measureAll(all, benchWith(new AbortController().signal));
  expect(findings.map(({ figure }) => figure)).toEqual(["P1", "P3"]);
  expect(failures).toEqual(["P2: rows fell due"]);
});

test("an interruption keeps what was measured", async () => {
  const interruption = new AbortController();
  const interrupt = measurementOf("P1", () => interruption.abort(new Error("interrupted")));
  const { findings, failures } = await measureAll(
    [interrupt, measurementOf("P2")],
    benchWith(interruption.signal),
  );
  expect(findings.map(({ figure }) => figure)).toEqual(["P1"]);
  expect(failures).toEqual(["P2: interrupted"]);
});
