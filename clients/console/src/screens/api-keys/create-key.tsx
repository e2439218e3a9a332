import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ApiKey_Role } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { type FormEvent, useState } from "react";
import { type Expiry, expiryDate } from "../../parts/api-key/expiry.ts";
import { ExpiryField } from "../../parts/api-key/expiry-field.tsx";
import type { NewSecret } from "../../parts/api-key/secret-panel.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { SelectField, TextArea, TextField } from "../../parts/field.tsx";
import { FailureText } from "../../parts/list-states.tsx";
import { readFailure } from "../../session/failure.ts";
import styles from "./api-keys.module.css";
import { parseNamespaces } from "./key-states.ts";
import { useCreateKey } from "./use-key-calls.ts";

interface CreateKeyProps {
  readonly created: (secret: NewSecret) => void;
  readonly close: () => void;
}

/** The form of a new key. */
export function CreateKey({ created, close }: CreateKeyProps) {
  const createKey = useCreateKey();
  const [role, setRole] = useState<ApiKey_Role>(ApiKey_Role.CALLER);
  const [label, setLabel] = useState("");
  const [namespaces, setNamespaces] = useState("");
  const [expiry, setExpiry] = useState<Expiry>("90");
  const [error, setError] = useState<unknown>();
  const [waiting, setWaiting] = useState(false);

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault();
    setWaiting(true);
    setError(undefined);
    try {
      const expiresAt = expiryDate(expiry, new Date());
      const made = await createKey({
        ...{ role, label: label.trim(), namespaces: [...parseNamespaces(namespaces)] },
        expiresAt: expiresAt && timestampFromDate(expiresAt),
      });
      close();
      created(made);
    } catch (thrown) {
      setError(thrown);
      setWaiting(false);
    }
  }

  return (
    <Dialog title="Create a key" close={close}>
      <form className={styles.form} onSubmit={(event) => void submit(event)}>
        <SelectField
          label="Role"
          value={role}
          help="A caller claims and completes. An administrator changes policies, records and keys."
          onChange={(event) => setRole(Number(event.target.value) as ApiKey_Role)}
        >
          <option value={ApiKey_Role.CALLER}>Caller</option>
          <option value={ApiKey_Role.TENANT_ADMIN}>Tenant admin</option>
        </SelectField>
        <TextField
          label="Purpose"
          help="Shown in the list, such as the name of a service: at most 128 bytes."
          value={label}
          onChange={(event) => setLabel(event.target.value)}
        />
        <TextArea
          label="Namespaces"
          help="The only ones that the key is valid for, separated by spaces or lines. Empty: all."
          rows={2}
          value={namespaces}
          onChange={(event) => setNamespaces(event.target.value)}
        />
        <ExpiryField value={expiry} change={setExpiry} />
        <div role="alert" className={styles.failure}>
          {error !== undefined && <FailureText failure={readFailure(error)} />}
        </div>
        <div className={styles.buttons}>
          <button type="submit" disabled={waiting}>
            {waiting ? "Working" : "Create the key"}
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
