import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { useState } from "react";
import { type Expiry, expiryDate } from "../../parts/api-key/expiry.ts";
import { ExpiryField } from "../../parts/api-key/expiry-field.tsx";
import type { NewSecret } from "../../parts/api-key/secret-panel.tsx";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { TextField } from "../../parts/field.tsx";
import { useRefresh } from "../../parts/refresh.ts";
import styles from "./tenants.module.css";

interface CreateOperatorKeyProps {
  readonly created: (secret: NewSecret) => void;
  readonly close: () => void;
}

/** The form of an operator's key. It calls the API directly: a mutation's answer would stay in the cache. */
export function CreateOperatorKey({ created, close }: CreateOperatorKeyProps) {
  const client = createClient(OperatorService, useTransport());
  const refresh = useRefresh();
  const [label, setLabel] = useState("");
  const [expiry, setExpiry] = useState<Expiry>("90");

  async function act(): Promise<void> {
    const expiresAt = expiryDate(expiry, new Date());
    const apiKey = { label: label.trim(), ...(expiresAt && { expiresAt: timestampFromDate(expiresAt) }) };
    const answer = await client.createOperatorApiKey({ apiKey });
    created({ id: answer.apiKey?.id ?? "", label: label.trim(), secret: answer.secret });
    // Not awaited: the secret is shown even if the list can't be read.
    void refresh(OperatorService.method.listOperatorApiKeys, OperatorService.method.listAuditEvents);
  }

  return (
    <ConfirmDialog title="Create an operator's key" action="Create the key" act={act} close={close}>
      <div className={styles.fields}>
        <p>
          It may do everything that this console may: for all tenants, but without their records. To rotate a
          key, create its successor, switch to it, and revoke the old one.
        </p>
        <TextField
          label="Purpose"
          help="Who has it, or what uses it: at most 128 bytes."
          value={label}
          onChange={(event) => setLabel(event.target.value)}
        />
        <ExpiryField value={expiry} change={setExpiry} />
      </div>
    </ConfirmDialog>
  );
}
