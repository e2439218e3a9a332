import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import { recordHref } from "@onceward/words/record-address";
import { useRef } from "react";
import { Link, useLocation } from "wouter";
import { pageHref, useQueryText } from "../../parts/pages.ts";
import { useShortcut } from "../../shell/use-shortcut.ts";
import common from "../../styles/common.module.css";
import { filterWords } from "../ambiguous/filters.ts";
import { groupsOf, useQueue, useQueueFilters } from "../ambiguous/queue.ts";

/** The path of the queue, below which its records are. */
export const QUEUE_PATH = "/ambiguous";

/** Where the records around one are; undefined: there is none on the queue's page. */
interface Place {
  /** Such as "3 of 78 ambiguous records"; empty: the record is not in the queue. */
  readonly position: string;
  readonly previous?: string;
  readonly next: string;
}

/**
 * Returns the links from a record to those around it in the queue, which the keys J and K follow, and where a decision leads: to the
 * next record, or to the queue after the last one. A record that was settled leaves the queue, and keeps its place until then.
 */
export function useQueueSteps(record: Record | undefined) {
  const search = useQueryText();
  const [, navigate] = useLocation();
  const filters = useQueueFilters();
  const { data } = useQueue(filters);
  const known = useRef<Place>(undefined);
  const queue = `${QUEUE_PATH}${search === "" ? "" : `?${search}`}`;
  const rows = groupsOf(data?.records ?? []).flatMap((group) => group.rows);
  const at = rows.findIndex(({ namespace, key }) => namespace === record?.namespace && key === record.key);
  if (data !== undefined && at >= 0) {
    const hrefOf = (row: Record | undefined) =>
      row && recordHref(row.namespace, row.key, "ambiguous", search);
    const { nextPageToken: token } = data;
    const previous = hrefOf(rows[at - 1]);
    known.current = {
      position:
        `${at + 1} of ${rows.length} ambiguous records ${token && "on this page "}${filterWords(filters)}`.trim(),
      ...(previous && { previous }),
      next: hrefOf(rows[at + 1]) ?? (token === "" ? queue : `${QUEUE_PATH}${pageHref(search, token)}`),
    };
  }
  const { position = "", previous, next = queue } = known.current ?? {};
  useShortcut("j", "Next record of the queue", () => navigate(next));
  useShortcut("k", "Record before", () => previous && navigate(previous));
  const nav = (
    <nav aria-label="Queue" className={common.links}>
      {previous !== undefined && <Link {...{ href: previous, "data-key": "K" }}>Previous</Link>}
      <Link {...{ href: next, "data-key": "J" }}>Next</Link>
      <span className={common.quiet}>{position}</span>
    </nav>
  );
  return { nav, next };
}
