import {
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  SortOrder,
  TooltipDisplayMode,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
} from "@grafana/grafana-foundation-sdk/common";
import { ThresholdsConfigBuilder, ThresholdsMode } from "@grafana/grafana-foundation-sdk/dashboard";
import { DataqueryBuilder } from "@grafana/grafana-foundation-sdk/prometheus";
import { PanelBuilder as StatBuilder } from "@grafana/grafana-foundation-sdk/stat";
import { PanelBuilder as TimeSeriesBuilder } from "@grafana/grafana-foundation-sdk/timeseries";

/** The data source that is selected in the dashboard. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of Grafana.
export const PROMETHEUS = { type: "prometheus", uid: "${datasource}" };

/** PromQL expressions by the name of their series, such as `{{label}}`. */
export type Queries = Readonly<Record<string, string>>;

/** A panel. */
export interface PanelOptions {
  readonly title: string;
  readonly description: string;
  /** An id of Grafana: `s`, `bytes`, `ops`, `percentunit`, `short`. */
  readonly unit: string;
  readonly queries: Queries;
  /** Ask for the present value only: one over weeks would be computed for each point of a line. */
  readonly isInstant?: true;
  /** `figure`: the last number of each series. Unset: lines over time. */
  readonly kind?: "figure";
  /** A figure is red from this number on. */
  readonly redFrom?: number;
  /** A figure is red below this number. */
  readonly redBelow?: number;
  /** A figure has the size of a chart. */
  readonly isLarge?: true;
}

/** Of 24 columns. */
const CHART_WIDTH = 8;
const CHART_HEIGHT = 8;
const FIGURE_WIDTH = 4;
const FIGURE_HEIGHT = 4;

/** Returns a panel; `id` is unique in its dashboard. */
export function panel(options: PanelOptions, id: number): StatBuilder | TimeSeriesBuilder {
  const made = options.kind === "figure" ? figure(options) : chart();
  return made
    .id(id)
    .title(options.title)
    .description(options.description)
    .datasource(PROMETHEUS)
    .unit(options.unit)
    .targets(
      Object.entries(options.queries).map(([legend, expr], index) => target(options, legend, expr, index)),
    );
}

function chart(): TimeSeriesBuilder {
  return new TimeSeriesBuilder()
    .min(0)
    .fillOpacity(10)
    .span(CHART_WIDTH)
    .height(CHART_HEIGHT)
    .legend(
      new VizLegendOptionsBuilder()
        .showLegend(true)
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom),
    )
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending));
}

function figure({ redFrom, redBelow, isLarge }: PanelOptions): StatBuilder {
  const red = redFrom === undefined ? [] : [{ value: redFrom, color: "red" }];
  const steps =
    redBelow === undefined
      ? [{ value: null, color: "green" }, ...red]
      : [
          { value: null, color: "red" },
          { value: redBelow, color: "green" },
        ];
  return new StatBuilder()
    .thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps))
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(["lastNotNull"]))
    .span(isLarge ? CHART_WIDTH : FIGURE_WIDTH)
    .height(isLarge ? CHART_HEIGHT : FIGURE_HEIGHT);
}

function target({ isInstant }: PanelOptions, legend: string, expr: string, index: number): DataqueryBuilder {
  const made = new DataqueryBuilder()
    .expr(expr)
    .legendFormat(legend)
    .refId(String.fromCharCode(65 + index));
  return isInstant ? made.instant() : made.range();
}
