import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type ApiKey, ApiKey_Role } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";
import { DAY_MS } from "../../format/duration.ts";
import { roleWords } from "../../session/session.ts";
import common from "../../styles/common.module.css";
import { ConfirmDialog } from "../confirm-dialog.tsx";
import { SelectField, TextArea, TextField } from "../field.tsx";
import { parseNamespaces } from "./key-state.ts";
import type { CreateProps, NewSecret } from "./secret-panel.tsx";

/** What a new key may do. */
export type KeyTerms = Pick<ApiKey, "role" | "label" | "namespaces"> & { readonly expiresAt?: Timestamp };

interface CreateKeyDialogProps extends CreateProps {
  readonly title: string;
  readonly lead?: string;
  /** The first is chosen. A single one is not asked for. */
  readonly roles: readonly ApiKey_Role[];
  /** Ask for the namespaces that the key is valid for. */
  readonly isLimitable?: boolean;
  /** Creates the key. The secret goes to `created` and to no cache. */
  readonly create: (terms: KeyTerms) => Promise<NewSecret>;
}

/** The form of a new key. */
export function CreateKeyDialog(props: CreateKeyDialogProps) {
  const { title, lead, roles, isLimitable = false, create, created, close } = props;
  const [role, setRole] = useState(roles[0] ?? ApiKey_Role.UNSPECIFIED);
  const [label, setLabel] = useState("");
  const [namespaces, setNamespaces] = useState("");
  const [expiry, setExpiry] = useState<Expiry>("90");

  async function act(): Promise<void> {
    const terms = { role, label: label.trim(), namespaces: [...parseNamespaces(namespaces)] };
    created(await create({ ...terms, ...expiryField(expiry) }));
  }

  return (
    <ConfirmDialog title={title} action="Create the key" act={act} close={close}>
      <div className={common.stack}>
        {lead !== undefined && <p>{lead}</p>}
        {roles.length > 1 && (
          <SelectField
            label="Role"
            value={role}
            options={Object.fromEntries(roles.map((each) => [each, roleWords(each)]))}
            help="A caller claims and completes. An administrator changes policies, records and keys."
            onChange={({ target }) => setRole(Number(target.value) as ApiKey_Role)}
          />
        )}
        <TextField
          label="Purpose"
          help="Shown in the list, such as the name of a service: at most 128 bytes."
          value={label}
          onChange={({ target }) => setLabel(target.value)}
        />
        {isLimitable && (
          <TextArea
            label="Namespaces"
            help="The only ones that the key is valid for, separated by spaces or commas. Empty: all."
            rows={2}
            value={namespaces}
            onChange={({ target }) => setNamespaces(target.value)}
          />
        )}
        <ExpiryField value={expiry} change={setExpiry} />
      </div>
    </ConfirmDialog>
  );
}

/** When a new key expires: after days, or never. */
export type Expiry = "30" | "90" | "365" | "never";

const EXPIRIES: Readonly<Record<Expiry, string>> = {
  "30": "In 30 days",
  "90": "In 90 days",
  "365": "In a year",
  never: "Never",
};

/** Returns the field of a request for a key that expires as chosen. */
export function expiryField(expiry: Expiry): { readonly expiresAt?: Timestamp } {
  if (expiry === "never") return {};
  return { expiresAt: timestampFromDate(new Date(Date.now() + Number(expiry) * DAY_MS)) };
}

interface ExpiryFieldProps {
  readonly value: Expiry;
  readonly change: (expiry: Expiry) => void;
}

/** The choice of when a new key expires. */
export function ExpiryField({ value, change }: ExpiryFieldProps) {
  return (
    <SelectField
      label="Expires"
      value={value}
      options={EXPIRIES}
      onChange={(event) => change(event.target.value as Expiry)}
    />
  );
}
