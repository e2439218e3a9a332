import type { ApiKey } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { StateMark } from "../state-mark.tsx";
import { Time } from "../time.tsx";
import styles from "./api-key.module.css";
import { KEY_STATE_MARKS, keyState } from "./key-state.ts";

/** A key's state by shape and word. */
export function KeyStateMark({ apiKey, now }: { readonly apiKey: ApiKey; readonly now: Date }) {
  const { tone, word } = KEY_STATE_MARKS[keyState(apiKey, now)];
  return <StateMark tone={tone}>{word}</StateMark>;
}

/** When a key was last used. */
export function LastUse({ at }: { readonly at: ApiKey["lastUsedAt"] }) {
  return at === undefined ? <span className={styles.quiet}>not yet</span> : <Time at={at} />;
}
