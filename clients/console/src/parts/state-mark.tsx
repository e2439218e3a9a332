import { useConnection } from "../session/connection.ts";
import styles from "../styles/parts.module.css";

/** How a state is to be taken. Each has a shape of its own, for those who do not see its colour. */
export type StateTone = "good" | "busy" | "attention" | "bad" | "quiet";

const SHAPES: Readonly<Record<StateTone, string>> = {
  good: "M2 5.5 4.5 8 8.5 2.5",
  busy: "M5 1.5a3.5 3.5 0 1 0 3.5 3.5",
  attention: "M5 1 9 8.5H1Z",
  bad: "M2 2 8 8M8 2 2 8",
  quiet: "M2 5h6",
};

/** A state as a shape and a word. */
export interface Mark {
  readonly tone: StateTone;
  readonly word: string;
}

/** Shows a state. While the server does not answer, nothing is known to be good. */
export function StateMark({ tone, word }: Mark) {
  const { connection } = useConnection();
  const shown = tone === "good" && connection !== "answering" ? "quiet" : tone;
  return (
    <span className={styles.mark} data-tone={shown}>
      <svg viewBox="0 0 10 10" aria-hidden="true">
        <path d={SHAPES[shown]} />
      </svg>
      {word}
    </span>
  );
}
