import { type Record, Record_State, Result_Kind } from "@onceward/gen/onceward/v1/record_pb.ts";
import { useState } from "react";
import { formatNoun } from "../../format/quantity.ts";
import { Payload } from "../../parts/payload.tsx";
import { StateMark } from "../../parts/state-mark.tsx";
import { UserText } from "../../parts/user-text.tsx";
import common from "../../styles/common.module.css";

/** The result of a completed record. Its payload and its metadata are shown when a person asks for them. */
export function RecordResult({ record: { state, result, resultExpired } }: { readonly record: Record }) {
  if (state !== Record_State.COMPLETED) return undefined;
  return (
    <section aria-labelledby="result">
      <h2 id="result">Result</h2>
      {result === undefined && (
        <p>
          {resultExpired
            ? "The retention of the result has ended. The key is still remembered: a duplicate is refused without a result."
            : "There is no result."}
        </p>
      )}
      {result !== undefined && (
        <>
          <p>
            {result.kind === Result_Kind.FAILURE ? (
              <StateMark tone="bad" word="permanent failure" />
            ) : (
              <StateMark tone="good" word="success" />
            )}
          </p>
          <div className={common.stack}>
            <Payload bytes={result.payload} name="the result" contentType={result.contentType} />
            <Metadata metadata={result.metadata} />
          </div>
        </>
      )}
    </section>
  );
}

function Metadata({ metadata }: { readonly metadata: Readonly<{ [name: string]: string }> }) {
  const [isShown, setShown] = useState(false);
  const entries = Object.entries(metadata);
  if (entries.length === 0) return undefined;
  return (
    <div>
      <button type="button" aria-expanded={isShown} onClick={() => setShown(!isShown)}>
        {isShown ? "Hide the metadata" : "Show the metadata"}
      </button>{" "}
      {formatNoun(entries.length, "entry", "entries")}
      {isShown && (
        <dl>
          {entries.map(([name, value]) => (
            <div key={name}>
              <dt>
                <UserText>{name}</UserText>
              </dt>
              <dd>
                <UserText>{value}</UserText>
              </dd>
            </div>
          ))}
        </dl>
      )}
    </div>
  );
}
