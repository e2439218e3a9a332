import { useId } from "react";
import common from "../styles/common.module.css";
import styles from "../styles/policy.module.css";
import {
  fieldWords,
  POLICY_FIELDS,
  type PolicyField,
  type PolicyText,
  SERVICE_DEFAULTS,
} from "./policy-fields.ts";

interface PolicyRowProps {
  readonly field: PolicyField;
  /** As typed. */
  readonly text: string;
  readonly savedText: string;
  readonly isChanged: boolean;
  readonly inForce: string;
  readonly tenantOwn: PolicyText | undefined;
  readonly problem: string | undefined;
  readonly type: (text: string) => void;
}

/** A field of a policy: its own value to type, the inherited one, and the one in force. */
export function PolicyRow(props: PolicyRowProps) {
  const { field, text, savedText, isChanged, inForce, tenantOwn, problem, type } = props;
  const { label, help } = POLICY_FIELDS[field];
  const id = useId();
  return (
    <div className={styles.row} data-changed={isChanged}>
      <div>
        <label htmlFor={id}>{label}</label>
        <div id={`${id}-help`} className={common.note}>
          {help}
        </div>
      </div>
      <div className={styles.own}>
        <OwnValue {...props} id={id} />
        <div className={common.row}>
          {text !== "" && (
            <button type="button" data-look="link" onClick={() => type("")}>
              Inherit<span className={common.hidden}> the {label.toLowerCase()}</span>
            </button>
          )}
          {isChanged && (
            <button type="button" data-look="link" onClick={() => type(savedText)}>
              Undo<span className={common.hidden}> the {label.toLowerCase()}</span>
            </button>
          )}
        </div>
        <div id={`${id}-problem`} className={common.note} data-problem="true">
          {problem}
        </div>
      </div>
      <div className={styles.value}>
        <span className={styles.narrow}>Inherited: </span>
        {inheritedWords(field, tenantOwn)}
      </div>
      <div className={styles.value}>
        <span className={styles.narrow}>Effective: </span>
        {inForce === "" ? "none" : fieldWords(field, inForce)}
      </div>
    </div>
  );
}

function OwnValue({ field, text, problem, type, id }: PolicyRowProps & { readonly id: string }) {
  const { choices } = POLICY_FIELDS[field];
  const shared = {
    id,
    value: text,
    "aria-invalid": problem !== undefined,
    "aria-describedby": `${id}-help ${id}-problem`,
  };
  if (choices === undefined) {
    return (
      <input
        {...shared}
        autoComplete="off"
        spellCheck={false}
        placeholder="inherited"
        onChange={(event) => type(event.target.value)}
      />
    );
  }
  return (
    <select {...shared} onChange={(event) => type(event.target.value)}>
      <option value="">inherited</option>
      {Object.entries(choices).map(([value, words]) => (
        <option key={value} value={value}>
          {words}
        </option>
      ))}
    </select>
  );
}

function inheritedWords(field: PolicyField, tenantOwn: PolicyText | undefined) {
  const ofTenant = tenantOwn?.[field] ?? "";
  if (ofTenant !== "") {
    return (
      <>
        {fieldWords(field, ofTenant)} <span className={common.quiet}>from the tenant</span>
      </>
    );
  }
  if (field === "resultRetention") return "as the key retention";
  if (field === "failureRetention") return "as the result retention";
  if (field === "providerLink") return "none";
  return (
    <>
      {fieldWords(field, SERVICE_DEFAULTS[field])} <span className={common.quiet}>default</span>
    </>
  );
}
