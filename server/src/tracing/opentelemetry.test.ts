import { ExportResultCode } from "@opentelemetry/core";
import type { SpanExporter } from "@opentelemetry/sdk-trace-base";
import type { Logger } from "pino";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { createReportingExporter } from "./opentelemetry.ts";

const failing: SpanExporter = {
  export: (_, onResult) => onResult({ code: ExportResultCode.FAILED, error: new Error("x".repeat(5000)) }),
  shutdown: async () => {},
};

describe("an exporter whose collector is down", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    onTestFinished(() => {
      vi.useRealTimers();
    });
  });

  test("is logged once a minute with the number of problems, and counted each time", () => {
    const warn = vi.fn();
    const onExportFailed = vi.fn();
    const log = { warn } as Pick<Logger, "warn"> as Logger;
    const exporter = createReportingExporter(failing, { log, onExportFailed });
    const onResult = vi.fn();
    for (let seconds = 0; seconds < 120; seconds++) {
      exporter.export([], onResult);
      vi.advanceTimersByTime(1000);
    }
    expect(onExportFailed).toHaveBeenCalledTimes(120);
    expect(onResult.mock.calls).toEqual(Array(120).fill([{ code: ExportResultCode.SUCCESS }]));
    const problem = "x".repeat(200);
    expect(warn.mock.calls.map(([fields]) => fields)).toEqual([
      { problem, problems: 1 },
      { problem, problems: 60 },
    ]);
  });
});
