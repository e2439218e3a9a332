import { formatEstimate, formatNoun } from "../../format/quantity.ts";
import { Runbook } from "../../parts/runbook.tsx";
import { StateMark } from "../../parts/state-mark.tsx";
import common from "../../styles/common.module.css";
import styles from "../../styles/screens.module.css";
import { degradedStates } from "./fleet-words.ts";

interface DegradedProps {
  readonly replicas: Parameters<typeof degradedStates>[0];
  /** Of all of them together. */
  readonly operationsPerSecond: number;
}

/** The degraded states of the replicas: what each means, and where the runbook says what to do. */
export function Degraded({ replicas, operationsPerSecond }: DegradedProps) {
  const states = degradedStates(replicas);
  if (states.length === 0) {
    return (
      <p className={common.answer}>
        <StateMark tone="good" word="Healthy" />
        {`: ${formatNoun(new Set(replicas.map(({ id }) => id)).size, "replica", "replicas")}, ${formatEstimate(operationsPerSecond)} operations a second`}
      </p>
    );
  }
  return (
    <ul className={`${common.plain} ${styles.findings}`} aria-label="Degraded states">
      {states.map(({ state, title, meaning, runbook, replicaIds }) => (
        <li key={state} className={common.card} data-edge="warning">
          <StateMark tone="attention" word={title} /> <code>{state}</code>
          <p>{meaning}</p>
          <p className={common.quiet}>
            On {replicaIds.join(", ")}. <Runbook section={runbook} />
          </p>
        </li>
      ))}
    </ul>
  );
}
