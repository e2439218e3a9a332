import { callUnaryMethod, useTransport } from "@connectrpc/connect-query";
import { useState } from "react";
import { formatCount, formatNoun } from "../../format/quantity.ts";
import { download } from "../../parts/download.ts";
import { ActionError } from "../../parts/list-states.tsx";
import { readPages, useQueryText } from "../../parts/pages.ts";
import common from "../../styles/common.module.css";
import { type ExportFormat, exportText } from "./export-format.ts";
import { type Filters, requestOf, useEventList } from "./filters.ts";

/** The server's largest page. */
const PAGE_SIZE = 1_000;
/** More would be a file that no spreadsheet opens well, and some 10 MB of memory of the page. */
const MAX_EXPORTED = 10_000;

const TYPES: Readonly<Record<ExportFormat, string>> = {
  csv: "text/csv;charset=utf-8",
  jsonl: "application/jsonl;charset=utf-8",
};

/** An export that is running: how many events it has, and its end. */
interface Running {
  readonly count: number;
  readonly controller: AbortController;
}

/** Saves the events that match the filters as a file. The page makes it from pages of the list: nothing is kept on the server. */
export function ExportButtons({ filters }: { readonly filters: Filters }) {
  const list = useEventList();
  const transport = useTransport();
  const request = { ...requestOf(filters), pageSize: PAGE_SIZE };
  const search = useQueryText();
  const [running, setRunning] = useState<Running>();
  /** Of another list, what was saved says nothing. */
  const [saved, setSaved] = useState({ search, words: "" });
  const [error, setError] = useState<unknown>();

  async function save(format: ExportFormat): Promise<void> {
    const controller = new AbortController();
    setRunning({ count: 0, controller });
    setError(undefined);
    try {
      const { rows: events, isCut } = await readPages(
        (pageToken) =>
          callUnaryMethod(transport, list, { ...request, pageToken }, { signal: controller.signal }),
        (page) => page.events,
        { max: MAX_EXPORTED, progressed: (count) => setRunning({ count, controller }) },
      );
      download(`onceward-audit.${format}`, new Blob([exportText(format, events)], { type: TYPES[format] }));
      const words = isCut
        ? `Saved the newest ${formatCount(MAX_EXPORTED)} events. Older ones were skipped: set "Before" to the last time in the file for them.`
        : `Saved ${formatNoun(events.length, "event", "events")}.`;
      setSaved({ search, words });
    } catch (thrown) {
      if (!controller.signal.aborted) setError(thrown);
    } finally {
      setRunning(undefined);
    }
  }

  return (
    <>
      <p className={common.row}>
        <span>Save the events that match, at most {formatCount(MAX_EXPORTED)}:</span>
        <button type="button" disabled={running !== undefined} onClick={() => void save("csv")}>
          CSV
        </button>
        <button type="button" disabled={running !== undefined} onClick={() => void save("jsonl")}>
          JSON lines
        </button>
        {running !== undefined && (
          <>
            <span className={common.quiet}>{formatNoun(running.count, "event", "events")} read</span>
            <button type="button" onClick={() => running.controller.abort()}>
              Stop
            </button>
          </>
        )}
      </p>
      <p role="status">{saved.search === search && saved.words}</p>
      <ActionError error={error} />
    </>
  );
}
