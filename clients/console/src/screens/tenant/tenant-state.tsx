import { Tenant_State } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { StateMark, type StateTone } from "../../parts/state-mark.tsx";

const MARKS: Readonly<Record<Tenant_State, { readonly tone: StateTone; readonly word: string }>> = {
  [Tenant_State.UNSPECIFIED]: { tone: "quiet", word: "Unknown" },
  [Tenant_State.ACTIVE]: { tone: "good", word: "Active" },
  [Tenant_State.SUSPENDED]: { tone: "attention", word: "Suspended" },
  [Tenant_State.MOVING]: { tone: "attention", word: "Moving" },
  [Tenant_State.DELETING]: { tone: "bad", word: "Being deleted" },
};

/** A tenant's state by shape and word. */
export function TenantStateMark({ state }: { readonly state: Tenant_State }) {
  const { tone, word } = MARKS[state] ?? MARKS[Tenant_State.UNSPECIFIED];
  return <StateMark tone={tone}>{word}</StateMark>;
}
