import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { ApiKey } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { describeHour } from "../../format/time.ts";
import common from "../../styles/common.module.css";
import { StateMark } from "../state-mark.tsx";
import { useNow } from "../time.tsx";
import { KEY_STATE_MARKS, keyState } from "./key-state.ts";

/** A key's state by shape and word. */
export function KeyStateMark({ apiKey, now }: { readonly apiKey: ApiKey; readonly now: Date }) {
  const { tone, word } = KEY_STATE_MARKS[keyState(apiKey, now)];
  return <StateMark tone={tone}>{word}</StateMark>;
}

/** When a key was last used. It is known to the hour, so that hour is named and no moment in it. */
export function LastUse({ at }: { readonly at: ApiKey["lastUsedAt"] }) {
  const now = useNow();
  if (at === undefined) return <span className={common.quiet}>not yet</span>;
  const hour = timestampDate(at);
  return <time dateTime={hour.toISOString()}>{describeHour(hour, now)}</time>;
}
