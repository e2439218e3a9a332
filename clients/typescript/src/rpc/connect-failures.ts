import { create, toBinary } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { IDEMPOTENCY_REPLAYED } from "../keys/idempotency-key.ts";
import type { FailureDetail } from "./failure.ts";
import type { Failures } from "./guard.ts";

/** Reads and makes Connect's errors. Their metadata is not stored. */
export const connectFailures: Failures = {
  read(error) {
    if (!(error instanceof ConnectError)) return undefined;
    return { code: error.code, message: error.rawMessage, details: error.details.map(readDetail) };
  },
  make({ code, message, details }, { replayed, cause }) {
    const metadata = replayed ? { [IDEMPOTENCY_REPLAYED]: "true" } : {};
    const error = new ConnectError(message, code, metadata, [], cause);
    error.details = [...details];
    return error;
  },
};

/** Returns a detail's bytes. Details are messages in the process that made the error, and bytes when received. */
function readDetail(detail: ConnectError["details"][number]): FailureDetail {
  if (!("desc" in detail)) return { type: detail.type, value: detail.value };
  return { type: detail.desc.typeName, value: toBinary(detail.desc, create(detail.desc, detail.value)) };
}
