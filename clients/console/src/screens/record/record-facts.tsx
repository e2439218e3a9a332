import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { leaseOf } from "@onceward/decode/record-lease.ts";
import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import { Link } from "wouter";
import { formatHex } from "../../format/payload.ts";
import { Fact } from "../../parts/fact.tsx";
import { Payload } from "../../parts/payload.tsx";
import { Quantity } from "../../parts/quantity.tsx";
import { Time } from "../../parts/time.tsx";
import { UserText } from "../../parts/user-text.tsx";

/** The fields of a record; those that are not set are skipped. */
export function RecordFacts({ record }: { readonly record: Record }) {
  const { namespace, owner, fencingToken, attempt, releaseReason, checkpoint } = record;
  return (
    <section aria-labelledby="facts">
      <h2 id="facts">Facts</h2>
      <dl>
        <Fact name="Namespace">
          <Link href={`/namespaces/${encodeURIComponent(namespace)}`}>{namespace}</Link>
        </Fact>
        <Fact name="Owner">{owner === "" ? "none" : <UserText>{owner}</UserText>}</Fact>
        <Fact name="Attempt">
          <Quantity value={attempt} />
        </Fact>
        <Fact name="Fencing token">
          <code>{String(fencingToken)}</code>
        </Fact>
        <FingerprintFact record={record} />
        {checkpoint !== undefined && (
          <Fact name="Last checkpoint">
            <UserText>{checkpoint.name}</UserText>
            {checkpoint.state.length > 0 && <Payload bytes={checkpoint.state} name="its state" />}
          </Fact>
        )}
        <TimeFact name="First claimed" at={record.firstClaimedAt} />
        <TimeFact name="Claimed" at={record.claimedAt} />
        {leaseOf(record, new Date()) !== "settled" && (
          <TimeFact name="Lease end" at={record.leaseExpiresAt} />
        )}
        <TimeFact name="Completed" at={record.completedAt} />
        <TimeFact name="Released" at={record.releasedAt} />
        {releaseReason !== "" && (
          <Fact name="Release reason">
            <UserText>{releaseReason}</UserText>
          </Fact>
        )}
        <TimeFact name="Result kept until" at={record.resultExpiresAt} />
        <TimeFact name="Key kept until" at={record.expiresAt} />
      </dl>
    </section>
  );
}

function FingerprintFact({ record: { namespace, fingerprint } }: { readonly record: Record }) {
  const hex = formatHex(fingerprint);
  if (hex === "")
    return <Fact name="Fingerprint">none: a different request with this key would get this result</Fact>;
  return (
    <Fact name="Fingerprint">
      <code>{hex}</code>{" "}
      <Link href={`/records?${new URLSearchParams({ namespace, fingerprint: hex })}`}>
        Other records with it
      </Link>
    </Fact>
  );
}

function TimeFact({ name, at }: { readonly name: string; readonly at: Timestamp | undefined }) {
  if (at === undefined) return undefined;
  return (
    <Fact name={name}>
      <Time at={at} form="both" />
    </Fact>
  );
}
