import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { type Record, Record_State, Result_Kind } from "@onceward/gen/onceward/v1/record_pb.ts";
import { type GetKeyHistoryResponse, TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { keyHistoryOf, NO_HISTORY } from "@onceward/words/key-history";
import { formatHex } from "@onceward/words/payload";
import { leaseOf } from "@onceward/words/record-lease";
import { Link } from "wouter";
import { formatCount, formatNoun } from "../../format/quantity.ts";
import { Facts } from "../../parts/facts.tsx";
import { Unanswered } from "../../parts/list-states.tsx";
import { Hidden, Payload } from "../../parts/payload.tsx";
import { StateMark } from "../../parts/state-mark.tsx";
import { Time } from "../../parts/time.tsx";
import { UserText } from "../../parts/user-text.tsx";
import { useLiveInterval } from "../../shell/live.ts";
import common from "../../styles/common.module.css";

/** The fields of a record; those that are not set are skipped. */
export function RecordFacts({ record }: { readonly record: Record }) {
  const { namespace, owner, fencingToken, attempt, releaseReason, checkpoint } = record;
  return (
    <section aria-labelledby="facts">
      <h2 id="facts">Facts</h2>
      <Facts
        of={{
          Namespace: <Link href={`/namespaces/${encodeURIComponent(namespace)}`}>{namespace}</Link>,
          Owner: owner === "" ? "none" : <UserText>{owner}</UserText>,
          Attempt: formatCount(attempt),
          "Fencing token": <code>{String(fencingToken)}</code>,
          Fingerprint: <Fingerprint record={record} />,
          "Last checkpoint": checkpoint && (
            <>
              <UserText>{checkpoint.name}</UserText>
              {checkpoint.state.length > 0 && <Payload bytes={checkpoint.state} name="its state" />}
            </>
          ),
          "First claimed": timeFact(record.firstClaimedAt),
          Claimed: timeFact(record.claimedAt),
          "Lease end": leaseOf(record, new Date()) !== "settled" && timeFact(record.leaseExpiresAt),
          Completed: timeFact(record.completedAt),
          Released: timeFact(record.releasedAt),
          "Release reason": releaseReason !== "" && <UserText>{releaseReason}</UserText>,
          "Result kept until": timeFact(record.resultExpiresAt),
          "Key kept until": timeFact(record.expiresAt),
        }}
      />
    </section>
  );
}

function Fingerprint({ record: { namespace, fingerprint } }: { readonly record: Record }) {
  const hex = formatHex(fingerprint);
  if (hex === "") return "none: a different request with this key would get this result";
  return (
    <>
      <code>{hex}</code>{" "}
      <Link href={`/records?${new URLSearchParams({ namespace, fingerprint: hex })}`}>
        Other records with it
      </Link>
    </>
  );
}

function timeFact(at: Timestamp | undefined) {
  return at && <Time at={at} form="both" />;
}

const FAILED = { tone: "bad", word: "permanent failure" } as const;
const SUCCEEDED = { tone: "good", word: "success" } as const;

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
            <StateMark {...(result.kind === Result_Kind.FAILURE ? FAILED : SUCCEEDED)} />
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
  const entries = Object.entries(metadata);
  if (entries.length === 0) return undefined;
  const texts = entries.map(([name, value]) => [name, <UserText key={name}>{value}</UserText>] as const);
  return (
    <Hidden name="the metadata" about={formatNoun(entries.length, "entry", "entries")}>
      <Facts of={Object.fromEntries(texts)} />
    </Hidden>
  );
}

/** A replica stores what it counted every 5 s. */
const REFRESH_MS = 5_000;

/** Reads what became of calls on a key that did not get its claim. */
export function useKeyHistory(namespace: string, key: string) {
  return useQuery(
    TenantAdminService.method.getKeyHistory,
    { namespace, key },
    { refetchInterval: useLiveInterval(REFRESH_MS) },
  );
}

/** How often a key was repeated and refused, as one sentence, what became of these calls, and since when. */
export function Duplicates({ query }: { readonly query: ReturnType<typeof useKeyHistory> }) {
  return (
    <section aria-labelledby="duplicates">
      <h2 id="duplicates">Duplicates and refusals</h2>
      {query.data === undefined ? <Unanswered query={query} rows={2} /> : <Counts history={query.data} />}
    </section>
  );
}

function Counts({ history }: { readonly history: GetKeyHistoryResponse }) {
  const { answer, parts } = keyHistoryOf(history);
  if (answer === undefined) {
    return <p className={common.quiet}>{NO_HISTORY}</p>;
  }
  return (
    <>
      <p>
        <b>{answer}</b> First <Time at={history.firstAt} />, last <Time at={history.lastAt} />.
      </p>
      <ul>
        {parts.map((part) => (
          <li key={part}>{part}</li>
        ))}
      </ul>
    </>
  );
}
