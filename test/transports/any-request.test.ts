import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, test } from "vitest";
import {
  callsOf,
  createCaller,
  expectDefinite,
  type HostileCaller,
  RPCS,
} from "../support/attacks/hostile-calls.ts";
import {
  apart,
  type Change,
  fieldPaths,
  requestWith,
  type Subject,
} from "../support/attacks/hostile-requests.ts";
import { hostileFields } from "../support/attacks/hostile-values.ts";
import { useTarget } from "../support/attacks/hostility.ts";
import {
  bytes,
  type Encoded,
  setField,
  text,
  varint,
  type WireField,
  type WireValue,
} from "../support/attacks/wire-values.ts";
import { openSession } from "../support/network/open-session.ts";

/** Runs of each property, for each RPC. */
const RUNS = 12;

// On a busy machine, these requests may be slow.
const target = useTarget({ ONCEWARD_REQUEST_TIMEOUT: "30s" });

const INT64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n };
const anyInteger = fc.oneof(fc.bigInt({ min: 0n, max: 100n }), fc.bigInt(INT64));
const anyText = fc.string({ unit: "binary", maxLength: 300 });

/** A value of a field: a hostile one, or any. */
function anySetting(field: DescField): fc.Arbitrary<WireField | undefined> {
  const hostile = fc.constantFrom(undefined, ...hostileFields(field));
  if (field.message !== undefined || field.fieldKind === "map") return hostile;
  return fc.oneof(
    hostile,
    anyValue(field).map((value) => setField(field, value)),
  );
}

function anyValue({ scalar }: DescField): fc.Arbitrary<WireValue> {
  switch (scalar) {
    case ScalarType.STRING:
      return anyText.map(text);
    case ScalarType.BYTES:
      return fc.uint8Array({ maxLength: 100 }).map(bytes);
    default:
      return anyInteger.map((n) => varint(n));
  }
}

/** A valid request in which some fields have any value. */
function anyRequest(desc: DescMessage, subject: Subject): fc.Arbitrary<Encoded> {
  // The call would wait for a valid wait.
  const paths = fieldPaths(desc).filter((path) => path.at(-1)?.name !== "wait");
  if (paths.length === 0) return fc.constant(requestWith(desc, subject, []));
  const anyChange = fc
    .constantFrom(...paths)
    .chain((path) => anySetting(path.at(-1) as DescField).map((set): Change => ({ path, set })));
  return fc.array(anyChange, { maxLength: 6 }).map((changes) => requestWith(desc, subject, apart(changes)));
}

/** The bytes of a request with a few of them changed, or any bytes. */
function anyBytes(desc: DescMessage, subject: Subject): fc.Arbitrary<Encoded> {
  const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 });
  const changed = fc
    .tuple(anyRequest(desc, subject), changes)
    .map(([{ binary = new Uint8Array() }, some]) => {
      const message = Uint8Array.from(binary);
      for (const [at, byte] of some) message[at % Math.max(1, message.byteLength)] = byte;
      return message;
    });
  return fc.oneof(fc.uint8Array(), changed).map((binary) => ({ binary, json: undefined }));
}

/** JSON of any shape, with the names of some of the request's fields. */
function anyJson(desc: DescMessage): fc.Arbitrary<Encoded> {
  const named = fc.record(Object.fromEntries(desc.fields.map(({ jsonName }) => [jsonName, fc.jsonValue()])), {
    requiredKeys: [],
  });
  const anything = fc.oneof(
    fc.json(),
    named.map((value) => JSON.stringify(value)),
  );
  return anything.map((json) => ({ binary: undefined, json }));
}

describe.each(RPCS)("%s", (_title, method) => {
  async function expectAnswered(caller: HostileCaller, request: fc.Arbitrary<Encoded>): Promise<void> {
    await fc.assert(
      fc.asyncProperty(request, async (encoded) => {
        for (const call of callsOf(encoded)) expectDefinite(await caller.call(call));
      }),
      { numRuns: RUNS },
    );
    await target.expectUnharmed();
  }

  test("any request gets an answer from the catalogue on both ports", async () => {
    const caller = await createCaller(target, await openSession(target.server.grpcPort), method);
    await expectAnswered(caller, anyRequest(method.input, caller));
  });

  test("any bytes and any JSON get an answer from the catalogue", async () => {
    const caller = await createCaller(target, await openSession(target.server.grpcPort), method);
    await expectAnswered(caller, fc.oneof(anyBytes(method.input, caller), anyJson(method.input)));
  });
});
